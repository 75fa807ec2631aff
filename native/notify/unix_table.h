#ifndef SANDBOX_RUN_NOTIFY_UNIX_TABLE_H_
#define SANDBOX_RUN_NOTIFY_UNIX_TABLE_H_

#include <sys/stat.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "notify/endpoint.h"

namespace sandbox_run {

// A socket of the host that is listed.
struct UnixRow {
  std::string path;   // canonical
  std::string named;  // as programs name it, which may lead through symbolic links
  std::string rule;   // what is told of it
};

// Stage of a failure: what stands at a listed path is not the socket that it was.
inline constexpr char kListedSocketStage[] = "network.socket";

// The address of a path, which must fit into one (108 bytes).
SocketAddress AddressOfPath(const char* path);
// An address that leads to the object of an O_PATH descriptor of this process, whatever its name.
SocketAddress AddressOfObject(int object);
// Whether a socket is bound there. Its owner does not notice: nothing is sent to it.
bool IsBound(const SocketAddress& address);

// The unix sockets of the host that the commands of one sandbox may connect to. Each is known by
// its object, whatever stands at its path later.
class UnixTable {
 public:
  struct Listed {
    UnixRow row;
    UniqueFd object;
    std::pair<dev_t, ino_t> id;
  };

  // Keeps hold of what is listed.
  static Result<UnixTable> Open(std::vector<UnixRow> rows);

  const Listed* Find(const struct stat& object) const;
  const Listed* FindByName(const std::string& path) const;

 private:
  std::vector<Listed> listed_;
};

// The unix sockets that commands bound themselves, for each other. They are bound where nobody
// finds them by a name; the object that a command made, or the abstract name that it wanted, only
// says which is meant. So it does not matter what stands behind that object: nothing but such a
// socket is ever connected to for it. Not thread-safe but for what its owner guards.
class OwnUnixSockets {
 public:
  // `private_parent`: where private directories are made.
  explicit OwnUnixSockets(std::string private_parent)
      : private_parent_(std::move(private_parent)) {}

  // The object that leads to a socket; -1: there is none.
  int Find(const struct stat& object) const;
  int Find(const std::string& abstract_name) const;

  // Binds a socket where nobody finds it. Gives the object that leads to it. 0 or the errno.
  int Hide(int socket, UniqueFd& object) const;
  // Takes the place of what was known by the same object or name. 0 or the errno.
  int Add(const struct stat& object, UniqueFd own);
  int Add(const std::string& abstract_name, UniqueFd own);
  // Forgets those that are closed.
  void Sweep();

 private:
  int MakeRoom();

  std::string private_parent_;
  std::map<std::pair<dev_t, ino_t>, UniqueFd> by_object_;
  std::map<std::string, UniqueFd> by_abstract_name_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_UNIX_TABLE_H_
