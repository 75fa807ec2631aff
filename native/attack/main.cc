// The program `sandbox-run-attack`: `LABEL MOVE [ARGUMENT ...] [-- LABEL MOVE ...]`. Makes each
// move in a process of its own and prints `LABEL=ok[:TEXT]`, `LABEL=ERRNO`, `LABEL=signal:N` or
// `LABEL=unknown`, one line each. Ends with 1 if a move did not work, so that it counts as a
// command that failed.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

// No move takes longer than this by itself.
constexpr unsigned kSecondsAtMost = 10;

// The report of a move's process to the process that prints.
struct Outcome {
  bool done;
  long result;
  int error;
  char text[96];
};

Outcome* outcome;

const Attack* Find(const char* name) {
  for (const Attack* table : {kFileAttacks, kSocketAttacks, kProcessAttacks, kKernelAttacks,
                              kPrivilegeAttacks, kResourceAttacks, kRedirectionAttacks}) {
    for (const Attack* row = table; row->name != nullptr; ++row) {
      if (strcmp(row->name, name) == 0) return row;
    }
  }
  return nullptr;
}

bool Print(const char* label, int status) {
  if (WIFSIGNALED(status)) {
    printf("%s=signal:%d\n", label, WTERMSIG(status));
  } else if (!outcome->done) {
    printf("%s=status:%d\n", label, WEXITSTATUS(status));
  } else if (outcome->result < 0) {
    printf("%s=%d\n", label, outcome->error);
  } else {
    printf("%s=ok%s%s\n", label, outcome->text[0] == 0 ? "" : ":", outcome->text);
    return true;
  }
  return false;
}

// Whether it worked.
bool Try(int count, char** words) {
  const Attack* attack = count < 2 ? nullptr : Find(words[1]);
  if (attack == nullptr || count != 2 + attack->arguments) {
    printf("%s=unknown\n", words[0]);
    return false;
  }
  memset(outcome, 0, sizeof *outcome);
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0) {
    printf("%s=fork:%d\n", words[0], errno);
    return false;
  }
  if (child == 0) {
    alarm(kSecondsAtMost);
    errno = 0;
    const long result = attack->move(words + 2);
    outcome->error = errno;
    outcome->result = result;
    outcome->done = true;
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return Print(words[0], status);
}

}  // namespace

void Got(const void* text, size_t size) {
  const char* from = static_cast<const char*>(text);
  size_t at = 0;
  for (; at < size && at + 1 < sizeof outcome->text; ++at) {
    if (from[at] < ' ' || from[at] > '~') break;
    outcome->text[at] = from[at];
  }
  outcome->text[at] = 0;
}

}  // namespace sandbox_run

int main(int count, char** words) {
  using namespace sandbox_run;
  if (count == 2 && strcmp(words[1], "prove") == 0) return kProof;
  if (count == 2 && strcmp(words[1], "effective-user") == 0)
    return geteuid() == getuid() ? 0 : kProof;
  if (count > 2 && strcmp(words[1], "bystander") == 0) return RunBystander(words + 2);
  outcome = static_cast<Outcome*>(
      mmap(nullptr, sizeof(Outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (count < 3 || outcome == MAP_FAILED) {
    fputs("sandbox-run-attack: for `sandbox-run doctor --attack`, which says what it does\n",
          stderr);
    return 125;
  }
  bool worked = true;
  for (int at = 1; at < count;) {
    int end = at;
    while (end < count && strcmp(words[end], "--") != 0) ++end;
    if (end < count) words[end] = nullptr;
    if (end > at) worked = Try(end - at, words + at) && worked;
    at = end + 1;
  }
  return worked ? 0 : 1;
}
