#include "core/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include "check.h"
#include "core/clone_child.h"
#include "core/ruleset.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::TemporaryDirectory;
using test::WriteText;

// What became of a child that ran a plan: the failed stage, or how the program ended.
struct Ended {
  std::string stage;
  int error = 0;
  int exit_code = -1;
};

// A plan for /bin/true that `change` alters.
Ended RunPlan(const std::function<void(ChildPlan&)>& change) {
  std::string name = "true";
  char* const argv[] = {name.data(), nullptr};
  char* const envp[] = {nullptr};
  const UniqueFd null(fcntl(open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, 100));
  ChildPlan plan;
  plan.program = "/bin/true";
  plan.argv = argv;
  plan.envp = envp;
  plan.cwd = "/";
  for (int& fd : plan.stdio) fd = null.get();
  plan.parent_pid = getpid();
  change(plan);

  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = CloneChild(RunChild, &plan, 0);
  const int clone_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return {"clone", clone_error, -1};
  int status = 0;
  waitpid(pid, &status, 0);
  Ended ended;
  if (plan.failed_stage != nullptr) ended.stage = plan.failed_stage;
  ended.error = plan.failed_errno;
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ended;
}

void ExpectFailure(const std::string& stage, int error,
                   const std::function<void(ChildPlan&)>& change) {
  const Ended ended = RunPlan(change);
  EXPECT_EQ(ended.stage, stage);
  EXPECT_EQ(ended.error, error);
  EXPECT_EQ(ended.exit_code, 127);
}

TEST(ChildRunsAPlan) {
  const Ended ended = RunPlan([](ChildPlan&) {});
  EXPECT_EQ(ended.stage, "");
  EXPECT_EQ(ended.exit_code, 0);
}

TEST(ChildReportsTheStepThatFailedWithItsErrno) {
  const TemporaryDirectory top;
  WriteText(top / "file", "no program");
  const std::string file = top / "file";
  const std::string missing = top / "missing";
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const NamespaceEntry no_namespace = {null.get(), 0};
  const ResourceLimit no_limit = {999, 1, 1};
  const sock_fprog no_filter = {0, nullptr};
  // EINVAL, or what the filter of a container makes of it.
  const int entered = setns(null.get(), 0) == 0 ? 0 : errno;

  ExpectFailure("namespace.enter", entered, [&](ChildPlan& plan) {
    plan.namespaces = &no_namespace;
    plan.namespace_count = 1;
  });
  ExpectFailure("parent_gone", 0, [&](ChildPlan& plan) { plan.parent_pid = 1 << 30; });
  ExpectFailure("stdio", EBADF, [&](ChildPlan& plan) { plan.stdio[2] = 1 << 20; });
  ExpectFailure("cwd", ENOENT, [&](ChildPlan& plan) { plan.cwd = missing.c_str(); });
  ExpectFailure("cwd", ENOTDIR, [&](ChildPlan& plan) { plan.cwd = file.c_str(); });
  ExpectFailure("rlimit", EINVAL, [&](ChildPlan& plan) {
    plan.limits = &no_limit;
    plan.limit_count = 1;
  });
  ExpectFailure("landlock.restrict_self", EBADF,
                [&](ChildPlan& plan) { plan.ruleset_fd = 1 << 20; });
  ExpectFailure("landlock.restrict_self", EBADFD,
                [&](ChildPlan& plan) { plan.ruleset_fd = null.get(); });
  ExpectFailure("seccomp", EINVAL, [&](ChildPlan& plan) { plan.filter = &no_filter; });
  ExpectFailure("exec", ENOENT, [&](ChildPlan& plan) { plan.program = missing.c_str(); });
  ExpectFailure("exec", EACCES, [&](ChildPlan& plan) { plan.program = file.c_str(); });
  ExpectFailure("exec", EACCES, [&](ChildPlan& plan) { plan.program = "/"; });
  chmod(file.c_str(), 0755);
  ExpectFailure("exec", ENOEXEC, [&](ChildPlan& plan) { plan.program = file.c_str(); });
}

TEST(ChildMayNotExecuteWhatItsDomainDoesNotGrant) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  Result<UniqueFd> ruleset = CreateRuleset({1, 0, 0});
  ASSERT_TRUE(ruleset.ok());
  ExpectFailure("exec", EACCES, [&](ChildPlan& plan) { plan.ruleset_fd = ruleset.value().get(); });
}

TEST(ChildLeavesThisProcessAsItWas) {
  char before[4096], after[4096];
  const mode_t mask = umask(022);
  ASSERT_TRUE(getcwd(before, sizeof(before)) != nullptr);
  sighandler_t handler = signal(SIGUSR1, SIG_IGN);
  const ResourceLimit limit = {RLIMIT_NOFILE, 64, 64};
  rlimit old_limit, new_limit;
  getrlimit(RLIMIT_NOFILE, &old_limit);
  RunPlan([&](ChildPlan& plan) {
    plan.cwd = "/usr";
    plan.umask = 0;
    plan.limits = &limit;
    plan.limit_count = 1;
  });
  getrlimit(RLIMIT_NOFILE, &new_limit);
  EXPECT_EQ(new_limit.rlim_cur, old_limit.rlim_cur);
  EXPECT_EQ(signal(SIGUSR1, handler) == SIG_IGN, true);
  ASSERT_TRUE(getcwd(after, sizeof(after)) != nullptr);
  EXPECT_EQ(std::string(after), std::string(before));
  EXPECT_EQ(umask(mask), 022u);
}

}  // namespace
}  // namespace sandbox_run
