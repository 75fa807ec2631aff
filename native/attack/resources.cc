// Moves that use more than the limits that doctor sets for them. Each stops by itself after so many
// milliseconds, and is small enough to do no harm where nothing stops it.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

void Wait(const char* milliseconds) { usleep(static_cast<useconds_t>(atoi(milliseconds)) * 1000); }

// Processes that sleep, COUNT of them for MILLISECONDS, each in a session of its own.
long Processes(char** a) {
  const int wanted = atoi(a[0]);
  pid_t children[1024];
  int made = 0;
  for (; made < wanted && made < 1024; ++made) {
    children[made] = fork();
    if (children[made] < 0) break;
    if (children[made] > 0) continue;
    setsid();
    alarm(5);
    for (;;) pause();
  }
  const int error = errno;
  if (made == wanted) Wait(a[1]);
  for (int at = 0; at < made; ++at) kill(children[at], SIGKILL);
  while (wait(nullptr) > 0) {
  }
  errno = error;
  return made == wanted ? 0 : -1;
}

// MEGABYTES that are written to, kept for MILLISECONDS.
long Memory(char** a) {
  const size_t size = static_cast<size_t>(atoi(a[0])) << 20;
  void* room = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return -1;
  memset(room, 1, size);
  Wait(a[1]);
  return 0;
}

// MEGABYTES in a file in TMPDIR, kept for MILLISECONDS.
long Files(char** a) {
  const char* directory = getenv("TMPDIR");
  char path[4096];
  snprintf(path, sizeof path, "%s/sandbox-run-doctor-%d", directory == nullptr ? "/tmp" : directory,
           getpid());
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0) return -1;
  static char block[1 << 20];
  memset(block, 1, sizeof block);
  bool written = true;
  for (int left = atoi(a[0]); written && left > 0; --left) {
    written = write(fd, block, sizeof block) == static_cast<ssize_t>(sizeof block);
  }
  const int error = errno;
  if (written) Wait(a[1]);
  unlink(path);
  errno = error;
  return written ? 0 : -1;
}

}  // namespace

const Attack kResourceAttacks[] = {
    {"processes", 2, Processes},
    {"memory", 2, Memory},
    {"files", 2, Files},
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
