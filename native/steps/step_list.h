#ifndef SANDBOX_RUN_STEPS_STEP_LIST_H_
#define SANDBOX_RUN_STEPS_STEP_LIST_H_

#include <cstddef>

namespace sandbox_run {

// A list of steps as it is handed over: one argument of the program per token, counts before what
// they count, nothing to quote and nothing to split.
//
//   LIST     := "1" COUNT PIPELINE...            "1" is the version
//   PIPELINE := ("then" | "and" | "or") COUNT STAGE...
//   STAGE    := COUNT REDIRECT... COMMAND
//   REDIRECT := ("read" | "write" | "append" | "update") FD PATH | "copy" FD FD | "close" FD |
//   "text" FD TEXT COMMAND  := "run" PROGRAM COUNT WORD... | "missing" ("126" | "127") NAME |
//   "nothing" | "cd" DIRECTORY
//
// PROGRAM is absolute; WORD... is its argument vector. "nothing" only opens its redirects. "cd"
// stands alone in its pipeline. Numbers are decimal without leading zeros.

enum class JoinedBy { kThen, kAnd, kOr };
enum class RedirectKind { kRead, kWrite, kAppend, kUpdate, kCopy, kClose, kText };
enum class CommandKind { kRun, kMissing, kNothing, kChangeDirectory };

// Descriptors that redirects may name.
inline constexpr unsigned kMaxRedirected = 9;

struct Redirect {
  RedirectKind kind;
  int fd;
  // A path, or a text.
  const char* value;
  // The descriptor to copy, with RedirectKind::kCopy.
  int from;
};

struct StepCommand {
  CommandKind kind;
  // Program, name or directory.
  const char* name;
  // The exit status of a command that cannot be run.
  int status;
  char** words;
  size_t word_count;
};

struct PipelineHead {
  JoinedBy joined_by;
  size_t stages;
};

// Reads tokens, one part after the other. Everything returns false for what is not in the grammar.
class StepReader {
 public:
  StepReader(char** begin, char** end) : at_(begin), end_(end) {}

  bool ReadListHead(size_t* pipelines);
  bool ReadPipelineHead(PipelineHead* head);
  bool ReadCount(size_t* count);
  bool ReadRedirect(Redirect* redirect);
  bool ReadCommand(StepCommand* command);
  bool AtEnd() const { return at_ == end_; }

 private:
  const char* Next();
  bool ReadDescriptor(int* fd);

  char** at_;
  char** end_;
};

// True if all of the tokens are one list. Looks at everything, so that nothing runs of a list that
// is wrong further on.
bool IsStepList(char** begin, char** end);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_STEPS_STEP_LIST_H_
