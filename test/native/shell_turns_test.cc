#include "shell/shell_turns.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "check.h"
#include "core/command.h"
#include "guests/command_guests.h"
#include "shell/shell_driver.h"
#include "support.h"

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;
using test::BareSpec;
using test::CountDescriptors;
using test::PermissiveSpec;
using test::TemporaryDirectory;
using test::Threads;

// A shell on a thread of its own, and the turns that it reported.
class Shell {
 public:
  explicit Shell(const Threads& threads, const std::string& program = "/bin/bash",
                 std::vector<std::string> argv = {"bash", "--noprofile", "--norc", "--noediting",
                                                  "-i"}) {
    CommandSpec spec = test::ShellCommand("");
    spec.program = program;
    spec.argv = std::move(argv);
    spec.env = std::string("PATH=/usr/bin:/bin") + '\0' + "SHLVL=0" + '\0';
    spec.kill_grace = milliseconds(200);
    auto observer = std::make_unique<Observer>(state_);
    guests_ = std::make_shared<CommandGuests>(std::make_shared<const GuestSpec>(), *observer,
                                              spec.kill_grace);
    spec.guest = guests_;
    Result<std::shared_ptr<Command>> command =
        (*threads).Launch(std::move(spec), std::move(observer));
    if (!command.ok()) abort();
    command_ = std::move(command.value());
  }
  ~Shell() { End(); }

  // The turn, or nothing if the shell ended with it.
  std::optional<TurnEnd> Run(const std::string& text, milliseconds timeout = milliseconds(10'000),
                             const std::string& assignments = "") {
    TurnSpec spec;
    spec.id = ++last_id_;
    spec.text = text;
    spec.assignments = assignments;
    spec.timeout = timeout;
    guests_->turns()->Begin(std::move(spec));
    command_->Wake();
    return Wait();
  }
  void Interrupt(uint32_t id) {
    guests_->turns()->Interrupt(id);
    command_->Wake();
  }
  std::optional<TurnEnd> Wait() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] {
      return (state_->turn && state_->turn->id == last_id_) || state_->outcome.has_value();
    });
    if (!state_->turn || state_->turn->id != last_id_) return std::nullopt;
    return std::exchange(state_->turn, std::nullopt);
  }
  Outcome End() {
    command_->Cancel(true);
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->finished; });
    return std::move(*state_->outcome);
  }
  Command& command() { return *command_; }
  uint32_t last_id() const { return last_id_; }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<TurnEnd> turn;
    std::optional<Outcome> outcome;
    bool finished = false;
  };
  class Observer : public CommandObserver, public GuestObserver {
   public:
    explicit Observer(std::shared_ptr<State> state) : state_(std::move(state)) {}
    void OnOutput(int, std::string) override {}
    void OnTurn(TurnEnd turn, GuestEffects) override {
      const std::lock_guard lock(state_->mutex);
      state_->turn = std::move(turn);
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

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_ptr<CommandGuests> guests_;
  std::shared_ptr<Command> command_;
  uint32_t last_id_ = 0;
};

TEST(ShellKeepsWhatTurnsLeave) {
  const TemporaryDirectory top;
  const Threads threads(BareSpec(top.path()));
  Shell shell(threads);
  EXPECT_TRUE(shell.Run("x=1; cd /usr; f() { echo \"f $x\"; }; (exit 7)").value().status == 7);
  const TurnEnd turn = shell.Run("echo $?; f; pwd; echo err >&2").value();
  EXPECT_EQ(turn.status, 0);
  EXPECT_EQ(turn.output[0].kept, "7\nf 1\n/usr\n");
  EXPECT_EQ(turn.output[1].kept, "err\n");
  EXPECT_TRUE(turn.state.find("declare -f f\n") != std::string::npos);
  EXPECT_TRUE(turn.state.find("/usr\n") == 0);
  EXPECT_TRUE(!turn.timed_out && !turn.interrupted && !turn.broken);
}

TEST(ShellRunsAllOfATextOrNothing) {
  const TemporaryDirectory top;
  const Threads threads(BareSpec(top.path()));
  Shell shell(threads);
  const TurnEnd wrong = shell.Run("echo before\nif").value();
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.output[0].kept, "");
  for (const char* empty : {"", " \n\t", "# a comment\n  # another"}) {
    EXPECT_EQ(shell.Run(empty).value().status, 0);
  }
  const std::string large = "echo '" + std::string(300'000, 'x') + "' | wc -c";
  EXPECT_EQ(shell.Run(large).value().output[0].kept, "300001\n");
  EXPECT_EQ(shell.Run("sh -c 'echo $A'", milliseconds(0), "A='b c' ").value().output[0].kept,
            "b c\n");
}

TEST(ShellTurnsThatHangAreInterrupted) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  Shell shell(threads);
  shell.Run("kept=1");
  for (const char* text :
       {"sleep 60; echo next", "while :; do :; done; echo next",
        "sh -c 'trap \"\" INT; sleep 60'; echo next", "kill -STOP $$; echo next"}) {
    const TurnEnd turn = shell.Run(text, milliseconds(100)).value();
    EXPECT_TRUE(turn.timed_out && !turn.interrupted);
    EXPECT_EQ(turn.output[0].kept, "");
  }
  shell.Interrupt(shell.last_id() + 1);
  const TurnEnd turn = shell.Run("sleep 60; echo next").value();
  EXPECT_TRUE(turn.interrupted && !turn.timed_out);
  EXPECT_EQ(shell.Run("echo $kept").value().output[0].kept, "1\n");
}

TEST(ShellReportsWhateverNamesAreTaken) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  Shell shell(threads);
  const std::optional<TurnEnd> turn = shell.Run(
      "readonly __turn=1; __turn() { :; }; readonly -f __turn; builtin() { :; }; echo fine; (exit "
      "3)");
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->status, 3);
  EXPECT_EQ(turn->output[0].kept, "fine\n");
  EXPECT_EQ(shell.Run("echo $?").value().output[0].kept, "3\n");
}

TEST(ShellThatCannotReportEnds) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  Shell shell(threads);
  EXPECT_TRUE(!shell.Run("ulimit -n 3; (exit 4)", milliseconds(0)));
  EXPECT_EQ(shell.End().exit_code, 4);
}

TEST(ShellThatEndsWhileItsTurnIsEndedSaysWhy) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  {
    Shell shell(threads);
    // Set beforehand: the time may be over before the turn has done anything.
    ASSERT_TRUE(shell.Run("trap 'exit 5' INT").has_value());
    EXPECT_TRUE(!shell.Run("while :; do :; done", milliseconds(100)));
    const Outcome outcome = shell.End();
    EXPECT_TRUE(outcome.timed_out && !outcome.canceled);
  }
  {
    Shell shell(threads);
    // The same of an interruption.
    ASSERT_TRUE(shell.Run("trap 'exit 5' INT").has_value());
    shell.Interrupt(shell.last_id() + 1);
    EXPECT_TRUE(!shell.Run("while :; do :; done", milliseconds(0)));
    const Outcome outcome = shell.End();
    EXPECT_TRUE(outcome.canceled && !outcome.timed_out);
  }
}

TEST(ShellTextsMakeNoFiles) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  Shell shell(threads);
  shell.Run("export TMPDIR=" + top.path());
  const UniqueFd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_TRUE(inotify_add_watch(watch.get(), top.path().c_str(), IN_CREATE) >= 0);
  char event[4096];
  for (const size_t size : {size_t{3000}, size_t{5000}, size_t{60 * 1024}, size_t{300'000}}) {
    const std::string text = "echo $?; x='" + std::string(size, 'x') +
                             "'; echo ${#x} \"it's\" $LINENO\necho $LINENO; return 3";
    shell.Run("(exit 7)");
    const TurnEnd turn = shell.Run(text).value();
    EXPECT_EQ(turn.status, 3);
    EXPECT_EQ(turn.output[0].kept, "7\n" + std::to_string(size) + " it's 1\n2\n");
    EXPECT_TRUE(read(watch.get(), event, sizeof(event)) < 0);
  }
  const std::string wrong = "echo before; : " + std::string(5000, 'x') + "\nif";
  const TurnEnd turn = shell.Run(wrong).value();
  EXPECT_EQ(turn.status, 2);
  EXPECT_EQ(turn.output[0].kept, "");
  // The positive control: a here-document of this size does make one.
  shell.Run("cat > /dev/null <<E\n" + std::string(300'000, 'x') + "\nE");
  EXPECT_TRUE(read(watch.get(), event, sizeof(event)) > 0);
}

TEST(ShellThatHeedsNothingIsEnded) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  Shell shell(threads);
  ASSERT_TRUE(shell.Run("trap '' INT URG").has_value());
  EXPECT_TRUE(!shell.Run("while :; do :; done", milliseconds(100)));
  const Outcome outcome = shell.End();
  EXPECT_EQ(outcome.signal, SIGKILL);
  EXPECT_TRUE(outcome.timed_out);
}

TEST(ShellThatFloodsItsChannelIsEnded) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  Shell shell(threads);
  const std::optional<TurnEnd> turn = shell.Run(
      "for fd in 10 11 12 13 14 15; do head -c 20000000 /dev/zero >&$fd; done 2>/dev/null");
  EXPECT_TRUE(turn && turn->broken);
  EXPECT_EQ(shell.End().signal, SIGKILL);
}

TEST(ShellThatIsNoneIsGivenUp) {
  const TemporaryDirectory top;
  const Threads threads(PermissiveSpec(top.path()));
  {
    Shell shell(threads, "/bin/true", {"true"});
    // How it ends is a race between its own end and that of the time it has for it.
    EXPECT_TRUE(!shell.Run("echo"));
  }
  {
    // Closes the channel and lives on.
    Shell shell(threads, "/bin/sh", {"sh", "-c", "exec 0<&- sleep 60"});
    EXPECT_TRUE(!shell.Run("echo", milliseconds(0)));
    EXPECT_EQ(shell.End().signal, SIGKILL);
  }
  {
    // The same, long before its first turn.
    const std::string file = top / "pid";
    Shell shell(threads, "/bin/sh", {"sh", "-c", "echo $$ > " + file + "; exec 0<&- sleep 60"});
    EXPECT_TRUE(test::Eventually([&] {
      const int pid = atoi(test::ReadText(file).c_str());
      return pid > 0 && test::ReadText("/proc/" + std::to_string(pid) + "/comm") == "sleep\n";
    }));
    EXPECT_TRUE(!shell.Run("echo", milliseconds(0)));
    EXPECT_EQ(shell.End().signal, SIGKILL);
  }
  {
    Shell shell(threads, "/bin/cat", {"cat"});
    EXPECT_TRUE(!shell.Run("echo", milliseconds(200)));
  }
}

TEST(ShellTurnsLeakNoDescriptors) {
  const TemporaryDirectory top;
  // Once the threads are gone, with everything that they keep for the next shell.
  const auto after = [&](int shells) {
    {
      const Threads threads(BareSpec(top.path()));
      for (int i = 0; i < shells; ++i) {
        Shell shell(threads);
        size_t first = 0;
        for (int turn = 0; turn < 20; ++turn) {
          shell.Run(":");
          if (turn == 0) first = CountDescriptors();
        }
        EXPECT_TRUE(test::Eventually([&] { return CountDescriptors() <= first; }));
      }
    }
    return CountDescriptors();
  };
  const size_t before = after(1);
  EXPECT_EQ(after(5), before);
}

TEST(AHangingTurnTakesItsOrphansWithItAndNobodyElse) {
  const TemporaryDirectory top;
  const Threads threads(BareSpec(top.path()));
  Shell shell(threads);
  // Dated in hundredths of a second: what was started before has to be older.
  const std::string file = top.path() + "/orphan";
  shell.Run("sleep 300 >/dev/null 2>&1 & earlier=$!; sleep 0.1");
  // With more and more time, until it came to make one.
  for (milliseconds time(200); test::ReadText(file).empty() && time < std::chrono::minutes(2);
       time *= 2) {
    const std::optional<TurnEnd> turn =
        shell.Run("(trap '' INT; setsid sleep 301 & echo $! > " + file +
                      ") 2>/dev/null; trap '' INT; sleep 302",
                  time);
    ASSERT_TRUE(turn.has_value());
    EXPECT_TRUE(turn->timed_out);
  }
  EXPECT_TRUE(!test::ReadText(file).empty());
  // Whoever inherits it reaps it when it gets to that.
  const std::optional<TurnEnd> after = shell.Run(
      "kill -0 $earlier && echo earlier; for try in {1..1200}; do state=$(grep -s ^State: "
      "/proc/$(cat " +
      file + ")/status); case $state in '' | *Z*) break; esac; sleep 0.05; done; " +
      "[[ -z $state || $state == *Z* ]] || echo orphan");
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->output[0].kept, "earlier\n");
}

TEST(ReportsAreFramedByTheNonce) {
  EXPECT_EQ(ReportBegin("n"), std::string("\0n\0", 3));
  EXPECT_EQ(ReportEnd("n"), std::string("\0n.\0", 4));
  const std::string lines = ShellTurn("echo x", "", "nonce", 3);
  EXPECT_TRUE(lines.find("nonce(){ \\builtin unset -f nonce; \\builtin return 3;") !=
              std::string::npos);
  EXPECT_TRUE(lines.find("<<'nonce'\n{ echo x\n} </dev/null\nnonce\n") != std::string::npos);
  EXPECT_TRUE(ShellTurn("# x", "", "nonce", 0).find("{ :\n}") != std::string::npos);
}

}  // namespace
}  // namespace sandbox_run
