#ifndef SANDBOX_RUN_SHELL_SHELL_DRIVER_H_
#define SANDBOX_RUN_SHELL_SHELL_DRIVER_H_

#include <string>
#include <string_view>

namespace sandbox_run {

// The lines that a long-lived bash is fed through its standard input, and how its reports look.
//
// bash reads them as an interactive shell does, because only that one gives up a whole list of
// commands at an interrupt and survives errors that end a script. Each turn is sourced from a
// here-document, as one compound command: nothing of it runs if any of it is wrong, an error or an
// interrupt ends all of it, and what it is made of cannot be mistaken for what follows. A large
// text is a variable, and the here-document evaluates it. Names of ours are the nonce: no command
// can have taken them.

// The first lines: what an interactive shell does for people is turned off, and the output of
// turns gets descriptors of its own, so that prompts and notices go nowhere. The trap is what ends
// a list when a program in it had to be killed: bash runs it before the next command.
std::string ShellPreamble();

// The lines of one turn: runs `text` with `$?` as the turn before left it, then reports.
// `assignments`: NAME='value' and a blank, each; exported while the text runs.
std::string ShellTurn(std::string_view text, std::string_view assignments, std::string_view nonce,
                      int previous_status);

// What the shell says once it has read all of a turn, before it runs anything of it. An interrupt
// that comes sooner hits its waiting for lines: the turn, or what is left of it, would run all the
// same.
std::string TurnIsRead(std::string_view nonce);

// The line that makes the shell report; or exit if it cannot; it does nothing
// else, so it may be sent again.
std::string ShellReport(std::string_view nonce);

// How a report begins and ends; between them are the fields, separated by NUL: the status, and
// then the state, which JavaScript reads.
std::string ReportBegin(std::string_view nonce);
std::string ReportEnd(std::string_view nonce);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_SHELL_SHELL_DRIVER_H_
