#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "check.h"
#include "core/ruleset.h"
#include "core/tree_kill.h"
#include "sys/file_stamp.h"
#include "sys/files.h"

namespace sandbox_run::test {

void ShortPause() { usleep(2'000); }

TemporaryDirectory::TemporaryDirectory() {
  char name[] = "/tmp/sandbox-run-test-XXXXXX";
  char resolved[PATH_MAX];
  if (mkdtemp(name) == nullptr || realpath(name, resolved) == nullptr) {
    perror("mkdtemp");
    abort();
  }
  path_ = resolved;
}

TemporaryDirectory::~TemporaryDirectory() {
  // Not by the code under test. A command's thread may still be giving up its directories.
  const std::string command =
      "chmod -R u+rwX " + path_ + " 2>/dev/null; rm -rf " + path_ + " 2>/dev/null";
  if (!Eventually([&] { return system(command.c_str()) == 0; }))
    fprintf(stderr, "cannot remove %s\n", path_.c_str());
}

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

std::vector<std::string> Entries(const std::string& directory) {
  std::vector<std::string> names;
  DIR* stream = opendir(directory.c_str());
  if (stream == nullptr) return names;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

size_t CountDescriptors() { return Entries("/proc/self/fd").size() - 1; }

std::set<std::string> Descriptors() {
  std::set<std::string> found;
  for (const std::string& fd : Entries("/proc/self/fd")) {
    char link[PATH_MAX] = {};
    const std::string path = "/proc/self/fd/" + fd;
    // The one that listed them is closed by now.
    if (readlink(path.c_str(), link, sizeof(link) - 1) > 0) found.insert(fd + " " + link);
  }
  return found;
}

void NextTick() {
  const int64_t now = FileClockNow();
  while (FileClockNow() <= now + 30'000'000) ShortPause();
}

Bystander::Bystander() {
  std::array<int, 2> to, from;
  if (pipe2(to.data(), O_CLOEXEC) != 0 || pipe2(from.data(), O_CLOEXEC) != 0) abort();
  const UniqueFd its_input(to[0]), its_output(from[1]);
  to_it_.reset(to[1]);
  from_it_.reset(from[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, its_input.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, its_output.get(), 1);
  const char* const argv[] = {"cat", nullptr};
  const int error =
      posix_spawn(&pid_, "/bin/cat", &actions, nullptr, const_cast<char* const*>(argv), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    perror("posix_spawn");
    abort();
  }
}

Bystander::~Bystander() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Bystander::alive() const {
  char answer = 0;
  return write(to_it_.get(), "?", 1) == 1 && read(from_it_.get(), &answer, 1) == 1 && answer == '?';
}

bool IsRunning(pid_t pid) {
  const std::string status = ReadText("/proc/" + std::to_string(pid) + "/stat");
  const size_t end_of_name = status.rfind(')');
  return end_of_name != std::string::npos && status.size() > end_of_name + 2 &&
         status[end_of_name + 2] != 'Z' && status[end_of_name + 2] != 'X';
}

int InAProcess(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool MayMount() {
  return InAProcess([] { return unshare(CLONE_NEWNS) == 0 ? 0 : 1; }) == 0;
}

std::vector<std::string> DirectoriesInRoot() {
  std::vector<std::string> found;
  DIR* root = opendir("/");
  while (const dirent* entry = readdir(root)) {
    const std::string path = std::string("/") + entry->d_name;
    struct stat info = {};
    const bool is_own = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (is_own && lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) found.push_back(path);
  }
  closedir(root);
  return found;
}

bool IsRootOfTheHost() {
  unsigned first = 0, outside = 0, count = 0;
  std::istringstream map(ReadText("/proc/self/uid_map"));
  map >> first >> outside >> count;
  return geteuid() == 0 && outside == 0 && count == 0xFFFFFFFF;
}

bool InOwnPidNamespace() { return getenv("SANDBOX_RUN_TEST_PID_NAMESPACE") != nullptr; }

ConfinementSpec BareSpec(const std::string& temporary_parent) {
  ConfinementSpec spec;
  spec.temporary_parent = temporary_parent;
  return spec;
}

ConfinementSpec PermissiveSpec(const std::string& temporary_parent) {
  ConfinementSpec spec = BareSpec(temporary_parent);
  constexpr uint64_t kRightsOfAbi1 = (1u << 13) - 1;
  constexpr uint64_t kRefer = 1u << 13;
  const int abi = LandlockAbi();
  spec.landlock.handled_fs = kRightsOfAbi1 | (abi >= 2 ? kRefer : 0);
  spec.landlock.scoped = abi >= 6 ? 3 : 0;
  spec.rules.push_back({"/", spec.landlock.handled_fs, 0, true, false});
  spec.without_scope = !SignalScopeIsProven();
  return spec;
}

ConfinementSpec WardenSpec(const std::string& temporary_parent) {
  ConfinementSpec spec = PermissiveSpec(temporary_parent);
  spec.without_scope = true;
  return spec;
}

CommandSpec ShellCommand(const std::string& script) {
  CommandSpec spec;
  spec.program = "/bin/sh";
  spec.argv = {"sh", "-c", script};
  spec.env = "PATH=/usr/bin:/bin";
  spec.cwd = "/";
  spec.streams.stdio[1].mode = StdioSpec::Mode::kCapture;
  spec.streams.stdio[2].mode = StdioSpec::Mode::kCapture;
  spec.streams.output_limit = 1024 * 1024;
  spec.kill_grace = std::chrono::milliseconds(100);
  return spec;
}

class Running::Observer : public CommandObserver {
 public:
  explicit Observer(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void OnOutput(int, std::string chunk) override {
    const std::lock_guard lock(state_->mutex);
    state_->streamed += chunk.size();
    state_->changed.notify_all();
  }
  void OnExit(const ProcessEnd& end, double) override {
    const std::lock_guard lock(state_->mutex);
    state_->exit = end;
    state_->changed.notify_all();
  }
  void OnMembers(std::vector<pid_t> members) override {
    const std::lock_guard lock(state_->mutex);
    state_->members = std::move(members);
    state_->changed.notify_all();
  }
  void OnEnd(Outcome outcome) override {
    const std::lock_guard lock(state_->mutex);
    state_->outcome = std::move(outcome);
    state_->changed.notify_all();
  }
  void OnFinished() override {
    const std::lock_guard lock(state_->mutex);
    state_->finished = true;
    state_->changed.notify_all();
  }

 private:
  const std::shared_ptr<State> state_;
};

Running::Running(const Threads& threads, CommandSpec spec) : state_(std::make_shared<State>()) {
  Result<std::shared_ptr<Command>> command =
      (*threads).Launch(std::move(spec), std::make_unique<Observer>(state_));
  if (!command.ok()) {
    ReportFailure(__FILE__, __LINE__, command.failure().stage);
    abort();
  }
  command_ = std::move(command.value());
}

Running::~Running() {
  command_->Cancel(true);
  Wait();
}

Outcome Running::Wait() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->finished; });
  return std::move(*state_->outcome);
}

std::string Running::WaitForLines(size_t lines) {
  std::string seen;
  const bool came = Eventually([&] {
    const CapturedStream so_far = command_->OutputSoFar(0);
    seen = std::string(so_far.kept.view());
    return static_cast<size_t>(std::count(seen.begin(), seen.end(), '\n')) >= lines;
  });
  if (!came) {
    ReportFailure(__FILE__, __LINE__,
                  std::to_string(lines) + " lines of output were expected, not: " + seen);
  }
  return seen;
}

ProcessEnd Running::WaitForExit() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->exit || state_->outcome; });
  return state_->exit.value_or(ProcessEnd{-1, -1, {}});
}

std::vector<pid_t> Running::Members() {
  std::unique_lock lock(state_->mutex);
  state_->members.reset();
  command_->AskMembers();
  state_->changed.wait(lock, [this] { return state_->members || state_->outcome; });
  return state_->members.value_or(std::vector<pid_t>());
}

size_t Running::WaitForOutput(size_t bytes, std::chrono::milliseconds quiet) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock,
                       [&] { return state_->streamed >= bytes || state_->outcome.has_value(); });
  for (size_t before = 0; before != state_->streamed;) {
    before = state_->streamed;
    state_->changed.wait_for(lock, quiet, [&] { return state_->streamed != before; });
  }
  return state_->streamed;
}

void LaunchForEver(const std::string& tier, const std::string& directory) {
  for (;;) {
    const Threads threads(tier == "scope" ? PermissiveSpec(directory) : WardenSpec(directory));
    for (int i = 0; i < 3; ++i) {
      CommandSpec spec = ShellCommand("for i in 1 2; do setsid sleep 300 & done; exit 0");
      for (const char* line : {"setsid sh -c 'sleep 300; exit' ", "sh -c 'sleep 300; exit' "}) {
        spec.argv[2] = line + directory + " & " + spec.argv[2];
      }
      spec.argv.push_back(directory);
      spec.env += std::string(1, '\0') + "MARK=" + directory;
      spec.timeout = std::chrono::milliseconds(200);
      spec.kill_grace = std::chrono::milliseconds(0);
      RunToEnd(threads, std::move(spec));
    }
  }
}

void OutliveTheHoldingOfOutput() {
  const TemporaryDirectory top;
  const Outcome outcome = RunToEnd(BareSpec(top.path()), ShellCommand("sleep 300 &"));
  if (!outcome.output_held) ReportFailure(__FILE__, __LINE__, "the output was not held");
}

Outcome RunUntilReady(const ConfinementSpec& confinement, const CommandSpec& command,
                      void (*limit)(CommandSpec&, std::chrono::milliseconds)) {
  for (std::chrono::milliseconds length(100);; length *= 2) {
    CommandSpec spec = ShellCommand(command.argv[2]);
    spec.kill_grace = command.kill_grace;
    spec.background = command.background;
    limit(spec, length);
    Outcome outcome = RunToEnd(confinement, std::move(spec));
    if (outcome.output[0].kept.view().starts_with("ready\n")) return outcome;
    if (length > std::chrono::minutes(1)) {
      ReportFailure(__FILE__, __LINE__, "the command did not come to say that it is ready");
      return outcome;
    }
  }
}

Outcome RunToEnd(const Threads& threads, CommandSpec spec) {
  return Running(threads, std::move(spec)).Wait();
}

Outcome RunToEnd(ConfinementSpec confinement, CommandSpec spec) {
  const Threads threads(std::move(confinement));
  return RunToEnd(threads, std::move(spec));
}

}  // namespace sandbox_run::test
