#include "notify/message_calls.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

#include "notify/listener.h"

namespace sandbox_run {
namespace {

// A call may do fewer than it is given.
constexpr uint64_t kMostMessages = 64;

bool HasSeveral(int number) { return number == SYS_sendmmsg || number == SYS_recvmmsg; }

}  // namespace

bool CallMessage::ReadHeader(Target& target, uint64_t header) {
  msghdr read = {};
  if (!target.Read(header, &read, sizeof(read)) || read.msg_iovlen > IOV_MAX) return false;
  header_ = header;
  name_ = reinterpret_cast<uint64_t>(read.msg_name);
  name_room_ = static_cast<int32_t>(read.msg_namelen);
  name_length_at_ = header + offsetof(msghdr, msg_namelen);
  std::vector<iovec> pieces(read.msg_iovlen);
  const size_t size = pieces.size() * sizeof(iovec);
  if (size > 0 && !target.Read(reinterpret_cast<uint64_t>(read.msg_iov), pieces.data(), size))
    return false;
  for (const iovec& piece : pieces)
    pieces_.push_back({reinterpret_cast<uint64_t>(piece.iov_base), piece.iov_len});
  return true;
}

int CallMessage::ReadAddress(Target& target, SocketAddress& into) const {
  return target.ReadAddress(name_, name_room_, into);
}

int CallMessage::ReadBytes(Target& target, std::string& into) const {
  into.clear();
  for (const Piece& piece : pieces_) {
    if (piece.size > kLargestDatagram - into.size()) return EMSGSIZE;
    const size_t before = into.size();
    into.resize(before + piece.size);
    if (piece.size > 0 && !target.Read(piece.at, into.data() + before, piece.size)) return EFAULT;
  }
  return 0;
}

bool CallMessage::WriteCount(Target& target, uint32_t count) const {
  return count_at_ == 0 || target.Write(count_at_, &count, sizeof(count));
}

void CallMessage::WriteName(Target& target, const SocketAddress& from) const {
  int room = 0;
  if (name_ == 0 || !target.Read(name_length_at_, &room, sizeof(room))) return;
  if (room < 0 || static_cast<socklen_t>(room) < from.length) return;
  [[maybe_unused]] const bool is_written = target.Write(name_, &from.storage, from.length);
}

int64_t CallMessage::WriteReceived(Target& target, const std::string& bytes,
                                   const SocketAddress& from) const {
  size_t written = 0;
  for (const Piece& piece : pieces_) {
    const size_t part = std::min<size_t>(piece.size, bytes.size() - written);
    if (part > 0 && !target.Write(piece.at, bytes.data() + written, part)) return -EFAULT;
    written += part;
  }
  if (header_ == 0) {
    const int error = target.WriteAddress(from, name_, name_length_at_);
    return error == 0 ? static_cast<int64_t>(written) : -error;
  }
  if (name_ != 0) {
    if (const int error = target.WriteAddress(from, name_, name_length_at_)) return -error;
  }
  // Nothing comes beside it.
  const size_t no_control = 0;
  const int flags = written < bytes.size() ? MSG_TRUNC : 0;
  if (!target.Write(header_ + offsetof(msghdr, msg_controllen), &no_control, sizeof(no_control)) ||
      !target.Write(header_ + offsetof(msghdr, msg_flags), &flags, sizeof(flags)))
    return -EFAULT;
  return static_cast<int64_t>(written);
}

std::optional<std::vector<CallMessage>> MessagesOf(Target& target,
                                                   const abi::SeccompNotification& call) {
  const int number = NumberOf(call);
  std::vector<CallMessage> messages(1);
  CallMessage& first = messages[0];
  if (number == SYS_sendto || number == SYS_recvfrom) {
    first.pieces_.push_back({PointerOf(call, 1), PointerOf(call, 2)});
    first.name_ = PointerOf(call, 4);
    first.name_room_ = number == SYS_sendto ? ArgumentOf(call, 5) : 0;
    first.name_length_at_ = PointerOf(call, 5);
    return messages;
  }
  if (!HasSeveral(number)) {
    if (!first.ReadHeader(target, PointerOf(call, 1))) return std::nullopt;
    return messages;
  }
  const auto wanted = static_cast<uint32_t>(PointerOf(call, 2));
  messages.resize(std::min<uint64_t>(wanted, kMostMessages));
  for (size_t at = 0; at < messages.size(); ++at) {
    const uint64_t header = PointerOf(call, 1) + at * sizeof(mmsghdr);
    if (!messages[at].ReadHeader(target, header)) return std::nullopt;
    messages[at].count_at_ = header + offsetof(mmsghdr, msg_len);
  }
  return messages;
}

int MessageFlagsOf(const abi::SeccompNotification& call) {
  const int number = NumberOf(call);
  const bool is_third = number == SYS_sendmsg || number == SYS_recvmsg;
  return ArgumentOf(call, is_third ? 2 : 3);
}

}  // namespace sandbox_run
