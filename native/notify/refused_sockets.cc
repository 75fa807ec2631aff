#include "notify/refused_sockets.h"

#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "notify/listener.h"

namespace sandbox_run {
namespace {

constexpr uint32_t LowHalfOf(int argument) {
  return offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(argument);
}

// The type of socket by which libc asks nscd for users, groups and hosts before it reads the files
// itself, as in every `ls -l`. It is not reported: that would hide why a command failed.
constexpr int kLikeNscd = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

}  // namespace

std::vector<sock_filter> RefusedSockets::Filter(SocketFamilies families) {
  std::vector<uint32_t> asked;
  if (families.inet) asked = {AF_INET, AF_INET6};
  if (families.local) asked.push_back(AF_UNIX);
  if (asked.empty()) return {};
  // The kernel reads the family as an int, so only the low 32 bits count.
  std::vector<sock_filter> part = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(0))};
  for (const uint32_t family : asked) {
    part.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 1));
    part.push_back(BPF_STMT(BPF_RET | BPF_K, abi::kSeccompRetUserNotification));
  }
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, static_cast<uint8_t>(part.size()))};
  program.insert(program.end(), part.begin(), part.end());
  return program;
}

bool RefusedSockets::Answer(int listener, const abi::SeccompNotification& call,
                            CallObserver& calls) {
  if (NumberOf(call) != SYS_socket) return false;
  const bool is_local = ArgumentOf(call, 0) == AF_UNIX;
  // 0: a process of another process namespace.
  if (call.pid != 0 && !(is_local && ArgumentOf(call, 1) == kLikeNscd))
    calls.NoteRefusedSocket(listener, call, is_local);
  Refuse(listener, call.id, EACCES);
  return true;
}

}  // namespace sandbox_run
