// The process that is attacked, outside every sandbox: it has a secret, listens, and tells what
// reaches it. `bystander ABSTRACT PATH...`: prints `ready pid=N tcp=PORT listed=PORT udp=PORT shm=N
// address=HEX`, then `got WORD` for each word that arrives (`let WORD` at the port of what is
// listed, where it may) and `got signal-N`; answers `synced` to each line on its standard input,
// with whose end it ends.
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

// The sockets on which it listens, then accepted ones, from which it reads.
constexpr int kRoom = 128;
pollfd sockets[kRoom];
bool listens[kRoom];
bool listed[kRoom];
int count = 0;

// The secret in memory, from the environment.
char secret[64];

void Add(int fd, bool listener, bool is_listed = false) {
  if (fd < 0) return;
  if (count == kRoom) {
    close(fd);
    return;
  }
  sockets[count] = {fd, POLLIN, 0};
  listed[count] = is_listed;
  listens[count++] = listener;
}

int Bound(int family, int type, const sockaddr* address, socklen_t size) {
  const int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (bind(fd, address, size) == 0 && (type == SOCK_DGRAM || listen(fd, SOMAXCONN) == 0)) return fd;
  close(fd);
  return -1;
}

int PortOf(int type, bool is_listed = false) {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = Bound(AF_INET, type, reinterpret_cast<sockaddr*>(&address), size);
  if (fd < 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) < 0) return 0;
  Add(fd, type == SOCK_STREAM, is_listed);
  return ntohs(address.sin_port);
}

void ListenOn(const char* name, const char* suffix, int type) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const int length = snprintf(address.sun_path, sizeof address.sun_path, "%s%s", name, suffix);
  if (length >= static_cast<int>(sizeof address.sun_path)) return;
  const bool abstract = name[0] == '@';
  if (abstract) address.sun_path[0] = 0;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                           static_cast<size_t>(length) + (abstract ? 0 : 1));
  Add(Bound(AF_UNIX, type, reinterpret_cast<sockaddr*>(&address), size), type == SOCK_STREAM);
}

void Hear(int at) {
  if (listens[at]) {
    Add(accept4(sockets[at].fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK), false, listed[at]);
    return;
  }
  char word[128];
  const ssize_t size = recv(sockets[at].fd, word, sizeof word - 1, MSG_DONTWAIT);
  if (size > 0) {
    word[size] = 0;
    printf("%s %s\n", listed[at] ? "let" : "got", word);
    return;
  }
  close(sockets[at].fd);
  --count;
  sockets[at] = sockets[count];
  listens[at] = listens[count];
  listed[at] = listed[count];
}

// The secret in memory that can be attached by its number; it goes with this process.
int Share() {
  const int number = shmget(IPC_PRIVATE, sizeof secret, IPC_CREAT | 0600);
  void* at = number < 0 ? nullptr : shmat(number, nullptr, 0);
  if (number >= 0) shmctl(number, IPC_RMID, nullptr);
  if (at == nullptr || at == reinterpret_cast<void*>(-1)) return -1;
  memcpy(at, secret, sizeof secret);
  return number;
}

}  // namespace

int RunBystander(char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Yama would otherwise stand in for the sandbox.
  prctl(PR_SET_PTRACER, -1L, 0, 0, 0);
  sigset_t signals;
  sigemptyset(&signals);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  sockets[0] = {0, POLLIN, 0};
  sockets[1] = {signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, 0};
  count = 2;
  if (const char* value = getenv("SANDBOX_RUN_BYSTANDER"))
    strncpy(secret, value, sizeof secret - 1);
  const int tcp = PortOf(SOCK_STREAM);
  const int may = PortOf(SOCK_STREAM, true);
  const int udp = PortOf(SOCK_DGRAM);
  for (char** name = arguments; *name != nullptr; ++name) {
    ListenOn(*name, "", SOCK_STREAM);
    ListenOn(*name, ".datagram", SOCK_DGRAM);
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  printf("ready pid=%d tcp=%d listed=%d udp=%d shm=%d address=%p\n", getpid(), tcp, may, udp,
         Share(), static_cast<void*>(secret));
  for (;;) {
    poll(sockets, static_cast<nfds_t>(count), -1);
    bool heard = false;
    signalfd_siginfo signal;
    while (read(sockets[1].fd, &signal, sizeof signal) == sizeof signal) {
      printf("got signal-%u\n", signal.ssi_signo);
      heard = true;
    }
    for (int at = count - 1; at > 1; --at) {
      if ((sockets[at].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      Hear(at);
      heard = true;
    }
    // Answers a sync request only after everything that had arrived is reported.
    if (heard || sockets[0].revents == 0) continue;
    char line[16];
    if (read(0, line, sizeof line) <= 0) return 0;
    puts("synced");
  }
}

}  // namespace sandbox_run
