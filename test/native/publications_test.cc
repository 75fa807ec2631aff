// Published ports: who holds which, and the relay that carries their connections, with the
// sanitizers in it where these tests are built with them.

#include "publish/publications.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::Eventually;

constexpr Address kHere = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};

sockaddr_in Here(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Sends back what it is sent, each connection in a thread of its own, until that has ended; then it
// ends, too. A connection that begins with R is broken off, one with W waits before it reads.
class Server {
 public:
  Server() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Here(0);
    socklen_t length = sizeof(address);
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener_.get(), 1000) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
      abort();
    port_ = ntohs(address.sin_port);
    accepts_ = std::thread([this] { Accept(); });
  }
  ~Server() {
    shutdown(listener_.get(), SHUT_RDWR);
    accepts_.join();
    for (std::thread& one : serves_) one.join();
  }
  uint16_t port() const { return port_; }

 private:
  void Accept() {
    for (;;) {
      UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.valid()) return;
      serves_.emplace_back([held = std::move(connection)] { Serve(held.get()); });
    }
  }
  static void Serve(int fd) {
    char first = 0;
    if (recv(fd, &first, 1, 0) != 1) return;
    if (first == 'R') {
      const linger at_once = {1, 0};
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      return;
    }
    if (first == 'W') usleep(50'000);
    std::vector<char> part(100'000);
    for (;;) {
      const ssize_t got = recv(fd, part.data(), part.size(), 0);
      if (got <= 0) return;
      for (ssize_t sent = 0; sent < got;) {
        const ssize_t some =
            send(fd, part.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
        if (some < 0) return;
        sent += some;
      }
    }
  }

  UniqueFd listener_;
  uint16_t port_ = 0;
  std::thread accepts_;
  std::vector<std::thread> serves_;
};

UniqueFd ConnectTo(uint16_t port) {
  UniqueFd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Here(port);
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return UniqueFd();
  return made;
}

std::string ReadAll(int fd) {
  std::string all;
  std::vector<char> part(70'000);
  for (;;) {
    const ssize_t got = recv(fd, part.data(), part.size(), 0);
    if (got < 0) return "errno " + std::to_string(errno);
    if (got == 0) return all;
    all.append(part.data(), static_cast<size_t>(got));
  }
}

// Sends `text`, closes that direction, and returns what the server sends back.
std::string Echo(uint16_t port, char kind, const std::string& text) {
  const UniqueFd connection = ConnectTo(port);
  if (!connection.valid()) return "errno " + std::to_string(errno);
  std::thread writes([&] {
    const std::string all = kind + text;
    for (size_t sent = 0; sent < all.size();) {
      const ssize_t some =
          send(connection.get(), all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
      if (some < 0) return;
      sent += static_cast<size_t>(some);
    }
    shutdown(connection.get(), SHUT_WR);
  });
  const std::string answer = ReadAll(connection.get());
  writes.join();
  return answer;
}

PublicationWish AnyPort(uint16_t inner) {
  PublicationWish wish;
  wish.inner = inner;
  return wish;
}

Result<HeldPublication> Hold(const PublicationWish& wish) {
  return Publications::OfProcess().Hold(nullptr, wish, {{kHere}, true});
}

// The relays of this process.
std::vector<pid_t> Relays() {
  std::vector<pid_t> found;
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return found;
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0) continue;
    const std::string status = test::ReadText("/proc/" + std::to_string(pid) + "/status");
    const std::string parent = "\nPPid:\t" + std::to_string(getpid()) + "\n";
    if (status.find("Name:\tsandbox-run-rel\n") == 0 && status.find(parent) != std::string::npos)
      found.push_back(pid);
  }
  closedir(processes);
  return found;
}

TEST(a_published_port_carries_short_and_long_texts_both_ways_and_their_ends) {
  const Server server;
  const Result<HeldPublication> held = Hold(AnyPort(server.port()));
  ASSERT_TRUE(held.ok());
  const uint16_t port = held.value().port;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{32'768}, size_t{32'769}, size_t{5'000'000}}) {
    std::string text(size, 'x');
    for (size_t at = 0; at < size; ++at) text[at] = static_cast<char>('a' + at * 31 % 23);
    EXPECT_TRUE(Echo(port, 'E', text) == text);
    EXPECT_TRUE(Echo(port, 'W', text) == text);
  }
  EXPECT_EQ(Echo(port, 'R', "x"), "errno " + std::to_string(ECONNRESET));
  EXPECT_TRUE(Publications::OfProcess().Release(held.value().id));
  EXPECT_TRUE(!ConnectTo(port).valid());
  EXPECT_TRUE(Eventually([] { return Relays().empty(); }));
}

TEST(many_connections_to_a_published_port_come_and_go_at_the_same_time) {
  const Server server;
  const Result<HeldPublication> held = Hold(AnyPort(server.port()));
  ASSERT_TRUE(held.ok());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 16; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < 8; ++round) {
        const std::string text(static_cast<size_t>(client * 7919 + round * 65'537), 'y');
        if (round % 4 == 3) {
          // Leaves without having read.
          const UniqueFd left = ConnectTo(held.value().port);
          if (send(left.get(), "Exxxx", 5, MSG_NOSIGNAL) != 5) ++wrong;
          const linger at_once = {1, 0};
          setsockopt(left.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        } else if (Echo(held.value().port, round % 2 == 0 ? 'E' : 'W', text) != text) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(Publications::OfProcess().Release(held.value().id));
  // The next test counts them.
  EXPECT_TRUE(Eventually([] { return Relays().empty(); }));
}

TEST(a_relay_without_descriptors_takes_connections_again_once_it_has_some) {
  const Server server;
  const Result<HeldPublication> held = Hold(AnyPort(server.port()));
  ASSERT_TRUE(held.ok());
  const uint16_t port = held.value().port;
  const std::vector<pid_t> relays = Relays();
  ASSERT_TRUE(relays.size() == 1);
  // This one keeps it busy.
  const UniqueFd busy = ConnectTo(port);
  ASSERT_TRUE(send(busy.get(), "E", 1, MSG_NOSIGNAL) == 1);
  const auto goes_on = [&] {
    char back = 0;
    return send(busy.get(), "b", 1, MSG_NOSIGNAL) == 1 && recv(busy.get(), &back, 1, 0) == 1 &&
           back == 'b';
  };
  EXPECT_TRUE(goes_on());
  rlimit before;
  const rlimit none = {0, 4096};
  ASSERT_TRUE(prlimit(relays[0], RLIMIT_NOFILE, nullptr, &before) == 0);
  ASSERT_TRUE(prlimit(relays[0], RLIMIT_NOFILE, &none, nullptr) == 0);
  const UniqueFd waits = ConnectTo(port);
  ASSERT_TRUE(waits.valid() && send(waits.get(), "Ew", 2, MSG_NOSIGNAL) == 2);
  pollfd answers = {waits.get(), POLLIN, 0};
  // Meanwhile the open connection is carried on, and the waiting one is not lost.
  for (int round = 0; round < 50; ++round) EXPECT_TRUE(goes_on());
  EXPECT_EQ(poll(&answers, 1, 0), 0);
  const rlimit enough = {4096, 4096};
  ASSERT_TRUE(prlimit(relays[0], RLIMIT_NOFILE, &enough, nullptr) == 0);
  // The relay accepts the waiting connection although the open one keeps it busy.
  EXPECT_TRUE(Eventually([&] { return goes_on() && poll(&answers, 1, 0) == 1; }));
  shutdown(waits.get(), SHUT_WR);
  EXPECT_EQ(ReadAll(waits.get()), "w");
  EXPECT_TRUE(Publications::OfProcess().Release(held.value().id));
  // The next test counts them.
  EXPECT_TRUE(Eventually([] { return Relays().empty(); }));
}

TEST(a_published_port_is_held_by_several_and_by_none_if_its_relay_was_ended) {
  const Server server;
  PublicationWish wish = AnyPort(server.port());
  const Result<HeldPublication> first = Hold(wish);
  ASSERT_TRUE(first.ok());
  const Result<HeldPublication> second = Hold(wish);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().port, first.value().port);
  EXPECT_EQ(Relays().size(), size_t{1});
  wish.port = first.value().port;
  const Result<HeldPublication> taken = Hold(wish);
  EXPECT_TRUE(!taken.ok() && taken.failure().error == EADDRINUSE);
  EXPECT_TRUE(Publications::OfProcess().Release(first.value().id));
  EXPECT_EQ(Echo(wish.port, 'E', "still"), "still");
  for (const pid_t relay : Relays()) kill(relay, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !ConnectTo(wish.port).valid(); }));
  EXPECT_TRUE(!Publications::OfProcess().Release(second.value().id));
  EXPECT_TRUE(Eventually([] { return Relays().empty(); }));
}

TEST(published_ports_are_held_and_released_by_several_threads) {
  const Server server;
  std::atomic<int> wrong = 0, busy = 4;
  std::vector<std::thread> holders;
  for (int holder = 0; holder < 4; ++holder) {
    holders.emplace_back([&, holder] {
      PublicationWish wish = AnyPort(server.port());
      // Two share one.
      if (holder >= 2) wish.addresses = {kHere};
      for (int round = 0; round < 5; ++round) {
        const Result<HeldPublication> held = Hold(wish);
        if (!held.ok() || Echo(held.value().port, 'E', "text") != "text") ++wrong;
        if (held.ok() && !Publications::OfProcess().Release(held.value().id)) ++wrong;
      }
      // A relay ends with the thread that started it.
      --busy;
      if (!Eventually([&] { return busy == 0; })) ++wrong;
    });
  }
  for (std::thread& holder : holders) holder.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(Eventually([] { return Relays().empty(); }));
}

TEST(a_published_unix_socket_goes_with_its_last_hold_and_replaces_a_stale_one) {
  const Server server;
  const test::TemporaryDirectory place;
  PublicationWish wish = AnyPort(server.port());
  wish.socket = place / "web.sock";
  for (int round = 0; round < 2; ++round) {
    const Result<HeldPublication> held = Hold(wish);
    ASSERT_TRUE(held.ok());
    const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, wish.socket.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_TRUE(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    EXPECT_EQ(send(client.get(), "Eover", 5, MSG_NOSIGNAL), ssize_t{5});
    shutdown(client.get(), SHUT_WR);
    EXPECT_EQ(ReadAll(client.get()), "over");
    EXPECT_TRUE(Publications::OfProcess().Release(held.value().id));
    EXPECT_TRUE(!test::Exists(wish.socket));
    // What a launcher left that was killed.
    const UniqueFd stale(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(bind(stale.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  test::WriteText(place / "file", "kept");
  wish.socket = place / "file";
  const Result<HeldPublication> refused = Hold(wish);
  EXPECT_TRUE(!refused.ok() && refused.failure().error == EADDRINUSE);
  EXPECT_EQ(test::ReadText(place / "file"), "kept");
}

}  // namespace
}  // namespace sandbox_run
