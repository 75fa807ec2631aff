#include "core/command_threads.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/outside.h"
#include "core/rehearsal.h"

namespace sandbox_run {
namespace {

// Each holds a few descriptors and two directories.
constexpr size_t kMaxIdleThreads = 64;
// Together they shall not hold more than a small part of what this process may open.
constexpr size_t kDescriptorsPerIdleThread = 64;
// So many stay however long nothing is launched; the others go when they were idle for long.
constexpr size_t kKeptThreads = 4;

size_t MaxIdleThreads() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxIdleThreads;
  return std::clamp<size_t>(limit.rlim_cur / kDescriptorsPerIdleThread, 1, kMaxIdleThreads);
}

}  // namespace

struct CommandThreads::Start {
  std::shared_ptr<CommandThreads> threads;
  std::shared_ptr<Command> command;
};

CommandThreads::CommandThreads(ConfinementSpec spec, std::chrono::milliseconds max_idle)
    : max_idle_(max_idle), confinement_(std::make_shared<Confinement>(std::move(spec))) {}

Result<std::shared_ptr<Command>> CommandThreads::Launch(CommandSpec spec,
                                                        std::unique_ptr<CommandObserver> observer) {
  Result<std::shared_ptr<Command>> made =
      Command::Make(confinement_, std::move(spec), std::move(observer));
  if (!made.ok()) return made;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      // The last one that became idle: its memory is still in the caches.
      const std::shared_ptr<Thread> thread = std::move(idle_.back());
      idle_.pop_back();
      thread->command = made.value();
      thread->given.notify_one();
      return made;
    }
  }
  if (Outside::Get() == nullptr) return Failure{"thread", EAGAIN, ""};
  if (Status started = StartThread(made.value()); !started.ok()) return started.failure();
  return made;
}

Status CommandThreads::Prepare() {
  Result<std::unique_ptr<Slot>> slot = confinement_->Acquire();
  if (!slot.ok()) return slot.failure();
  confinement_->Release(std::move(slot.value()));
  return confinement_->spec().rehearses ? Rehearse(*this, confinement_->spec()) : Status();
}

void CommandThreads::Close() {
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    for (const std::shared_ptr<Thread>& thread : idle_) {
      thread->stop = true;
      thread->given.notify_one();
      ++stopping_;
    }
    idle_.clear();
    stopped_.wait(lock, [this] { return stopping_ == 0; });
  }
  confinement_->Close();
}

Status CommandThreads::StartThread(std::shared_ptr<Command> command) {
  auto start = std::make_unique<Start>(Start{shared_from_this(), std::move(command)});
  const int error = StartDetached(Main, start.get());
  if (error != 0) return Failure{"thread", error, ""};
  [[maybe_unused]] const Start* owned_by_the_thread = start.release();
  return Status();
}

void CommandThreads::StartThreadFromOutside(std::shared_ptr<Command> command) {
  Outside::Get()->Call([self = shared_from_this(), command = std::move(command)] {
    if (Status started = self->StartThread(command); !started.ok()) {
      command->GiveUp(std::move(started.failure()));
    }
  });
}

void* CommandThreads::Main(void* start) {
  const std::unique_ptr<Start> mine(static_cast<Start*>(start));
  mine->threads->Work(std::move(mine->command));
  return nullptr;
}

void CommandThreads::Work(std::shared_ptr<Command> command) {
  const auto self = std::make_shared<Thread>();
  auto place = std::make_unique<CommandPlace>();
  for (;;) {
    switch (command->Run(*place, [&] { return Offer(self); })) {
      case Command::Afterwards::kPlaceIsKept:
        break;
      case Command::Afterwards::kPlaceIsGone:
        return;
      case Command::Afterwards::kNeedsNewThread:
        StartThreadFromOutside(std::move(command));
        return;
    }
    // An idle thread keeps nothing of its last command.
    command.reset();
    command = Next(self);
    if (command == nullptr) break;
  }
  // All of it, the warden included, before the caller of Close() goes on.
  place.reset();
  const std::lock_guard lock(mutex_);
  --stopping_;
  stopped_.notify_all();
}

bool CommandThreads::Offer(const std::shared_ptr<Thread>& thread) {
  const std::lock_guard lock(mutex_);
  if (closed_ || idle_.size() >= MaxIdleThreads()) return false;
  idle_.push_back(thread);
  return true;
}

std::shared_ptr<Command> CommandThreads::Next(const std::shared_ptr<Thread>& thread) {
  std::unique_lock lock(mutex_);
  const auto is_given = [&] { return thread->stop || thread->command != nullptr; };
  if (!thread->given.wait_for(lock, max_idle_, is_given)) {
    if (idle_.size() > kKeptThreads) {
      std::erase(idle_, thread);
      ++stopping_;
      return nullptr;
    }
    thread->given.wait(lock, is_given);
  }
  return std::move(thread->command);
}

}  // namespace sandbox_run
