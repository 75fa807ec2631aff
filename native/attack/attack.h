// The sandboxees of `sandbox-run doctor --attack`: one function per move of an attacker.
#ifndef SANDBOX_RUN_ATTACK_ATTACK_H_
#define SANDBOX_RUN_ATTACK_ATTACK_H_

#include <cstddef>

namespace sandbox_run {

// One move. `arguments` ends with nullptr. 0 or more: it worked; less: errno says why it did not.
using Move = long (*)(char** arguments);

// A move by its name, with the number of arguments that it takes.
struct Attack {
  const char* name;
  int arguments;
  Move move;
};

// The moves of each file; the last row has no name.
extern const Attack kFileAttacks[];
extern const Attack kSocketAttacks[];
extern const Attack kProcessAttacks[];
extern const Attack kKernelAttacks[];
extern const Attack kPrivilegeAttacks[];
extern const Attack kResourceAttacks[];
extern const Attack kRedirectionAttacks[];

// Shows what was got: printed behind the result, up to the first character that is not plain text.
void Got(const void* text, size_t size);

// Opens `path`, reads once and shows what was read.
long ReadAndShow(const char* path);

// Executes a program; what it exits with, or -1 with errno if it could not be started.
long ExitStatusOf(char* const arguments[]);

// The process that is attacked; see bystander.cc.
int RunBystander(char** arguments);

// What an executed copy of this program exits with, as a proof that it ran.
constexpr int kProof = 77;

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_ATTACK_ATTACK_H_
