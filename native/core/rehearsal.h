#ifndef SANDBOX_RUN_CORE_REHEARSAL_H_
#define SANDBOX_RUN_CORE_REHEARSAL_H_

#include "base/result.h"
#include "core/command_threads.h"
#include "core/confinement.h"

namespace sandbox_run {

// Stage of a failure that only a rehearsal has: it ended otherwise than it should.
inline constexpr char kRehearsalStage[] = "rehearsal";

// Starts a throw-away child that goes through every step of a command's child up to execve, with
// its warden, its scope and its limits, and waits for its end: what a kernel or an outer sandbox
// refuses is known before the first command. Once per process for each set of kernel interfaces;
// the thread, the scope and the warden stay for the first command.
Status Rehearse(CommandThreads& threads, const ConfinementSpec& spec);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_REHEARSAL_H_
