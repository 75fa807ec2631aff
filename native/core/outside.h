#ifndef SANDBOX_RUN_CORE_OUTSIDE_H_
#define SANDBOX_RUN_CORE_OUTSIDE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace sandbox_run {

// Starts a thread with every signal blocked; returns 0 or the errno.
int StartDetached(void* (*body)(void*), void* argument);

// Calls functions on a thread that never enters a signal scope. A thread inherits the Landlock
// domain of the one that makes it, and inside a domain no thread may mount or signal a warden: a
// command's thread cannot make the thread that builds the next view. One for the whole process, for
// all its life.
class Outside {
 public:
  // The first call has to come from a thread that is in no scope. nullptr: no thread can be made.
  static Outside* Get();
  // For threads that are in a scope: does not start the thread. nullptr: it was not started yet.
  static Outside* Existing();

  void Call(std::function<void()> function);

 private:
  static void* Main(void* self);
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_OUTSIDE_H_
