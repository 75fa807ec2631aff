#ifndef SANDBOX_RUN_BEGIN_OTHERS_H_
#define SANDBOX_RUN_BEGIN_OTHERS_H_

namespace sandbox_run {

// Whether another process is in reach: one whose memory may be opened by who may do what this one
// may, which is more than the command may. 1, 0, or -errno if it cannot be found out.
long OthersInReach();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BEGIN_OTHERS_H_
