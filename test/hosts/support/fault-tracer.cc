// fault-tracer REPORT SPEC PROGRAM [ARG...]: runs a launcher and counts the system calls of every
// process that it makes, up to the program that a command is. SPEC: "list", or "CHILD.CALL.FAULT":
// in the CALLth call of the CHILDth process (both from 0, in the order of their making) FAULT
// happens: "before" and "after" kill the process before or after the call; a number is the errno
// with which the call fails, unmade. "list-own" and "own.NUMBER.CALL.ERRNO": the same for calls of
// that number by the launcher's own threads but the first, once it has said by SIGWINCH that it is
// loaded. REPORT: a file that gets one object as JSON. Exits as the launcher does.
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

// Programs that belong to the set-up of a command; any other is the command.
bool IsSetUp(const std::string& program) {
  static const std::set<std::string> kNames = {"sandbox-run-warden", "sandbox-run-begin",
                                               "firejail"};
  return kNames.contains(program.substr(program.rfind('/') + 1)) ||
         program.find("/firejail/") != std::string::npos;
}

struct Child {
  std::string programs;            // that it executed, one after the other
  std::optional<size_t> executed;  // so many calls came before the first of them
  std::vector<long> calls;
};

// What the kernel says of a command's process before the program's first instruction, as JSON.
std::vector<std::string> commands;

struct Tracee {
  std::optional<size_t> child;  // none: a thread of the launcher
  bool fails = false;           // the call under way is replaced by an error
  bool dies = false;            // it is killed when the call has been made
};

struct Fault {
  std::optional<long> own;  // of a thread of the launcher: the number of the call
  size_t child = 0, call = 0;
  bool before = false, after = false;
  int error = 0;
};

std::optional<Fault> fault;
bool traces_own = false;
bool is_loaded = false;  // the launcher has said so by SIGWINCH: what came before is Node's start
pid_t launcher = -1;
std::map<long, size_t> own_calls;
bool fired = false;
std::map<pid_t, Tracee> tracees;
std::set<pid_t> unclaimed;  // stopped, and not yet told by who made them
std::vector<Child> children;

std::string LinkOf(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), target, sizeof(target));
  return length < 0 ? "" : std::string(target, static_cast<size_t>(length));
}

// The value of a line of /proc/PID/status.
std::string StatusOf(pid_t tid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

bool IsThread(pid_t tid) {
  const std::string group = StatusOf(tid, "Tgid");
  return !group.empty() && group != std::to_string(tid);
}

std::string Describe(pid_t pid, const std::string& program) {
  const std::string proc = "/proc/" + std::to_string(pid) + "/";
  std::string text = "{\"program\":\"" + program + "\"";
  const auto add = [&text](const std::string& name, const std::string& value) {
    text += ",\"" + name + "\":\"" + value + "\"";
  };
  for (const char* name : {"NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "SigIgn", "SigBlk"}) {
    add(name, StatusOf(pid, name));
  }
  for (const char* name : {"net", "ipc", "mnt", "user"}) add(name, LinkOf(proc + "ns/" + name));
  struct stat root = {};
  stat((proc + "root/").c_str(), &root);
  add("root", std::to_string(root.st_dev) + ":" + std::to_string(root.st_ino));
  std::set<std::string> fds;
  for (const auto& entry : std::filesystem::directory_iterator(proc + "fd"))
    fds.insert(entry.path().filename());
  std::string list;
  for (const std::string& fd : fds) list += (list.empty() ? "" : " ") + fd;
  add("fds", list);
  return text + "}";
}

void Resume(pid_t tid, int signal = 0) {
  const auto found = tracees.find(tid);
  const bool counts =
      found != tracees.end() && (found->second.child || (traces_own && tid != launcher));
  ptrace(counts ? PTRACE_SYSCALL : PTRACE_CONT, tid, nullptr, static_cast<long>(signal));
}

void Claim(pid_t tid, const Tracee& maker) {
  Tracee made;
  if (IsThread(tid)) {
    made.child = maker.child;
  } else {
    made.child = children.size();
    children.push_back({});
  }
  tracees[tid] = made;
  if (unclaimed.erase(tid) > 0) Resume(tid);
}

// Counts a call, and says whether it is the one.
bool IsTheOne(const Tracee& tracee, long number) {
  if (!tracee.child) {
    if (!is_loaded) return false;
    const size_t call = own_calls[number]++;
    return fault && fault->own == number && fault->call == call;
  }
  Child& child = children[*tracee.child];
  child.calls.push_back(number);
  return fault && !fault->own && fault->child == *tracee.child &&
         fault->call + 1 == child.calls.size();
}

void OnCall(pid_t tid, Tracee& tracee) {
  __ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0) return;
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    if (!IsTheOne(tracee, static_cast<long>(info.entry.nr)) || fired) return;
    fired = true;
    if (fault->before) kill(tid, SIGKILL);
    tracee.dies = fault->after;
    tracee.fails = fault->error != 0;
    if (tracee.fails) ptrace(PTRACE_POKEUSER, tid, offsetof(user_regs_struct, orig_rax), -1L);
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
    if (tracee.dies) kill(tid, SIGKILL);
    if (tracee.fails) {
      ptrace(PTRACE_POKEUSER, tid, offsetof(user_regs_struct, rax),
             -static_cast<long>(fault->error));
    }
    tracee.dies = tracee.fails = false;
  }
}

// False: it is the command's program, and goes on alone.
bool OnExec(pid_t tid, const Tracee& tracee) {
  if (!tracee.child) return true;
  const std::string program = LinkOf("/proc/" + std::to_string(tid) + "/exe");
  Child& child = children[*tracee.child];
  child.programs += (child.programs.empty() ? "" : " ") + program;
  if (!child.executed) child.executed = child.calls.size();
  if (IsSetUp(program)) return true;
  commands.push_back(Describe(tid, program));
  return false;
}

void OnStop(pid_t tid, int status) {
  const auto found = tracees.find(tid);
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (found == tracees.end()) {
    unclaimed.insert(tid);
    return;
  }
  Tracee& tracee = found->second;
  if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
    unsigned long made = 0;
    ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &made);
    const Tracee maker = tracee;
    Claim(static_cast<pid_t>(made), maker);
    return Resume(tid);
  }
  if (event == PTRACE_EVENT_EXEC) {
    if (OnExec(tid, tracee)) return Resume(tid);
    ptrace(PTRACE_DETACH, tid, nullptr, 0L);
    tracees.erase(tid);
    return;
  }
  if (event == PTRACE_EVENT_STOP) {
    const bool group =
        signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
    if (group) {
      ptrace(PTRACE_LISTEN, tid, nullptr, 0L);
      return;
    }
    return Resume(tid);
  }
  if (signal == (SIGTRAP | 0x80)) {
    OnCall(tid, tracee);
    return Resume(tid);
  }
  if (signal == SIGWINCH) is_loaded = true;
  Resume(tid, signal);
}

std::optional<Fault> Parse(const char* spec) {
  Fault parsed;
  long own = 0;
  if (sscanf(spec, "own.%ld.%zu.%d", &own, &parsed.call, &parsed.error) == 3) {
    parsed.own = own;
    return parsed;
  }
  char kind[16] = "";
  if (sscanf(spec, "%zu.%zu.%15s", &parsed.child, &parsed.call, kind) != 3) return std::nullopt;
  parsed.before = strcmp(kind, "before") == 0;
  parsed.after = strcmp(kind, "after") == 0;
  parsed.error = atoi(kind);
  return parsed;
}

void WriteReport(const char* path) {
  FILE* file = fopen(path, "we");
  if (file == nullptr) return;
  fprintf(file, "{\"fired\":%s,\"children\":[", fired ? "true" : "false");
  for (size_t i = 0; i < children.size(); ++i) {
    const Child& child = children[i];
    fprintf(file, "%s{\"programs\":\"%s\",\"executed\":%zu,\"calls\":[", i == 0 ? "" : ",",
            child.programs.c_str(), child.executed.value_or(child.calls.size()));
    for (size_t k = 0; k < children[i].calls.size(); ++k) {
      fprintf(file, "%s%ld", k == 0 ? "" : ",", children[i].calls[k]);
    }
    fputs("]}", file);
  }
  fputs("],\"own\":{", file);
  for (auto at = own_calls.begin(); at != own_calls.end(); ++at) {
    fprintf(file, "%s\"%ld\":%zu", at == own_calls.begin() ? "" : ",", at->first, at->second);
  }
  fputs("},\"commands\":[", file);
  for (size_t i = 0; i < commands.size(); ++i)
    fprintf(file, "%s%s", i == 0 ? "" : ",", commands[i].c_str());
  fputs("]}\n", file);
  fclose(file);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 99;
  traces_own = strncmp(words[2], "own.", 4) == 0 || strcmp(words[2], "list-own") == 0;
  if (strncmp(words[2], "list", 4) != 0) {
    fault = Parse(words[2]);
    if (!fault) return 99;
  }
  const pid_t root = fork();
  if (root == 0) {
    raise(SIGSTOP);
    execv(words[3], words + 3);
    execvp(words[3], words + 3);
    _exit(98);
  }
  int status = 0;
  waitpid(root, &status, WUNTRACED);
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                            PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, root, nullptr, kOptions) != 0) {
    perror("fault-tracer: ptrace");
    kill(root, SIGKILL);
    return 97;
  }
  launcher = root;
  tracees[root] = {};
  kill(root, SIGCONT);
  int end = 0;
  for (;;) {
    const pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0 && errno == EINTR) continue;
    if (tid < 0) break;
    if (WIFSTOPPED(status)) {
      OnStop(tid, status);
    } else {
      tracees.erase(tid);
      unclaimed.erase(tid);
      if (tid == root) end = status;
    }
  }
  WriteReport(words[1]);
  return WIFSIGNALED(end) ? 128 + WTERMSIG(end) : WEXITSTATUS(end);
}
