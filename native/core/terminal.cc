#include "core/terminal.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

constexpr char kStage[] = "terminal";
constexpr size_t kReadSize = 4096;
// <linux/major.h>: TTYAUX_MAJOR; the minor of /dev/ptmx and of pts/ptmx.
constexpr unsigned kPtmxMajor = 5;
constexpr unsigned kPtmxMinor = 2;

// The mount of pseudo-terminals in the view. Only the launcher mounts there and the root of
// the view is read-only, so the name leads where it should; that it does is looked at all the same,
// because a reader of this terminal reads what the command writes.
Result<UniqueFd> OpenInstance(int view_root) {
  const abi::OpenHow how{O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                         abi::kResolveNoSymlinks | abi::kResolveBeneath};
  const long fd = RawSyscall(abi::kSysOpenat2, view_root, Arg("dev/pts"), Arg(&how), sizeof(how));
  if (fd < 0) return Failure{kStage, static_cast<int>(-fd), "/dev/pts"};
  UniqueFd instance(static_cast<int>(fd));
  struct statfs info;
  if (fstatfs(instance.get(), &info) != 0) return Failure{kStage, errno, "/dev/pts"};
  if (info.f_type != DEVPTS_SUPER_MAGIC) return Failure{kStage, ENODEV, "/dev/pts"};
  return instance;
}

Result<UniqueFd> OpenMaster(std::optional<int> view_root) {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
  UniqueFd master;
  const char* path = "/dev/ptmx";
  if (!view_root) {
    master.reset(open(path, kFlags));
  } else {
    path = "/dev/pts/ptmx";
    Result<UniqueFd> instance = OpenInstance(*view_root);
    if (!instance.ok()) return instance;
    master.reset(openat(instance.value().get(), "ptmx", kFlags | O_NOFOLLOW));
  }
  if (!master.valid()) return Failure{kStage, errno, path};
  struct stat info;
  if (fstat(master.get(), &info) != 0) return Failure{kStage, errno, path};
  if (!S_ISCHR(info.st_mode) || major(info.st_rdev) != kPtmxMajor ||
      minor(info.st_rdev) != kPtmxMinor) {
    return Failure{kStage, ENODEV, path};
  }
  return master;
}

}  // namespace

Result<Terminal> OpenTerminal(std::optional<int> view_root, TerminalSize size) {
  Terminal terminal;
  Result<UniqueFd> master = OpenMaster(view_root);
  if (!master.ok()) return master.failure();
  terminal.master = std::move(master.value());
  const int unlocked = 0;
  if (ioctl(terminal.master.get(), TIOCSPTLCK, &unlocked) != 0) {
    return Failure{kStage, errno, "TIOCSPTLCK"};
  }
  // By the master, never by name: its name means another terminal in this process's own namespace.
  terminal.slave.reset(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave.valid()) return Failure{kStage, errno, "TIOCGPTPEER"};

  // The kernel's settings are those of a terminal that a person uses, except that erasing takes a
  // whole character.
  termios settings;
  if (tcgetattr(terminal.slave.get(), &settings) != 0) return Failure{kStage, errno, "tcgetattr"};
  settings.c_iflag |= IUTF8;
  if (tcsetattr(terminal.slave.get(), TCSANOW, &settings) != 0) {
    return Failure{kStage, errno, "tcsetattr"};
  }
  if (Status sized = ResizeTerminal(terminal.master.get(), size); !sized.ok()) {
    return sized.failure();
  }
  return terminal;
}

Status ResizeTerminal(int master, TerminalSize size) {
  const winsize wanted = {size.rows, size.columns, 0, 0};
  if (ioctl(master, TIOCSWINSZ, &wanted) != 0) return Failure{kStage, errno, "TIOCSWINSZ"};
  return Status();
}

void TerminalInput::Feed(int master) {
  while (!over_ && WriteTo(master)) {
    if (ended_) {
      over_ = true;
    } else if (!source_.valid()) {
      End(master);
    } else if (!Take()) {
      return;
    }
  }
}

// True once everything pending was typed.
bool TerminalInput::WriteTo(int master) {
  while (written_ < pending_.size()) {
    const ssize_t count = write(master, pending_.data() + written_, pending_.size() - written_);
    if (count < 0 && errno == EINTR) continue;
    // 0: the terminal has no room.
    if (count == 0 || (count < 0 && errno == EAGAIN)) return false;
    if (count < 0) {
      over_ = true;
      source_.reset();
      pending_.clear();
      written_ = 0;
      return false;
    }
    written_ += static_cast<size_t>(count);
  }
  if (!pending_.empty()) last_ = pending_.back();
  pending_.clear();
  written_ = 0;
  return true;
}

// Reads from the source. False: nothing there yet.
bool TerminalInput::Take() {
  char buffer[kReadSize];
  ssize_t count;
  do count = read(source_.get(), buffer, sizeof(buffer));
  while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return false;
  if (count > 0) {
    pending_.assign(buffer, static_cast<size_t>(count));
  } else {
    source_.reset();
  }
  return true;
}

void TerminalInput::End(int master) {
  ended_ = true;
  termios settings;
  // On the master these are the settings of the terminal.
  if (tcgetattr(master, &settings) != 0) return;
  const char end = static_cast<char>(settings.c_cc[VEOF]);
  if (end == _POSIX_VDISABLE) return;
  pending_.assign(1, end);
  // On a line that has begun, the first one only hands over what is there (termios(3)).
  if (last_ != '\n' && last_ != '\r' && (settings.c_lflag & ICANON) != 0) pending_ += end;
}

Status CommandTerminal::Open(std::optional<int> view_root, TerminalInput input) {
  const std::lock_guard lock(mutex_);
  Result<Terminal> opened = OpenTerminal(view_root, size_);
  if (!opened.ok()) return opened.failure();
  master_ = std::move(opened.value().master);
  slave_ = std::move(opened.value().slave);
  input_ = std::move(input);
  return Status();
}

Result<UniqueFd> CommandTerminal::Output() const {
  const int copy = fcntl(master_.get(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return Failure{kStage, errno, ""};
  return UniqueFd(copy);
}

void CommandTerminal::AddTo(Watch& watch) {
  input_at_ = input_.wants_terminal() ? watch.Add(master_.get(), POLLOUT)
                                      : watch.Add(input_.source(), POLLIN);
}

void CommandTerminal::Handle(const Watch& watch) {
  if (watch.Ready(input_at_)) Feed();
}

void CommandTerminal::Feed() { input_.Feed(master_.get()); }

void CommandTerminal::Resize(TerminalSize size) {
  const std::lock_guard lock(mutex_);
  size_ = size;
  // It can only fail for a terminal that is not there.
  if (master_.valid()) {
    [[maybe_unused]] const Status ignored = ResizeTerminal(master_.get(), size);
  }
}

void CommandTerminal::CommandIsOver() {
  input_ = TerminalInput();
  slave_.reset();
}

void CommandTerminal::Close() {
  CommandIsOver();
  const std::lock_guard lock(mutex_);
  master_.reset();
}

}  // namespace sandbox_run
