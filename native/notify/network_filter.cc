#include "notify/network_filter.h"

#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "sys/kernel_abi.h"

namespace sandbox_run {
namespace {

constexpr uint32_t kSolIp = 0, kSolIpv6 = 41;

constexpr uint32_t LowHalfOf(int argument) {
  return offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(argument);
}
constexpr uint32_t HighHalfOf(int argument) { return LowHalfOf(argument) + 4; }

// Always.
constexpr uint32_t kAlways[] = {SYS_connect,     SYS_bind,        SYS_listen,
                                SYS_getsockname, SYS_getpeername, SYS_sendmsg,
                                SYS_sendmmsg,    SYS_recvmsg,     SYS_recvmmsg};
// Calls with an address argument: the destination, or a buffer for the source.
constexpr uint32_t kWithAddress[] = {SYS_sendto, SYS_recvfrom};

const sock_filter kAsk = BPF_STMT(BPF_RET | BPF_K, abi::kSeccompRetUserNotification);
const sock_filter kLoadNumber = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));

}  // namespace

std::vector<sock_filter> NetworkFilter() {
  std::vector<sock_filter> program = {kLoadNumber};
  for (const uint32_t number : kAlways) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    program.push_back(kAsk);
  }
  const sock_filter by_argument[] = {
      // The families that lead somewhere; what else there is, and which types, says the command's
      // own.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(0)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      kAsk,
      kLoadNumber,
      // Options of IP, which what stands in for a UDP socket does not have: the one of sockets,
      // too.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 7),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(1)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSolIp, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSolIpv6, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_REUSEPORT, 0, 1),
      kAsk,
      kLoadNumber,
  };
  program.insert(program.end(), std::begin(by_argument), std::end(by_argument));
  for (const uint32_t number : kWithAddress) {
    const sock_filter asks[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(4)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, HighHalfOf(4)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        kAsk,
        kLoadNumber,
    };
    program.insert(program.end(), std::begin(asks), std::end(asks));
  }
  return program;
}

}  // namespace sandbox_run
