#ifndef SANDBOX_RUN_CORE_KEPT_DESCRIPTORS_H_
#define SANDBOX_RUN_CORE_KEPT_DESCRIPTORS_H_

#include <cstddef>

namespace sandbox_run {

// A part of what this process may open, as others run beside: one of so many, but at least and at
// most that many.
size_t ShareOfDescriptors(size_t parts, size_t least, size_t most);

// How many descriptors a supervisor keeps for the sockets of its command. Whoever begins another
// command reckons with them.
class KeptDescriptors {
 public:
  KeptDescriptors() = default;
  ~KeptDescriptors() { Set(0); }
  KeptDescriptors(const KeptDescriptors&) = delete;
  KeptDescriptors& operator=(const KeptDescriptors&) = delete;

  void Set(size_t count);
  // The kept descriptors of all supervisors of this process. Callable from any thread.
  static size_t All();

 private:
  size_t count_ = 0;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_KEPT_DESCRIPTORS_H_
