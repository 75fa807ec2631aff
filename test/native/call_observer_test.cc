#include "notify/call_observer.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "core/listen.h"
#include "core/ruleset.h"
#include "notify/listener.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::TemporaryDirectory;
using test::WriteText;

// All that the first version of Landlock knows.
constexpr uint64_t kEveryRight = (uint64_t{1} << 13) - 1;

// Everything is held in, but for one directory.
std::shared_ptr<const HeldBy> OnlyWithin(const std::string& directory, bool tells_uses = false) {
  auto held_by = std::make_shared<HeldBy>();
  held_by->rights[directory] = kEveryRight;
  held_by->handled_fs = kEveryRight;
  held_by->scopes_signals = true;
  held_by->tells_uses = tells_uses;
  return held_by;
}

// Holds this process in as that says.
bool StayWithin(const std::string& directory) {
  const Result<UniqueFd> ruleset = CreateRuleset({kEveryRight, 0, 0});
  const UniqueFd granted(open(directory.c_str(), O_PATH | O_CLOEXEC));
  return ruleset.ok() &&
         AddPathRule(ruleset.value().get(), granted.get(), kEveryRight, directory).ok() &&
         syscall(abi::kSysLandlockRestrictSelf, ruleset.value().get(), 0) == 0;
}

// Answers until nobody is left who could ask. Returns how many calls there were.
uint64_t Answer(int listener, CallObserver& observer) {
  uint64_t calls = 0;
  for (pollfd both = {listener, POLLIN, 0};;) {
    if (poll(&both, 1, -1) < 0) continue;
    if ((both.revents & POLLIN) == 0) return calls;
    abi::SeccompNotification call = {};
    if (!Receive(listener, call)) continue;
    ++calls;
    if (!observer.Observe(listener, call)) Continue(listener, call.id);
  }
}

struct Looked {
  Denials denials;
  uint64_t calls = 0;
  int result = -1;
};

// What is seen of the body, which runs in a process of its own.
Looked LookAt(std::shared_ptr<const HeldBy> held_by, const std::function<int()>& body) {
  Looked looked;
  CallObserver observer;
  observer.Begin(std::move(held_by));
  std::promise<UniqueFd> asked;
  std::thread answering([&] {
    const UniqueFd listener = asked.get_future().get();
    looked.calls = Answer(listener.get(), observer);
  });
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::vector<sock_filter> program = CallObserver::Filter(Observed::kUses, true);
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    Result<UniqueFd> listener = Listen(program);
    EXPECT_TRUE(listener.ok());
    asked.set_value(std::move(listener.value()));
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = -1;
    EXPECT_TRUE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) looked.result = WEXITSTATUS(status);
  }).join();
  answering.join();
  observer.End();
  looked.denials = observer.Take();
  return looked;
}

const Denial* Find(const Denials& denials, Denial::Act act, const std::string& path) {
  for (const Denial& one : denials.told) {
    if (one.act == act && one.path == path) return &one;
  }
  return nullptr;
}

TEST(looked_at_is_what_no_rule_grants_and_nothing_else) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  TemporaryDirectory root;
  const std::string granted = root / "granted", other = root / "other";
  EXPECT_TRUE(mkdir(granted.c_str(), 0700) == 0 && mkdir(other.c_str(), 0700) == 0);
  WriteText(other + "/file", "text");
  const Looked looked = LookAt(OnlyWithin(granted), [&] {
    if (!StayWithin(granted)) return 1;
    const auto write = [](const std::string& path) {
      return open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0;
    };
    if (!write(granted + "/mine")) return 2;
    if (write(other + "/file") || write(other + "/file") || write(other + "/new")) return 3;
    if (mkdir((other + "/made").c_str(), 0700) == 0 || unlink((other + "/file").c_str()) == 0)
      return 4;
    // What is not there is no denial.
    unlink((other + "/nothing").c_str());
    return 0;
  });
  EXPECT_EQ(looked.result, 0);
  using Act = Denial::Act;
  const std::pair<Act, const char*> expected[] = {{Act::kWrite, "/file"},
                                                  {Act::kCreate, "/new"},
                                                  {Act::kCreate, "/made"},
                                                  {Act::kRemove, "/file"}};
  for (const auto& [act, name] : expected) {
    const Denial* found = Find(looked.denials, act, other + name);
    EXPECT_TRUE(found != nullptr && found->control == Denial::Control::kRights);
  }
  EXPECT_EQ(looked.denials.told.size(), std::size(expected));
  EXPECT_EQ(Find(looked.denials, Act::kWrite, other + "/file")->count, uint64_t{2});
}

constexpr size_t kPage = 4096;

// Calls of every kind that is looked at, with what is no string, no descriptor, or something else a
// moment later.
int Disturb(const std::string& root, unsigned seed) {
  auto* pages = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* shared = static_cast<char*>(
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (pages == MAP_FAILED || shared == MAP_FAILED || munmap(pages + kPage, kPage) != 0) return 1;
  const auto put = [shared](const std::string& text) {
    memcpy(shared, text.c_str(), std::min(text.size() + 1, kPage));
  };
  put(root + "/granted/x");
  const pid_t own = getpid();
  const pid_t changing = fork();
  if (changing == 0) {
    while (getppid() == own) {
      put(root + "/other/x");
      put(root + "/loop/loop/loop");
      put("");
      memset(shared, 'a', kPage);
      put(root + "/granted/../other/./file");
    }
    _exit(0);
  }
  // The last page ends without a NUL.
  memset(pages, '/', kPage);
  const std::string longest = root + "/" + std::string(PATH_MAX, 'x');
  const std::string deep = root + std::string(200, '/') + "loop/a/../../other/file";
  const char* const texts[] = {
      shared,       pages + kPage - 1,
      pages,        longest.c_str(),
      deep.c_str(), "",
      nullptr,      reinterpret_cast<const char*>(uintptr_t{0xFFFF} << 48)};
  const int descriptors[] = {AT_FDCWD, -1, INT_MAX, 12345,
                             open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  srand(seed);
  const auto text = [&] { return texts[static_cast<size_t>(rand()) % std::size(texts)]; };
  const auto fd = [&] { return descriptors[static_cast<size_t>(rand()) % std::size(descriptors)]; };
  const auto wild = [&] { return static_cast<unsigned long>(rand()) << 13; };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  for (int i = 0; i < 400; ++i) {
    const int opened =
        static_cast<int>(syscall(SYS_openat, fd(), text(), rand() & ~O_TMPFILE, 0600));
    if (opened > 2) close(opened);
    syscall(SYS_openat2, fd(), text(), i % 2 == 0 ? nullptr : text(), wild() % 64);
    syscall(SYS_mkdirat, fd(), text(), 0700);
    syscall(SYS_mknodat, fd(), text(), S_IFREG | 0600, 0);
    syscall(SYS_symlinkat, text(), fd(), text());
    syscall(SYS_linkat, fd(), text(), fd(), text(), wild());
    syscall(SYS_renameat2, fd(), text(), fd(), text(), rand() % 8);
    syscall(SYS_unlinkat, fd(), text(), 0);
    syscall(SYS_truncate, text(), 0);
    syscall(SYS_fchownat, fd(), text(), -1, -1, wild());
    syscall(SYS_utimensat, fd(), text(), nullptr, wild());
    syscall(SYS_setxattr, text(), text(), text(), wild(), 0);
    syscall(SYS_execve, text(), nullptr, nullptr);
    syscall(SYS_execveat, fd(), text(), nullptr, nullptr, 0);
    syscall(SYS_newfstatat, fd(), text(), nullptr, wild());
    // Signal 0 only asks.
    syscall(SYS_kill, rand() % 2 == 0 ? getpid() : rand(), 0);
    syscall(SYS_tgkill, rand(), rand(), 0);
    syscall(abi::kSysPidfdSendSignal, fd(), 0, nullptr, 0);
    const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(address.sun_path, text() == nullptr ? "" : (root + "/socket").c_str(),
            sizeof(address.sun_path));
    syscall(SYS_connect, socket_fd, i % 3 == 0 ? static_cast<void*>(pages) : &address,
            rand() % 200);
    close(socket_fd);
  }
  kill(changing, SIGKILL);
  return waitpid(changing, nullptr, 0) == changing ? 0 : 2;
}

TEST(a_flood_of_calls_that_make_no_sense_is_looked_at_and_goes_on) {
  TemporaryDirectory root;
  for (const char* name : {"granted", "other"})
    EXPECT_TRUE(mkdir((root / name).c_str(), 0700) == 0);
  EXPECT_TRUE(symlink("loop", (root / "loop").c_str()) == 0);
  constexpr unsigned kProcesses = 4;
  const Looked looked = LookAt(OnlyWithin(root / "granted", true), [&] {
    if (chdir(root.path().c_str()) != 0) return 1;
    for (unsigned seed = 1; seed <= kProcesses; ++seed) {
      const pid_t child = fork();
      if (child == 0) {
        close(open((root / "begun-" + std::to_string(seed)).c_str(), O_CREAT | O_WRONLY, 0600));
        _exit(Disturb(root.path(), seed));
      }
      // One is gone in the middle of a call.
      if (seed == kProcesses) {
        test::Eventually([&] { return test::Exists(root / "begun-" + std::to_string(seed)); });
        kill(child, SIGKILL);
      }
    }
    int failed = 0;
    for (int status; wait(&status) > 0;) failed += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    return failed;
  });
  EXPECT_EQ(looked.result, 0);
  // Positive control: it was asked about them.
  EXPECT_TRUE(looked.calls > 10'000);
  EXPECT_TRUE(looked.denials.told.size() <= Denials::kMostUses);
}

}  // namespace
}  // namespace sandbox_run
