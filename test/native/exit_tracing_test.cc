#include "notify/exit_tracing.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "check.h"
#include "core/listen.h"

namespace sandbox_run {
namespace {

constexpr int kTraceExit = 0x40;

// The kernel says nothing to a process whose parent was gone before it asked to be told.
void EndWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
}

// A process that asks to halt one of its own, exits with the errno that it got, and is patient
// before that if `stays`.
pid_t Ask(int told, bool stays) {
  const pid_t caller = getpid();
  const pid_t asking = fork();
  if (asking != 0) return asking;
  EndWith(caller);
  const pid_t asker = getpid();
  const pid_t victim = fork();
  if (victim == 0) {
    EndWith(asker);
    for (;;) pause();
  }
  const long result = ptrace(PTRACE_SEIZE, victim, nullptr, kTraceExit);
  const char error = static_cast<char>(result == 0 ? 0 : errno);
  [[maybe_unused]] const ssize_t written = write(told, &error, 1);
  while (stays) pause();
  // It ends, so that it lets go of the victim, which ends with it.
  _exit(error);
}

int AnswerUntilTold(ExitTracing& exits, int told) {
  for (;;) {
    pollfd watched[] = {{exits.fd(), POLLIN, 0}, {told, POLLIN, 0}};
    if (poll(watched, 2, 10'000) <= 0) return -1;
    if (watched[0].revents != 0) exits.Answer();
    char error;
    if (watched[1].revents != 0 && read(told, &error, 1) == 1) return error;
  }
}

void End(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

Status Enter(ExitTracing& exits) {
  if (Status able = ExitTracing::CheckHost(); !able.ok()) return able;
  Result<UniqueFd> listener = Listen(ExitTracing::Filter());
  if (!listener.ok()) return listener.failure();
  exits.Serve(std::move(listener.value()));
  return Status();
}

// On a thread of its own, as there is no way out of a filter.
template <typename Body>
void OnThread(Body body) {
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    body();
  }).join();
}

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  int ends[2];
};

TEST(OneProcessAtATimeMayHaltExits) {
  OnThread([] {
    ExitTracing exits;
    if (Status entered = Enter(exits); !entered.ok()) NOT_RUN("there is no seccomp listener");
    Pipe told;
    const pid_t first = Ask(told.ends[1], true);
    EXPECT_EQ(AnswerUntilTold(exits, told.ends[0]), 0);
    const pid_t second = Ask(told.ends[1], true);
    EXPECT_EQ(AnswerUntilTold(exits, told.ends[0]), EINVAL);
    End(first);
    const pid_t third = Ask(told.ends[1], false);
    EXPECT_EQ(AnswerUntilTold(exits, told.ends[0]), 0);
    waitpid(third, nullptr, 0);
    End(second);
  });
}

TEST(NobodyWaitsForOneWhoAsksNoMore) {
  OnThread([] {
    ExitTracing exits;
    if (Status entered = Enter(exits); !entered.ok()) NOT_RUN("there is no seccomp listener");
    exits.Answer();
    Pipe told;
    for (int i = 0; i < 3; ++i) {
      const pid_t asking = Ask(told.ends[1], true);
      pollfd watched = {exits.fd(), POLLIN, 0};
      EXPECT_EQ(poll(&watched, 1, 10'000), 1);
      End(asking);
      exits.Answer();
      exits.Answer();
    }
    const pid_t last = Ask(told.ends[1], false);
    EXPECT_EQ(AnswerUntilTold(exits, told.ends[0]), 0);
    waitpid(last, nullptr, 0);
  });
}

TEST(WithoutAListenerNobodyHaltsExits) {
  OnThread([] {
    Pipe told;
    {
      ExitTracing exits;
      if (Status entered = Enter(exits); !entered.ok()) NOT_RUN("there is no seccomp listener");
      // There is only one for each thread and what it starts.
      ExitTracing another;
      Status entered = Enter(another);
      EXPECT_TRUE(!entered.ok() && entered.failure().error == EBUSY);
    }
    const pid_t asking = Ask(told.ends[1], false);
    int status = 0;
    waitpid(asking, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), ENOSYS);
  });
}

}  // namespace
}  // namespace sandbox_run
