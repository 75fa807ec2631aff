// Sockets that a supervisor refuses: in another process, because there is no way back.

#include "notify/refused_sockets.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "check.h"
#include "core/listen.h"
#include "notify/listener.h"

namespace sandbox_run {
namespace {

TEST(sockets_stay_refused_when_nobody_answers) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<sock_filter> program = RefusedSockets::Filter({.inet = true, .local = true});
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    // A control: without the filter there are some.
    for (const int family : {AF_INET, AF_INET6, AF_UNIX})
      if (socket(family, SOCK_STREAM, 0) < 0 && errno != EAFNOSUPPORT) _exit(1);
    {
      Result<UniqueFd> listener = Listen(program);
      if (!listener.ok()) _exit(2);
      // The supervisor is gone.
    }
    for (const int family : {AF_INET, AF_INET6, AF_UNIX})
      if (socket(family, SOCK_STREAM, 0) != -1 || errno != ENOSYS) _exit(3);
    // What leads nowhere is not asked about.
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) _exit(4);
    if (socket(AF_NETLINK, SOCK_RAW, 0) < 0) _exit(5);
    _exit(0);
  }
  int status = -1;
  EXPECT_TRUE(waitpid(child, &status, 0) == child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

}  // namespace
}  // namespace sandbox_run
