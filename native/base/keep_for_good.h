#ifndef SANDBOX_RUN_BASE_KEEP_FOR_GOOD_H_
#define SANDBOX_RUN_BASE_KEEP_FOR_GOOD_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sandbox_run {

// Never frees what a process that could not be waited for may still use: it shares this memory.
inline void KeepForGood(std::shared_ptr<void> memory) {
  static std::mutex mutex;
  // Never destroyed either: threads may outlive static objects.
  static auto* const kept = new std::vector<std::shared_ptr<void>>();
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(memory));
}

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BASE_KEEP_FOR_GOOD_H_
