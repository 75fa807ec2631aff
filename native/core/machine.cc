#include "core/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "core/clone_child.h"
#include "core/view_child.h"

namespace sandbox_run {
namespace {

// Half of the number in a file of /proc/sys, in digits; empty where there is none or nothing to
// halve.
std::string HalfOf(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  char text[24] = {};
  if (!fd.valid() || read(fd.get(), text, sizeof text - 1) <= 0) return "";
  const long half = std::strtol(text, nullptr, 10) / 2;
  return half > 0 ? std::to_string(half) : "";
}

}  // namespace

Status RunSetup(int (*body)(void*), void* plan, const SetupProgress& progress, int flags,
                const char* stage) {
  const pid_t pid = CloneChild(body, plan, CLONE_FILES | flags);
  if (pid < 0) return Failure{stage, errno, ""};
  const int status = Reap(pid);
  if (progress.failed_stage != nullptr) {
    const char* path = progress.failed_path;
    return Failure{progress.failed_stage, progress.failed_errno, path == nullptr ? "" : path};
  }
  // A status that other code took (-1) says nothing; the child's last store does.
  if (progress.done && (status == -1 || EndedWell(status))) return Status();
  return Failure{"setup.ended", 0, DescribeEnd(status)};
}

Status TakeNamespace(int fd, const char* name, Namespace& into) {
  into.fd.reset(fd);
  struct stat made, own;
  const std::string path = std::string("/proc/self/ns/") + name;
  if (fstat(fd, &made) != 0 || stat(path.c_str(), &own) != 0) {
    return Failure{"namespace.check", errno, path};
  }
  into.id = {made.st_dev, made.st_ino};
  if (into.id == ObjectId{own.st_dev, own.st_ino}) return Failure{"namespace.check", ESTALE, path};
  return Status();
}

Status Machine::Ensure(const NamespaceSpec& wanted) {
  const std::lock_guard lock(mutex_);
  if (ready_) {
    const bool same = wanted.user == user_.fd.valid() && wanted.network == network_.fd.valid() &&
                      wanted.ipc == ipc_.fd.valid();
    return same ? Status() : Status(Failure{"namespace.check", EINVAL, ""});
  }
  const std::string uid_map = std::to_string(geteuid()) + " " + std::to_string(geteuid()) + " 1";
  const std::string gid_map = std::to_string(getegid()) + " " + std::to_string(getegid()) + " 1";
  NamespaceSetupPlan plan;
  plan.with_user = wanted.user;
  plan.with_network = wanted.network;
  plan.with_ipc = wanted.ipc;
  plan.uid_map = uid_map.c_str();
  plan.gid_map = gid_map.c_str();
  const std::string instances = HalfOf("/proc/sys/fs/inotify/max_user_instances");
  const std::string watches = HalfOf("/proc/sys/fs/inotify/max_user_watches");
  plan.inotify_instances = instances.c_str();
  plan.inotify_watches = watches.c_str();
  const int flags = (wanted.user ? CLONE_NEWUSER : 0) | (wanted.network ? CLONE_NEWNET : 0) |
                    (wanted.ipc ? CLONE_NEWIPC : 0);
  if (flags != 0) {
    Status made = RunSetup(RunNamespaceSetup, &plan, plan.progress, flags, "namespace.create");
    // Taken in any case, so that what a child left is closed.
    UniqueFd user(plan.user_fd), network(plan.network_fd), ipc(plan.ipc_fd);
    UniqueFd sockets(plan.sockets_fd);
    if (!made.ok()) return made;
    if (wanted.user) made = TakeNamespace(user.release(), "user", user_);
    if (made.ok() && wanted.network) made = TakeNamespace(network.release(), "net", network_);
    if (made.ok() && wanted.ipc) made = TakeNamespace(ipc.release(), "ipc", ipc_);
    if (!made.ok()) return made;
    if (sockets.valid()) sockets_ = std::make_shared<DiagSocket>(std::move(sockets));
  }
  ready_ = true;
  return Status();
}

std::vector<NamespaceEntry> Machine::Entries(const NamespaceSpec& wanted) const {
  const std::lock_guard lock(mutex_);
  std::vector<NamespaceEntry> entries;
  const auto enter = [&entries](const Namespace& one, int type, const char* name) {
    entries.push_back({one.fd.get(), type, name, one.id});
  };
  // The user namespace first: it brings the capabilities that the others ask for.
  if (wanted.user) enter(user_, CLONE_NEWUSER, "user");
  if (wanted.network) enter(network_, CLONE_NEWNET, "net");
  if (wanted.ipc) enter(ipc_, CLONE_NEWIPC, "ipc");
  return entries;
}

int Machine::user_fd() const {
  const std::lock_guard lock(mutex_);
  return user_.fd.get();
}

int Machine::network_fd() const {
  const std::lock_guard lock(mutex_);
  return network_.fd.get();
}

std::shared_ptr<DiagSocket> Machine::sockets() const {
  const std::lock_guard lock(mutex_);
  return sockets_;
}

Result<std::shared_ptr<SessionDirectories>> Machine::Directories(
    const std::string& temporary_parent, const std::string& memory_parent) {
  const std::lock_guard lock(mutex_);
  if (directories_ != nullptr && !directories_->given_up()) return directories_;
  Result<std::shared_ptr<SessionDirectories>> made =
      SessionDirectories::Make(temporary_parent, memory_parent);
  // A command that began before the session ended, and gets its directories now, has them alone.
  if (made.ok() && users_ > 0) directories_ = made.value();
  return made;
}

void Machine::Join() {
  const std::lock_guard lock(mutex_);
  ++users_;
}

void Machine::Leave() {
  std::shared_ptr<SessionDirectories> dropped;
  const std::lock_guard lock(mutex_);
  if (--users_ == 0) dropped.swap(directories_);
}

}  // namespace sandbox_run
