#include "core/outside.h"

#include <pthread.h>
#include <signal.h>

#include <memory>
#include <utility>

namespace sandbox_run {
namespace {

constexpr size_t kThreadStack = 256 * 1024;

// Never destroyed: command threads may outlive the destruction of static objects.
std::mutex existing_mutex;
Outside* existing = nullptr;

}  // namespace

int StartDetached(void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // The thread inherits the mask: no signal meant for the process may be handled on it, and none
  // may be pending when it clones.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

Outside* Outside::Get() {
  const std::lock_guard lock(existing_mutex);
  if (existing == nullptr) {
    auto made = std::make_unique<Outside>();
    if (StartDetached(Main, made.get()) == 0) existing = made.release();
  }
  return existing;
}

Outside* Outside::Existing() {
  const std::lock_guard lock(existing_mutex);
  return existing;
}

void Outside::Call(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(function));
  changed_.notify_one();
}

void* Outside::Main(void* self) {
  static_cast<Outside*>(self)->Work();
  return nullptr;
}

void Outside::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty(); });
    const std::function<void()> function = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    function();
    lock.lock();
  }
}

}  // namespace sandbox_run
