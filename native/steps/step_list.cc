#include "steps/step_list.h"

#include <cstring>

namespace sandbox_run {
namespace {

bool Is(const char* token, const char* word) {
  return token != nullptr && std::strcmp(token, word) == 0;
}

// Longer lists do not fit into the arguments of a program.
constexpr size_t kMaxDigits = 7;

bool ParseNumber(const char* token, size_t* number) {
  if (token == nullptr) return false;
  const size_t length = std::strlen(token);
  if (length == 0 || length > kMaxDigits || (length > 1 && token[0] == '0')) return false;
  size_t value = 0;
  for (size_t index = 0; index < length; ++index) {
    if (token[index] < '0' || token[index] > '9') return false;
    value = value * 10 + static_cast<size_t>(token[index] - '0');
  }
  *number = value;
  return true;
}

}  // namespace

const char* StepReader::Next() { return at_ == end_ ? nullptr : *at_++; }

bool StepReader::ReadCount(size_t* count) {
  // What is counted takes at least a token each: more than are left is wrong, and never becomes an
  // allocation.
  return ParseNumber(Next(), count) && *count <= static_cast<size_t>(end_ - at_);
}

bool StepReader::ReadListHead(size_t* pipelines) {
  return Is(Next(), "1") && ReadCount(pipelines) && *pipelines > 0;
}

bool StepReader::ReadPipelineHead(PipelineHead* head) {
  const char* token = Next();
  if (Is(token, "then")) {
    head->joined_by = JoinedBy::kThen;
  } else if (Is(token, "and")) {
    head->joined_by = JoinedBy::kAnd;
  } else if (Is(token, "or")) {
    head->joined_by = JoinedBy::kOr;
  } else {
    return false;
  }
  return ReadCount(&head->stages) && head->stages > 0;
}

bool StepReader::ReadDescriptor(int* fd) {
  size_t number = 0;
  if (!ParseNumber(Next(), &number) || number > kMaxRedirected) return false;
  *fd = static_cast<int>(number);
  return true;
}

bool StepReader::ReadRedirect(Redirect* redirect) {
  static constexpr struct {
    const char* word;
    RedirectKind kind;
  } kKinds[] = {
      {"read", RedirectKind::kRead},     {"write", RedirectKind::kWrite},
      {"append", RedirectKind::kAppend}, {"update", RedirectKind::kUpdate},
      {"copy", RedirectKind::kCopy},     {"close", RedirectKind::kClose},
      {"text", RedirectKind::kText},
  };
  const char* token = Next();
  *redirect = {RedirectKind::kClose, -1, nullptr, -1};
  bool known = false;
  for (const auto& candidate : kKinds) {
    if (!Is(token, candidate.word)) continue;
    redirect->kind = candidate.kind;
    known = true;
  }
  if (!known || !ReadDescriptor(&redirect->fd)) return false;
  switch (redirect->kind) {
    case RedirectKind::kClose:
      return true;
    case RedirectKind::kCopy:
      return ReadDescriptor(&redirect->from);
    case RedirectKind::kText:
      redirect->value = Next();
      return redirect->value != nullptr;
    case RedirectKind::kRead:
    case RedirectKind::kWrite:
    case RedirectKind::kAppend:
    case RedirectKind::kUpdate:
      redirect->value = Next();
      return redirect->value != nullptr && redirect->value[0] != '\0';
  }
  return false;
}

bool StepReader::ReadCommand(StepCommand* command) {
  const char* token = Next();
  *command = {CommandKind::kNothing, nullptr, 0, nullptr, 0};
  if (Is(token, "nothing")) return true;
  if (Is(token, "cd")) {
    command->kind = CommandKind::kChangeDirectory;
    command->name = Next();
    return command->name != nullptr && command->name[0] != '\0';
  }
  if (Is(token, "missing")) {
    command->kind = CommandKind::kMissing;
    size_t status = 0;
    if (!ParseNumber(Next(), &status) || (status != 126 && status != 127)) return false;
    command->status = static_cast<int>(status);
    command->name = Next();
    return command->name != nullptr;
  }
  if (!Is(token, "run")) return false;
  command->kind = CommandKind::kRun;
  command->name = Next();
  if (command->name == nullptr || command->name[0] != '/') return false;
  if (!ReadCount(&command->word_count) || command->word_count == 0) return false;
  command->words = at_;
  at_ += command->word_count;
  return true;
}

bool IsStepList(char** begin, char** end) {
  StepReader reader(begin, end);
  size_t pipelines = 0;
  if (!reader.ReadListHead(&pipelines)) return false;
  for (size_t index = 0; index < pipelines; ++index) {
    PipelineHead head;
    if (!reader.ReadPipelineHead(&head) || (index == 0 && head.joined_by != JoinedBy::kThen))
      return false;
    for (size_t stage = 0; stage < head.stages; ++stage) {
      size_t redirects = 0;
      if (!reader.ReadCount(&redirects)) return false;
      Redirect redirect;
      for (size_t number = 0; number < redirects; ++number) {
        if (!reader.ReadRedirect(&redirect)) return false;
      }
      StepCommand command;
      if (!reader.ReadCommand(&command)) return false;
      if (command.kind == CommandKind::kChangeDirectory && (head.stages > 1 || redirects > 0))
        return false;
    }
  }
  return reader.AtEnd();
}

}  // namespace sandbox_run
