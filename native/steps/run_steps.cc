#include "steps/run_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/unique_fd.h"
#include "steps/redirects.h"
#include "steps/step_list.h"
#include "sys/open_beneath.h"

extern char** environ;

namespace sandbox_run {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

struct Stage {
  std::unique_ptr<OpenedRedirect[]> redirects;
  size_t redirect_count = 0;
  StepCommand command = {};
  pid_t pid = -1;
};

class Runner {
 public:
  Runner(Place* place, StepReader reader) : place_(place), reader_(reader) {}

  int Run() {
    size_t pipelines = 0;
    if (!reader_.ReadListHead(&pipelines)) return kStepsFailed;
    for (size_t index = 0; index < pipelines; ++index) {
      PipelineHead head;
      if (!reader_.ReadPipelineHead(&head)) return kStepsFailed;
      const bool runs =
          head.joined_by == JoinedBy::kThen || (head.joined_by == JoinedBy::kAnd) == (status_ == 0);
      if (!(runs ? RunPipeline(head.stages, pipelines == 1) : SkipPipeline(head.stages)))
        return kStepsFailed;
    }
    return status_;
  }

 private:
  bool ReadStage(Stage* stage, bool opens);
  bool RunPipeline(size_t count, bool only);
  bool SkipPipeline(size_t count);
  bool Start(Stage* stages, size_t count);
  void Wait(Stage* stages, size_t count);
  int ChangeDirectory(const char* directory);
  [[noreturn]] void Become(const Stage& stage, int input, int output);

  Place* place_;
  StepReader reader_;
  int status_ = 0;
};

// False: no memory; the list itself is known to be right.
bool Runner::ReadStage(Stage* stage, bool opens) {
  if (!reader_.ReadCount(&stage->redirect_count)) return false;
  if (opens && stage->redirect_count > 0) {
    stage->redirects.reset(new (std::nothrow) OpenedRedirect[stage->redirect_count]);
    if (stage->redirects == nullptr) return false;
  }
  bool failed = false;
  // By bit, what the stage has open: standard streams, and what its redirects open.
  unsigned has_open = 0b111;
  for (size_t index = 0; index < stage->redirect_count; ++index) {
    Redirect redirect;
    if (!reader_.ReadRedirect(&redirect)) return false;
    if (!opens) continue;
    // As in a shell, nothing behind the first that fails is opened.
    stage->redirects[index] =
        failed ? OpenedRedirect{redirect, -1, 0, nullptr} : OpenRedirect(*place_, redirect);
    OpenedRedirect& opened = stage->redirects[index];
    if (redirect.kind == RedirectKind::kCopy && !failed && (has_open >> redirect.from & 1) == 0) {
      opened.error = EBADF;
    }
    const unsigned bit = 1U << redirect.fd;
    has_open = redirect.kind == RedirectKind::kClose ? has_open & ~bit : has_open | bit;
    failed = failed || opened.error != 0;
  }
  return reader_.ReadCommand(&stage->command);
}

bool Runner::SkipPipeline(size_t count) {
  for (size_t index = 0; index < count; ++index) {
    Stage stage;
    if (!ReadStage(&stage, false)) return false;
  }
  return true;
}

bool Runner::RunPipeline(size_t count, bool only) {
  const std::unique_ptr<Stage[]> stages(new (std::nothrow) Stage[count]);
  if (stages == nullptr) return false;
  // All files of a pipeline are open before anything of it runs: what runs could change where a
  // path leads.
  for (size_t index = 0; index < count; ++index) {
    if (!ReadStage(&stages[index], true)) return false;
  }
  const Stage& first = stages[0];
  if (first.command.kind == CommandKind::kChangeDirectory) {
    status_ = ChangeDirectory(first.command.name);
  } else if (only && count == 1) {
    Become(first, -1, -1);
  } else {
    const bool started = Start(stages.get(), count);
    Wait(stages.get(), count);
    if (!started) return false;
  }
  for (size_t index = 0; index < count; ++index) {
    for (size_t number = 0; number < stages[index].redirect_count; ++number) {
      const int fd = stages[index].redirects[number].opened;
      if (fd >= 0) close(fd);
    }
  }
  return true;
}

bool Runner::Start(Stage* stages, size_t count) {
  UniqueFd input;
  for (size_t index = 0; index < count; ++index) {
    UniqueFd output;
    UniqueFd next_input;
    if (index + 1 < count) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) {
        Complain("pipe", std::strerror(errno));
        return false;
      }
      next_input.reset(OutOfTheWay(ends[0]));
      output.reset(OutOfTheWay(ends[1]));
      if (!next_input.valid() || !output.valid()) {
        Complain("pipe", "too many open files");
        return false;
      }
    }
    const pid_t pid = fork();
    if (pid < 0) {
      Complain("fork", std::strerror(errno));
      return false;
    }
    if (pid == 0) Become(stages[index], input.get(), output.get());
    stages[index].pid = pid;
    input = std::move(next_input);
  }
  return true;
}

// The status of a pipeline is that of its last stage; all of them are waited for.
void Runner::Wait(Stage* stages, size_t count) {
  for (size_t index = 0; index < count; ++index) {
    if (stages[index].pid < 0) continue;
    int how = 0;
    while (waitpid(stages[index].pid, &how, 0) < 0) {
      if (errno != EINTR) return;
    }
    status_ = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
  }
}

int Runner::ChangeDirectory(const char* directory) {
  char path[8192];
  int error = ENAMETOOLONG;
  if (PathFromRoot(*place_, directory, path) && std::strlen(path) < sizeof place_->directory) {
    const UniqueFd found(OpenBeneath(place_->root, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    error = !found.valid() ? -found.get() : fchdir(found.get()) == 0 ? 0 : errno;
  }
  if (error == 0) {
    std::strcpy(place_->directory, path);
    return 0;
  }
  Complain(directory,
           error == ELOOP
               ? "cd: is a symbolic link or lies behind one, which cd does not follow here"
           : error == EXDEV ? "cd: leads out of the workspace"
                            : std::strerror(error));
  return 1;
}

void Runner::Become(const Stage& stage, int input, int output) {
  if ((input >= 0 && dup2(input, STDIN_FILENO) < 0) ||
      (output >= 0 && dup2(output, STDOUT_FILENO) < 0)) {
    Complain("pipe", std::strerror(errno));
    _exit(kStepsFailed);
  }
  if (!ApplyRedirects(stage.redirects.get(), stage.redirect_count)) _exit(1);
  const StepCommand& command = stage.command;
  switch (command.kind) {
    case CommandKind::kNothing:
      _exit(0);
    case CommandKind::kMissing:
      Complain(command.name,
               command.status == kNotFound ? "command not found" : "cannot be executed");
      _exit(command.status);
    case CommandKind::kChangeDirectory:
      // Alone in its pipeline, and so never here.
      _exit(kStepsFailed);
    case CommandKind::kRun:
      break;
  }
  const std::unique_ptr<char*[]> words(new (std::nothrow) char*[command.word_count + 1]);
  if (words == nullptr) _exit(kStepsFailed);
  std::memcpy(words.get(), command.words, command.word_count * sizeof words[0]);
  words[command.word_count] = nullptr;
  execve(command.name, words.get(), environ);
  const int error = errno;
  Complain(command.words[0], std::strerror(error));
  _exit(error == ENOENT ? kNotFound : kNotExecutable);
}

// The working directory is beneath the root, as a path without links: it is opened again by that
// path, so that a link in place of the directory is not followed.
bool EnterDirectory(Place* place) {
  char cwd[4096];
  if (getcwd(cwd, sizeof cwd) == nullptr || cwd[0] != '/' || IsOutside(*place, cwd)) return false;
  char path[8192];
  place->directory[0] = '\0';
  if (!PathFromRoot(*place, cwd, path)) return false;
  const UniqueFd found(OpenBeneath(place->root, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (!found.valid() || fchdir(found.get()) != 0) return false;
  if (std::strcmp(path, ".") != 0) std::strcpy(place->directory, path);
  return true;
}

bool NamesOutside(const Place& place, char** begin, char** end) {
  StepReader reader(begin, end);
  size_t pipelines = 0;
  if (!reader.ReadListHead(&pipelines)) return true;
  for (size_t index = 0; index < pipelines; ++index) {
    PipelineHead head;
    if (!reader.ReadPipelineHead(&head)) return true;
    for (size_t stage = 0; stage < head.stages; ++stage) {
      size_t redirects = 0;
      if (!reader.ReadCount(&redirects)) return true;
      Redirect redirect;
      for (size_t number = 0; number < redirects; ++number) {
        if (!reader.ReadRedirect(&redirect)) return true;
        const bool names_file = redirect.value != nullptr && redirect.kind != RedirectKind::kText;
        if (names_file && IsOutside(place, redirect.value)) return true;
      }
      StepCommand command;
      if (!reader.ReadCommand(&command)) return true;
      if (command.kind == CommandKind::kChangeDirectory && IsOutside(place, command.name))
        return true;
    }
  }
  return false;
}

int Refuse(const char* what, const char* why) {
  Complain(what, why);
  return kStepsFailed;
}

}  // namespace

int RunSteps(int argc, char** argv) {
  if (argc < 3) return Refuse("usage", "sandbox-run-steps ROOT TOKEN...; sandbox-run starts it");
  char** const begin = argv + 2;
  char** const end = argv + argc;
  if (!IsStepList(begin, end)) return Refuse("steps", "the list is malformed; nothing was run");

  Place place = {-1, argv[1], {}};
  const size_t length = std::strlen(place.root_path);
  if (place.root_path[0] != '/' || length < 2 || place.root_path[length - 1] == '/') {
    return Refuse(place.root_path, "is not the path of a workspace; nothing was run");
  }
  if (NamesOutside(place, begin, end)) {
    return Refuse("steps", "a redirect or cd leads out of the workspace; nothing was run");
  }
  // Descriptors that were closed would be taken by our own.
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
      return kStepsFailed;
  }
  const int root = open(place.root_path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  place.root = root < 0 ? root : OutOfTheWay(root);
  if (place.root < 0)
    return Refuse(place.root_path, "the workspace cannot be opened; nothing was run");
  const UniqueFd owned(place.root);
  if (!EnterDirectory(&place)) {
    return Refuse("steps", "the working directory is not in the workspace; nothing was run");
  }

  // A stage whose reader has gone must end, even if the launcher ignores SIGPIPE.
  signal(SIGPIPE, SIG_DFL);
  // Ignored, the ends of stages could not be waited for.
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  return Runner(&place, StepReader(begin, end)).Run();
}

}  // namespace sandbox_run
