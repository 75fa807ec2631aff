#ifndef SANDBOX_RUN_TEST_SUPPORT_H_
#define SANDBOX_RUN_TEST_SUPPORT_H_

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "core/command.h"
#include "core/command_threads.h"
#include "core/confinement.h"

namespace sandbox_run::test {

// Between two looks at something that somebody else changes.
void ShortPause();

// Waits until the condition holds; false if it does not after a minute. For what happens elsewhere:
// a line of output, a file, the end of a process.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ShortPause();
  }
  return true;
}

// A new directory that vanishes with the object. Canonical.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void WriteText(const std::string& path, const std::string& text);
std::string ReadText(const std::string& path);
bool Exists(const std::string& path);
std::vector<std::string> Entries(const std::string& directory);
// Open descriptors of this process: how many, and each with what it is of (`7 pipe:[1234]`).
size_t CountDescriptors();
std::set<std::string> Descriptors();

// Waits until the clock by which files are dated has gone on by more than a step.
void NextTick();

// Where commands wait until the test lets them go on.
class Gate {
 public:
  // To be run by a shell.
  std::string wait() const { return "until [ -e " + file() + " ]; do sleep 0.01; done"; }
  void Open() const { WriteText(file(), ""); }

 private:
  std::string file() const { return place_ / "open"; }

  const TemporaryDirectory place_;
};

// Another process of the same user that is no part of any sandbox. Killed at the end of its life.
class Bystander {
 public:
  Bystander();
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  pid_t pid() const { return pid_; }
  // It answers, which it cannot once a deadly signal was sent to it, delivered or not.
  bool alive() const;

 private:
  pid_t pid_ = -1;
  UniqueFd to_it_, from_it_;
};

// True if a process of this number exists and is no zombie.
bool IsRunning(pid_t pid);

// The exit status of a process that does this; -1: a signal ended it.
int InAProcess(const std::function<int()>& body);

bool MayMount();
std::vector<std::string> DirectoriesInRoot();

// True for root of the host, and not for root of a user namespace of an ordinary user, who has no
// other users to give files to.
bool IsRootOfTheHost();

// True if this process is in a process namespace made for the tests, where a signal to everybody
// hits nobody else (scripts/test-native.mjs sees to it).
bool InOwnPidNamespace();

// Landlock with every file right, all of them granted beneath "/": a domain that refuses nothing.
// Handles signals too where the kernel can.
ConfinementSpec PermissiveSpec(const std::string& temporary_parent);
// Without Landlock, and so with a warden for each command.
ConfinementSpec BareSpec(const std::string& temporary_parent);

// Permissive, and trees are held together by a warden each, as on kernels without a signal scope.
ConfinementSpec WardenSpec(const std::string& temporary_parent);

// /bin/sh -c SCRIPT with captured output.
CommandSpec ShellCommand(const std::string& script);

// Command threads that are gone at the end of its life.
class Threads {
 public:
  template <typename... Options>
  explicit Threads(ConfinementSpec spec, Options... options)
      : threads_(std::make_shared<CommandThreads>(std::move(spec), options...)) {}
  ~Threads() { threads_->Close(); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  CommandThreads& operator*() const { return *threads_; }

 private:
  const std::shared_ptr<CommandThreads> threads_;
};

// A started command and what it reported.
class Running {
 public:
  Running(const Threads& threads, CommandSpec spec);
  ~Running();

  Command& command() { return *command_; }
  // Waits for the end, and until everything was given back; takes the outcome, so once.
  Outcome Wait();
  // Waits until standard output begins with `lines` lines, and returns what there is by then;
  // reports a failure after a minute, with what there is.
  std::string WaitForLines(size_t lines);
  // Waits for the exit of a command in the background.
  ProcessEnd WaitForExit();
  // Asks for the tree; empty if it has ended.
  std::vector<pid_t> Members();
  // Waits until at least `bytes` of streamed output arrived and then for `quiet` without more;
  // returns how many there are.
  size_t WaitForOutput(size_t bytes, std::chrono::milliseconds quiet);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Outcome> outcome;
    std::optional<ProcessEnd> exit;
    std::optional<std::vector<pid_t>> members;
    bool finished = false;
    size_t streamed = 0;
  };
  class Observer;

  std::shared_ptr<State> state_;
  std::shared_ptr<Command> command_;
};

// What a process that is to be ended by a test does: launches commands that leave daemons behind,
// one after the other in new places. Their arguments hold `directory`.
[[noreturn]] void LaunchForEver(const std::string& tier, const std::string& directory);

// Waits longer than anybody who holds the output of an ended command has time for: a command that
// ended before has been through that when this returns.
void OutliveTheHoldingOfOutput();

// Runs a command that says `ready` as soon as a time limit may strike: with longer and longer
// limits until it came to that. `limit` sets one.
Outcome RunUntilReady(const ConfinementSpec& confinement, const CommandSpec& command,
                      void (*limit)(CommandSpec&, std::chrono::milliseconds));

// Start and wait.
Outcome RunToEnd(const Threads& threads, CommandSpec spec);
Outcome RunToEnd(ConfinementSpec confinement, CommandSpec spec);

}  // namespace sandbox_run::test

#endif  // SANDBOX_RUN_TEST_SUPPORT_H_
