#include "begin/launcher_link.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "begin/handover.h"
#include "core/warden.h"

namespace sandbox_run {
namespace {

static_assert(kHandoverFd == 3 && kReportFd == 4 && kBeginProgramFd == 5 && kSettingsFd == 6 &&
              kAfterLauncherFds == 3 + kLauncherFds);

// Above those that the child overwrites.
constexpr int kFirstFree = 16;
// More than setting up and taking down a sandbox takes.
constexpr std::chrono::seconds kDeadlineMargin{30};

// Static names for what comes from the other side.
const char* StageOf(std::string_view name) {
  for (const char* known :
       {"cwd", "rlimit", "close_descriptors", "capabilities", "no_new_privs", "seccomp", "exec",
        "handover", "clone", "terminal", "parent_death_signal", "parent_gone", "signals", "umask",
        "root.look", "root.open", "root.covered"}) {
    if (name == known) return known;
  }
  return name == "others" ? "launcher.others" : "launcher.begin";
}

class Packer {
 public:
  Packer() : bytes_(sizeof(Handover), '\0') {}
  uint64_t Put(const void* data, size_t size) {
    bytes_.resize((bytes_.size() + 7) & ~size_t{7});
    const uint64_t at = bytes_.size();
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
    return at;
  }
  uint64_t Put(const char* text) { return Put(text, strlen(text) + 1); }
  uint64_t Put(char* const* texts) {
    std::vector<uint64_t> offsets;
    for (; *texts != nullptr; ++texts) offsets.push_back(Put(*texts));
    offsets.push_back(0);
    return Put(offsets.data(), offsets.size() * sizeof(uint64_t));
  }
  std::string Finish(Handover& header) {
    header.size = bytes_.size();
    memcpy(bytes_.data(), &header, sizeof(header));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

Status WriteAll(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = write(fd, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Failure{"handover", errno, ""};
    at += static_cast<size_t>(count);
  }
  return Status();
}

Result<UniqueFd> Raised(int fd) {
  UniqueFd raised(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree));
  if (!raised.valid()) return Failure{"handover", errno, ""};
  return raised;
}

}  // namespace

Result<LauncherLink> LauncherLink::Make(const Command& command) {
  LauncherLink link;
  const int program = BeginProgram();
  if (program < 0) return Failure{"launcher.program", ENOENT, ""};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return Failure{"handover", errno, ""};
  }
  link.reports_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  const int on = 1;
  // The kernel says which process sent something, by the number that it has here.
  if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      fcntl(ends[1], F_SETFL, 0) != 0) {
    return Failure{"handover", errno, ""};
  }
  const UniqueFd memory(memfd_create("sandbox-run-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const UniqueFd settings(memfd_create("sandbox-run-settings", MFD_CLOEXEC));
  if (!memory.valid() || !settings.valid()) return Failure{"handover", errno, ""};
  if (Status status = WriteAll(settings.get(), command.settings); !status.ok()) {
    return status.failure();
  }

  Packer packer;
  Handover header;
  while (header.nonce == 0) {
    if (getrandom(&header.nonce, sizeof(header.nonce), 0) != sizeof(header.nonce)) {
      return Failure{"handover", errno, ""};
    }
  }
  link.nonce_ = header.nonce;
  header.program = packer.Put(command.program);
  header.cwd = packer.Put(command.cwd);
  header.argv = packer.Put(command.argv);
  header.envp = packer.Put(command.envp);
  header.limits = packer.Put(command.limits.data(), command.limits.size() * sizeof(ResourceLimit));
  header.limit_count = command.limits.size();
  header.filter = packer.Put(command.filter.data(), command.filter.size() * sizeof(sock_filter));
  header.filter_length = command.filter.size();
  header.umask = command.umask;
  header.terminal = command.terminal ? 1 : 0;
  header.alone = command.alone ? 1 : 0;
  header.checks_root = command.checks_root ? 1 : 0;
  if (Status status = WriteAll(memory.get(), packer.Finish(header)); !status.ok()) {
    return status.failure();
  }
  for (const auto& [fd, raised] : {std::pair{memory.get(), &link.handover_},
                                   {theirs.get(), &link.theirs_},
                                   {program, &link.program_},
                                   {settings.get(), &link.settings_}}) {
    Result<UniqueFd> copy = Raised(fd);
    if (!copy.ok()) return copy.failure();
    *raised = std::move(copy.value());
  }
  return link;
}

void LauncherLink::GiveTo(int (&fds)[kLauncherFds]) const {
  fds[kHandoverFd - 3] = handover_.get();
  fds[kReportFd - 3] = theirs_.get();
  fds[kBeginProgramFd - 3] = program_.get();
  fds[kSettingsFd - 3] = settings_.get();
}

void LauncherLink::ChildHasThem() {
  handover_.reset();
  theirs_.reset();
  program_.reset();
  settings_.reset();
}

void LauncherLink::Take() {
  while (reports_.valid()) {
    BeginRecord record;
    iovec data = {&record, sizeof(record)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(reports_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      reports_.reset();
      return;
    }
    if (size != static_cast<ssize_t>(sizeof(record)) || record.nonce != nonce_) continue;
    record.stage[sizeof(record.stage) - 1] = '\0';
    const cmsghdr* sender = CMSG_FIRSTHDR(&message);
    switch (record.kind) {
      case BeginRecord::kBegun:
        if (sender == nullptr || sender->cmsg_type != SCM_CREDENTIALS) break;
        ucred who;
        memcpy(&who, CMSG_DATA(sender), sizeof(who));
        command_ = who.pid;
        break;
      case BeginRecord::kFailed:
        failure_ = Failure{StageOf(record.stage), record.error, ""};
        break;
      case BeginRecord::kEnded:
        end_ = record.code == CLD_EXITED ? End{record.status, 0} : End{0, record.status};
        break;
      default:
        break;
    }
  }
}

std::vector<std::string> LauncherArguments(const LauncherSpec& spec,
                                           std::chrono::milliseconds longest) {
  std::vector<std::string> arguments = {spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  if (!spec.deadline_option.empty() && longest.count() > 0) {
    // Only for the case that no process is left to end it in time.
    const long long seconds =
        (std::chrono::ceil<std::chrono::seconds>(longest) + kDeadlineMargin).count();
    char text[48];
    snprintf(text, sizeof(text), "%02lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60,
             seconds % 60);
    if (seconds / 3600 < 100) arguments.push_back(spec.deadline_option + text);
  }
  // Without `--`, after which Firejail has the user's login shell start the program; a shell that
  // stays (dash does) is a process without our filter, and nologin starts nothing.
  arguments.push_back("/proc/self/fd/" + std::to_string(kBeginProgramFd));
  return arguments;
}

std::string LauncherSettings(const LauncherSpec& spec, const std::string& slot, bool background) {
  std::string settings = spec.settings;
  if (!spec.slot_setting.empty()) settings += spec.slot_setting + slot + "\n";
  for (const LauncherSpec::Conditional& one : spec.conditional) {
    struct stat info;
    // A path that cannot be looked at may exist.
    const bool is_there =
        lstat(one.path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
    if (is_there) settings += one.settings;
  }
  if (!background) settings += spec.foreground_settings;
  return settings;
}

}  // namespace sandbox_run
