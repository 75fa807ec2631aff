#include "core/supervision.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace sandbox_run {
namespace {

using std::chrono::milliseconds;

// How long a process that outlived the command may hold its pipes open: first what it left behind,
// which is ended then; after that a process outside that was handed a pipe.
constexpr milliseconds kDrainGrace{250};
// How often it is looked whether anything is left of a background command.
constexpr milliseconds kLookInterval{250};
// Between two attempts to end what has been killed already.
constexpr milliseconds kKillAgain{10};
// A terminal holds more than it says.
constexpr uint64_t kUntoldOutput = 128 * 1024;

}  // namespace

void Supervision::Run() {
  const auto start = Clock::now();
  if (parts_.spec.timeout.count() > 0) times_.deadline = start + parts_.spec.timeout;
  parts_.limits.Started(start);

  for (;;) {
    const Requests requests = parts_.take_requests();
    for (int i = 0; i < requests.members; ++i)
      parts_.observer.OnMembers(parts_.tree.Members(parts_.scope));
    Watch watch;
    const int wake_at = watch.Add(parts_.wake_fd, POLLIN);
    const int exit_at = stage_ == Stage::kRunning ? watch.Add(parts_.tree.exit_fd(), POLLIN) : -1;
    const int warden_at =
        stage_ != Stage::kEnded ? watch.Add(parts_.tree.warden_fd(parts_.scope), POLLIN) : -1;
    if (parts_.spec.guest != nullptr) parts_.spec.guest->AddTo(watch, stage_);
    parts_.streams.AddTo(watch);
    // Until nothing is left that could use anything, which may be later than the exit.
    if (stage_ != Stage::kEnded) parts_.limits.AddTo(watch);
    if (stage_ == Stage::kRunning) {
      KeepTime(requests);
      if (times_.kill_at) {
        watch.Until(std::max(*times_.kill_at, Clock::now() + kKillAgain));
      } else if (times_.deadline) {
        watch.Until(*times_.deadline);
      }
    } else if (stage_ == Stage::kExited) {
      if (!MayStay(requests)) {
        EndTree();
        times_.drain_until = Clock::now() + kDrainGrace;
        stage_ = Stage::kEnded;
        continue;
      }
      for (const auto& time :
           {times_.kill_at, times_.deadline, times_.look_at, times_.drain_until}) {
        if (time) watch.Until(*time);
      }
    } else {
      if (!parts_.streams.output_open() || !MayDrain(requests)) break;
      watch.Until(*times_.drain_until);
    }

    // Without poll() the clock and the limits are lost: the command is ended, whatever it was
    // doing.
    const bool lost = !watch.Wait();
    const int lost_error = lost ? errno : 0;
    if (lost && stage_ == Stage::kEnded) break;
    if (watch.Ready(wake_at)) {
      uint64_t drained;
      [[maybe_unused]] const ssize_t ignored = read(parts_.wake_fd, &drained, sizeof(drained));
    }

    // What the ended tree left in the pipe is finite; a survivor may write for ever.
    if (parts_.streams.Handle(watch) == StandardStreams::Progress::kRead &&
        stage_ == Stage::kEnded && outcome_.tree_ended) {
      times_.drain_until = Clock::now() + kDrainGrace;
    }
    if (stage_ != Stage::kEnded) KeepLimits(watch);
    if (parts_.spec.guest != nullptr) HandleGuest(watch);
    if (lost) {
      EndTree();
      if (!outcome_.failure) outcome_.failure = Failure{"supervision", lost_error, ""};
      times_.drain_until = Clock::now() + kDrainGrace;
      stage_ = Stage::kEnded;
    } else if (watch.Ready(warden_at) && stage_ != Stage::kEnded &&
               parts_.tree.warden_fd(parts_.scope) >= 0) {
      // The warden was not asked to end in this round: it was ended from outside.
      LoseWarden(stage_ == Stage::kExited || watch.Ready(exit_at));
    } else if (watch.Ready(exit_at)) {
      stage_ = HandleExit();
    }
  }
}

void Supervision::KeepLimits(const Watch& watch) {
  const Result<std::optional<LimitExcess>> looked =
      parts_.limits.Handle(watch, parts_.streams.output_bytes(), parts_.streams.paused(),
                           {[&] { return parts_.tree.Members(parts_.scope); },
                            [&](pid_t newest, size_t enough) {
                              return parts_.tree.CountNewest(parts_.scope, newest, enough);
                            }});
  if (!looked.ok()) {
    // Nothing runs with less than was said.
    if (!outcome_.failure) outcome_.failure = looked.failure();
    times_.kill_at = times_.kill_at.value_or(Clock::now());
    outcome_.tree_ended = KillTree();
    return;
  }
  const std::optional<LimitExcess>& excess = looked.value();
  // It was ended in another way first, or it ended by itself and only holds its pipes open.
  if (!excess || times_.kill_at) return;
  if (excess->name == LimitName::kIdle && stage_ != Stage::kRunning && !parts_.spec.background)
    return;
  outcome_.limit = excess;
  times_.kill_at = Clock::now();
  if (excess->name == LimitName::kIdle) {
    // As for a time-out: nothing is lost by letting it end in good order.
    AskToEnd();
    *times_.kill_at += parts_.spec.kill_grace;
  } else {
    outcome_.tree_ended = KillTree();
  }
}

void Supervision::AskToEnd() {
  // A stopped process acts on SIGTERM only once it goes on.
  for (const int number : {SIGTERM, SIGCONT}) {
    if (reaped_) {
      parts_.tree.SignalAll(number, parts_.scope);
    } else {
      parts_.tree.Signal(number);
    }
  }
}

void Supervision::KeepTime(const Requests& requests) {
  const auto now = Clock::now();
  const bool timed_out = times_.deadline && now >= *times_.deadline;
  if ((requests.cancel || timed_out) && !times_.kill_at) {
    outcome_.canceled = requests.cancel;
    outcome_.timed_out = timed_out && !requests.cancel;
    AskToEnd();
    times_.kill_at = now + parts_.spec.kill_grace;
  }
  if (times_.kill_at && (requests.kill || now >= *times_.kill_at)) {
    outcome_.tree_ended = KillTree();
  }
}

void Supervision::HandleGuest(const Watch& watch) {
  Guest::Round round{watch,
                     stage_,
                     times_.kill_at.has_value(),
                     parts_.streams,
                     parts_.slot,
                     parts_.confinement,
                     [this] { return parts_.tree.Members(parts_.scope); },
                     outcome_};
  parts_.spec.guest->Handle(round);
  if (round.began > 0) parts_.tree.CommandBegan(round.began);
  if (round.ended) {
    parts_.tree.CommandEnded();
    // Processes that it left must end with it, and a launcher that checks the time notices the end
    // only after up to two seconds.
    if (!parts_.spec.background && stage_ == Stage::kRunning) outcome_.tree_ended = KillTree();
  }
  if (round.gives_up) {
    times_.kill_at = Clock::now();
    outcome_.tree_ended = KillTree();
  }
}

void Supervision::LoseWarden(bool exited) {
  parts_.streams.CloseInput();
  EndTree();
  times_.drain_until = Clock::now() + kDrainGrace;
  stage_ = Stage::kEnded;
  // What was to end now anyway has ended, and provably so. A warden that cannot go on ends the
  // command first.
  const bool ended_itself = exited && outcome_.signal != SIGKILL && !parts_.spec.background;
  const bool was_to_end = ended_itself || times_.kill_at.has_value();
  if (!(was_to_end && outcome_.tree_ended) && !outcome_.failure) {
    outcome_.failure = Failure{kWardenLost, 0, ""};
  }
}

bool Supervision::MayDrain(const Requests& requests) {
  if (requests.kill) return false;
  const auto now = Clock::now();
  // What a process outside goes on writing has no end.
  if (outcome_.tree_ended && parts_.streams.output_bytes() >= output_at_most_) return false;
  return now < *times_.drain_until;
}

Supervision::Stage Supervision::HandleExit() {
  parts_.streams.CloseInput();
  const auto now = Clock::now();
  const bool ended_by_us = times_.kill_at.has_value();
  times_.drain_until = now + kDrainGrace;
  if (parts_.spec.background) {
    // Whose end is withheld by a tracer is ended with everything else, the tracer included: the
    // launcher does not wait until that one lets go.
    if (!ended_by_us && parts_.tree.IsReapable()) Reap();
    if (reaped_ && !outcome_.failure) {
      ProcessEnd end{outcome_.exit_code, outcome_.signal, outcome_.usage};
      parts_.observer.OnExit(end,
                             std::chrono::duration<double, std::milli>(now - parts_.begin).count());
      times_.drain_until.reset();
      times_.look_at = now;
      return Stage::kExited;
    }
  } else if (!ended_by_us && parts_.streams.output_open()) {
    // The process is not reaped yet: its number, and with it that of its group, stays its own.
    if (times_.deadline) times_.drain_until = std::min(*times_.drain_until, *times_.deadline);
    times_.deadline.reset();
    return Stage::kExited;
  }
  if (!ended_by_us) NoteLeftRunning();
  EndTree();
  return Stage::kEnded;
}

bool Supervision::MayStay(const Requests& requests) {
  if (!parts_.spec.background) {
    // However slow the consumer: no process that holds the pipes lives longer for it.
    if (times_.kill_at) return false;
    if (!parts_.streams.output_held()) {
      NoteLeftRunning();
      return false;
    }
    if (!requests.cancel && !requests.kill && Clock::now() < *times_.drain_until) return true;
    outcome_.output_held = true;
    return false;
  }
  KeepTime(requests);
  const auto now = Clock::now();
  if (times_.kill_at && now >= *times_.kill_at) return false;
  if (requests.kill) return false;
  // From here on the end is near, and is only waited for.
  if (times_.kill_at) times_.deadline.reset();
  if (now < *times_.look_at) return true;
  times_.look_at = now + kLookInterval;
  return !parts_.tree.Members(parts_.scope).empty();
}

void Supervision::NoteLeftRunning() {
  if (!parts_.spec.tells_left_running) return;
  std::vector<pid_t> left = parts_.tree.Members(parts_.scope);
  std::erase(left, parts_.tree.pid());
  outcome_.left_running = !left.empty();
}

bool Supervision::KillTree() {
  const bool ended = parts_.tree.End(parts_.scope);
  return parts_.limits.End() || ended;
}

void Supervision::EndTree() {
  // What the command left behind ends with it, before its number is given back by the reaping.
  outcome_.tree_ended = KillTree();
  if (outcome_.tree_ended) {
    parts_.streams.TakeTheRest();
  } else if (parts_.tree.warden_lost() && !outcome_.failure) {
    // While it ended the rest, which then was not ended.
    outcome_.failure = Failure{kWardenLost, 0, ""};
  }
  // The kernel may have been first.
  if (!outcome_.limit && !outcome_.canceled && !outcome_.timed_out)
    outcome_.limit = parts_.limits.AtEnd();
  output_at_most_ = parts_.streams.output_bytes() + parts_.streams.Pending() + kUntoldOutput;
  if (!reaped_) Reap();
}

void Supervision::Reap() {
  reaped_ = true;
  Result<ProcessEnd> end = parts_.tree.Reap();
  if (!end.ok()) {
    outcome_.failure = std::move(end.failure());
    return;
  }
  outcome_.exit_code = end.value().exit_code;
  outcome_.signal = end.value().signal;
  outcome_.usage = end.value().usage;
}

}  // namespace sandbox_run
