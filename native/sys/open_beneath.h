#ifndef SANDBOX_RUN_SYS_OPEN_BENEATH_H_
#define SANDBOX_RUN_SYS_OPEN_BENEATH_H_

#include <sys/types.h>

namespace sandbox_run {

// Opens `path`, which is relative, beneath `root`: no symbolic link is followed wherever it stands,
// and `..` does not lead out. Returns a descriptor or a negative errno (ELOOP: a link; EXDEV: out
// of the root). Asks openat2, and walks by itself where that is missing or refused.
int OpenBeneath(int root, const char* path, int flags, mode_t mode);

// The second way of the above, for kernels before 5.6 and filters that refuse what they do not
// know.
int OpenBeneathByWalking(int root, const char* path, int flags, mode_t mode);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_OPEN_BENEATH_H_
