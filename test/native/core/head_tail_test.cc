#include "core/head_tail.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "check.h"

namespace sandbox_run {
namespace {

// A stream in which neighbours differ, and so do places that are a power of two apart.
std::string Stream(size_t size, size_t from = 0) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    uint64_t x = (i + from) * 0x9E3779B97F4A7C15u;
    text[i] = static_cast<char>((x ^ (x >> 29)) >> 32);
  }
  return text;
}

// What HeadTail is: nothing is clever here.
struct Model {
  size_t head, tail;
  std::string all;

  std::string Kept() const {
    if (all.size() <= head + tail) return all;
    return all.substr(0, head) + all.substr(all.size() - tail);
  }
  size_t HeadSize() const { return all.size() <= head + tail ? all.size() : head; }
};

void ExpectSame(const CapturedStream& captured, const Model& model) {
  EXPECT_EQ(captured.total, model.all.size());
  EXPECT_EQ(captured.kept.size(), model.Kept().size());
  EXPECT_EQ(captured.head_size, model.HeadSize());
  EXPECT_TRUE(captured.kept == model.Kept());
}

// Bytes as a reader adds them: into the room that it was offered, if they fit.
void ReadInto(HeadTail& kept, std::string_view bytes, size_t scratch_size) {
  std::string scratch(scratch_size, '\0');
  while (!bytes.empty()) {
    const std::span<char> room = kept.Room(scratch);
    ASSERT_TRUE(!room.empty());
    const size_t count = std::min(room.size(), bytes.size());
    memcpy(room.data(), bytes.data(), count);
    kept.Append({room.data(), count});
    bytes.remove_prefix(count);
  }
}

TEST(HeadTailOfNothingIsNothing) {
  HeadTail kept(10, 10);
  EXPECT_EQ(kept.total(), 0u);
  EXPECT_EQ(kept.Copy().kept.size(), 0u);
  CapturedStream taken = kept.Take();
  EXPECT_EQ(taken.kept.size(), 0u);
  EXPECT_EQ(taken.total, 0u);
  EXPECT_TRUE(taken.kept.data() == nullptr);
}

TEST(HeadTailKeepsEverythingUpToBothLimitsTogether) {
  for (const size_t size : {1u, 9u, 10u, 11u, 29u, 30u}) {
    HeadTail kept(10, 20);
    kept.Append(Stream(size));
    ExpectSame(kept.Copy(), {10, 20, Stream(size)});
    EXPECT_EQ(kept.Take().head_size, size);
  }
}

TEST(HeadTailLeavesTheMiddleOut) {
  HeadTail kept(3, 4);
  kept.Append("abcdefgh");
  CapturedStream taken = kept.Take();
  EXPECT_EQ(taken.kept.view(), "abcefgh");
  EXPECT_EQ(taken.head_size, 3u);
  EXPECT_EQ(taken.total, 8u);
}

TEST(HeadTailTakesLimitsOfZero) {
  for (const auto& [head, tail] : std::vector<std::pair<size_t, size_t>>{{0, 0}, {0, 5}, {5, 0}}) {
    Model model{head, tail, ""};
    HeadTail kept(head, tail);
    for (int i = 0; i < 5; ++i) {
      const std::string bytes = Stream(50'000, model.all.size());
      ReadInto(kept, bytes, 1000);
      model.all += bytes;
      ExpectSame(kept.Copy(), model);
    }
    ExpectSame(kept.Take(), model);
  }
}

TEST(HeadTailIsRightAroundEveryBoundary) {
  constexpr size_t kKiB = 1024;
  const std::vector<std::pair<size_t, size_t>> limits = {
      {64 * kKiB, 64 * kKiB}, {1, 64 * kKiB + 1}, {64 * kKiB - 1, 1}, {100, 200 * kKiB}, {7, 7}};
  for (const auto& [head, tail] : limits) {
    const size_t ring = std::max(tail, 64 * kKiB);
    for (const size_t size : {head, head + tail, head + ring, head + 2 * ring, head + 3 * ring}) {
      for (const int delta : {-1, 0, 1}) {
        Model model{head, tail, Stream(size + delta)};
        HeadTail at_once(head, tail), read(head, tail);
        at_once.Append(model.all);
        ExpectSame(at_once.Copy(), model);
        ExpectSame(at_once.Take(), model);
        ReadInto(read, model.all, 64 * kKiB);
        ExpectSame(read.Copy(), model);
        ExpectSame(read.Take(), model);
      }
    }
  }
}

LONG_TEST(HeadTailKeepsWhatANaiveModelKeepsWhateverThePieces) {
  std::mt19937 random(20'261'122);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (int round = 0; round < 400; ++round) {
    // Small limits for the edges, large ones for the ring and its growth.
    const size_t scale = round % 4 == 0 ? 300'000 : round % 4 == 1 ? 70'000 : 40;
    Model model{below(scale), below(scale), ""};
    HeadTail kept(model.head, model.tail);
    const size_t pieces = 1 + below(30);
    for (size_t i = 0; i < pieces; ++i) {
      const std::string bytes = Stream(below(i % 3 == 0 ? 100 : 2 * scale), model.all.size());
      if (below(2) == 0) {
        kept.Append(bytes);
      } else {
        ReadInto(kept, bytes, 1 + below(70'000));
      }
      model.all += bytes;
      if (below(4) == 0) ExpectSame(kept.Copy(), model);
      if (below(20) == 0) {
        ExpectSame(kept.Take(), model);
        model.all.clear();
      }
    }
    ExpectSame(kept.Take(), model);
    EXPECT_EQ(kept.total(), 0u);
  }
}

TEST(HeadTailLetsLargeReadsGoStraightIntoItsMemory) {
  HeadTail kept(512 * 1024, 512 * 1024);
  std::string scratch(64 * 1024, '\0');
  // Little output costs no more memory than it has.
  EXPECT_TRUE(kept.Room(scratch).data() == scratch.data());
  kept.Append(Stream(100));
  EXPECT_TRUE(kept.Room(scratch).data() == scratch.data());
  kept.Append(Stream(64 * 1024));
  size_t direct = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::span<char> room = kept.Room(scratch);
    if (room.data() != scratch.data()) ++direct;
    kept.Append({room.data(), std::min<size_t>(room.size(), 64 * 1024)});
  }
  EXPECT_TRUE(direct > 950);
}

TEST(HeadTailMemoryStaysFlat) {
  HeadTail kept(512 * 1024, 512 * 1024);
  const auto resident = [] {
    long pages = 0, ignored = 0;
    FILE* file = fopen("/proc/self/statm", "re");
    const int read = fscanf(file, "%ld %ld", &ignored, &pages);
    fclose(file);
    return read == 2 ? pages * sysconf(_SC_PAGESIZE) : -1;
  };
  const std::string bytes = Stream(64 * 1024);
  for (int i = 0; i < 100; ++i) kept.Append(bytes);
  const long before = resident();
  for (int i = 0; i < 100'000; ++i) kept.Append(bytes);  // 6.5 GB
  EXPECT_TRUE(resident() - before < 1024 * 1024);
  EXPECT_EQ(kept.total(), uint64_t{100'100} * 64 * 1024);
}

TEST(HeadTailTakesLimitsLargerThanMemory) {
  HeadTail kept(SIZE_MAX, SIZE_MAX);
  const std::string all = Stream(3'000'000);
  ReadInto(kept, all, 64 * 1024);
  EXPECT_TRUE(kept.Take().kept.view() == all);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(HeadTailGoesOnWithWhatItHasWhereMemoryIsShort) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "re");
  ASSERT_EQ(fscanf(file, "%ld", &pages), 1);
  fclose(file);
  const std::string bytes = Stream(1'000'000);
  std::string scratch(64 * 1024, '\0');
  HeadTail kept(1024 * 1024 * 1024, 1024 * 1024 * 1024);
  const rlim_t bound = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + 64 * 1024 * 1024;
  const rlimit tight = {bound, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  for (int i = 0; i < 200; ++i) {
    const std::span<char> room = kept.Room(scratch);
    const size_t count = std::min(room.size(), scratch.size());
    memcpy(room.data(), bytes.data(), count);
    kept.Append({room.data(), count});
    kept.Append(bytes);
  }
  setrlimit(RLIMIT_AS, &before);
  CapturedStream taken = kept.Take();
  EXPECT_TRUE(taken.total > 200'000'000);
  EXPECT_TRUE(taken.kept.size() > 1'000'000 && taken.kept.size() < 64 * 1024 * 1024);
  EXPECT_TRUE(taken.head_size < taken.kept.size());
  // Its last bytes are the last bytes of the stream, its first ones the first.
  EXPECT_TRUE(taken.kept.view().ends_with(std::string_view(bytes).substr(bytes.size() - 1000)));
  EXPECT_TRUE(taken.kept.view().starts_with(std::string_view(bytes).substr(0, 1000)));
  // And it begins anew with the limits that it was given.
  kept.Append(bytes);
  EXPECT_EQ(kept.Take().kept.size(), bytes.size());
}
#endif

}  // namespace
}  // namespace sandbox_run
