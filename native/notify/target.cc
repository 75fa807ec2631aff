#include "notify/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/result.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace sandbox_run {
namespace {

// A file of /proc as far as it goes into `size` bytes.
std::string ReadProc(pid_t thread, const char* name, size_t size) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/%s", thread, name);
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  std::string text(size, '\0');
  const ssize_t got = file.valid() ? read(file.get(), text.data(), size) : -1;
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

struct DirectoryCloser {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

bool Target::Open() {
  if (memory_.valid()) return true;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/mem", thread_);
  memory_.reset(open(path, O_RDWR | O_CLOEXEC));
  return memory_.valid();
}

bool Target::Read(uint64_t from, void* into, size_t size) {
  // Containers may refuse it, which is remembered; /proc takes three calls.
  static std::atomic<bool> is_refused = false;
  if (!is_refused.load(std::memory_order_relaxed)) {
    const iovec own = {into, size}, other = {reinterpret_cast<void*>(from), size};
    const ssize_t got = process_vm_readv(thread_, &own, 1, &other, 1, 0);
    if (got >= 0) return got == static_cast<ssize_t>(size);
    if (errno == EPERM || errno == ENOSYS) is_refused = true;
  }
  return Open() &&
         pread(memory_.get(), into, size, static_cast<off_t>(from)) == static_cast<ssize_t>(size);
}

bool Target::Write(uint64_t to, const void* from, size_t size) {
  return Open() &&
         pwrite(memory_.get(), from, size, static_cast<off_t>(to)) == static_cast<ssize_t>(size);
}

std::optional<ino_t> Target::SocketInode(int fd) const {
  char path[64], link[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", thread_, fd);
  const ssize_t size = readlink(path, link, sizeof(link) - 1);
  if (size <= 0) return std::nullopt;
  link[size] = '\0';
  constexpr std::string_view kPrefix = "socket:[";
  if (strncmp(link, kPrefix.data(), kPrefix.size()) != 0) return std::nullopt;
  return static_cast<ino_t>(strtoull(link + kPrefix.size(), nullptr, 10));
}

bool Target::IsUdp(int fd) const {
  // The kernel's name of what it speaks: UDP or UDPv6 (net/socket.c).
  char path[64], name[16] = {};
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", thread_, fd);
  return getxattr(path, "system.sockprotoname", name, sizeof(name) - 1) > 0 &&
         std::string_view(name).starts_with("UDP");
}

std::string Target::DescriptorInfo(int fd) const {
  char name[32];
  snprintf(name, sizeof(name), "fdinfo/%d", fd);
  return ReadProc(thread_, name, 256);
}

bool Target::ClosesOnExec(int fd) const {
  const std::string info = DescriptorInfo(fd);
  const size_t at = info.find("flags:");
  return at != std::string::npos && (strtoul(info.c_str() + at + 6, nullptr, 8) & O_CLOEXEC) != 0;
}

int Target::ReadAddress(uint64_t from, int64_t length, SocketAddress& into) {
  // As move_addr_to_kernel in net/socket.c.
  const int size = static_cast<int>(length);
  if (size < 0 || static_cast<size_t>(size) > sizeof(into.storage)) return EINVAL;
  if (size > 0 && !Read(from, &into.storage, static_cast<size_t>(size))) return EFAULT;
  into.length = static_cast<socklen_t>(size);
  return 0;
}

int Target::WriteAddress(const SocketAddress& address, uint64_t to, uint64_t length_at) {
  int room = 0;
  if (!Read(length_at, &room, sizeof(room))) return EFAULT;
  if (room < 0) return EINVAL;
  const int size = static_cast<int>(address.length);
  const size_t written = static_cast<size_t>(std::min(room, size));
  if (written > 0 && !Write(to, &address.storage, written)) return EFAULT;
  return Write(length_at, &size, sizeof(size)) ? 0 : EFAULT;
}

std::optional<std::string> Target::ReadText(uint64_t from, size_t most) {
  constexpr uint64_t kPage = 4096;
  std::string text;
  while (text.size() < most) {
    // As far as the page reaches: the next one may not be there.
    char part[kPage];
    const size_t size = std::min<size_t>(kPage - from % kPage, most - text.size());
    if (!Read(from, part, size)) return std::nullopt;
    const size_t length = strnlen(part, size);
    text.append(part, length);
    if (length < size) return text;
    from += size;
  }
  return std::nullopt;
}

std::string Target::AbsolutePath(const std::string& path, int directory) const {
  if (path.starts_with('/')) return path;
  char name[64], base[PATH_MAX];
  if (directory == AT_FDCWD) {
    snprintf(name, sizeof(name), "/proc/%d/cwd", thread_);
  } else {
    snprintf(name, sizeof(name), "/proc/%d/fd/%d", thread_, directory);
  }
  const ssize_t size = readlink(name, base, sizeof(base));
  if (size <= 0) return path;
  return std::string(base, static_cast<size_t>(size)) + "/" + path;
}

UniqueFd Target::Root() const {
  char name[64];
  snprintf(name, sizeof(name), "/proc/%d/root", thread_);
  return UniqueFd(open(name, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

int Target::OpenObject(const std::string& path, bool follows) const {
  UniqueFd opened;
  if (root_ < 0) {
    opened = Root();
    if (!opened.valid()) return -errno;
  }
  const int root = root_ < 0 ? opened.get() : root_;
  const abi::OpenHow how{O_PATH | O_CLOEXEC | (follows ? 0u : static_cast<unsigned>(O_NOFOLLOW)), 0,
                         abi::kResolveInRoot | abi::kResolveNoMagicLinks};
  const std::string whole = AbsolutePath(path);
  // EAGAIN: something on the way was renamed.
  constexpr int kAttempts = 8;
  long fd = -EAGAIN;
  for (int i = 0; i < kAttempts && fd == -EAGAIN; ++i)
    fd = RawSyscall(abi::kSysOpenat2, root, Arg(whole.c_str()), Arg(&how), sizeof(how));
  return static_cast<int>(fd);
}

std::vector<std::string> Target::Arguments() const {
  std::string text = ReadProc(thread_, "cmdline", 4096);
  // The last one may be cut off.
  text.resize(text.rfind('\0') == std::string::npos ? 0 : text.rfind('\0'));
  std::vector<std::string> arguments;
  std::stringstream all(std::move(text));
  for (std::string one; std::getline(all, one, '\0');) arguments.push_back(std::move(one));
  return arguments;
}

std::string Target::Name() const {
  std::string name = ReadProc(thread_, "comm", 64);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

bool Target::HasSignal() const {
  const std::string status = ReadProc(thread_, "status", 4096);
  const auto number = [&status](const char* name, int base) -> uint64_t {
    const size_t at = status.find(name);
    return at == std::string::npos ? 0
                                   : strtoull(status.c_str() + at + strlen(name), nullptr, base);
  };
  uint64_t pending = number("\nSigPnd:", 16);
  // Any thread takes those of the process.
  if (number("\nThreads:", 10) == 1) pending |= number("\nShdPnd:", 16);
  return (pending & ~number("\nSigBlk:", 16)) != 0;
}

pid_t Target::Process() const {
  const std::string status = ReadProc(thread_, "status", 512);
  const size_t at = status.find("\nTgid:");
  return at == std::string::npos ? 0 : static_cast<pid_t>(atoi(status.c_str() + at + 6));
}

std::optional<std::set<ino_t>> OpenSockets() {
  std::set<ino_t> open;
  const std::unique_ptr<DIR, DirectoryCloser> processes(opendir("/proc"));
  if (processes == nullptr) return std::nullopt;
  while (const dirent* process = readdir(processes.get())) {
    if (process->d_name[0] < '1' || process->d_name[0] > '9') continue;
    const pid_t pid = static_cast<pid_t>(atoi(process->d_name));
    if (pid == getpid()) continue;
    const std::unique_ptr<DIR, DirectoryCloser> files(
        opendir((std::string("/proc/") + process->d_name + "/fd").c_str()));
    // It may be gone, or another user's. Otherwise what it has open is not known.
    if (files == nullptr && IsMomentary(errno)) return std::nullopt;
    if (files == nullptr) continue;
    const Target target(pid);
    while (const dirent* file = readdir(files.get())) {
      if (file->d_name[0] == '.') continue;
      if (const auto inode = target.SocketInode(atoi(file->d_name))) open.insert(*inode);
    }
  }
  return open;
}

}  // namespace sandbox_run
