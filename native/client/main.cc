// The program `sandbox-run-client`: `NODE SCRIPT [ARGUMENT ...]`. Hands the call over to a warm
// server of ours (src/serve/warm/), with its standard streams, or where there is none becomes what
// it was asked for: NODE with SCRIPT. An agent waits for each of its tool calls, and a start of
// Node takes longer than all that it is started for.
//
// Both ends speak once, in this order, on a Unix stream socket:
//   server: kHere, as soon as it is connected. To one that is stopped, or has too much to do, the
//   client
//           gives nothing: as long as it held the client's streams, whoever reads them would wait
//   client: one byte with four descriptors: a file with the request, and its streams 0, 1 and 2
//   server: kCold, which ends it, or kTaken, and begins when the kernel has taken that byte. A
//   client
//           that waits no longer shuts its end for reading first: either the byte is there by then,
//           or the server cannot write it. With the byte the client must not do the call itself: it
//           would run twice. Without it nothing has run.
//   client: one byte for each signal that it gets, which is the signal's number
//   server: frames {type, length, bytes}: text for the client's streams; the last one is kExit
// The request: the current directory, the number of arguments behind SCRIPT, those, and the
// environment, each followed by a NUL.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"
#include "sys/control_group.h"

extern char** environ;

namespace sandbox_run {
namespace {

constexpr char kHere = 'H';
constexpr char kCall = 'R';
constexpr char kCold = 'C';
constexpr char kTaken = 'A';
constexpr char kOutput = 'O';
constexpr char kError = 'E';
constexpr char kExit = 'X';

// A server that does not answer for so long is busy, or stopped.
constexpr int kPatienceMs = 2000;
// Patience for a server that this program named by its address (`up` has just started it, for
// example): it may have to read the policy first, and no other process can perform the call.
constexpr int kLongPatienceMs = 60'000;
// As hook.ts: larger than any call of a tool.
constexpr size_t kMostInput = 8 * 1024 * 1024 + 1;
// A handler of SIGTSTP in the command gets so long before all of it is stopped, as in signals.ts.
constexpr long kStopDelayNs = 30'000'000;

// What an agent takes for "the tool call must not happen", and what is no status of a command.
constexpr int kHookBlocks = 2;
constexpr int kFailed = 125;

// Where the server listens, for the program that is started because there is none, or because one
// did not take the call: then with kIsThere before it.
constexpr const char* kServerVariable = "SANDBOX_RUN_WARM_SERVER";
constexpr char kIsThere = '!';
// Set by the program for a call that one server has to take: its address, or kAsked for that of
// calls like this one. If it does not take it, the program is started with kAsked before the
// address, so that it does not ask again.
constexpr const char* kAddressVariable = "SANDBOX_RUN_WARM_AT";
constexpr char kAsked = '?';

int failure_status = kFailed;

[[noreturn]] void Fail(const char* what) {
  dprintf(STDERR_FILENO, "sandbox-run: %s\n", what);
  _exit(failure_status);
}

// FNV-1a. Not for security: it only spreads servers over names, each in a directory of the user.
class Digest {
 public:
  void Add(const void* bytes, size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < size; ++i) value_ = (value_ ^ at[i]) * 0x100000001b3ULL;
  }
  // With its NUL, so that what follows is apart.
  void AddText(const char* text) { Add(text, strlen(text) + 1); }
  unsigned long long value() const { return value_; }

 private:
  unsigned long long value_ = 0xcbf29ce484222325ULL;
};

// Variables that a server takes from its own environment and not from a call's: calls that differ
// in one of them have different servers.
constexpr const char* kOwnVariables[] = {"HOME",
                                         "XDG_CONFIG_HOME",
                                         "XDG_STATE_HOME",
                                         "XDG_CACHE_HOME",
                                         "XDG_RUNTIME_DIR",
                                         "TMPDIR",
                                         "TMP",
                                         "TEMP",
                                         "NODE_OPTIONS"};

// Identity, rights, filters, file mode mask and processors of this process (proc_pid_status(5)).
void AddStatus(Digest* digest) {
  FILE* status = fopen("/proc/self/status", "re");
  if (status == nullptr) return;
  char line[4096];
  while (fgets(line, sizeof line, status) != nullptr) {
    for (const char* name :
         {"Umask:", "Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp", "Cpus_allowed:"}) {
      if (strncmp(line, name, strlen(name)) == 0) digest->AddText(line);
    }
  }
  fclose(status);
}

// Limits of this process (proc_pid_limits(5)) but the soft one of open files, which Node raises at
// its start: a call is the same whether Node or a shell makes it.
void AddLimits(Digest* digest) {
  constexpr char kOpenFiles[] = "Max open files";
  FILE* limits = fopen("/proc/self/limits", "re");
  if (limits == nullptr) return;
  char line[256];
  while (fgets(line, sizeof line, limits) != nullptr) {
    const char* at = line;
    if (strncmp(line, kOpenFiles, sizeof kOpenFiles - 1) == 0) {
      at += sizeof kOpenFiles - 1;
      at += strspn(at, " ");
      at += strcspn(at, " ");
      at += strspn(at, " ");  // as many as fill up the column
    }
    digest->AddText(at);
  }
  fclose(limits);
}

void AddControlGroup(Digest* digest) {
  ControlGroup own;
  if (!own.Read("self")) return;
  own.OmitGroupsWithoutSettings();
  digest->Add(own.text().data(), own.text().size());
}

// The path of a program that is started by its name, as Node reports its own; else the name.
void AddProgram(Digest* digest, const char* name) {
  char found[PATH_MAX];
  if (strchr(name, '/') != nullptr) {
    digest->AddText(realpath(name, found) == nullptr ? name : found);
    return;
  }
  const char* path = getenv("PATH");
  for (const char* at = path == nullptr ? "" : path; *at != 0;) {
    const size_t length = strcspn(at, ":");
    char place[PATH_MAX];
    const int whole = snprintf(place, sizeof place, "%.*s/%s", static_cast<int>(length), at, name);
    const bool fits = whole > 0 && static_cast<size_t>(whole) < sizeof place;
    if (length > 0 && fits && access(place, X_OK) == 0 && realpath(place, found) != nullptr) {
      digest->AddText(found);
      return;
    }
    at += length;
    at += strspn(at, ":");
  }
  digest->AddText(name);
}

bool IsAbsolute(const char* path) { return path != nullptr && path[0] == '/'; }

// The address of the server for calls like this one: of this very program, with these places, of a
// process like this. False: it fits into no address.
bool FindAddress(const char* node, const char* script, sockaddr_un* address) {
  Digest digest;
  AddProgram(&digest, node);
  digest.AddText(script);
  struct stat info;
  // Another release in the same place is another program.
  if (stat(script, &info) == 0) {
    digest.Add(&info.st_dev, sizeof info.st_dev);
    digest.Add(&info.st_ino, sizeof info.st_ino);
    digest.Add(&info.st_size, sizeof info.st_size);
    digest.Add(&info.st_mtim, sizeof info.st_mtim);
  }
  for (const char* name : kOwnVariables) {
    const char* value = getenv(name);
    digest.AddText(value == nullptr ? "" : value);
  }
  // What a command inherits, as src/serve/warm/peer-process.ts compares it once more.
  AddStatus(&digest);
  AddLimits(&digest);
  AddControlGroup(&digest);
  for (const char* name : {"mnt", "net", "pid", "user", "ipc", "uts"}) {
    char path[32];
    char target[64] = {};
    snprintf(path, sizeof path, "/proc/self/ns/%s", name);
    if (readlink(path, target, sizeof target - 1) > 0) digest.AddText(target);
  }
  const int niceness = getpriority(PRIO_PROCESS, 0);
  digest.Add(&niceness, sizeof niceness);

  char directory[PATH_MAX];
  // The state directory: no command can reach it under any policy.
  const char* state = getenv("XDG_STATE_HOME");
  const char* home = getenv("HOME");
  int length = -1;
  if (IsAbsolute(state)) {
    length = snprintf(directory, sizeof directory, "%s/sandbox-run", state);
  } else if (IsAbsolute(home)) {
    length = snprintf(directory, sizeof directory, "%s/.local/state/sandbox-run", home);
  }
  if (length < 0 || static_cast<size_t>(length) >= sizeof directory) return false;
  address->sun_family = AF_UNIX;
  const int whole = snprintf(address->sun_path, sizeof address->sun_path, "%s/warm-%016llx.sock",
                             directory, digest.value());
  return whole > 0 && static_cast<size_t>(whole) < sizeof address->sun_path;
}

// The address that the program said, or found as above. False: there is none.
bool ChooseAddress(const char* node, const char* script, const char* said, sockaddr_un* address) {
  if (said == nullptr || said[0] == kAsked) return FindAddress(node, script, address);
  address->sun_family = AF_UNIX;
  if (strlen(said) >= sizeof address->sun_path) return false;
  strcpy(address->sun_path, said);
  return true;
}

// Tells the program that is started in place of a server where one would listen.
void TellProgram(bool asked, bool is_there, const sockaddr_un& address) {
  char text[sizeof address.sun_path + 1];
  const char mark[] = {asked ? kAsked : kIsThere, '\0'};
  snprintf(text, sizeof text, "%s%s", asked || is_there ? mark : "", address.sun_path);
  setenv(kServerVariable, text, 1);
}

// A connection to a server of this user, or none.
UniqueFd Connect(const sockaddr_un& address) {
  UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_fd.valid()) return {};
  // Where its queue is full, too, there is an end to waiting (unix(7)).
  const timeval patience{kPatienceMs / 1000, 0};
  setsockopt(socket_fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket_fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  if (peer.uid != geteuid()) return {};
  return socket_fd;
}

bool WriteAll(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t count = write(fd, bytes, size);
    if (count >= 0) {
      bytes += count;
      size -= static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

UniqueFd MemoryFile(const char* name) { return UniqueFd(memfd_create(name, MFD_CLOEXEC)); }

// Texts, each with its NUL, that are written at once: there may be hundreds of variables.
class Texts {
 public:
  void Add(const char* text) {
    const size_t size = strlen(text) + 1;
    if (bytes_ != nullptr) memcpy(bytes_ + size_, text, size);
    size_ += size;
  }
  // Room for all that was added up to now, which is to be added once more. False: there is none.
  bool Reserve() {
    bytes_ = static_cast<char*>(malloc(size_));
    size_ = 0;
    return bytes_ != nullptr;
  }
  bool WriteTo(int fd) const { return WriteAll(fd, bytes_, size_); }

 private:
  // Given back with the process, which does nothing else.
  char* bytes_ = nullptr;
  size_t size_ = 0;
};

UniqueFd WriteRequest(int count, char** arguments) {
  UniqueFd file = MemoryFile("sandbox-run-call");
  if (!file.valid()) return {};
  char directory[PATH_MAX];
  if (getcwd(directory, sizeof directory) == nullptr || directory[0] != '/') return {};
  char number[16];
  snprintf(number, sizeof number, "%d", count);
  Texts texts;
  const auto add = [&] {
    texts.Add(directory);
    texts.Add(number);
    for (int i = 0; i < count; ++i) texts.Add(arguments[i]);
    for (char** variable = environ; *variable != nullptr; ++variable) texts.Add(*variable);
  };
  add();
  if (!texts.Reserve()) return {};
  add();
  if (!texts.WriteTo(file.get())) return {};
  return file;
}

// Puts all of standard input into a file, which can be read without waiting and from its beginning
// again.
bool ReadInputInto(int file) {
  char chunk[64 * 1024];
  for (size_t total = 0; total < kMostInput;) {
    const ssize_t count = read(STDIN_FILENO, chunk, sizeof chunk);
    if (count == 0) break;
    if (count > 0) {
      if (!WriteAll(file, chunk, static_cast<size_t>(count))) return false;
      total += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd ready{STDIN_FILENO, POLLIN, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return lseek(file, 0, SEEK_SET) == 0;
}

bool SendCall(int socket_fd, int request) {
  const int passed[] = {request, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  char call = kCall;
  iovec part{&call, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof passed)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof passed);
  memcpy(CMSG_DATA(header), passed, sizeof passed);
  return sendmsg(socket_fd, &message, MSG_NOSIGNAL) == 1;
}

// Waits for the server's word, but not for ever. A signal that comes before it finds this process
// as it was; one that comes with it is the command's, which may have said something already.
void AwaitAnswer(int socket_fd, int signals, const sigset_t& before, int patience_ms) {
  pollfd both[] = {{socket_fd, POLLIN, 0}, {signals, POLLIN, 0}};
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long long end = now.tv_sec * 1000LL + now.tv_nsec / 1'000'000 + patience_ms;
  for (;;) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long left = end - (now.tv_sec * 1000LL + now.tv_nsec / 1'000'000);
    if (left <= 0) break;
    const int ready = poll(both, 2, static_cast<int>(left));
    if (ready > 0 && both[0].revents != 0) return;
    if (ready > 0) {
      sigset_t blocked;
      sigprocmask(SIG_SETMASK, &before, &blocked);
      sigprocmask(SIG_SETMASK, &blocked, nullptr);
    }
    if (ready < 0 && errno != EINTR) break;
  }
  // From now on it cannot take the call any more (shutdown(2); unix(7): EPIPE).
  shutdown(socket_fd, SHUT_RD);
}

// Whether the server says this next. kTaken: it takes the call, and has begun. If not, it never
// will.
bool Says(char expected, int socket_fd, int signals, const sigset_t& before, int patience_ms) {
  AwaitAnswer(socket_fd, signals, before, patience_ms);
  char said = 0;
  ssize_t count;
  do {
    count = recv(socket_fd, &said, 1, 0);
  } while (count < 0 && errno == EINTR);
  return count == 1 && said == expected;
}

// The signals that sandbox-run hands on (src/cli/shared/signals.ts).
sigset_t Forwarded() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT, SIGUSR1, SIGTSTP}) {
    sigaddset(&set, signal);
  }
  return set;
}

bool SendByte(int socket_fd, char byte) { return send(socket_fd, &byte, 1, MSG_NOSIGNAL) == 1; }

void HandSignalOn(int socket_fd, int signals) {
  signalfd_siginfo info;
  if (read(signals, &info, sizeof info) != sizeof info) return;
  if (!SendByte(socket_fd, static_cast<char>(info.ssi_signo))) return;
  if (info.ssi_signo == SIGTSTP) {
    const timespec delay{0, kStopDelayNs};
    nanosleep(&delay, nullptr);
    raise(SIGSTOP);
  }
}

bool ReceiveAll(int socket_fd, void* into, size_t size) {
  auto* at = static_cast<char*>(into);
  while (size > 0) {
    const ssize_t count = recv(socket_fd, at, size, 0);
    if (count <= 0) {
      if (count < 0 && errno == EINTR) continue;
      return false;
    }
    at += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// As one that is not handed over: a command ends like any program whose reader is gone, and a hook
// that cannot answer blocks the call.
[[noreturn]] void FailToWrite() {
  if (errno == EPIPE && failure_status != kHookBlocks) _exit(128 + SIGPIPE);
  Fail("standard output cannot be written; what was to be written is lost");
}

constexpr const char* kDied =
    "the warm server ended in the middle of this call; what the command did is not known";

// Passes on what the server says, until it says how the call ended.
[[noreturn]] void Follow(int socket_fd, int signals) {
  pollfd both[] = {{socket_fd, POLLIN, 0}, {signals, POLLIN, 0}};
  for (;;) {
    if (poll(both, 2, -1) < 0) {
      if (errno == EINTR) continue;
      Fail(kDied);
    }
    if ((both[1].revents & POLLIN) != 0) HandSignalOn(socket_fd, signals);
    if (both[0].revents == 0) continue;
    unsigned char head[5];
    if (!ReceiveAll(socket_fd, head, sizeof head)) Fail(kDied);
    uint32_t left = 0;
    for (int i = 4; i > 0; --i) left = (left << 8) | head[i];
    const char type = static_cast<char>(head[0]);
    if (type == kExit && left == 1) {
      unsigned char status = 0;
      if (!ReceiveAll(socket_fd, &status, 1)) Fail(kDied);
      _exit(status);
    }
    if (type != kOutput && type != kError) Fail("the warm server said something that is no answer");
    while (left > 0) {
      char chunk[64 * 1024];
      const size_t part = left < sizeof chunk ? left : sizeof chunk;
      if (!ReceiveAll(socket_fd, chunk, part)) Fail(kDied);
      const bool is_output = type == kOutput;
      // What is lost of remarks is lost.
      if (!WriteAll(is_output ? STDOUT_FILENO : STDERR_FILENO, chunk, part) && is_output)
        FailToWrite();
      left -= static_cast<uint32_t>(part);
    }
  }
}

// Returns if the call is still this process's own: nothing has run, and its signals are as they
// were. `patience_ms`: how long to wait for a server that is there to accept or refuse the call.
void HandOver(const UniqueFd& server, const UniqueFd& request, int patience_ms) {
  const sigset_t forwarded = Forwarded();
  UniqueFd signals(signalfd(-1, &forwarded, SFD_CLOEXEC));
  if (!signals.valid()) return;
  // Before the command can say anything. A hook has none that they could be handed on to: they end
  // it, as without a server.
  sigset_t before;
  sigprocmask(SIG_BLOCK, failure_status == kHookBlocks ? nullptr : &forwarded, &before);
  const auto says = [&](char word, int patience) {
    return Says(word, server.get(), signals.get(), before, patience);
  };
  if (!says(kHere, kPatienceMs) || !SendCall(server.get(), request.get()) ||
      !says(kTaken, patience_ms)) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  signal(SIGPIPE, SIG_IGN);
  Follow(server.get(), signals.get());
}

int Main(int count, char** words) {
  if (count < 3) Fail("usage: sandbox-run-client NODE SCRIPT [ARGUMENT ...]");
  char* node = words[1];
  char* script = words[2];
  const bool is_hook = count > 3 && strcmp(words[3], "hook") == 0;
  if (is_hook) failure_status = kHookBlocks;
  // Each of them has to be there to be handed over.
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) Fail("/dev/null cannot be opened");
  }
  sockaddr_un address{};
  UniqueFd input = MemoryFile("sandbox-run-input");
  char said[sizeof address.sun_path] = {};
  const char* variable = getenv(kAddressVariable);
  const bool asked = variable != nullptr;
  if (asked) snprintf(said, sizeof said, "%s", variable);
  // No command and no server is to see it.
  unsetenv(kAddressVariable);
  if (input.valid() && ChooseAddress(node, script, asked ? said : nullptr, &address)) {
    // A server must not wait for somebody to write. What runs instead of it reads the same.
    if (is_hook && (!ReadInputInto(input.get()) || dup2(input.get(), STDIN_FILENO) < 0))
      Fail("the call cannot be read from standard input");
    // Before there is a connection: a server that takes one up and finds nothing looks again later.
    const UniqueFd request = WriteRequest(count - 3, words + 3);
    const UniqueFd server = Connect(address);
    // The program that started this client named one server by its address.
    const bool alone = asked && said[0] != kAsked;
    if (server.valid() && request.valid())
      HandOver(server, request, alone ? kLongPatienceMs : kPatienceMs);
    TellProgram(alone, server.valid(), address);
  } else if (asked) {
    TellProgram(true, false, sockaddr_un{});
  }
  execvp(node, words + 1);
  dprintf(STDERR_FILENO, "sandbox-run: %s cannot be started: %s\n", node, strerror(errno));
  return failure_status;
}

}  // namespace
}  // namespace sandbox_run

int main(int count, char** words) { return sandbox_run::Main(count, words); }
