#include "notify/relay.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/kept_descriptors.h"

namespace sandbox_run {
namespace {

constexpr size_t kMostCarried = 256;
// Each takes two descriptors, and four more while data is held up both ways.
constexpr size_t kOfOne = 6;
// The relay's own descriptors: the wake event and the epoll instance.
constexpr size_t kOfRelay = 2;
// A share of this process's descriptor limit, and enough for a program with several connections.
constexpr size_t kLeastCarried = 16;
constexpr size_t kShareOfDescriptors = 32;
constexpr std::chrono::seconds kLongestEnd{1};
constexpr int kMostEvents = 64;
// The data of an epoll event: kWoken, or the number of a passage and which of its sockets.
constexpr uint64_t kWoken = 0;
constexpr uint64_t DataOf(uint32_t number, bool is_command) {
  return uint64_t{number} << 1 | (is_command ? 1 : 0);
}

size_t MostCarried() {
  return ShareOfDescriptors(kShareOfDescriptors, kLeastCarried, kMostCarried);
}

bool Watch(int epoll, int fd, uint64_t data, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Relay>> Relay::Start(OnAsk on_ask) {
  std::unique_ptr<Relay> made(new Relay(std::move(on_ask)));
  made->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!made->epoll_.valid()) return Failure{"network.event", errno, ""};
  made->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->wake_.valid() || !Watch(made->epoll_.get(), made->wake_.get(), kWoken, EPOLLIN))
    return Failure{"network.event", errno, ""};
  // Signals are for the other threads of this process, so the relay's thread blocks all.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&made->thread_, nullptr, Main, made.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return Failure{"thread", error, ""};
  made->started_ = true;
  return made;
}

Relay::~Relay() { Finish(); }

void Relay::Finish() {
  if (!std::exchange(started_, false)) return;
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  Wake();
  pthread_join(thread_, nullptr);
}

bool Relay::HasRoom() const {
  const std::lock_guard lock(mutex_);
  return carried_ < MostCarried();
}

size_t Relay::descriptors() const {
  const std::lock_guard lock(mutex_);
  return kOfRelay + kOfOne * carried_;
}

void Relay::Carry(BegunConnection begun) {
  {
    const std::lock_guard lock(mutex_);
    ++carried_;
    begun_.push_back(std::move(begun));
  }
  Wake();
}

void Relay::Answer(uint32_t question, bool allowed, std::string rule) {
  {
    const std::lock_guard lock(mutex_);
    verdicts_.push_back({question, allowed, std::move(rule)});
  }
  Wake();
}

std::optional<ConnectionNames> Relay::NamesOf(ino_t inode) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(inode);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

std::optional<int> Relay::TakeFailure(ino_t inode) {
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(inode);
  if (found == failures_.end()) return std::nullopt;
  const int error = found->second;
  failures_.erase(found);
  return error;
}

Connections Relay::Take() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, connection] : undecided_) connections_.Add(connection);
  undecided_.clear();
  return std::exchange(connections_, {});
}

void Relay::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void* Relay::Main(void* self) {
  static_cast<Relay*>(self)->Work();
  return nullptr;
}

void Relay::Work() {
  epoll_event events[kMostEvents];
  for (;;) {
    const int ready =
        epoll_wait(epoll_.get(), events, kMostEvents, unfinished_.empty() ? TimeLeft() : 0);
    for (const uint32_t number : std::exchange(unfinished_, {})) Advance(number);
    for (int at = 0; at < ready; ++at) {
      const uint64_t data = events[at].data.u64;
      const auto number = static_cast<uint32_t>(data >> 1);
      const auto found = passages_.find(number);
      if (found == passages_.end()) continue;
      // A command that has reset its side waits for nothing any more.
      const bool is_gone = data == DataOf(number, true) && found->second.is_connected() &&
                           (events[at].events & EPOLLERR) != 0;
      is_gone ? Drop(number) : Advance(number);
    }
    if (!TakeIn()) break;
    DropLate();
  }
  passages_.clear();
}

bool Relay::TakeIn() {
  uint64_t drained;
  [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &drained, sizeof(drained));
  std::vector<BegunConnection> begun;
  std::vector<Verdict> verdicts;
  bool finishing;
  {
    const std::lock_guard lock(mutex_);
    begun = std::exchange(begun_, {});
    verdicts = std::exchange(verdicts_, {});
    finishing = finishing_;
  }
  for (BegunConnection& one : begun) Begin(std::move(one));
  for (Verdict& verdict : verdicts) {
    const auto found = passages_.find(verdict.passage);
    if (found == passages_.end()) continue;
    if (found->second.Judge(verdict.allowed, std::move(verdict.rule))) {
      Advance(verdict.passage);
    } else {
      Drop(verdict.passage);
    }
  }
  if (!finishing) return true;
  if (!end_) end_ = Clock::now() + kLongestEnd;
  return Clock::now() < *end_ && HasUndelivered();
}

void Relay::Begin(BegunConnection begun) {
  // Numbers are not used again: a late answer is for nobody.
  const uint32_t number = ++last_number_;
  const auto on_ask = [this, number, port = begun.connection.endpoint.port](
                          const std::string& host) { on_ask_(number, host, port); };
  const auto on_decided = [this, number, inode = begun.inode](const Connection& connection) {
    const std::lock_guard lock(mutex_);
    if (connection.allowed && connection.error != 0) {
      if (failures_.size() >= kMostCarried) failures_.clear();
      failures_[inode] = connection.error;
    }
    undecided_.erase(number);
    connections_.Add(connection);
  };
  const auto made = passages_.try_emplace(number, std::move(begun), on_ask, on_decided).first;
  Passage& passage = made->second;
  {
    const std::lock_guard lock(mutex_);
    undecided_[number] = passage.connection();
    // Before the command can know that it is connected.
    names_[passage.inode()] = passage.names();
  }
  constexpr uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  if (Watch(epoll_.get(), passage.host(), DataOf(number, false), kEvents) &&
      Watch(epoll_.get(), passage.command(), DataOf(number, true), kEvents)) {
    return Advance(number);
  }
  Drop(number);
}

void Relay::Advance(uint32_t number) {
  const auto found = passages_.find(number);
  if (found == passages_.end()) return;
  Passage& passage = found->second;
  const Passage::State state = passage.Advance();
  if (state == Passage::State::kIsOver) return Drop(number);
  if (state == Passage::State::kHasMore) unfinished_.push_back(number);
}

void Relay::Drop(uint32_t number) {
  const auto found = passages_.find(number);
  if (found == passages_.end()) return;
  const ino_t inode = found->second.inode();
  passages_.erase(found);
  const std::lock_guard lock(mutex_);
  names_.erase(inode);
  --carried_;
  // It was connected, and nothing was said.
  const auto undecided = undecided_.find(number);
  if (undecided == undecided_.end()) return;
  connections_.Add(undecided->second);
  undecided_.erase(undecided);
}

void Relay::DropLate() {
  const auto now = Clock::now();
  std::vector<uint32_t> late;
  for (const auto& [number, passage] : passages_) {
    if (passage.until() && *passage.until() <= now) late.push_back(number);
  }
  for (const uint32_t number : late) Drop(number);
}

int Relay::TimeLeft() const {
  std::optional<Clock::time_point> next = end_;
  for (const auto& [number, passage] : passages_) {
    if (passage.until() && (!next || *passage.until() < *next)) next = passage.until();
  }
  if (!next) return -1;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(*next - Clock::now()).count() + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
}

bool Relay::HasUndelivered() const {
  return std::any_of(passages_.begin(), passages_.end(),
                     [](const auto& entry) { return entry.second.has_undelivered(); });
}

}  // namespace sandbox_run
