#include "steps/redirects.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "sys/open_beneath.h"

namespace sandbox_run {
namespace {

constexpr char kNull[] = "/dev/null";
constexpr mode_t kNewFile = 0666;
// A pipe holds this much whatever the host is set to.
constexpr size_t kPipeHolds = 4096;

// What is behind the root and its slash; nullptr for what is not beneath it.
const char* BehindRoot(const Place& place, const char* text) {
  const size_t length = std::strlen(place.root_path);
  if (std::strncmp(text, place.root_path, length) != 0) return nullptr;
  if (text[length] == '\0') return ".";
  if (text[length] != '/') return nullptr;
  text += length;
  while (*text == '/') ++text;
  return *text == '\0' ? "." : text;
}

int FlagsOf(RedirectKind kind) {
  // Not O_TRUNC: what is opened is looked at first. Not blocking: a FIFO would wait for its other
  // end.
  constexpr int kAlways = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  switch (kind) {
    case RedirectKind::kWrite:
      return O_WRONLY | O_CREAT | kAlways;
    case RedirectKind::kAppend:
      return O_WRONLY | O_CREAT | O_APPEND | kAlways;
    case RedirectKind::kUpdate:
      return O_RDWR | O_CREAT | kAlways;
    default:
      return O_RDONLY | kAlways;
  }
}

bool WriteAll(int fd, const char* text, size_t length) {
  while (length > 0) {
    const ssize_t written = write(fd, text, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text += written;
    length -= static_cast<size_t>(written);
  }
  return true;
}

// A descriptor to read the text from, or a negative errno.
int OpenText(const char* text) {
  const size_t length = std::strlen(text);
  const int file = memfd_create("text", MFD_CLOEXEC);
  if (file >= 0) {
    if (WriteAll(file, text, length) && lseek(file, 0, SEEK_SET) == 0) return OutOfTheWay(file);
    const int error = errno;
    close(file);
    return -error;
  }
  if (length > kPipeHolds) return -errno;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
  const bool written = WriteAll(ends[1], text, length);
  const int error = errno;
  close(ends[1]);
  if (written) return OutOfTheWay(ends[0]);
  close(ends[0]);
  return -error;
}

OpenedRedirect Failed(const Redirect& redirect, int error, const char* why = nullptr) {
  return {redirect, -1, error, why};
}

OpenedRedirect OpenFile(const Place& place, const Redirect& redirect) {
  const int flags = FlagsOf(redirect.kind);
  if (std::strcmp(redirect.value, kNull) == 0) {
    const int fd = open(kNull, flags & ~(O_CREAT | O_APPEND | O_NONBLOCK));
    if (fd < 0) return Failed(redirect, errno);
    const int opened = OutOfTheWay(fd);
    return opened < 0 ? Failed(redirect, -opened) : OpenedRedirect{redirect, opened, 0, nullptr};
  }
  char path[8192];
  if (!PathFromRoot(place, redirect.value, path)) return Failed(redirect, ENAMETOOLONG);
  const int found = OpenBeneath(place.root, path, flags, kNewFile);
  if (found == -ELOOP) {
    return Failed(redirect, ELOOP,
                  "is a symbolic link or lies behind one, which redirects do not follow");
  }
  if (found == -EXDEV) return Failed(redirect, EXDEV, "leads out of the workspace");
  // A FIFO without a reader.
  if (found == -ENXIO) return Failed(redirect, ENXIO, "is no regular file");
  if (found < 0) return Failed(redirect, -found);
  const int fd = OutOfTheWay(found);
  if (fd < 0) return Failed(redirect, -fd);
  struct stat info = {};
  int error = fstat(fd, &info) == 0 ? 0 : errno;
  const char* why = nullptr;
  if (error == 0 && S_ISDIR(info.st_mode)) {
    error = EISDIR;
  } else if (error == 0 && !S_ISREG(info.st_mode)) {
    error = ENXIO;
    why = "is no regular file";
  } else if (error == 0 && redirect.kind == RedirectKind::kWrite && ftruncate(fd, 0) != 0) {
    error = errno;
  } else if (error == 0 && fcntl(fd, F_SETFL, (flags & O_APPEND)) != 0) {
    error = errno;
  }
  if (error == 0) return {redirect, fd, 0, nullptr};
  close(fd);
  return Failed(redirect, error, why);
}

}  // namespace

bool IsOutside(const Place& place, const char* text) {
  return text[0] == '/' && std::strcmp(text, kNull) != 0 && BehindRoot(place, text) == nullptr;
}

bool PathFromRoot(const Place& place, const char* text, char (&path)[8192]) {
  const char* directory = place.directory;
  if (text[0] == '/') {
    directory = "";
    text = BehindRoot(place, text);
    if (text == nullptr) return false;
  }
  const size_t before = std::strlen(directory);
  const size_t length = std::strlen(text);
  const size_t slash = before == 0 ? 0 : 1;
  if (before + slash + length >= sizeof path) return false;
  std::memcpy(path, directory, before);
  if (slash != 0) path[before] = '/';
  std::memcpy(path + before + slash, text, length + 1);
  return true;
}

int OutOfTheWay(int fd) {
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(kMaxRedirected) + 1);
  const int error = errno;
  close(fd);
  return moved < 0 ? -error : moved;
}

OpenedRedirect OpenRedirect(const Place& place, const Redirect& redirect) {
  switch (redirect.kind) {
    case RedirectKind::kCopy:
    case RedirectKind::kClose:
      return {redirect, -1, 0, nullptr};
    case RedirectKind::kText: {
      const int fd = OpenText(redirect.value);
      return fd < 0 ? Failed(redirect, -fd) : OpenedRedirect{redirect, fd, 0, nullptr};
    }
    default:
      return OpenFile(place, redirect);
  }
}

bool ApplyRedirects(const OpenedRedirect* redirects, size_t count) {
  for (size_t index = 0; index < count; ++index) {
    const OpenedRedirect& opened = redirects[index];
    const Redirect& redirect = opened.redirect;
    const bool copies = redirect.kind == RedirectKind::kCopy;
    int error = opened.error;
    if (error == 0 && redirect.kind == RedirectKind::kClose) {
      close(redirect.fd);
      continue;
    }
    if (error == 0) {
      const int from = copies ? redirect.from : opened.opened;
      // To copy a descriptor onto itself leaves it open, unless it was not.
      if ((from == redirect.fd ? fcntl(from, F_GETFD) : dup2(from, redirect.fd)) >= 0) continue;
      error = errno;
    }
    const char number[] = {static_cast<char>('0' + (copies ? redirect.from : 0)), '\0'};
    Complain(copies                                 ? number
             : redirect.kind == RedirectKind::kText ? "here-document"
                                                    : redirect.value,
             opened.why != nullptr ? opened.why : std::strerror(error));
    return false;
  }
  return true;
}

void Complain(const char* name, const char* why) {
  const auto piece = [](const char* text) {
    return iovec{const_cast<char*>(text), std::strlen(text)};
  };
  const iovec pieces[] = {piece("sandbox-run-steps: "), piece(name), piece(": "), piece(why),
                          piece("\n")};
  // Nowhere to say that it could not be said.
  (void)!writev(STDERR_FILENO, pieces, sizeof pieces / sizeof pieces[0]);
}

}  // namespace sandbox_run
