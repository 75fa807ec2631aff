#include "notify/call_observer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "notify/endpoint.h"
#include "notify/host_object.h"
#include "notify/listener.h"
#include "notify/socket_table.h"
#include "sys/own_call.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

using Act = Denial::Act;
using Control = Denial::Control;

// Rights of Landlock (include/uapi/linux/landlock.h).
constexpr uint64_t kExecute = 1u << 0, kWriteFile = 1u << 1, kReadFile = 1u << 2,
                   kReadDir = 1u << 3, kRemoveDir = 1u << 4, kRemoveFile = 1u << 5,
                   kMakeChar = 1u << 6, kMakeDir = 1u << 7, kMakeReg = 1u << 8, kMakeSock = 1u << 9,
                   kMakeFifo = 1u << 10, kMakeBlock = 1u << 11, kMakeSym = 1u << 12,
                   kTruncate = 1u << 14;

// What most calls that alter a directory need of these.
constexpr uint64_t kUsualRights = kWriteFile | kTruncate | kRemoveDir | kRemoveFile | kMakeDir |
                                  kMakeReg | kMakeSock | kMakeFifo | kMakeSym;

constexpr long kReadOnlyMount = 0x1;  // ST_RDONLY of statfs
constexpr long kSysFchmodat2 = 452;
// Flags of an open that is not for reading alone.
constexpr uint32_t kWriteIntent = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
constexpr uint32_t kTemporary = O_TMPFILE & ~O_DIRECTORY;
constexpr unsigned kNoReplace = 1, kExchange = 2;  // RENAME_… (include/uapi/linux/fs.h)

enum class Kind {
  kOpen,
  kOpen2,   // its flags lie in memory
  kCreate,  // creat(2)
  kMakeDirectory,
  kMakeNode,
  kMakeLink,  // symbolic
  kHardLink,
  kRename,
  kRemove,
  kRemoveDirectory,
  kTruncate,
  kAttributes,  // that its owner may change
  kTimes,       // the same, and now by who may write to it
  kExtended,    // attributes that who may write to it may change
  kExecute,
  kLook,  // whether it is there, and what it is
};

// A call that names a path. An argument that is not there is -1.
struct PathCall {
  long number;
  Kind kind;
  int directory, path;              // arguments
  int flags = -1;                   // the argument with them
  int directory2 = -1, path2 = -1;  // of the second path: the new name
  bool of_link = false;             // one at the end is not followed
};

constexpr PathCall kPathCalls[] = {
    {SYS_openat, Kind::kOpen, 0, 1, 2},
    {SYS_openat2, Kind::kOpen2, 0, 1, 2},
    {SYS_mkdirat, Kind::kMakeDirectory, 0, 1},
    {SYS_mknodat, Kind::kMakeNode, 0, 1, 2},
    {SYS_symlinkat, Kind::kMakeLink, 1, 2},
    {SYS_linkat, Kind::kHardLink, 0, 1, 4, 2, 3},
    {SYS_renameat, Kind::kRename, 0, 1, -1, 2, 3},
    {SYS_renameat2, Kind::kRename, 0, 1, 4, 2, 3},
    {SYS_unlinkat, Kind::kRemove, 0, 1, 2},
    {SYS_truncate, Kind::kTruncate, -1, 0},
    {SYS_fchmodat, Kind::kAttributes, 0, 1},
    {kSysFchmodat2, Kind::kAttributes, 0, 1, 3},
    {SYS_fchownat, Kind::kAttributes, 0, 1, 4},
    {SYS_utimensat, Kind::kTimes, 0, 1, 3},
    {SYS_setxattr, Kind::kExtended, -1, 0},
    {SYS_lsetxattr, Kind::kExtended, -1, 0, -1, -1, -1, true},
    {SYS_removexattr, Kind::kExtended, -1, 0},
    {SYS_lremovexattr, Kind::kExtended, -1, 0, -1, -1, -1, true},
    {SYS_execve, Kind::kExecute, -1, 0},
    {SYS_execveat, Kind::kExecute, 0, 1, 4},
    {SYS_newfstatat, Kind::kLook, 0, 1, 3},
    {SYS_statx, Kind::kLook, 0, 1, 2},
    {SYS_faccessat, Kind::kLook, 0, 1},
    {SYS_chdir, Kind::kLook, -1, 0},
#if defined(SYS_open)
    {SYS_open, Kind::kOpen, -1, 0, 1},
    {SYS_creat, Kind::kCreate, -1, 0},
    {SYS_mkdir, Kind::kMakeDirectory, -1, 0},
    {SYS_mknod, Kind::kMakeNode, -1, 0, 1},
    {SYS_symlink, Kind::kMakeLink, -1, 1},
    {SYS_link, Kind::kHardLink, -1, 0, -1, -1, 1},
    {SYS_rename, Kind::kRename, -1, 0, -1, -1, 1},
    {SYS_unlink, Kind::kRemove, -1, 0},
    {SYS_rmdir, Kind::kRemoveDirectory, -1, 0},
    {SYS_chmod, Kind::kAttributes, -1, 0},
    {SYS_chown, Kind::kAttributes, -1, 0},
    {SYS_lchown, Kind::kAttributes, -1, 0, -1, -1, -1, true},
    {SYS_utime, Kind::kTimes, -1, 0},
    {SYS_utimes, Kind::kTimes, -1, 0},
    {SYS_futimesat, Kind::kTimes, 0, 1},
    {SYS_stat, Kind::kLook, -1, 0},
    {SYS_lstat, Kind::kLook, -1, 0, -1, -1, -1, true},
    {SYS_access, Kind::kLook, -1, 0},
#endif
};

// Calls that reach no path: connect(2), and those that send a signal. `signal`: the argument with
// the signal; 0 sends none. `process`: the one with the receiver; a negative one is a group, and
// the kernel signals the members it may reach.
struct OtherCall {
  long number;
  int process = -1, signal = -1;
};
constexpr OtherCall kOtherCalls[] = {{SYS_connect},
                                     {SYS_kill, 0, 1},
                                     {SYS_tkill, 0, 1},
                                     {SYS_tgkill, 1, 2},
                                     {abi::kSysPidfdSendSignal, 0, 1}};

constexpr uint32_t LowHalfOf(int argument) {
  return offsetof(seccomp_data, args) + 8 * static_cast<uint32_t>(argument);
}
const sock_filter kAsk = BPF_STMT(BPF_RET | BPF_K, abi::kSeccompRetUserNotification);
const sock_filter kLoadNumber = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));

const PathCall* Find(int number) {
  const auto* found =
      std::find_if(std::begin(kPathCalls), std::end(kPathCalls),
                   [number](const PathCall& call) { return call.number == number; });
  return found == std::end(kPathCalls) ? nullptr : found;
}

std::string ParentOf(const std::string& path) {
  const size_t at = path.find_last_of('/');
  return at == std::string::npos ? "." : at == 0 ? "/" : path.substr(0, at);
}

std::string NameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string Joined(std::string directory, const std::string& name) {
  if (directory != "/") directory += '/';
  directory += name;
  return directory;
}

// Landlock adds up what is granted on the way to the root.
uint64_t RightsAt(const HeldBy& held_by, const std::string& path) {
  uint64_t rights = 0;
  for (std::string at = path;; at = ParentOf(at)) {
    if (const auto found = held_by.rights.find(at); found != held_by.rights.end())
      rights |= found->second;
    if (!at.starts_with('/') || at == "/") return rights;
  }
}

// The path of a descriptor's object, as seen with its mounts; "": it has none.
std::string PathOf(int fd) {
  char name[32], path[PATH_MAX];
  snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(name, path, sizeof(path));
  return size > 0 && path[0] == '/' ? std::string(path, static_cast<size_t>(size)) : std::string();
}

// Whether the program that makes something of this name is to be noted.
bool IsWatched(const HeldBy& held_by, const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.find_last_of('/') + 1);
  const std::string parent = ParentOf(path);
  return held_by.names.contains(name) ||
         held_by.directories.contains(
             std::string_view(parent).substr(parent.find_last_of('/') + 1)) ||
         std::any_of(held_by.suffixes.begin(), held_by.suffixes.end(),
                     [name](const auto& end) { return name.ends_with(end); });
}

bool IsReadOnly(int fd) {
  struct statfs about;
  return fstatfs(fd, &about) == 0 && (about.f_flags & kReadOnlyMount) != 0;
}

// What other processes answer for, or what is another thing for everybody who looks: none of it is
// told.
bool IsOfTheSystem(const std::string& path) {
  for (const char* prefix : {"/proc/", "/dev/fd/", "/dev/std", "/dev/tty", "/dev/pts/"}) {
    if (path.starts_with(prefix)) return true;
  }
  return path == "/proc";
}

std::string TextOf(const Endpoint& endpoint) {
  const Address& bytes = endpoint.address;
  char text[64];
  if (endpoint.IsV4()) {
    snprintf(text, sizeof(text), "%d.%d.%d.%d:%d", bytes[12], bytes[13], bytes[14], bytes[15],
             endpoint.port);
    return text;
  }
  std::string all = "[";
  for (size_t i = 0; i < bytes.size(); i += 2) {
    snprintf(text, sizeof(text), "%s%x", i == 0 ? "" : ":", bytes[i] << 8 | bytes[i + 1]);
    all += text;
  }
  return all + "]:" + std::to_string(endpoint.port);
}

// A number of /proc/PID/status, `process` 0: of this one.
std::optional<int> StatusNumber(pid_t process, const char* name) {
  const std::string who = process == 0 ? "self" : std::to_string(process);
  const UniqueFd fd(open(("/proc/" + who + "/status").c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096] = {};
  if (!fd.valid() || read(fd.get(), text, sizeof(text) - 1) <= 0) return std::nullopt;
  const std::string line = std::string("\n") + name + ":\t";
  const char* at = strstr(text, line.c_str());
  return at == nullptr ? std::nullopt : std::optional(atoi(at + line.size()));
}

// Whether the process may be one of a command: whatever is confined gets no new privileges. In a
// container nobody may get any, and what is confined has one filter more than this process
// (proc_pid_status(5): since Linux 5.9).
bool MayBeConfined(pid_t process) {
  if (StatusNumber(process, "NoNewPrivs") == 0) return false;
  if (StatusNumber(0, "NoNewPrivs") == 0) return true;
  const std::optional<int> filters = StatusNumber(process, "Seccomp_filters");
  return !filters || *filters > StatusNumber(0, "Seccomp_filters").value_or(0);
}

// As check_kill_permission in kernel/signal.c. It cannot be tried: the thread may be in the scope
// of its command.
bool MaySignalOutside(pid_t process) {
  struct stat about;
  return stat(("/proc/" + std::to_string(process)).c_str(), &about) == 0 &&
         (geteuid() == 0 || about.st_uid == geteuid());
}

pid_t ProcessOfPidfd(const Target& target, int fd) {
  const std::string info = target.DescriptorInfo(fd);
  const size_t at = info.find("Pid:");
  return at == std::string::npos ? 0 : static_cast<pid_t>(atoi(info.c_str() + at + 4));
}

uint64_t RightToMake(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFCHR:
      return kMakeChar;
    case S_IFBLK:
      return kMakeBlock;
    case S_IFIFO:
      return kMakeFifo;
    case S_IFSOCK:
      return kMakeSock;
    case S_IFDIR:
      return kMakeDir;
    case S_IFLNK:
      return kMakeSym;
    default:
      return kMakeReg;
  }
}

// The first argument of a program that is a path beneath another one; "": none is. mkdir and
// install put a NUL into it behind the part that they are at (mkancesdirs of gnulib), so that it is
// two.
std::string ArgumentBeneath(const Target& target, const std::string& path) {
  const std::vector<std::string> arguments = target.Arguments();
  for (size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at].empty() || arguments[at].front() == '-') continue;
    const std::string whole =
        std::filesystem::path(target.AbsolutePath(arguments[at])).lexically_normal().string();
    if (whole.size() > path.size() + 1 && whole.starts_with(path + "/")) return whole;
    const std::string rest = at + 1 < arguments.size() ? arguments[at + 1] : "";
    if (whole == path && !rest.empty() && rest.front() != '/' && rest.front() != '-')
      return Joined(path, rest);
  }
  return "";
}

// Where the links lead that stand at a path, one after the other, to where nothing is.
std::string EndOfLinks(const Target& target, std::string path) {
  constexpr int kMostLinks = 8;
  for (int i = 0; i < kMostLinks; ++i) {
    const UniqueFd link(target.OpenObject(path, false));
    char content[PATH_MAX];
    const ssize_t size =
        link.valid() ? readlinkat(link.get(), "", content, sizeof(content)) : ssize_t{-1};
    if (size <= 0) break;
    const std::string next(content, static_cast<size_t>(size));
    path = next.starts_with('/') ? next : Joined(ParentOf(path), next);
  }
  return path;
}

// Whether a directory is empty, as far as it can be looked into.
bool MayBeEmpty(int directory) {
  if (AnswersByItself(directory)) return true;
  const UniqueFd opened(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
  if (!opened.valid()) return true;
  char names[4096];
  constexpr long kOnlyDots = 48;  // "." and ".." (struct linux_dirent64)
  return RawSyscall(SYS_getdents64, opened.get(), Arg(names), sizeof(names)) <= kOnlyDots;
}

// Whether removing it fails for everybody, by what it is: rmdir(2) takes empty directories only,
// and unlink(2) none.
bool CannotBeRemoved(int object, mode_t mode, bool of_directory) {
  return S_ISDIR(mode) != of_directory || (of_directory && !MayBeEmpty(object));
}

// Whether rename(2) cannot replace the object that is there, with any permissions.
bool CannotReplace(mode_t mode, int there, unsigned flags) {
  struct stat about;
  if (there < 0 || fstat(there, &about) != 0 || (flags & kExchange) != 0) return false;
  return (flags & kNoReplace) != 0 || S_ISDIR(mode) != S_ISDIR(about.st_mode) ||
         (S_ISDIR(mode) && !MayBeEmpty(there));
}

// Looks for an object, and notes where that was not possible for want of descriptors.
HostObject Find(const std::string& path, bool follows, bool& is_unseen) {
  HostObject found = FindOnHost(path, follows);
  is_unseen = is_unseen || found.is_short;
  return found;
}

// A program that makes one directory after another (mkdir -p) is denied the first one that its view
// does not show, although it exists on the host. It means the last one, or the first that is
// missing.
bool IsMeantOnHost(Denial& denial, bool& is_unseen) {
  std::string path = denial.on_host.meant;
  HostObject found = Find(path, true, is_unseen);
  while (!found.object.valid() && !found.parent.valid() && path.size() > 1) {
    path = ParentOf(path);
    found = Find(path, true, is_unseen);
  }
  if (found.path.empty() || IsOfTheSystem(found.path)) return false;
  denial.act = found.object.valid() ? Act::kWrite : Act::kCreate;
  denial.on_host.makes_directory = false;
  denial.path = found.path;
  denial.named = path == found.path ? "" : path;
  return found.object.valid() ? MayDo(found.object, W_OK | X_OK) : MayDo(found.parent, W_OK | X_OK);
}

// What the command did not find: whether the user has it, and may do with it what was wanted.
// `root`: that of the command. What it has made since it finds there now.
bool IsHiddenFromCommand(Denial& denial, int root, bool& is_unseen) {
  const Denial::OnHost& wanted = denial.on_host;
  if (root < 0 || UniqueFd(Target(0, root).OpenObject(denial.path, wanted.follows)).valid())
    return false;
  const HostObject found = Find(denial.path, wanted.follows, is_unseen);
  if (found.path.empty() || IsOfTheSystem(found.path)) return false;
  // The directory was missing to everybody, and was made since: it is in the view as well.
  if (!found.object.valid() &&
      UniqueFd(Target(0, root).OpenObject(ParentOf(denial.path), true)).valid())
    return false;
  denial.control = Control::kView;
  if (denial.path != found.path) denial.named = std::exchange(denial.path, found.path);
  if (!found.object.valid()) {
    if (!wanted.makes) return false;
    denial.act = Act::kCreate;
    // A link that leads to where nothing is: what it is called there is not what is made.
    if (NameOf(denial.named) != NameOf(denial.path)) denial.named.clear();
    return MayDo(found.parent, W_OK | X_OK);
  }
  if (wanted.executes && S_ISDIR(found.mode)) return false;
  if (wanted.connects && !S_ISSOCK(found.mode)) return false;
  if (!wanted.meant.empty()) return IsMeantOnHost(denial, is_unseen);
  // It would write to it, or find that it is there.
  if (wanted.makes) denial.act = Act::kWrite;
  if (!wanted.new_name.empty()) {
    const mode_t mode = wanted.renamed.value_or(found.mode);
    const HostObject there = Find(wanted.new_name, false, is_unseen);
    if (CannotReplace(mode, there.object.get(), wanted.rename_flags)) return false;
    if (S_ISDIR(mode) && wanted.new_name.starts_with(found.path + "/")) return false;
  }
  // rm -r tries unlink(2) first: where that finds nothing, it tries nothing else.
  const bool is_tried_first = !wanted.of_directory && S_ISDIR(found.mode);
  if (wanted.removes && !wanted.renames && !is_tried_first &&
      CannotBeRemoved(found.object.get(), found.mode, wanted.of_directory))
    return false;
  if (wanted.removes) return MayRemove(found);
  if (wanted.of_directory && !S_ISDIR(found.mode)) return false;
  if (wanted.by_owner) return MayChange(found.object);
  return MayDo(found.object, wanted.executes ? X_OK : wanted.alters ? W_OK : R_OK);
}

// Whether the superuser needs capabilities for an object, by its owner and mode
// (acl_permission_check in fs/namei.c). `object`: its descriptor. Access control lists are ignored.
bool NeedsCapabilities(int object, int mode, bool by_owner) {
  struct stat about;
  if (geteuid() != 0 || fstat(object, &about) != 0 || about.st_uid == 0) return false;
  if (by_owner) return true;
  char name[32];
  snprintf(name, sizeof(name), "/proc/self/fd/%d", object);
  if (getxattr(name, "system.posix_acl_access", nullptr, 0) > 0) return false;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  if (getgroups(static_cast<int>(groups.size()), groups.data()) < 0) return false;
  const bool is_of_group = about.st_gid == getegid() ||
                           std::find(groups.begin(), groups.end(), about.st_gid) != groups.end();
  const mode_t granted = is_of_group ? about.st_mode >> 3 : about.st_mode;
  return (static_cast<mode_t>(mode) & ~granted) != 0;
}

// Whether somebody on this host takes what is sent there.
bool IsTakenOnHost(const Endpoint& wanted, bool is_udp, bool& is_unseen) {
  Address own;
  const int error = SocketTable::Own().Find(wanted.address, wanted.port, is_udp, own);
  is_unseen = is_unseen || IsShortage(error);
  return error == 0;
}

// Whether it would have been given outside. What that is, is completed. `is_unseen`: set where that
// could not be found out for want of descriptors.
bool IsOfTheSandbox(Denial& denial, int root, bool& is_unseen) {
  const Denial::OnHost& wanted = denial.on_host;
  switch (denial.control) {
    case Control::kNothing:
    case Control::kScope:
    case Control::kSockets:
      return true;
    case Control::kNetwork:
      return !wanted.listener || IsTakenOnHost(*wanted.listener, wanted.is_udp, is_unseen);
    case Control::kView:
      return IsHiddenFromCommand(denial, root, is_unseen);
    case Control::kPinned: {
      const HostObject object = Find(denial.path, false, is_unseen);
      return object.object.valid() && !IsMountPoint(object.object.get()) && MayRemove(object);
    }
    case Control::kPrivileges: {
      const HostObject object = Find(wanted.place, true, is_unseen);
      return wanted.by_owner ? MayChange(object.object) : MayDo(object.object, wanted.mode);
    }
    case Control::kRights:
    case Control::kMount: {
      // What the user has there is not in the view: to make it is not what the program is about.
      if (denial.act == Act::kCreate && wanted.in_view &&
          Find(denial.path, false, is_unseen).object.valid())
        return IsHiddenFromCommand(denial, root, is_unseen);
      const HostObject object = Find(wanted.place, true, is_unseen);
      if (wanted.by_owner) return MayChange(object.object);
      if (wanted.place != denial.path) {
        const HostObject removed = Find(denial.path, false, is_unseen);
        if (removed.object.valid()) return MayRemove(removed);
      }
      return MayDo(object.object, wanted.mode);
    }
  }
  return false;
}

// The program that a script names in its first line (fs/binfmt_script.c); "": it names none.
std::string InterpreterOf(int object) {
  constexpr size_t kLine = 256;  // BINPRM_BUF_SIZE
  if (AnswersByItself(object)) return "";
  char name[32], line[kLine + 1] = {};
  snprintf(name, sizeof(name), "/proc/self/fd/%d", object);
  const UniqueFd file(open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() || pread(file.get(), line, kLine, 0) < 3 || line[0] != '#' || line[1] != '!')
    return "";
  const char* begin = line + 2 + strspn(line + 2, " \t");
  return std::string(begin, strcspn(begin, " \t\n"));
}

// Writes which calls are asked about, one after the other. Between two parts the number of the call
// is loaded.
class FilterWriter {
 public:
  void Ask(long number) { Add(number, {}); }

  // Unless the low half of an argument is `value`.
  void AskUnless(long number, int argument, uint32_t value) {
    Add(number, {Load(argument), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, kNot, 0)});
  }

  // If the low half of an argument is `value`.
  void AskIf(long number, int argument, uint32_t value) {
    Add(number, {Load(argument), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, kNot)});
  }

  // If a signal is sent, and not to a group, of which those that may be reached are.
  void AskIfSent(long number, int process, int signal) {
    Add(number, {Load(signal), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, kNot, 0), Load(process),
                 BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x80000000, kNot, 0)});
  }

  // If something is opened to be written.
  void AskIfWritten(long number, int flags) {
    Add(number, {Load(flags), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kWriteIntent, 0, kNot)});
  }

  std::vector<sock_filter> Take() { return std::move(program_); }

 private:
  // In place of a jump's distance: the call is not asked about.
  static constexpr uint8_t kNot = 0xff;

  static sock_filter Load(int argument) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LowHalfOf(argument));
  }
  void Add(long number, std::initializer_list<sock_filter> conditions) {
    std::vector<sock_filter> part = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, kNot)};
    part.insert(part.end(), conditions);
    part.push_back(Load(5));
    part.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOwnCall, kNot, 0));
    part.push_back(kAsk);
    part.push_back(kLoadNumber);
    // Past the end for another call, whose number is loaded still; else to where it is loaded.
    const size_t reload = part.size() - 1;
    for (size_t at = 0; at < reload; ++at) {
      const auto distance = static_cast<uint8_t>(reload - at - (at == 0 ? 0 : 1));
      if (part[at].jt == kNot) part[at].jt = distance;
      if (part[at].jf == kNot) part[at].jf = distance;
    }
    program_.insert(program_.end(), part.begin(), part.end());
  }

  std::vector<sock_filter> program_ = {kLoadNumber};
};

}  // namespace

// What one call wants with one path.
struct CallObserver::Use {
  int listener;
  uint64_t call;
  const Target& target;
  const HeldBy& held_by;
  std::string asked;
  std::string path;  // the same from the root on
  Act act = Act::kRead;
  bool follows = true;  // a link at the end
  bool reads = false;   // what is there
  bool writes = false;  // what is there
  bool truncates = false;
  bool executes = false;
  bool removes = false;
  bool renames = false;       // what is removed gets another name, whatever it is
  bool of_directory = false;  // of a directory only, which has to be empty to be removed
  // Of a rename: the new name, what gets it, and the flags.
  std::string new_name;
  std::optional<mode_t> renamed;
  unsigned rename_flags = 0;
  bool changes = false;   // attributes
  bool by_owner = false;  // only the owner may
  bool connects = false;
  bool may_exist = true;    // false: where something is, the call fails for everybody
  uint64_t makes = 0;       // the right to create it; 0: what is not there, is missing to everybody
  bool is_nothing = false;  // it reaches nothing of it
  int interpreters = 0;     // of scripts that led here

  void Open(uint64_t flags) {
    constexpr uint64_t kNew = O_CREAT | O_EXCL;
    const auto mode = flags & O_ACCMODE;
    is_nothing = (flags & O_PATH) != 0;
    reads = mode != O_WRONLY;
    writes = mode != O_RDONLY;
    truncates = (flags & O_TRUNC) != 0;
    may_exist = (flags & kNew) != kNew;
    follows = (flags & O_NOFOLLOW) == 0 && may_exist;
    of_directory = (flags & O_DIRECTORY) != 0 && (flags & kTemporary) == 0;
    act = writes || truncates ? Act::kWrite : Act::kRead;
    if ((flags & (O_CREAT | kTemporary)) != 0) makes = kMakeReg;
    if ((flags & kTemporary) != 0) path += "/#";  // something that has no name yet
  }
  void Make(uint64_t right) {
    makes = right;
    may_exist = follows = false;
  }
};

std::vector<sock_filter> CallObserver::Filter(Observed observed, bool scopes_signals) {
  if (observed == Observed::kNothing) return {};
  FilterWriter filter;
  for (const PathCall& call : kPathCalls) {
    if (call.kind == Kind::kLook && observed < Observed::kEverything) continue;
    if (call.number == SYS_utimensat) {
      // Without a path it is about a descriptor. (Half of a pointer may look like 0: left out.)
      filter.AskUnless(call.number, call.path, 0);
    } else if (call.kind == Kind::kOpen && observed < Observed::kEverything) {
      filter.AskIfWritten(call.number, call.flags);
    } else if (call.number == SYS_unlinkat && observed < Observed::kEverything) {
      // What is removed from an open directory is a part of a tree that goes as a whole (rm -r), by
      // the thousand, and each call would wait.
      filter.AskIf(call.number, call.directory, static_cast<uint32_t>(AT_FDCWD));
    } else {
      filter.Ask(call.number);
    }
  }
  for (const OtherCall& call : kOtherCalls) {
    if (call.signal < 0) {
      filter.Ask(call.number);
    } else if (scopes_signals && observed >= Observed::kEverything) {
      // Not by the way: a process that waits to be looked at can be interrupted by a signal until
      // that has begun, and kill() is what many make from handlers, which expect no EINTR of it.
      filter.AskIfSent(call.number, call.process, call.signal);
    }
  }
  return filter.Take();
}

void CallObserver::Begin(std::shared_ptr<const HeldBy> held_by) {
  const std::lock_guard lock(mutex_);
  held_by_ = std::move(held_by);
  uses_ = {};
  candidates_ = {};
  read_candidates_ = {};
  makings_ = {};
  unseen_ = 0;
  root_ = nullptr;
  has_begun_ = true;
}

void CallObserver::End() {
  const std::lock_guard lock(mutex_);
  held_by_ = nullptr;
}

Denials CallObserver::Take() {
  Denials uses, candidates, read;
  uint64_t unseen;
  std::shared_ptr<const UniqueFd> root;
  {
    const std::lock_guard lock(mutex_);
    uses = std::exchange(uses_, {});
    unseen = std::exchange(unseen_, 0);
    candidates = std::exchange(candidates_, {});
    read = std::exchange(read_candidates_, {});
    root = root_;
    if (held_by_ == nullptr) root_ = nullptr;
  }
  Denials denied;
  denied.unseen = unseen;
  for (Denials* several : {&candidates, &read}) {
    for (Denial& one : several->told) {
      bool is_unseen = false;
      if (IsOfTheSandbox(one, root != nullptr ? root->get() : -1, is_unseen))
        denied.Add(std::move(one));
      else if (is_unseen)
        ++denied.unseen;
    }
  }
  // Uses are no denials, so unreported ones do not count among unreported denials.
  std::move(uses.told.begin(), uses.told.end(), std::back_inserter(denied.told));
  return denied;
}

std::vector<Making> CallObserver::TakeMakings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(makings_, {});
}

bool CallObserver::Observe(int listener, const abi::SeccompNotification& call) {
  const int number = NumberOf(call);
  const bool is_other =
      std::any_of(std::begin(kOtherCalls), std::end(kOtherCalls),
                  [number](const OtherCall& other) { return other.number == number; });
  if (!is_other && Find(number) == nullptr) return false;
  std::shared_ptr<const HeldBy> held_by;
  {
    // Not while it is looked: a file system may take its time.
    const std::lock_guard lock(mutex_);
    held_by = held_by_;
    if (std::exchange(has_begun_, false)) directories_.clear();
  }
  if (held_by != nullptr) {
    const auto root = RootOf(static_cast<pid_t>(call.pid));
    if (root != nullptr) Look(listener, call, root->get(), *held_by);
  }
  Continue(listener, call.id);
  return true;
}

bool CallObserver::MayMakeIn(int directory) {
  std::shared_ptr<const HeldBy> held_by;
  {
    const std::lock_guard lock(mutex_);
    held_by = held_by_;
  }
  if (held_by == nullptr) return false;
  if (held_by->has_view) return true;
  const std::string path = PathOf(directory);
  constexpr uint64_t kNeeded = kMakeReg | kMakeDir;
  return !path.empty() && (kNeeded & ~RightsAt(*held_by, path)) == 0;
}

void CallObserver::NoteRefusedSocket(int listener, const abi::SeccompNotification& call,
                                     bool is_local) {
  {
    const std::lock_guard lock(mutex_);
    if (held_by_ == nullptr) return;
  }
  Denial denial;
  denial.act = Act::kConnect;
  denial.control = Control::kSockets;
  denial.path = denial.asked = is_local ? "unix" : "inet";
  Tell(listener, call.id, Target(static_cast<pid_t>(call.pid)), std::move(denial));
}

std::shared_ptr<const UniqueFd> CallObserver::RootOf(pid_t thread) {
  {
    const std::lock_guard lock(mutex_);
    if (root_ != nullptr) return root_;
  }
  UniqueFd root = Target(thread).Root();
  if (!root.valid()) {
    NoteUnseen(errno);
    return nullptr;
  }
  auto made = std::make_shared<const UniqueFd>(std::move(root));
  struct stat own, its;
  // On its way into its view a process has another one, which is not kept.
  const bool is_ours = stat("/", &own) == 0 && fstat(made->get(), &its) == 0 &&
                       own.st_dev == its.st_dev && own.st_ino == its.st_ino;
  const std::lock_guard lock(mutex_);
  if (held_by_ != nullptr && is_ours != held_by_->has_view) root_ = made;
  return made;
}

void CallObserver::Look(int listener, const abi::SeccompNotification& call, int root,
                        const HeldBy& held_by) {
  Target target(static_cast<pid_t>(call.pid), root);
  const int number = NumberOf(call);
  if (number == SYS_connect) return LookAtConnect(listener, call, target, held_by);
  const PathCall* found = Find(number);
  if (found == nullptr) return LookAtSignal(listener, call, target, held_by);
  const auto at = [&call](int argument) { return argument < 0 ? 0 : ArgumentOf(call, argument); };
  const auto path_of = [&](int directory, int path, Use& use) {
    errno = 0;
    const auto text = target.ReadText(PointerOf(call, path), PATH_MAX);
    // Where process_vm_readv(2) is refused, as in containers, it takes a descriptor.
    if (!text) NoteUnseen(errno);
    if (!text || text->empty()) return false;
    use.asked = *text;
    use.path = target.AbsolutePath(*text, directory < 0 ? AT_FDCWD : ArgumentOf(call, directory));
    while (use.path.size() > 1 && use.path.ends_with('/')) use.path.pop_back();
    return use.path.starts_with('/');
  };
  Use use{listener, call.id, target, held_by};
  if (!path_of(found->directory, found->path, use)) return;
  switch (found->kind) {
    case Kind::kOpen2: {
      uint64_t flags = 0;
      if (!target.Read(PointerOf(call, found->flags), &flags, sizeof(flags)))
        return NoteUnseen(errno);
      use.Open(flags);
      break;
    }
    case Kind::kOpen:
      use.Open(static_cast<uint32_t>(at(found->flags)));
      break;
    case Kind::kCreate:
      use.Open(O_CREAT | O_WRONLY | O_TRUNC);
      break;
    case Kind::kMakeDirectory:
      use.Make(kMakeDir);
      break;
    case Kind::kMakeNode:
      use.Make(RightToMake(static_cast<mode_t>(at(found->flags))));
      break;
    case Kind::kMakeLink:
      use.Make(kMakeSym);
      break;
    case Kind::kHardLink:
    case Kind::kRename: {
      if (found->kind == Kind::kRename) {
        Use from = use, to = use;
        from.removes = true;
        to.makes = kMakeReg;
        to.follows = false;
        if (path_of(found->directory2, found->path2, to) && IsFree(from) && IsFree(to)) return;
      }
      // A missing object cannot be linked, with any permissions.
      const bool follows =
          found->kind == Kind::kHardLink && (at(found->flags) & AT_SYMLINK_FOLLOW) != 0;
      const UniqueFd named(std::max(target.OpenObject(use.path, follows), -1));
      struct stat about;
      const bool is_there = named.valid() && fstat(named.get(), &about) == 0;
      if (found->kind == Kind::kRename) {
        use.rename_flags = static_cast<unsigned>(at(found->flags));
        Use to{listener, call.id, target, held_by};
        if (path_of(found->directory2, found->path2, to)) use.new_name = to.path;
        if (is_there) use.renamed = about.st_mode;
        // A directory cannot be moved into itself.
        if (is_there && S_ISDIR(about.st_mode) && use.new_name.starts_with(use.path + "/")) return;
        use.act = Act::kRemove;
        use.removes = use.renames = true;
        use.follows = false;
        LookAtPath(use);
      }
      if (!is_there || !path_of(found->directory2, found->path2, use)) return;
      // What is there is replaced by a rename.
      use.makes = RightToMake(about.st_mode);
      use.follows = false;
      use.may_exist = found->kind == Kind::kRename &&
                      (static_cast<unsigned>(at(found->flags)) & kNoReplace) == 0;
      break;
    }
    case Kind::kRemove:
    case Kind::kRemoveDirectory:
      use.act = Act::kRemove;
      use.removes = true;
      use.follows = false;
      use.of_directory = found->kind == Kind::kRemoveDirectory ||
                         (found->flags >= 0 && (at(found->flags) & AT_REMOVEDIR) != 0);
      break;
    case Kind::kTruncate:
      use.act = Act::kWrite;
      use.truncates = true;
      break;
    case Kind::kAttributes:
    case Kind::kTimes:
    case Kind::kExtended:
      use.act = Act::kWrite;
      use.changes = true;
      use.by_owner = found->kind == Kind::kAttributes ||
                     (found->kind == Kind::kTimes && PointerOf(call, found->path + 1) != 0);
      use.follows = !found->of_link && (at(found->flags) & AT_SYMLINK_NOFOLLOW) == 0;
      break;
    case Kind::kExecute:
      use.act = Act::kExecute;
      use.executes = true;
      break;
    case Kind::kLook:
      use.follows = !found->of_link && (at(found->flags) & AT_SYMLINK_NOFOLLOW) == 0;
      break;
  }
  LookAtPath(use);
}

const CallObserver::Directory* CallObserver::DirectoryAt(const Use& use, const std::string& path) {
  constexpr size_t kMostDirectories = 4'096;
  if (const auto known = directories_.find(path); known != directories_.end())
    return &known->second;
  const UniqueFd object(std::max(use.target.OpenObject(path, true), -1));
  struct stat about;
  if (!object.valid() || fstat(object.get(), &about) != 0) return nullptr;
  const HeldBy& held_by = use.held_by;
  Directory found;
  found.path = PathOf(object.get());
  const uint64_t needed = kUsualRights & held_by.handled_fs;
  found.is_free = !found.path.empty() && !IsOfTheSystem(found.path + "/") &&
                  (needed & ~RightsAt(held_by, found.path)) == 0 &&
                  !(held_by.has_view && IsReadOnly(object.get())) &&
                  !held_by.around_mounts.contains(found.path) &&
                  !NeedsCapabilities(object.get(), W_OK | X_OK, false);
  if (directories_.size() >= kMostDirectories) directories_.clear();
  return &directories_.insert_or_assign(path, std::move(found)).first->second;
}

bool CallObserver::IsFree(const Use& use) {
  if (use.held_by.tells_uses || use.executes || use.connects || (use.makes & ~kUsualRights) != 0)
    return false;
  if (!use.removes && !use.makes && !use.writes && !use.truncates && !use.changes) return false;
  const std::string name = NameOf(use.path);
  if (name.empty() || name == "." || name == "..") return false;
  const Directory* directory = DirectoryAt(use, ParentOf(use.path));
  if (directory == nullptr || !directory->is_free) return false;
  if (use.makes != 0 && IsWatched(use.held_by, Joined(directory->path, name))) return false;
  if (use.removes || (use.makes != 0 && !use.follows)) return true;
  // A link may lead to elsewhere.
  const int opened = use.target.OpenObject(use.path, false);
  if (opened < 0) return opened == -ENOENT && use.makes != 0;
  const UniqueFd object(opened);
  struct stat about;
  return fstat(opened, &about) == 0 && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) &&
         (geteuid() != 0 || about.st_uid == 0);
}

void CallObserver::LookAtPath(const Use& use) {
  if (use.is_nothing || IsFree(use) || IsOfTheSystem(use.path)) return;
  const int object = use.target.OpenObject(use.path, use.follows);
  if (object >= 0) {
    const UniqueFd owned(object);
    const std::string path = PathOf(object);
    if (!path.empty() && !IsOfTheSystem(path)) LookAtExisting(use, path, object);
    return;
  }
  if (object != -ENOENT) return NoteUnseen(-object);
  const std::string end = use.follows ? EndOfLinks(use.target, use.path) : use.path;
  if (IsOfTheSystem(end)) return;
  // Perhaps only the last part is missing, which is to be made.
  if (use.makes != 0) {
    const int opened = use.target.OpenObject(ParentOf(end), true);
    const UniqueFd parent(std::max(opened, -1));
    if (opened < 0) NoteUnseen(-opened);
    if (parent.valid()) {
      const std::string directory = PathOf(parent.get());
      if (directory.empty() || IsOfTheSystem(directory + "/")) return;
      return LookAtNew(use, Joined(directory, NameOf(end)), parent.get());
    }
  }
  LookOutsideView(use, end);
}

void CallObserver::LookAtExisting(const Use& use, const std::string& path, int object) {
  struct stat about;
  if (!use.may_exist || fstat(object, &about) != 0) return;
  const bool is_directory = S_ISDIR(about.st_mode);
  // For everybody: a directory cannot be written, nor a link opened that is not followed.
  if (S_ISLNK(about.st_mode) && (use.reads || use.writes)) return;
  if (is_directory && (use.writes || use.truncates || use.executes)) return;
  if (use.of_directory && !is_directory) return;
  uint64_t needed = 0;
  int mode = 0;
  if (use.reads) {
    needed |= is_directory ? kReadDir : kReadFile;
    mode |= R_OK;
  }
  if (use.writes) needed |= kWriteFile;
  if (use.truncates && S_ISREG(about.st_mode)) needed |= kTruncate;
  if (use.executes) {
    needed |= kExecute;
    mode |= X_OK;
  }
  if (use.writes || use.truncates || use.changes) mode |= W_OK;
  std::string place = path;  // where the rights are looked for
  const auto cannot_be_removed = [&] {
    return use.removes && !use.renames && CannotBeRemoved(object, about.st_mode, use.of_directory);
  };
  if (use.removes || (use.makes != 0 && !use.reads && !use.writes && !use.truncates)) {
    needed |= is_directory ? kRemoveDir : kRemoveFile;
    mode = W_OK | X_OK;
    place = ParentOf(path);
    if (use.held_by.has_view && IsMountPoint(object) && !cannot_be_removed())
      return Tell(use, Control::kPinned, path, place, mode);
  }
  // Sockets, devices and pipes are written on read-only mounts, too.
  const bool is_stored = S_ISREG(about.st_mode) || is_directory || S_ISLNK(about.st_mode);
  const bool alters =
      use.changes || use.removes || place != path || ((mode & W_OK) != 0 && is_stored);
  const bool has_rights =
      !S_ISSOCK(about.st_mode)
          ? (needed & use.held_by.handled_fs & ~RightsAt(use.held_by, place)) == 0
          : true;
  const bool is_shut = alters && use.held_by.has_view && IsReadOnly(object);
  if (has_rights && !is_shut) {
    const UniqueFd around(place == path || geteuid() != 0 ? -1
                                                          : use.target.OpenObject(place, true));
    if (NeedsCapabilities(place == path ? object : around.get(), mode, use.by_owner))
      return Tell(use, Control::kPrivileges, path, place, mode);
    if (use.makes != 0) NoteMaking(use, path);
    if (use.held_by.tells_uses) Tell(use, Control::kNothing, path, path, 0);
    if (use.executes && S_ISREG(about.st_mode)) LookAtInterpreter(use, object);
    return;
  }
  if (cannot_be_removed()) return;
  Tell(use, is_shut ? Control::kMount : Control::kRights, path, place, mode);
}

// A script that may be executed, by a program that perhaps may not.
void CallObserver::LookAtInterpreter(const Use& use, int script) {
  constexpr int kMostInterpreters = 4;  // As the kernel (exec_binprm in fs/exec.c).
  if (use.interpreters == kMostInterpreters) return;
  Use next = use;
  next.asked = InterpreterOf(script);
  if (next.asked.empty()) return;
  next.path = use.target.AbsolutePath(next.asked);
  next.follows = true;
  ++next.interpreters;
  LookAtPath(next);
}

void CallObserver::LookAtNew(const Use& use, const std::string& path, int parent) {
  const std::string directory = ParentOf(path);
  const bool has_rights =
      (use.makes & use.held_by.handled_fs & ~RightsAt(use.held_by, directory)) == 0;
  const bool is_shut = use.held_by.has_view && IsReadOnly(parent);
  Use made = use;
  made.act = Act::kCreate;
  if (has_rights && !is_shut) {
    if (NeedsCapabilities(parent, W_OK | X_OK, false))
      return Tell(made, Control::kPrivileges, path, directory, W_OK | X_OK);
    NoteMaking(use, path);
    if (use.held_by.tells_uses) Tell(made, Control::kNothing, path, directory, 0);
    return;
  }
  Tell(made, is_shut ? Control::kMount : Control::kRights, path, directory, W_OK | X_OK);
}

// The command does not find it: perhaps the user does.
void CallObserver::LookOutsideView(const Use& use, const std::string& path) {
  if (!use.held_by.has_view) return;
  Tell(use, Control::kView, path, path, 0);
}

void CallObserver::LookAtConnect(int listener, const abi::SeccompNotification& call, Target& target,
                                 const HeldBy& held_by) {
  SocketAddress address;
  errno = 0;
  if (target.ReadAddress(PointerOf(call, 1), ArgumentOf(call, 2), address) != 0)
    return NoteUnseen(errno);
  const int family = address.length >= sizeof(sa_family_t) ? address.get()->sa_family : AF_UNSPEC;
  if (family == AF_UNIX) {
    const char* name = reinterpret_cast<const sockaddr_un*>(address.get())->sun_path;
    const size_t room = address.length - offsetof(sockaddr_un, sun_path);
    if (address.length <= offsetof(sockaddr_un, sun_path) || name[0] == '\0') return;
    Use use{listener, call.id, target, held_by};
    use.asked = std::string(name, strnlen(name, std::min(room, sizeof(sockaddr_un::sun_path))));
    use.path = target.AbsolutePath(use.asked, AT_FDCWD);
    use.act = Act::kConnect;
    use.connects = true;
    const UniqueFd object(target.OpenObject(use.path, true));
    if (!object.valid()) LookOutsideView(use, use.path);
    return;
  }
  if ((!held_by.has_own_network && !held_by.tells_uses) ||
      (family != AF_INET && family != AF_INET6))
    return;
  std::optional<Endpoint> endpoint = EndpointOf(address, family);
  if (!endpoint || endpoint->port == 0) return;
  // Linux takes it for the loopback interface.
  if (endpoint->IsAny())
    endpoint->address[15] = 1, endpoint->address[12] = endpoint->IsV4() ? 127 : 0;
  const bool is_udp = target.IsUdp(ArgumentOf(call, 0));
  // It sends nothing yet. Many only ask so which way leads there (getaddrinfo).
  if (is_udp && !held_by.has_own_network) return;
  // What the command's own servers answer is the sandbox's loopback.
  const bool is_own = held_by.has_own_network && endpoint->IsLoopback();
  if (is_own) {
    Address own;
    const int error =
        held_by.own_sockets == nullptr
            ? EBADF
            : held_by.own_sockets->Find(endpoint->address, endpoint->port, is_udp, own);
    // Unknown: nothing is reported.
    if (error != ENOENT) return NoteUnseen(error);
  }
  Denial denial;
  denial.act = Act::kConnect;
  denial.control = held_by.has_own_network ? Control::kNetwork : Control::kNothing;
  denial.path = denial.asked = TextOf(*endpoint) + (is_udp ? "/udp" : "");
  if (is_own) denial.on_host.listener = endpoint;
  denial.on_host.is_udp = is_udp;
  Tell(listener, call.id, target, std::move(denial));
}

void CallObserver::LookAtSignal(int listener, const abi::SeccompNotification& call, Target& target,
                                const HeldBy& held_by) {
  if (!held_by.scopes_signals) return;
  const pid_t process = NumberOf(call) == static_cast<int>(abi::kSysPidfdSendSignal)
                            ? ProcessOfPidfd(target, ArgumentOf(call, 0))
                            : ArgumentOf(call, 0);
  // Not reported for a process group (<= 0): the kernel signals those members that may be reached.
  if (process <= 0 || MayBeConfined(process) || !MaySignalOutside(process)) return;
  Denial denial;
  denial.act = Act::kSignal;
  denial.control = Control::kScope;
  denial.asked = std::to_string(process);
  denial.path = denial.asked + " (" + Target(process).Name() + ")";
  Tell(listener, call.id, target, std::move(denial));
}

void CallObserver::NoteMaking(const Use& use, const std::string& path) {
  constexpr size_t kMostMakings = 1'000;
  if (!IsWatched(use.held_by, path)) return;
  std::string program = use.target.Name();
  if (!IsWaiting(use.listener, use.call)) return;
  const std::lock_guard lock(mutex_);
  // Only the last program that made the path counts.
  std::erase_if(makings_, [&path](const Making& making) { return making.path == path; });
  if (makings_.size() < kMostMakings) makings_.push_back({path, std::move(program)});
}

void CallObserver::Tell(const Use& use, Control control, std::string path, std::string place,
                        int mode) {
  if (use.renamed) {
    const UniqueFd there(std::max(use.target.OpenObject(use.new_name, false), -1));
    if (CannotReplace(*use.renamed, there.get(), use.rename_flags)) return;
  }
  Denial denial;
  denial.act = use.act;
  denial.control = control;
  denial.asked = use.asked;
  denial.path = std::move(path);
  Denial::OnHost& on_host = denial.on_host;
  on_host.place = std::move(place);
  on_host.mode = mode;
  on_host.in_view = use.held_by.has_view;
  on_host.follows = use.follows;
  on_host.makes = use.makes != 0;
  on_host.alters = use.writes || use.truncates || use.changes || use.connects;
  on_host.removes = use.removes;
  on_host.renames = use.renames;
  on_host.new_name = use.new_name;
  on_host.renamed = use.renamed;
  on_host.rename_flags = use.rename_flags;
  on_host.of_directory = use.of_directory;
  on_host.executes = use.executes;
  on_host.connects = use.connects;
  on_host.by_owner = use.by_owner;
  on_host.makes_directory = use.makes == kMakeDir;
  if (on_host.makes_directory) on_host.meant = ArgumentBeneath(use.target, denial.path);
  Tell(use.listener, use.call, use.target, std::move(denial));
}

void CallObserver::Tell(int listener, uint64_t call, const Target& target, Denial denial) {
  const auto kept = [this](const Denial& one) -> Denials& {
    if (one.control == Control::kNothing) return uses_;
    return one.act == Act::kRead && !one.on_host.makes ? read_candidates_ : candidates_;
  };
  {
    // A denial of the same kind was reported with its process, which is expensive to find.
    const std::lock_guard lock(mutex_);
    if (kept(denial).IsCounted(denial)) return;
  }
  denial.process = target.Process();
  // The thread that looks after the command makes calls for it.
  if (denial.process == getpid()) return;
  denial.program = target.Name();
  denial.first_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  denial.count = 1;
  // All of it was read of the process that still waits, and not of a later one with its number.
  if (!IsWaiting(listener, call)) return;
  const std::lock_guard lock(mutex_);
  const size_t most =
      denial.control == Control::kNothing ? Denials::kMostUses : Denials::kMostCandidates;
  kept(denial).Add(std::move(denial), most);
}

void CallObserver::NoteUnseen(int error) {
  if (!IsShortage(error)) return;
  const std::lock_guard lock(mutex_);
  ++unseen_;
}

std::string Denials::KindOf(const Denial& denial) {
  const char kind[] = {static_cast<char>(denial.act), static_cast<char>(denial.control)};
  return std::string(kind, sizeof(kind)) + denial.path;
}

bool Denials::IsCounted(const Denial& denial) {
  const auto known = places_.find(KindOf(denial));
  if (known == places_.end()) return false;
  ++told[known->second].count;
  return true;
}

void Denials::Add(Denial denial, size_t most) {
  const auto [place, is_new] = places_.try_emplace(KindOf(denial), told.size());
  if (!is_new) {
    told[place->second].count += denial.count;
    return;
  }
  const size_t size = 2 * denial.path.size() + denial.asked.size() + denial.on_host.place.size();
  if (told.size() < most && bytes_ + size <= kMostBytes) {
    bytes_ += size;
    told.push_back(std::move(denial));
    return;
  }
  places_.erase(place);
  ++untold;
}

}  // namespace sandbox_run
