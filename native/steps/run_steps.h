#ifndef SANDBOX_RUN_STEPS_RUN_STEPS_H_
#define SANDBOX_RUN_STEPS_RUN_STEPS_H_

namespace sandbox_run {

// Exit status of sandbox-run-steps itself: nothing was run.
inline constexpr int kStepsFailed = 125;

// `sandbox-run-steps ROOT TOKEN...`: runs a list of steps (steps/step_list.h) as a shell would,
// without one. The working directory is beneath ROOT, which is canonical, and so is every file that
// a redirect names; links are not followed on the way. Returns the exit status: that of the last
// pipeline that ran, 128 + n for a signal, 127 and 126 for programs that are not there or cannot be
// run. A list that is one command becomes that command.
int RunSteps(int argc, char** argv);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_STEPS_RUN_STEPS_H_
