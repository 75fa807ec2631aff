#include "notify/unix_table.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sys/files.h"

namespace sandbox_run {
namespace {

// Each holds a descriptor of this process.
constexpr size_t kMostOwn = 128;
// As the directories of slots, so that one is swept away that a killed launcher left.
constexpr char kDirectoryPrefix[] = "sandbox-run-slot-";
constexpr char kName[] = "s";

std::pair<dev_t, ino_t> IdOf(const struct stat& object) { return {object.st_dev, object.st_ino}; }

}  // namespace

SocketAddress AddressOfPath(const char* path) {
  sockaddr_un named = {};
  named.sun_family = AF_UNIX;
  strncpy(named.sun_path, path, sizeof(named.sun_path) - 1);
  SocketAddress made;
  memcpy(&made.storage, &named, sizeof(named));
  made.length = sizeof(named);
  return made;
}

SocketAddress AddressOfObject(int object) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", object);
  return AddressOfPath(path);
}

bool IsBound(const SocketAddress& address) {
  const UniqueFd asking(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!asking.valid()) return true;
  // EPROTOTYPE: to one of another type.
  return connect(asking.get(), address.get(), address.length) == 0 ||
         (errno != ECONNREFUSED && errno != ENOENT && errno != ENOTDIR);
}

Result<UnixTable> UnixTable::Open(std::vector<UnixRow> rows) {
  UnixTable table;
  for (UnixRow& row : rows) {
    // A symbolic link is followed nowhere: that was done, and looked at, before.
    Result<UniqueFd> object = OpenPath(row.path, kListedSocketStage);
    if (!object.ok()) return object.failure();
    struct stat info;
    if (fstat(object.value().get(), &info) != 0)
      return Failure{kListedSocketStage, errno, row.path};
    if (!S_ISSOCK(info.st_mode)) return Failure{kListedSocketStage, ENOTSOCK, row.path};
    table.listed_.push_back({std::move(row), std::move(object.value()), IdOf(info)});
  }
  return table;
}

const UnixTable::Listed* UnixTable::Find(const struct stat& object) const {
  const auto found = std::find_if(listed_.begin(), listed_.end(),
                                  [&](const Listed& listed) { return listed.id == IdOf(object); });
  return found == listed_.end() ? nullptr : &*found;
}

const UnixTable::Listed* UnixTable::FindByName(const std::string& path) const {
  const auto found = std::find_if(listed_.begin(), listed_.end(), [&](const Listed& listed) {
    return listed.row.named == path || listed.row.path == path;
  });
  return found == listed_.end() ? nullptr : &*found;
}

int OwnUnixSockets::Find(const struct stat& object) const {
  const auto found = by_object_.find(IdOf(object));
  return found == by_object_.end() ? -1 : found->second.get();
}

int OwnUnixSockets::Find(const std::string& abstract_name) const {
  const auto found = by_abstract_name_.find(abstract_name);
  return found == by_abstract_name_.end() ? -1 : found->second.get();
}

int OwnUnixSockets::Hide(int socket, UniqueFd& object) const {
  std::string path;
  // Locked: other launchers remove what nobody holds.
  const Result<UniqueFd> made = MakeLockedDirectory(private_parent_, kDirectoryPrefix, path);
  if (!made.ok()) return made.failure().error;
  const UniqueFd& directory = made.value();
  char by_descriptor[64];
  snprintf(by_descriptor, sizeof(by_descriptor), "/proc/self/fd/%d/%s", directory.get(), kName);
  const SocketAddress address = AddressOfPath(by_descriptor);
  int error = bind(socket, address.get(), address.length) == 0 ? 0 : errno;
  if (error == 0) {
    object.reset(openat(directory.get(), kName, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!object.valid()) error = errno;
    // From now on only the object leads to it.
    if (unlinkat(directory.get(), kName, 0) != 0) error = errno;
  }
  if (rmdir(path.c_str()) != 0 && error == 0) error = errno;
  return error;
}

int OwnUnixSockets::MakeRoom() {
  if (by_object_.size() + by_abstract_name_.size() >= kMostOwn) Sweep();
  return by_object_.size() + by_abstract_name_.size() < kMostOwn ? 0 : EMFILE;
}

int OwnUnixSockets::Add(const struct stat& object, UniqueFd own) {
  if (const int error = MakeRoom()) return error;
  by_object_[IdOf(object)] = std::move(own);
  return 0;
}

int OwnUnixSockets::Add(const std::string& abstract_name, UniqueFd own) {
  if (const int error = MakeRoom()) return error;
  by_abstract_name_[abstract_name] = std::move(own);
  return 0;
}

void OwnUnixSockets::Sweep() {
  const auto is_closed = [](const auto& entry) {
    return !IsBound(AddressOfObject(entry.second.get()));
  };
  std::erase_if(by_object_, is_closed);
  std::erase_if(by_abstract_name_, is_closed);
}

}  // namespace sandbox_run
