#ifndef SANDBOX_RUN_STEPS_REDIRECTS_H_
#define SANDBOX_RUN_STEPS_REDIRECTS_H_

#include <cstddef>

#include "steps/step_list.h"

namespace sandbox_run {

// Where relative paths of a list begin.
struct Place {
  // Descriptor of the root, above those that redirects may name.
  int root;
  const char* root_path;
  // The working directory relative to the root; empty for the root itself.
  char directory[4096];
};

// A path of a list as one that is relative to the root: `text` is absolute and beneath the root, or
// relative to the working directory. False: it is too long.
bool PathFromRoot(const Place& place, const char* text, char (&path)[8192]);

// True for a path that is absolute and not beneath the root; /dev/null is not.
bool IsOutside(const Place& place, const char* text);

// A redirect whose file is open, or why it is not.
struct OpenedRedirect {
  Redirect redirect;
  // Above those that redirects may name; -1 where there is none.
  int opened;
  // 0 or an errno.
  int error;
  // What is wrong besides the errno; nullptr: strerror says it.
  const char* why;
};

// Opens what a redirect names. Only regular files and /dev/null are opened; others may block or do
// something.
OpenedRedirect OpenRedirect(const Place& place, const Redirect& redirect);

// In the process that becomes the command: puts them in force in their order. False: said on
// standard error.
bool ApplyRedirects(const OpenedRedirect* redirects, size_t count);

// A descriptor of our own, out of the way of those that redirects name. Closes `fd`; negative:
// there is none left.
int OutOfTheWay(int fd);

// "sandbox-run-steps: NAME: WHY" on standard error.
void Complain(const char* name, const char* why);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_STEPS_REDIRECTS_H_
