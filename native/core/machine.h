#ifndef SANDBOX_RUN_CORE_MACHINE_H_
#define SANDBOX_RUN_CORE_MACHINE_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/child.h"
#include "core/confinement_spec.h"
#include "core/session_directories.h"
#include "core/view_child.h"
#include "sys/diag_socket.h"

namespace sandbox_run {

// Has a child make something, and says whether it did: it may have been killed on the way.
Status RunSetup(int (*body)(void*), void* plan, const SetupProgress& progress, int flags,
                const char* stage);

// A namespace that was made for commands.
struct Namespace {
  UniqueFd fd;
  ObjectId id;
};

// Takes a namespace from a set-up child. Fails if it is the launcher's own: then none was made.
Status TakeNamespace(int fd, const char* name, Namespace& into);

// What the commands of one agent session, or of one sandbox without a session, have in common
// beside the workspace: namespaces (so loopback and System V IPC) and, in a session, directories.
// Made when the first command needs it. Thread-safe.
class Machine {
 public:
  // Makes what is wanted, or finds it made with the same wants.
  Status Ensure(const NamespaceSpec& wanted);
  // In the order in which to enter them; one that is wanted and was not made has no descriptor.
  std::vector<NamespaceEntry> Entries(const NamespaceSpec& wanted) const;
  int user_fd() const;
  int network_fd() const;
  // Lists the sockets of the network namespace; nullptr: there is none, or it cannot list them.
  std::shared_ptr<DiagSocket> sockets() const;

  // The directories of the session, new ones if the last were given up. The parents count when they
  // are made.
  Result<std::shared_ptr<SessionDirectories>> Directories(const std::string& temporary_parent,
                                                          const std::string& memory_parent);
  // A confinement uses it, until it leaves. When the last one has left, the session is over: the
  // directories go as soon as no command runs in them.
  void Join();
  void Leave();

 private:
  mutable std::mutex mutex_;  // guards what follows
  int users_ = 0;
  std::shared_ptr<SessionDirectories> directories_;
  bool ready_ = false;
  Namespace user_, network_, ipc_;
  std::shared_ptr<DiagSocket> sockets_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_MACHINE_H_
