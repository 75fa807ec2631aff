#include "process/command_threads.h"

#include <pthread.h>
#include <signal.h>

namespace sandbox_run {
namespace {

constexpr size_t kThreadStack = 256 * 1024;
// Each holds a few descriptors and two directories.
constexpr size_t kMaxIdleThreads = 64;

}  // namespace

struct CommandThreads::Start {
  std::shared_ptr<CommandThreads> threads;
  std::shared_ptr<Command> command;
};

CommandThreads::CommandThreads(ConfinementSpec spec)
    : confinement_(std::make_shared<Confinement>(std::move(spec))) {}

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
  if (Status started = StartThread(made.value()); !started.ok()) return started.failure();
  return made;
}

Status CommandThreads::Prepare() {
  Result<std::unique_ptr<Slot>> slot = confinement_->Acquire();
  if (!slot.ok()) return slot.failure();
  confinement_->Release(std::move(slot.value()));
  return Status();
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
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // The thread inherits the mask: no signal meant for the process may be handled on it, and none
  // may be pending when it clones.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto start = std::make_unique<Start>(Start{shared_from_this(), std::move(command)});
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, Main, start.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) return Failure{"thread", error, ""};
  [[maybe_unused]] const Start* owned_by_the_thread = start.release();
  return Status();
}

void* CommandThreads::Main(void* start) {
  const std::unique_ptr<Start> mine(static_cast<Start*>(start));
  mine->threads->Work(std::move(mine->command));
  return nullptr;
}

void CommandThreads::Work(std::shared_ptr<Command> command) {
  const auto self = std::make_shared<Thread>();
  CommandPlace place;
  for (;;) {
    switch (command->Run(place, [&] { return Offer(self); })) {
      case Command::Afterwards::kPlaceIsKept:
        break;
      case Command::Afterwards::kPlaceIsGone:
        return;
      case Command::Afterwards::kNeedsNewThread:
        if (Status started = StartThread(command); !started.ok()) {
          command->GiveUp(std::move(started.failure()));
        }
        return;
    }
    command = Next(*self);
    if (command == nullptr) break;
  }
  place.slot.reset();
  const std::lock_guard lock(mutex_);
  --stopping_;
  stopped_.notify_all();
}

bool CommandThreads::Offer(const std::shared_ptr<Thread>& thread) {
  const std::lock_guard lock(mutex_);
  if (closed_ || idle_.size() >= kMaxIdleThreads) return false;
  idle_.push_back(thread);
  return true;
}

std::shared_ptr<Command> CommandThreads::Next(Thread& thread) {
  std::unique_lock lock(mutex_);
  thread.given.wait(lock, [&] { return thread.stop || thread.command != nullptr; });
  return std::move(thread.command);
}

}  // namespace sandbox_run
