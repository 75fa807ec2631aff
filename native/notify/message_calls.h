#ifndef SANDBOX_RUN_NOTIFY_MESSAGE_CALLS_H_
#define SANDBOX_RUN_NOTIFY_MESSAGE_CALLS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "notify/endpoint.h"
#include "notify/target.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {

// The most that a datagram holds.
inline constexpr size_t kLargestDatagram = 65507;

// One message of a call that sends or receives some, as the process described it: sendto, sendmsg,
// sendmmsg, and their counterparts. Read once; only the copy counts.
class CallMessage {
 public:
  // Whether it says where to, or wants to know where from.
  bool has_name() const { return name_ != 0; }

  // What is sent where. 0 or the errno that the kernel would give.
  int ReadAddress(Target& target, SocketAddress& into) const;
  int ReadBytes(Target& target, std::string& into) const;
  // How many bytes of it arrived, for a call that sends several.
  bool WriteCount(Target& target, uint32_t count) const;

  // Only where it came from, if that has room.
  void WriteName(Target& target, const SocketAddress& from) const;
  // What was received from where. How many bytes found room, or a negative errno.
  int64_t WriteReceived(Target& target, const std::string& bytes, const SocketAddress& from) const;

 private:
  friend std::optional<std::vector<CallMessage>> MessagesOf(Target&,
                                                            const abi::SeccompNotification&);
  struct Piece {
    uint64_t at = 0;
    uint64_t size = 0;
  };
  // False: it cannot be read, or has more pieces than there may be.
  bool ReadHeader(Target& target, uint64_t header);

  std::vector<Piece> pieces_;
  uint64_t name_ = 0;
  int64_t name_room_ = 0;  // the length of what it sends to
  uint64_t name_length_at_ = 0;
  uint64_t header_ = 0;  // 0: the call has none
  uint64_t count_at_ = 0;
};

// nullopt: they cannot be read. Of a call that has several, so many as are done at a time.
std::optional<std::vector<CallMessage>> MessagesOf(Target& target,
                                                   const abi::SeccompNotification& call);
// MSG_PEEK and the like.
int MessageFlagsOf(const abi::SeccompNotification& call);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_MESSAGE_CALLS_H_
