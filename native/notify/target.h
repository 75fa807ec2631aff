#ifndef SANDBOX_RUN_NOTIFY_TARGET_H_
#define SANDBOX_RUN_NOTIFY_TARGET_H_

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// The process of a call that waits for an answer. What is read of it may be changed by its other
// threads at any time: it is read once, and only the copy counts. Through /proc where containers
// refuse process_vm_readv, and without pidfd_getfd, which they refuse, too.
class Target {
 public:
  // `root`: its root directory (O_PATH), where the caller has it open; -1: it is opened each time.
  explicit Target(pid_t thread, int root = -1) : thread_(thread), root_(root) {}

  // Its root directory, O_PATH; not valid: it is gone.
  UniqueFd Root() const;

  bool Read(uint64_t from, void* into, size_t size);
  bool Write(uint64_t to, const void* from, size_t size);

  // The inode of the socket that a descriptor stands for; nullopt: it is none.
  std::optional<ino_t> SocketInode(int fd) const;

  // Whether a descriptor is one of UDP.
  bool IsUdp(int fd) const;

  // Whether a descriptor is closed by execve.
  bool ClosesOnExec(int fd) const;

  // An address that was given with its length. 0 or the errno that the kernel would give.
  int ReadAddress(uint64_t from, int64_t length, SocketAddress& into);
  // Answers a call that wants an address, at `to`, with the room for it at `length_at`. 0 or the
  // errno.
  int WriteAddress(const SocketAddress& address, uint64_t to, uint64_t length_at);

  // A text of fewer than `most` bytes that ends with NUL; nullopt: it is longer, or not there.
  std::optional<std::string> ReadText(uint64_t from, size_t most);

  // Opens what a path names to the process: its object (O_PATH), or a negative errno. What it is
  // may be another thing a moment later. Through /proc/PID/fd and the like no path leads.
  // `follows`: a link at its end.
  int OpenObject(const std::string& path, bool follows = true) const;
  // The same path as one that begins at the root of the process. `directory`: the descriptor that
  // it starts at, or AT_FDCWD.
  std::string AbsolutePath(const std::string& path, int directory = AT_FDCWD) const;
  // What the kernel says of one of its descriptors.
  std::string DescriptorInfo(int fd) const;

  // What it was started with, as the process has it now: of its own choice. Only the first ones.
  std::vector<std::string> Arguments() const;
  // The name of the program, as the process has it: at most 15 bytes, of its own choice.
  std::string Name() const;
  // Whether a signal waits for the thread, which is to end its call for it.
  bool HasSignal() const;
  // The ID of the process, not of the thread; 0: it is gone.
  pid_t Process() const;

 private:
  bool Open();

  const pid_t thread_;
  const int root_;
  UniqueFd memory_;
};

// Every socket that processes of this user but this one have open, by inode; nullopt: it cannot be
// told now, for want of a descriptor for instance.
std::optional<std::set<ino_t>> OpenSockets();

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_TARGET_H_
