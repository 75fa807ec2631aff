#ifndef SANDBOX_RUN_SYS_RAW_TERMINAL_H_
#define SANDBOX_RUN_SYS_RAW_TERMINAL_H_

namespace sandbox_run {

// Puts the terminal behind `fd` into raw mode: every byte is passed on as it is, in both
// directions. (Not by Node, whose raw mode still turns a line feed into two characters.) It is put
// back by LeaveRawMode(), and if a signal ends this process, SIGKILL excepted. False: it is no
// terminal, or this process is in its background, from where it must not change
// the modes.
bool EnterRawMode(int fd);

// Puts the terminal back as EnterRawMode() found it, unless this process is in the background.
void LeaveRawMode();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SYS_RAW_TERMINAL_H_
