#include "notify/unix_sockets.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <set>

#include "core/kept_descriptors.h"
#include "notify/listener.h"
#include "notify/socket_state.h"

namespace sandbox_run {
namespace {

// Copies of sockets kept open for one command: a share of this process's descriptor limit.
constexpr size_t kMostCopies = 64, kLeastCopies = 16, kShareOfDescriptors = 16;
constexpr size_t kMostWaiting = 64;
constexpr std::chrono::milliseconds kLookInterval{100};
constexpr socklen_t kPathOffset = offsetof(sockaddr_un, sun_path);

// As unix_validate_addr and unix_autobind in net/unix/af_unix.c.
bool IsUnix(const SocketAddress& address) {
  return address.length > kPathOffset && address.length <= sizeof(sockaddr_un) &&
         address.get()->sa_family == AF_UNIX;
}
bool IsUnnamed(const SocketAddress& address) {
  return address.length == kPathOffset && address.get()->sa_family == AF_UNIX;
}

// The name behind the family; a path without its NUL.
std::string NameIn(const SocketAddress& address) {
  const char* name = reinterpret_cast<const char*>(&address.storage) + kPathOffset;
  const size_t size = address.length - kPathOffset;
  return std::string(name, name[0] == '\0' ? size : strnlen(name, size));
}

bool IsAbstract(const SocketAddress& address) {
  return reinterpret_cast<const char*>(&address.storage)[kPathOffset] == '\0';
}

// An abstract name like those that the kernel assigns (autobind).
SocketAddress AnyName() {
  uint32_t lot = 0;
  [[maybe_unused]] const ssize_t drawn = getrandom(&lot, sizeof(lot), 0);
  char text[8];
  snprintf(text, sizeof(text), "%05x", lot & 0xfffffu);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path + 1, text, 5);
  SocketAddress made;
  memcpy(&made.storage, &name, sizeof(name));
  made.length = kPathOffset + 6;
  return made;
}

// What programs set before they listen.
void CopyOptions(int from, int to) {
  for (const int name : {SO_PASSCRED, SO_SNDTIMEO, SO_RCVTIMEO, SO_SNDBUF}) {
    char value[32];
    socklen_t size = sizeof(value);
    if (getsockopt(from, SOL_SOCKET, name, value, &size) == 0) {
      [[maybe_unused]] const int ignored = setsockopt(to, SOL_SOCKET, name, value, size);
    }
  }
}

size_t MostCopies() { return ShareOfDescriptors(kShareOfDescriptors, kLeastCopies, kMostCopies); }

// Whether a socket of this process is bound at an object: what the kernel says, as a name may lead
// elsewhere by now. False also where it does not say.
bool IsBoundAt(int fd, const struct stat& object) {
  const UniqueFd asking(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const auto inode = InodeOf(fd);
  if (!asking.valid() || !inode) return false;
  struct {
    nlmsghdr head;
    unix_diag_req question;
  } message = {};
  message.head.nlmsg_len = sizeof(message);
  message.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.head.nlmsg_flags = NLM_F_REQUEST;
  message.question.sdiag_family = AF_UNIX;
  message.question.udiag_states = ~0u;
  message.question.udiag_ino = static_cast<uint32_t>(*inode);
  message.question.udiag_cookie[0] = message.question.udiag_cookie[1] = ~0u;
  message.question.udiag_show = UDIAG_SHOW_VFS;
  if (send(asking.get(), &message, sizeof(message), 0) != sizeof(message)) return false;
  alignas(nlmsghdr) char answer[4096];
  const ssize_t size = recv(asking.get(), answer, sizeof(answer), MSG_DONTWAIT);
  const auto* head = reinterpret_cast<const nlmsghdr*>(answer);
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(unix_diag_msg))) ||
      head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return false;
  auto* part = reinterpret_cast<const rtattr*>(answer + NLMSG_LENGTH(sizeof(unix_diag_msg)));
  int left = static_cast<int>(size - static_cast<ssize_t>(NLMSG_LENGTH(sizeof(unix_diag_msg))));
  for (; RTA_OK(part, left); part = RTA_NEXT(part, left)) {
    unix_diag_vfs bound;
    if (part->rta_type != UNIX_DIAG_VFS || RTA_PAYLOAD(part) < sizeof(bound)) continue;
    memcpy(&bound, RTA_DATA(part), sizeof(bound));
    // A device as the kernel itself writes it (linux/kdev_t.h).
    constexpr int kMinorBits = 20;
    return bound.udiag_vfs_ino == static_cast<uint32_t>(object.st_ino) &&
           bound.udiag_vfs_dev >> kMinorBits == major(object.st_dev) &&
           (bound.udiag_vfs_dev & ((1u << kMinorBits) - 1)) == minor(object.st_dev);
  }
  return false;
}

}  // namespace

bool UnixSockets::Answer(int listener, const abi::SeccompNotification& call) {
  const int number = NumberOf(call);
  if (number == SYS_socket) {
    if (ArgumentOf(call, 0) != AF_UNIX) return false;
    Make(listener, call);
    return true;
  }
  if (sockets_.empty()) return false;
  if (number != SYS_connect && number != SYS_bind && number != SYS_listen &&
      number != SYS_getsockname)
    return false;
  const Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  const auto found = inode ? sockets_.find(*inode) : sockets_.end();
  if (found == sockets_.end()) return false;
  switch (number) {
    case SYS_connect:
      Connect(listener, call, std::nullopt);
      break;
    case SYS_bind:
      Bind(listener, call, found->second);
      break;
    case SYS_listen:
      Listen(listener, call, *inode);
      break;
    default:
      TellName(listener, call, found->second);
  }
  return true;
}

void UnixSockets::Retry(int listener) {
  const auto now = Clock::now();
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    if (waiting.until && now >= *waiting.until) {
      Refuse(listener, waiting.call.id, EAGAIN);
    } else {
      Connect(listener, waiting.call, waiting.until);
    }
  }
  if (postponed_.empty() || now < look_again_) return;
  for (const abi::SeccompNotification& call : std::exchange(postponed_, {})) {
    if (MakeRoom()) {
      Make(listener, call);
    } else {
      Refuse(listener, call.id, EMFILE);
    }
  }
}

void UnixSockets::SweepIfEnded() {
  if (!std::exchange(sweep_, false)) return;
  const std::lock_guard lock(gate_.own->mutex);
  gate_.own->sockets.Sweep();
}

void UnixSockets::End(int listener) {
  for (const Waiting& waiting : std::exchange(waiting_, {}))
    Refuse(listener, waiting.call.id, ECONNABORTED);
  for (const abi::SeccompNotification& call : std::exchange(postponed_, {}))
    Refuse(listener, call.id, ECONNABORTED);
  if (sockets_.empty()) return;
  sockets_.clear();
  // Not here: this thread may be one of those that ask.
  sweep_ = true;
}

bool UnixSockets::MakeRoom() {
  if (sockets_.size() < MostCopies()) return true;
  // Some were closed by now, which nobody says. To look takes a while, and is not done at the
  // command's pleasure.
  const auto now = Clock::now();
  if (now < look_again_) return false;
  look_again_ = now + kLookInterval;
  const std::optional<std::set<ino_t>> open = OpenSockets();
  if (open)
    std::erase_if(sockets_, [&](const auto& entry) { return !open->contains(entry.first); });
  return sockets_.size() < MostCopies();
}

void UnixSockets::Make(int listener, const abi::SeccompNotification& call) {
  const int type = ArgumentOf(call, 1) & kSocketTypeMask;
  const int flags = ArgumentOf(call, 1) & ~kSocketTypeMask;
  const int protocol = ArgumentOf(call, 2);
  if ((flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0) return Refuse(listener, call.id, EINVAL);
  if (protocol != 0 && protocol != PF_UNIX) return Refuse(listener, call.id, EPROTONOSUPPORT);
  // Each datagram can name another destination. The command's filter refuses such sockets already;
  // this does not rely on it.
  if (type != SOCK_STREAM && type != SOCK_SEQPACKET) return Refuse(listener, call.id, EACCES);
  // The next look finds sockets that the command has closed; this call waits for it.
  if (sockets_.size() >= MostCopies() && Clock::now() < look_again_)
    return postponed_.push_back(call);
  if (!MakeRoom()) return Refuse(listener, call.id, EMFILE);
  SweepIfEnded();
  Socket made;
  made.type = type;
  made.copy.reset(socket(AF_UNIX, type | SOCK_CLOEXEC | (flags & SOCK_NONBLOCK), 0));
  const auto inode = made.copy.valid() ? InodeOf(made.copy.get()) : std::nullopt;
  if (!inode) return Refuse(listener, call.id, errno);
  const int error = HandOver(listener, call.id, made.copy.get(), (flags & SOCK_CLOEXEC) != 0);
  if (error != 0) return Refuse(listener, call.id, error);
  sockets_[*inode] = std::move(made);
}

void UnixSockets::Connect(int listener, const abi::SeccompNotification& call,
                          std::optional<Clock::time_point> until) {
  Target target(static_cast<pid_t>(call.pid));
  const auto inode = target.SocketInode(ArgumentOf(call, 0));
  const auto found = inode ? sockets_.find(*inode) : sockets_.end();
  if (!IsWaiting(listener, call.id)) return;
  // Connected meanwhile, by another thread.
  if (found == sockets_.end()) return Refuse(listener, call.id, EISCONN);
  const Socket& socket = found->second;
  if (!socket.copy.valid()) return Refuse(listener, call.id, EINVAL);
  SocketAddress address;
  if (const int error = target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address))
    return Refuse(listener, call.id, error);
  if (!IsUnix(address)) return Refuse(listener, call.id, EINVAL);
  const Wanted wanted = Find(target, address);
  if (!IsWaiting(listener, call.id)) return;
  Connection connection;
  connection.error = ConnectTo(wanted, socket, connection);
  const int error = connection.error;
  if (error == EAGAIN && !IsNonBlocking(socket.copy.get()) && waiting_.size() < kMostWaiting) {
    if (!until) {
      if (const auto patience = PatienceOf(socket.copy.get())) until = Clock::now() + *patience;
    }
    waiting_.push_back({call, until});
    return;
  }
  if (!connection.path.empty()) on_connection_(std::move(connection), target);
  if (error != 0) return Refuse(listener, call.id, error);
  sockets_.erase(found);
  Return(listener, call.id, 0);
}

UnixSockets::Wanted UnixSockets::Find(const Target& target, const SocketAddress& address) {
  Wanted wanted;
  const std::string name = NameIn(address);
  if (IsAbstract(address)) {
    wanted.told = "@" + name.substr(1);
    wanted.abstract = name;
    return wanted;
  }
  wanted.told = target.AbsolutePath(name);
  const int object = target.OpenObject(name);
  if (object < 0) wanted.error = -object;
  if (object >= 0) wanted.object.reset(object);
  return wanted;
}

int UnixSockets::ConnectTo(const Wanted& wanted, const Socket& socket, Connection& connection) {
  const auto connect_to = [&](int object) {
    return ConnectNow(socket.copy.get(), AddressOfObject(object));
  };
  const std::lock_guard lock(gate_.own->mutex);
  const OwnUnixSockets& own_sockets = gate_.own->sockets;
  struct stat object = {};
  const UnixTable::Listed* listed = nullptr;
  int own = -1;
  if (wanted.abstract) {
    own = own_sockets.Find(*wanted.abstract);
  } else if (!wanted.object.valid()) {
    // One that is listed may have no name inside.
    listed = gate_.sockets.FindByName(wanted.told);
    if (listed == nullptr) {
      // The view hides the socket, so its name is missing: report to the person that it exists.
      const bool fits = wanted.told.size() < sizeof(sockaddr_un::sun_path);
      if (wanted.error == ENOENT && fits && IsBound(AddressOfPath(wanted.told.c_str())))
        connection.path = wanted.told;
      return wanted.error;
    }
  } else {
    if (fstat(wanted.object.get(), &object) != 0) return errno;
    listed = gate_.sockets.Find(object);
    if (listed == nullptr) own = own_sockets.Find(object);
  }
  // What a program reaches of its own is its own affair.
  if (listed == nullptr && own >= 0) return connect_to(own);
  if (listed != nullptr) {
    connection.path = wanted.told;
    connection.allowed = true;
    connection.rule = listed->row.rule;
    return connect_to(listed->object.get());
  }
  SocketAddress named;
  if (wanted.abstract) {
    sockaddr_un abstract = {};
    abstract.sun_family = AF_UNIX;
    memcpy(abstract.sun_path, wanted.abstract->data(), wanted.abstract->size());
    memcpy(&named.storage, &abstract, sizeof(abstract));
    named.length = static_cast<socklen_t>(kPathOffset + wanted.abstract->size());
  } else {
    named = AddressOfObject(wanted.object.get());
  }
  // Where nobody is, nothing was refused; neither where one of its own does not listen yet.
  if (!IsBound(named)) return ECONNREFUSED;
  const bool is_own =
      !wanted.abstract && std::any_of(sockets_.begin(), sockets_.end(), [&](const auto& entry) {
        return entry.second.copy.valid() && IsBoundAt(entry.second.copy.get(), object);
      });
  if (is_own) return ECONNREFUSED;
  connection.path = wanted.told;
  return EACCES;
}

void UnixSockets::Bind(int listener, const abi::SeccompNotification& call, Socket& socket) {
  Target target(static_cast<pid_t>(call.pid));
  SocketAddress address;
  if (const int error = target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address))
    return Refuse(listener, call.id, error);
  if (!IsWaiting(listener, call.id)) return;
  if (!IsUnix(address) && !IsUnnamed(address)) return Refuse(listener, call.id, EINVAL);
  if (!socket.copy.valid() || socket.asked) return Refuse(listener, call.id, EINVAL);
  // The kernel makes a socket where the command may make files.
  if (!IsUnnamed(address) && !IsAbstract(address)) return Continue(listener, call.id);
  const int error = BindAbstract(socket, IsUnnamed(address) ? AnyName() : address);
  return error == 0 ? Return(listener, call.id, 0) : Refuse(listener, call.id, error);
}

int UnixSockets::BindAbstract(Socket& socket, const SocketAddress& wanted) {
  const std::string name = NameIn(wanted);
  const std::lock_guard lock(gate_.own->mutex);
  const int known = gate_.own->sockets.Find(name);
  if (known >= 0 && IsBound(AddressOfObject(known))) return EADDRINUSE;
  UniqueFd object;
  if (const int error = gate_.own->sockets.Hide(socket.copy.get(), object)) return error;
  if (const int error = gate_.own->sockets.Add(name, std::move(object))) return error;
  socket.asked = wanted;
  return 0;
}

void UnixSockets::Listen(int listener, const abi::SeccompNotification& call, ino_t inode) {
  Socket& socket = sockets_[inode];
  if (!socket.copy.valid()) return Return(listener, call.id, 0);
  int error = 0;
  if (socket.asked) {
    if (listen(socket.copy.get(), ArgumentOf(call, 1)) != 0) error = errno;
    if (error == 0) socket.copy.reset();
  } else {
    Target target(static_cast<pid_t>(call.pid));
    SocketAddress name;
    name.length = sizeof(name.storage);
    if (getsockname(socket.copy.get(), reinterpret_cast<sockaddr*>(&name.storage), &name.length))
      error = errno;
    else if (!IsUnix(name))
      error = EINVAL;
    // It was a path when it was looked at.
    else if (IsAbstract(name))
      error = EACCES;
    else
      error = ListenElsewhere(listener, call, target, inode, name);
  }
  return error == 0 ? Return(listener, call.id, 0) : Refuse(listener, call.id, error);
}

int UnixSockets::ListenElsewhere(int listener, const abi::SeccompNotification& call, Target& target,
                                 ino_t inode, const SocketAddress& name) {
  const Socket& bound = sockets_[inode];
  const int waits = IsNonBlocking(bound.copy.get()) ? SOCK_NONBLOCK : 0;
  UniqueFd made(socket(AF_UNIX, bound.type | SOCK_CLOEXEC | waits, 0));
  const auto own = made.valid() ? InodeOf(made.get()) : std::nullopt;
  if (!own) return errno;
  CopyOptions(bound.copy.get(), made.get());
  const UniqueFd object(target.OpenObject(NameIn(name)));
  struct stat info = {};
  const bool has_name = object.valid() && fstat(object.get(), &info) == 0;
  UniqueFd hidden;
  {
    const std::lock_guard lock(gate_.own->mutex);
    if (const int error = gate_.own->sockets.Hide(made.get(), hidden)) return error;
  }
  if (listen(made.get(), ArgumentOf(call, 1)) != 0) return errno;
  const int number = ArgumentOf(call, 0);
  if (!IsWaiting(listener, call.id)) return ECONNABORTED;
  if (const int error =
          PutInPlace(listener, call.id, made.get(), number, target.ClosesOnExec(number)))
    return error;
  sockets_.erase(inode);
  Socket& listening = sockets_[*own];
  listening.asked = name;
  if (!has_name) return 0;
  const std::lock_guard lock(gate_.own->mutex);
  return gate_.own->sockets.Add(info, std::move(hidden));
}

void UnixSockets::TellName(int listener, const abi::SeccompNotification& call,
                           const Socket& socket) {
  // A socket without a replaced name: the kernel answers, and the call names no address.
  if (!socket.asked) return Continue(listener, call.id);
  Target target(static_cast<pid_t>(call.pid));
  if (!IsWaiting(listener, call.id)) return;
  const int error = target.WriteAddress(*socket.asked, PointerOf(call, 1), PointerOf(call, 2));
  return error == 0 ? Return(listener, call.id, 0) : Refuse(listener, call.id, error);
}

}  // namespace sandbox_run
