#include "notify/network_supervisor.h"

#include <arpa/inet.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "check.h"
#include "core/listen.h"
#include "notify/listener.h"
#include "notify/network_filter.h"
#include "notify/target.h"

namespace sandbox_run {
namespace {

sockaddr_in At(const char* address, uint16_t port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  inet_pton(AF_INET, address, &to.sin_addr);
  return to;
}

const sockaddr* Of(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// A server on the loopback interface, and its port.
UniqueFd Serve(const char* address, uint16_t& port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at = At(address, 0);
  socklen_t size = sizeof(at);
  EXPECT_TRUE(bind(fd.get(), Of(at), size) == 0 && listen(fd.get(), 8) == 0);
  EXPECT_TRUE(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  port = ntohs(at.sin_port);
  return fd;
}

// What the body returns, from a process of a thread whose network is supervised.
int Supervised(std::vector<AddressRow> rows, std::function<int()> body, Connections* told) {
  int status = -1;
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    Result<std::shared_ptr<OwnNetwork>> own = OwnNetwork::Make("");
    EXPECT_TRUE(own.ok());
    std::vector<AddressRange> apart = {{LoopbackAddress(0, 0, 0), 104}};
    const bool looks_inside = std::any_of(rows.begin(), rows.end(), [](const AddressRow& row) {
      return row.inside != Inside::kAnything;
    });
    auto gate = std::make_shared<NetworkGate>(std::move(rows), std::move(apart),
                                              std::move(own.value()), looks_inside);
    auto supervisor = NetworkSupervisor::Start(gate);
    EXPECT_TRUE(supervisor.ok());
    std::vector<sock_filter> program = NetworkFilter();
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    Result<UniqueFd> listener = Listen(program);
    EXPECT_TRUE(listener.ok());
    EXPECT_TRUE(CanHandOver(listener.value().get()));
    supervisor.value()->Serve(std::move(listener.value()), nullptr);
    std::vector<std::thread> answering;
    supervisor.value()->Begin(
        [&](uint32_t number, std::string message) {
          // Not from within: who tells of a question waits for nobody.
          answering.emplace_back([&, number, message = std::move(message)] {
            supervisor.value()->Answer(number, message + "!");
          });
        },
        nullptr,  // nobody is asked about what is not listed
        [&](uint32_t question, const std::string& host, uint16_t) {
          answering.emplace_back([&, question, host] {
            supervisor.value()->AnswerHost(question, host == "listed.test", "entry");
          });
        });
    const pid_t child = fork();
    if (child == 0) _exit(body());
    EXPECT_TRUE(waitpid(child, &status, 0) == child);
    supervisor.value()->End();
    if (told != nullptr) *told = supervisor.value()->Take();
    for (std::thread& one : answering) one.join();
  }).join();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<AddressRow> Allow(uint16_t port) {
  AddressRow row;
  row.range = {LoopbackAddress(0, 0, 9), 128};
  row.first_port = row.last_port = port;
  row.allows = true;
  row.rule = "listed";
  return {row};
}

TEST(supervised_sockets_reach_what_is_listed_and_nothing_else) {
  uint16_t listed, other;
  const UniqueFd server = Serve("127.0.0.9", listed);
  const UniqueFd hidden = Serve("127.0.0.1", other);
  Connections told;
  const int result = Supervised(
      Allow(listed),
      [&] {
        const sockaddr_in good = At("127.0.0.9", listed), bad = At("127.0.0.1", other);
        if (connect(socket(AF_INET, SOCK_STREAM, 0), Of(bad), sizeof(bad)) == 0) return 1;
        if (errno != ECONNREFUSED) return 2;
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, Of(good), sizeof(good)) != 0) return 3;
        if (connect(fd, Of(bad), sizeof(bad)) == 0 || errno != EISCONN) return 4;
        // Bound first: another socket takes its place.
        const int bound = socket(AF_INET, SOCK_STREAM, 0);
        const sockaddr_in any = At("0.0.0.0", 0);
        if (bind(bound, Of(any), sizeof(any)) != 0) return 5;
        if (connect(bound, Of(bad), sizeof(bad)) == 0) return 6;
        return 0;
      },
      &told);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(told.told.size(), size_t{2});
  EXPECT_TRUE(told.told[0].allowed == false && told.told[0].count == 2 &&
              told.told[0].rule.empty());
  EXPECT_TRUE(told.told[1].allowed && told.told[1].rule == "listed");
}

TEST(supervised_sockets_that_are_closed_unused_are_no_fewer_later) {
  const int result = Supervised(
      {},
      [&] {
        // Refused and closed, one after the other, faster than is looked what is still open.
        const sockaddr_in bad = At("127.0.0.1", 1);
        for (int i = 0; i < 600; ++i) {
          const int fd = socket(AF_INET, SOCK_STREAM, 0);
          if (fd < 0) return 1;
          if (connect(fd, Of(bad), sizeof(bad)) == 0 || errno != ECONNREFUSED) return 2;
          close(fd);
        }
        // So many at a time, and then no more.
        int open = 0;
        while (open < 400 && socket(AF_INET, SOCK_STREAM, 0) >= 0) ++open;
        return open >= 16 && open <= 256 && errno == EMFILE ? 0 : 3;
      },
      nullptr);
  EXPECT_EQ(result, 0);
}

TEST(what_stands_in_for_a_datagram_socket_asks_the_supervisor) {
  const int result = Supervised(
      {},
      [] {
        const int fd = socket(AF_INET, SOCK_DGRAM, 0);
        const sockaddr_in server = At("192.0.2.1", 53);
        sockaddr_in from = {};
        socklen_t size = sizeof(from);
        char answer[16];
        if (connect(fd, Of(server), sizeof(server)) != 0) return 1;
        if (send(fd, "name", 4, 0) != 4) return 2;
        if (recvfrom(fd, answer, sizeof(answer), 0, reinterpret_cast<sockaddr*>(&from), &size) != 5)
          return 3;
        // As if the server that was asked had answered.
        return from.sin_addr.s_addr == server.sin_addr.s_addr && answer[4] == '!' ? 0 : 4;
      },
      nullptr);
  EXPECT_EQ(result, 0);
}

TEST(datagrams_go_where_an_entry_says_so_and_answers_come_from_there) {
  const UniqueFd server(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd hidden(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in good = At("127.0.0.9", 0), bad = At("127.0.0.1", 0);
  for (const auto& [fd, at] : {std::pair(server.get(), &good), std::pair(hidden.get(), &bad)}) {
    socklen_t size = sizeof(*at);
    ASSERT_TRUE(bind(fd, Of(*at), size) == 0 &&
                getsockname(fd, reinterpret_cast<sockaddr*>(at), &size) == 0);
  }
  const timeval patience = {20, 0};
  EXPECT_EQ(setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  std::thread serving([&] {
    for (int turn = 0; turn < 3; ++turn) {
      char bytes[16];
      sockaddr_in from = {};
      socklen_t size = sizeof(from);
      const ssize_t got = recvfrom(server.get(), bytes, sizeof(bytes), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
      EXPECT_EQ(got, 4);
      EXPECT_EQ(sendto(server.get(), bytes, 4, 0, Of(from), size), 4);
    }
  });
  std::vector<AddressRow> rows = Allow(ntohs(good.sin_port));
  rows[0].protocol = Protocol::kUdp;
  Connections told;
  const int result = Supervised(
      rows,
      [&] {
        const int fd = socket(AF_INET, SOCK_DGRAM, 0);
        char bytes[16];
        sockaddr_in from = {};
        socklen_t size = sizeof(from);
        if (sendto(fd, "none", 4, 0, Of(bad), sizeof(bad)) == 4 || errno != ECONNREFUSED) return 1;
        if (sendto(fd, "free", 4, 0, Of(good), sizeof(good)) != 4) return 2;
        // It waits for it.
        if (recvfrom(fd, bytes, sizeof(bytes), 0, reinterpret_cast<sockaddr*>(&from), &size) != 4)
          return 3;
        if (size != sizeof(from) || from.sin_port != good.sin_port ||
            from.sin_addr.s_addr != good.sin_addr.s_addr)
          return 4;
        if (connect(fd, Of(good), sizeof(good)) != 0 || send(fd, "held", 4, 0) != 4) return 5;
        if (recv(fd, bytes, sizeof(bytes), 0) != 4) return 6;
        iovec pieces[] = {{const_cast<char*>("pi"), 2}, {const_cast<char*>("ec"), 2}};
        msghdr message = {};
        message.msg_name = &good;
        message.msg_namelen = sizeof(good);
        message.msg_iov = pieces;
        message.msg_iovlen = 2;
        if (sendmsg(fd, &message, 0) != 4 || recv(fd, bytes, sizeof(bytes), 0) != 4) return 7;
        // What cannot be read is as for the kernel.
        message.msg_iov = nullptr;
        if (sendmsg(fd, &message, 0) != -1) return 8;
        if (sendto(fd, bytes, 70000, 0, Of(good), sizeof(good)) != -1 || errno != EMSGSIZE)
          return 9;
        return sendto(fd, bytes, 4, 0, Of(good), 3) == -1 && errno == EINVAL ? 0 : 10;
      },
      &told);
  serving.join();
  EXPECT_EQ(result, 0);
  char byte;
  EXPECT_TRUE(recv(hidden.get(), &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  ASSERT_EQ(told.told.size(), size_t{2});
  EXPECT_TRUE(!told.told[0].allowed && told.told[0].is_udp);
  EXPECT_TRUE(told.told[1].allowed && told.told[1].is_udp && told.told[1].rule == "listed");
}

TEST(datagrams_between_programs_of_a_sandbox_stay_there) {
  const int result = Supervised(
      {},
      [&] {
        const int server = socket(AF_INET, SOCK_DGRAM, 0);
        sockaddr_in at = At("127.0.0.1", 0);
        socklen_t size = sizeof(at);
        if (bind(server, Of(at), size) != 0) return 1;
        if (getsockname(server, reinterpret_cast<sockaddr*>(&at), &size) != 0 || at.sin_port == 0)
          return 2;
        if (fork() == 0) {
          const int clients[] = {socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET, SOCK_DGRAM, 0)};
          char answer[2];
          for (const int fd : clients) {
            if (sendto(fd, fd == clients[0] ? "a" : "b", 1, 0, Of(at), sizeof(at)) != 1) _exit(1);
          }
          for (const int fd : clients) {
            if (recv(fd, answer, 2, 0) != 1 || answer[0] != (fd == clients[0] ? 'A' : 'B'))
              _exit(2);
          }
          _exit(0);
        }
        for (int turn = 0; turn < 2; ++turn) {
          char bytes[4];
          sockaddr_in from = {};
          size = sizeof(from);
          if (recvfrom(server, bytes, sizeof(bytes), 0, reinterpret_cast<sockaddr*>(&from),
                       &size) != 1)
            return 3;
          bytes[0] = static_cast<char>(bytes[0] - 'a' + 'A');
          if (sendto(server, bytes, 1, 0, Of(from), size) != 1) return 4;
        }
        int status;
        wait(&status);
        // A limit of waiting is kept.
        const timeval soon = {0, 50'000};
        sockaddr_in from = {};
        size = sizeof(from);
        char byte;
        if (setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)) != 0) return 5;
        if (recvfrom(server, &byte, 1, 0, reinterpret_cast<sockaddr*>(&from), &size) != -1 ||
            errno != EAGAIN)
          return 6;
        // A port that is closed is free.
        close(server);
        const int next = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(next, Of(at), sizeof(at)) != 0) return 7;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
      },
      nullptr);
  EXPECT_EQ(result, 0);
}

TEST(a_tcp_port_that_is_closed_is_free) {
  const int result = Supervised(
      {},
      [] {
        const int asking = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in at = At("127.0.0.1", 0);
        socklen_t size = sizeof(at);
        if (bind(asking, Of(at), sizeof(at)) != 0) return 1;
        if (getsockname(asking, reinterpret_cast<sockaddr*>(&at), &size) != 0 || at.sin_port == 0)
          return 2;
        const int other = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(other, Of(at), sizeof(at)) != -1 || errno != EADDRINUSE) return 3;
        // Who looks for a free port closes it before the server takes it.
        close(asking);
        if (bind(other, Of(at), sizeof(at)) != 0) return 4;
        return listen(other, 1) == 0 ? 0 : 5;
      },
      nullptr);
  EXPECT_EQ(result, 0);
}

TEST(which_sockets_are_open_is_not_known_without_a_descriptor_to_look) {
  const UniqueFd mine(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct stat info;
  ASSERT_TRUE(fstat(mine.get(), &info) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto open = OpenSockets();
    if (!open || !open->contains(info.st_ino)) _exit(1);
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(2);
    _exit(OpenSockets() ? 3 : 0);
  }
  int status = -1;
  EXPECT_TRUE(waitpid(child, &status, 0) == child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

TEST(a_name_server_by_tcp_is_the_supervisor) {
  const int result = Supervised(
      {},
      [] {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        const sockaddr_in server = At("192.0.2.1", 53);
        char answer[16];
        if (connect(fd, Of(server), sizeof(server)) != 0) return 1;
        if (send(fd, "\0\4name", 6, MSG_NOSIGNAL) != 6) return 2;
        if (recv(fd, answer, 7, MSG_WAITALL) != 7) return 3;
        return memcmp(answer, "\0\5name!", 7) == 0 ? 0 : 4;
      },
      nullptr);
  EXPECT_EQ(result, 0);
}

TEST(a_connection_that_is_carried_passes_once_it_names_a_host_that_is_listed) {
  uint16_t port;
  const UniqueFd server = Serve("127.0.0.9", port);
  // If nobody comes, the test fails and does not wait for ever.
  const timeval patience = {20, 0};
  EXPECT_EQ(setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  std::thread serving([&] {
    for (int turn = 0; turn < 2; ++turn) {
      const UniqueFd one(accept(server.get(), nullptr, nullptr));
      char bytes[256];
      const ssize_t got = recv(one.get(), bytes, sizeof(bytes), 0);
      // The second one is reset, and nothing of it arrives.
      EXPECT_TRUE(turn == 0 ? got > 0 : got <= 0);
      if (turn == 0) EXPECT_EQ(send(one.get(), "answer", 6, MSG_NOSIGNAL), 6);
    }
  });
  std::vector<AddressRow> rows = Allow(port);
  rows[0].inside = Inside::kHttp;
  Connections told;
  const int result = Supervised(
      rows,
      [&] {
        const sockaddr_in to = At("127.0.0.9", port);
        sockaddr_in peer = {};
        socklen_t size = sizeof(peer);
        char bytes[16];
        const int good = socket(AF_INET, SOCK_STREAM, 0), bad = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(good, Of(to), sizeof(to)) != 0) return 1;
        if (getpeername(good, reinterpret_cast<sockaddr*>(&peer), &size) != 0 ||
            peer.sin_addr.s_addr != to.sin_addr.s_addr || peer.sin_port != to.sin_port)
          return 2;
        const std::string request = "GET / HTTP/1.1\r\nHost: listed.test\r\n\r\n";
        for (const char& byte : request) {
          if (send(good, &byte, 1, MSG_NOSIGNAL) != 1) return 3;
        }
        if (recv(good, bytes, sizeof(bytes), MSG_WAITALL) != 6) return 4;
        if (connect(bad, Of(to), sizeof(to)) != 0) return 5;
        const std::string other = "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n";
        if (send(bad, other.data(), other.size(), MSG_NOSIGNAL) < 0) return 6;
        return recv(bad, bytes, sizeof(bytes), 0) == -1 && errno == ECONNRESET ? 0 : 7;
      },
      &told);
  serving.join();
  EXPECT_EQ(result, 0);
  ASSERT_EQ(told.told.size(), size_t{2});
  EXPECT_TRUE(told.told[0].allowed && told.told[0].name == "listed.test");
  EXPECT_TRUE(!told.told[1].allowed && told.told[1].name == "other.test" &&
              told.told[1].error == ECONNRESET);
}

}  // namespace
}  // namespace sandbox_run
