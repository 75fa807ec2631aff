// Moves against a supervisor that lets some connections through: what is allowed is turned to what
// is not, and what is not allowed is asked for in ways that a supervisor may not see. `TARGET` is
// the port that is not to be reached, `LISTED` one that may be.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attack/attack.h"

namespace sandbox_run {
namespace {

// Long enough for both threads to get a turn on a machine that is busy.
constexpr int64_t kRaceMs = 500;
constexpr size_t kStack = 64 * 1024;

sockaddr_in Loopback(const char* port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(atoi(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return to;
}

int Tcp() { return socket(AF_INET, SOCK_STREAM, 0); }
int Udp() { return socket(AF_INET, SOCK_DGRAM, 0); }

long ConnectTo(int fd, const sockaddr_in& to) {
  return connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

long Say(int fd, const char* word) { return send(fd, word, strlen(word), MSG_NOSIGNAL); }

long SayTo(int fd, const sockaddr_in& to, const char* word, int flags) {
  iovec piece = {const_cast<char*>(word), strlen(word)};
  msghdr message = {};
  message.msg_name = const_cast<sockaddr_in*>(&to);
  message.msg_namelen = sizeof to;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return sendmsg(fd, &message, flags | MSG_NOSIGNAL);
}

bool LeadsTo(int fd, const sockaddr_in& to) {
  sockaddr_in peer = {};
  socklen_t size = sizeof peer;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         peer.sin_port == to.sin_port;
}

int64_t NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Runs `spin` in a second thread until this process ends. Of libc it may use what keeps nothing.
bool Spin(int (*spin)(void*)) {
  void* stack =
      mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return false;
  return clone(spin, static_cast<char*>(stack) + kStack,
               CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
               nullptr) > 0;
}

long FastOpenMessage(char** a) { return SayTo(Tcp(), Loopback(a[0]), a[1], MSG_FASTOPEN); }

// Connects at the first word.
long FastOpenOption(char** a) {
  const int fd = Tcp(), on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) < 0) return -1;
  return ConnectTo(fd, Loopback(a[0])) < 0 ? -1 : Say(fd, a[1]);
}

long UdpConnected(char** a) {
  const int fd = Udp();
  return ConnectTo(fd, Loopback(a[0])) < 0 ? -1 : Say(fd, a[1]);
}

long UdpMessage(char** a) { return SayTo(Udp(), Loopback(a[0]), a[1], 0); }

// A connection to what is listed, dissolved and made anew.
long TurnRound(char** a) {
  const int fd = Tcp();
  if (ConnectTo(fd, Loopback(a[1])) < 0) return -1;
  const sockaddr nowhere = {AF_UNSPEC, {}};
  connect(fd, &nowhere, sizeof nowhere);
  return ConnectTo(fd, Loopback(a[0])) < 0 ? -1 : Say(fd, a[2]);
}

// A socket that another process connects.
long PassSocket(char** a) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) return -1;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  char byte = 'x';
  iovec piece = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    // Its own copy would keep it waiting for what never comes.
    close(pair[0]);
    int got = -1;
    if (recvmsg(pair[1], &message, 0) != 1 || message.msg_controllen == 0) _exit(EPROTO);
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof got);
    _exit(ConnectTo(got, Loopback(a[0])) < 0 || Say(got, a[1]) < 0 ? errno : 0);
  }
  const int fd = Tcp();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(head), &fd, sizeof fd);
  if (fd < 0 || sendmsg(pair[0], &message, 0) != 1) close(pair[0]);
  close(fd);
  close(pair[1]);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
  return errno == 0 ? 0 : -1;
}

sockaddr_in good, bad, seen;
int FlipAddress(void*) {
  for (;;) {
    *const_cast<volatile uint16_t*>(&seen.sin_port) = bad.sin_port;
    for (volatile int wait = 0; wait < 300;) wait = wait + 1;
    *const_cast<volatile uint16_t*>(&seen.sin_port) = good.sin_port;
    for (volatile int wait = 0; wait < 300;) wait = wait + 1;
  }
}
// What is named changes between the look and the act.
long FlipWhileConnecting(char** a) {
  bad = Loopback(a[0]);
  seen = good = Loopback(a[1]);
  if (!Spin(FlipAddress)) return -1;
  for (const int64_t end = NowMs() + kRaceMs; NowMs() < end;) {
    const int fd = Tcp();
    if (ConnectTo(fd, seen) == 0 && LeadsTo(fd, bad)) return Say(fd, a[2]);
    close(fd);
  }
  errno = ECONNREFUSED;
  return -1;
}

int shown[2], number;
int SwapDescriptor(void*) {
  for (;;) {
    syscall(SYS_dup3, shown[0], number, 0);
    syscall(SYS_dup3, shown[1], number, 0);
  }
}
// Which socket a number stands for changes: a fresh one, and one that may be used as it likes.
long SwapWhileConnecting(char** a) {
  bad = Loopback(a[0]);
  good = Loopback(a[1]);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) return -1;
  shown[0] = pair[0];
  shown[1] = Tcp();
  number = dup(shown[1]);
  if (number < 0 || !Spin(SwapDescriptor)) return -1;
  const int64_t end = NowMs() + kRaceMs;
  for (int round = 0; NowMs() < end; ++round) {
    ConnectTo(number, round % 2 == 0 ? good : bad);
    if (LeadsTo(shown[1], bad)) return Say(shown[1], a[2]);
    const int fresh = Tcp();
    if (fresh < 0) continue;
    dup2(fresh, shown[1]);
    // Also where the other thread does not get a turn for a while.
    dup2(fresh, number);
    close(fresh);
  }
  errno = ECONNREFUSED;
  return -1;
}
// The same while a datagram is sent: one that looks at the pair lets the call go on.
long SwapWhileSending(char** a) {
  bad = Loopback(a[0]);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0) return -1;
  shown[0] = pair[0];
  shown[1] = Udp();
  number = dup(shown[0]);
  if (number < 0 || !Spin(SwapDescriptor)) return -1;
  char drain[128];
  long sent = -1;
  for (const int64_t end = NowMs() + kRaceMs; NowMs() < end;) {
    if (SayTo(number, bad, a[1], MSG_DONTWAIT) > 0) sent = 0;
    while (recv(pair[1], drain, sizeof drain, MSG_DONTWAIT) > 0) {
    }
  }
  return sent;
}

// Opens the memory of a process, to change its answers.
long OpenMemory(char** a) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", atoi(a[0]));
  return open(path, O_RDWR | O_CLOEXEC);
}

#if defined(__x86_64__)
long OldCall(int number, long first, long second, long third) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(first), "c"(second), "d"(third)
                   : "memory", "r8", "r9", "r10", "r11");
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}
// By the numbers of 32-bit programs, which take addresses of 32 bits.
long OldTable(char** a) {
  constexpr int kSocket = 359, kConnect = 362;
  void* room =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (room == MAP_FAILED) return -1;
  const sockaddr_in to = Loopback(a[0]);
  memcpy(room, &to, sizeof to);
  const long fd = OldCall(kSocket, AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || OldCall(kConnect, fd, reinterpret_cast<long>(room), sizeof to) < 0) return -1;
  return Say(static_cast<int>(fd), a[1]);
}
long OtherTable(char** a) {
  constexpr long kBit = 0x40000000;
  const sockaddr_in to = Loopback(a[0]);
  const long fd = syscall(kBit | SYS_socket, AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || syscall(kBit | SYS_connect, fd, &to, sizeof to) < 0) return -1;
  return Say(static_cast<int>(fd), a[1]);
}
#endif

}  // namespace

const Attack kRedirectionAttacks[] = {
    {"fast-open-message", 2, FastOpenMessage},
    {"fast-open-option", 2, FastOpenOption},
    {"udp-connected", 2, UdpConnected},
    {"udp-message", 2, UdpMessage},
    {"turn-round", 3, TurnRound},
    {"pass-socket", 2, PassSocket},
    {"flip-while-connecting", 3, FlipWhileConnecting},
    {"swap-while-connecting", 3, SwapWhileConnecting},
    {"swap-while-sending", 2, SwapWhileSending},
    {"open-memory", 1, OpenMemory},
#if defined(__x86_64__)
    {"connect-by-old-table", 2, OldTable},
    {"connect-by-other-table", 2, OtherTable},
#endif
    {nullptr, 0, nullptr},
};

}  // namespace sandbox_run
