#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "check.h"
#include "landlock/ruleset.h"
#include "process/tree_kill.h"
#include "sys/files.h"

namespace sandbox_run::test {

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
  for (int round = 0; round < 20 && system(command.c_str()) != 0; ++round) usleep(10'000);
  if (Exists(path_)) fprintf(stderr, "cannot remove %s\n", path_.c_str());
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

Bystander::Bystander() {
  const char* const argv[] = {"sleep", "300", nullptr};
  if (posix_spawn(&pid_, "/bin/sleep", nullptr, nullptr, const_cast<char* const*>(argv), environ) !=
      0) {
    perror("posix_spawn");
    abort();
  }
}

Bystander::~Bystander() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Bystander::alive() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

bool IsRunning(pid_t pid) {
  const std::string status = ReadText("/proc/" + std::to_string(pid) + "/stat");
  const size_t end_of_name = status.rfind(')');
  return end_of_name != std::string::npos && status.size() > end_of_name + 2 &&
         status[end_of_name + 2] != 'Z' && status[end_of_name + 2] != 'X';
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

Outcome RunToEnd(const Threads& threads, CommandSpec spec) {
  return Running(threads, std::move(spec)).Wait();
}

Outcome RunToEnd(ConfinementSpec confinement, CommandSpec spec) {
  const Threads threads(std::move(confinement));
  return RunToEnd(threads, std::move(spec));
}

}  // namespace sandbox_run::test
