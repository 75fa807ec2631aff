#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "notify/client_hello.h"
#include "notify/request_reader.h"

namespace sandbox_run {
namespace {

std::string Number(size_t value, int size) {
  std::string bytes;
  for (int at = size - 1; at >= 0; --at) bytes.push_back(static_cast<char>(value >> (8 * at)));
  return bytes;
}
std::string Counted(const std::string& field, int size) {
  return Number(field.size(), size) + field;
}
std::string Extension(size_t type, const std::string& data) {
  return Number(type, 2) + Counted(data, 2);
}
std::string ServerName(const std::string& name) {
  return Extension(0, Counted(Number(0, 1) + Counted(name, 2), 2));
}
// A hello as a message of a handshake. GREASE and padding as browsers send them.
std::string Message(const std::string& extensions) {
  const std::string body =
      Number(0x0303, 2) + std::string(32, 'r') + Counted(std::string(32, 's'), 1) +
      Counted(Number(0x0a0a, 2) + Number(0x1301, 2), 2) + Counted(Number(0, 1), 1) +
      Counted(Extension(0x1a1a, "") + extensions + Extension(21, std::string(300, '\0')), 2);
  return Number(1, 1) + Counted(body, 3);
}
std::string Record(const std::string& data) {
  return Number(22, 1) + Number(0x0301, 2) + Counted(data, 2);
}
std::string Hello(const std::string& extensions) { return Record(Message(extensions)); }

// Reads from memory that ends where the bytes do, so that a sanitizer sees what goes beyond.
ClientHello Read(const std::string& bytes) {
  const std::unique_ptr<char[]> exact(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  return ReadClientHello({exact.get(), bytes.size()});
}
std::string FlawOf(const std::string& bytes) {
  const ClientHello hello = Read(bytes);
  return hello.flaw == nullptr ? "" : hello.flaw;
}

TEST(a_hello_says_its_server_name_however_it_is_cut) {
  const std::string whole = Hello(ServerName("Good.example"));
  EXPECT_EQ(Read(whole).name, "Good.example");
  EXPECT_EQ(Read(whole + "more").size, whole.size());
  for (size_t size = 0; size < whole.size(); ++size) {
    const ClientHello part = Read(whole.substr(0, size));
    if (!EXPECT_TRUE(part.flaw == nullptr && part.size == 0)) return;
  }
  std::mt19937 random(7);
  const std::string message = Message(ServerName("good.example"));
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    for (size_t at = 0; at < message.size();) {
      const size_t size = 1 + random() % (round % 2 == 0 ? 5 : 300);
      bytes += Record(message.substr(at, size));
      at += size;
    }
    const ClientHello hello = Read(bytes);
    if (!EXPECT_TRUE(hello.flaw == nullptr && hello.name == "good.example" &&
                     hello.size == bytes.size()))
      return;
  }
  const std::string large =
      Message(ServerName("good.example") + Extension(51, std::string(17'000, 'k')));
  EXPECT_EQ(Read(Record(large.substr(0, 16'384)) + Record(large.substr(16'384))).name,
            "good.example");
}

TEST(a_hello_that_does_not_say_one_name_clearly_has_a_flaw) {
  const std::string good = ServerName("good.example");
  for (const std::string& bytes : {
           Hello(""),                                 // no name
           Hello(good + ServerName("evil.example")),  // two extensions
           Hello(Extension(0, Counted(Number(0, 1) + Counted("good.example", 2) + Number(0, 1) +
                                          Counted("evil.example", 2),
                                      2))),  // two names
           Hello(Extension(0,
                           Counted(Number(1, 1) + Counted("good.example", 2), 2))),  // another kind
           Hello(Extension(0, Counted(Number(0, 1) + Counted("good.example", 2), 2) + "x")),
           Hello(Extension(0, "")),
           Hello(ServerName("")),
           Hello(ServerName(std::string("good.example\0.evil", 18))),
           Hello(ServerName("b\xc3\xbc.example")),
           Hello(ServerName(std::string(256, 'a'))),
           Hello(good + Extension(0xfe0d, "inner")),          // ECH
           Hello(good + Extension(0xffce, "inner")),          // ESNI
           Hello(good + "\x01"),                              // half an extension
           Record(Message(good) + "x"),                       // something after it
           Record(Number(2, 1) + Counted("abc", 3)),          // of a server
           Record(Number(1, 1) + Number(1 << 20, 3)),         // too long
           Number(22, 1) + Number(0x0301, 2) + Number(0, 2),  // an empty record
           Number(22, 1) + Number(0x0301, 2) + Number(20'000, 2),
           Record(Message(good).substr(0, 9)) + Number(23, 1),  // another kind in between
           std::string("\x16\x02", 2),
           std::string("\x80\x2e\x01\x03\x01", 5),  // SSL 2
           std::string("GET / HTTP/1.1\r\n"),
           std::string("SSH-2.0-x\r\n"),
       }) {
    EXPECT_TRUE(!FlawOf(bytes).empty());
  }
  EXPECT_TRUE(FlawOf(Hello(good)).empty());
  // One that never becomes whole: one byte a record.
  std::string endless;
  const std::string head = Number(1, 1) + Number(30'000, 3);
  for (const char byte : head) endless += Record(std::string(1, byte));
  while (endless.size() < kLargestHello) endless += Record("x");
  EXPECT_TRUE(!FlawOf(endless).empty());
}

TEST(a_hello_that_is_changed_at_random_is_never_read_beyond_its_end) {
  std::mt19937 random(11);
  const std::string whole = Hello(ServerName("good.example") + Extension(16, "\x00\x03\x02h2"));
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole.substr(0, random() % 8 == 0 ? random() % whole.size() : whole.size());
    for (int change = static_cast<int>(random() % 4); change >= 0 && !bytes.empty(); --change) {
      const size_t at =
          random() % std::min<size_t>(bytes.size(), random() % 2 == 0 ? 150 : 1 << 16);
      bytes[at] = static_cast<char>(random());
    }
    const ClientHello hello = Read(bytes);
    if (!EXPECT_TRUE(hello.size <= bytes.size() && (hello.size > 0) == !hello.name.empty())) return;
    bool is_next = false;
    EXPECT_TRUE(SkipToHandshake(bytes, is_next) <= bytes.size());
    ReadServerStart(bytes);
  }
}

TEST(a_server_that_asks_for_another_hello_is_noticed) {
  const std::string retry =
      "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
      "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
  const auto of = [](const std::string& random) {
    return Record(Number(2, 1) + Counted(Number(0x0303, 2) + random + std::string(40, 'x'), 3));
  };
  const std::string usual = of(std::string(32, 'r'));
  EXPECT_TRUE(ReadServerStart(of(retry)) == ServerStart::kAnotherHello);
  EXPECT_TRUE(ReadServerStart(usual) == ServerStart::kUsual);
  for (size_t size = 0; size < 43; ++size)
    EXPECT_TRUE(ReadServerStart(usual.substr(0, size)) == ServerStart::kMoreBytes);
  // It warns, and goes on; or ends, or is no server of TLS.
  const std::string warning("\x15\x03\x03\x00\x02\x01\x70", 7),
      end("\x15\x03\x03\x00\x02\x02\x28", 7);
  EXPECT_TRUE(ReadServerStart(warning) == ServerStart::kMoreBytes);
  EXPECT_TRUE(ReadServerStart(warning + usual) == ServerStart::kUsual);
  EXPECT_TRUE(ReadServerStart(warning + of(retry)) == ServerStart::kAnotherHello);
  EXPECT_TRUE(ReadServerStart(end) == ServerStart::kAnotherHello);
  EXPECT_TRUE(ReadServerStart("HTTP/1.1 400 Bad Request") == ServerStart::kAnotherHello);
  const std::string change = std::string("\x14\x03\x03\x00\x01\x01", 6);
  bool is_next = false;
  EXPECT_EQ(SkipToHandshake(change + Record("h"), is_next), change.size());
  EXPECT_TRUE(is_next);
  EXPECT_EQ(SkipToHandshake(change + "\x17\x03", is_next), change.size());
  EXPECT_TRUE(!is_next);
}

// What passes of a stream that arrives in pieces, and the hosts that are asked for.
struct Followed {
  std::string passed;
  std::string hosts;
  std::string flaw;
};
Followed Follow(const std::string& stream, std::mt19937* random) {
  RequestReader reader(80);
  Followed followed;
  std::string waiting;
  size_t at = 0;
  while (followed.flaw.empty()) {
    const std::unique_ptr<char[]> exact(new char[waiting.size()]);
    std::copy(waiting.begin(), waiting.end(), exact.get());
    const RequestReader::Step step = reader.Next({exact.get(), waiting.size()});
    if (step.flaw != nullptr) {
      followed.flaw = step.flaw;
    } else if (step.size > 0) {
      if (!step.host.empty()) followed.hosts += step.host + " ";
      followed.passed += waiting.substr(0, step.size);
      waiting.erase(0, step.size);
    } else if (at == stream.size()) {
      break;
    } else {
      const size_t size = random == nullptr ? stream.size() : 1 + (*random)() % 40;
      waiting += stream.substr(at, size);
      at = std::min(stream.size(), at + size);
    }
  }
  return followed;
}

constexpr char kStream[] =
    "GET /a?b=%20 HTTP/1.1\r\nHost: one.test\r\nUser-Agent: x (y; z)\r\nAccept: */*\r\n\r\n"
    "POST /b HTTP/1.1\r\nhost:two.test:80\r\nContent-Length: 5\r\n\r\nhello"
    "POST / HTTP/1.1\r\nHost: three.test \r\nTransfer-Encoding: chunked\r\n\r\n"
    "a\r\n0123456789\r\n1F\r\nGET / HTTP/1.1\r\nHost: x.test\r\n\r\n0\r\n\r\n"
    "OPTIONS * HTTP/1.0\r\nHost: four.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";

TEST(requests_are_followed_one_after_the_other_however_they_arrive) {
  // The chunk of 31 bytes is data, whatever it looks like.
  std::string stream = kStream;
  const std::string inner = "GET / HTTP/1.1\r\nHost: x.test\r\n\r\n";
  stream.replace(stream.find("1F\r\nGET"), 2, "20");
  EXPECT_EQ(inner.size(), size_t{32});
  stream.replace(stream.find(inner) + inner.size(), 0, "\r\n");
  const std::string hosts = "one.test two.test three.test four.test ";
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const Followed followed = Follow(stream, round == 0 ? nullptr : &random);
    if (!EXPECT_EQ(followed.flaw, "") || !EXPECT_EQ(followed.hosts, hosts)) return;
    if (!EXPECT_TRUE(followed.passed == stream)) return;
  }
}

TEST(a_request_that_two_readers_could_understand_in_two_ways_is_refused) {
  const std::string get = "GET / HTTP/1.1\r\n", post = "POST / HTTP/1.1\r\nHost: a.test\r\n";
  for (const std::string& stream : std::vector<std::string>{
           get + "\r\n",  // no host
           get + "Host: a.test\r\nHost: b.test\r\n\r\n",
           get + "Host: a.test\r\nHost: a.test\r\n\r\n",
           get + "Host: a.test\r\n b.test\r\n\r\n",  // a line that goes on
           get + " Host: b.test\r\nHost: a.test\r\n\r\n",
           get + "Host : a.test\r\n\r\n",
           get + "Host: a.test\nX: y\r\n\r\n",  // a line that ends otherwise
           get + "Host: a.test\rX: y\r\n\r\n",
           get + std::string("Host: a.test\0b\r\n\r\n", 18),
           get + "Host: a.test b.test\r\n\r\n",
           get + "Host: a.test:81\r\n\r\n",
           get + "Host: a.test:\r\n\r\n",
           get + "Host:\r\n\r\n",
           get + "Host: a.test\r\nX\r\n\r\n",
           get + "Host: a.test\r\nContent-Length: 3\r\n\r\nabc",  // a body where none is expected
           "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
           "CONNECT b.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
           "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n",
           "GET / HTTP/1.1 \r\nHost: a.test\r\n\r\n",
           "GET /\tHTTP/1.1\r\nHost: a.test\r\n\r\n",
           "GET / HTTP/2.0\r\nHost: a.test\r\n\r\n",
           "GET / http/1.1\r\nHost: a.test\r\n\r\n",
           "GET /\r\n\r\n",
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           "\r\n" + get + "Host: a.test\r\n\r\n",
           std::string("\x16\x03\x01", 3),
           post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
           post + "Content-Length: +3\r\n\r\nabc",
           post + "Content-Length: 3, 3\r\n\r\nabc",
           post + "Content-Length: 0x3\r\n\r\nabc",
           post + "Content-Length: 99999999999999999999\r\n\r\nabc",
           post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: identity\r\n\r\n",
           post + "Transfer-Encoding: gzip, chunked\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           post + "Transfer-Encoding: \x0b"
                  "chunked\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n\r\n",
           post + "Transfer-Encoding: chunked\r\n\r\n0\r\nHost: b.test\r\n\r\n",
           "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           get + "Host: a.test\r\nX: " + std::string(kLargestHead, 'x') + "\r\n\r\n",
       }) {
    const Followed followed = Follow(stream, nullptr);
    if (followed.flaw.empty()) EXPECT_EQ(stream, "refused");
  }
}

TEST(requests_that_are_changed_at_random_are_never_read_beyond_their_end) {
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string stream = kStream;
    for (int change = static_cast<int>(random() % 5); change >= 0; --change) {
      const size_t at = random() % stream.size();
      constexpr std::string_view kOdd = "\r\n\t :,;0f9\x7f\xff";
      if (random() % 3 == 0) {
        stream.erase(at, 1);
      } else {
        stream[at] = random() % 2 == 0 ? kOdd[random() % kOdd.size()] : static_cast<char>(random());
      }
    }
    const Followed followed = Follow(stream, &random);
    if (!EXPECT_TRUE(stream.compare(0, followed.passed.size(), followed.passed) == 0)) return;
  }
}

}  // namespace
}  // namespace sandbox_run
