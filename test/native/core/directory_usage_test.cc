#include "core/directory_usage.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <string>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using std::chrono::microseconds;
using test::TemporaryDirectory;

constexpr uint64_t kEntry = DirectoryUsage::kEntryBytes;

uint64_t AddUp(const std::string& path) {
  DirectoryUsage usage({path});
  do {
    usage.Advance(microseconds(1'000'000));
  } while (!usage.complete());
  EXPECT_TRUE(!usage.unmeasurable());
  return usage.bytes();
}

uint64_t Blocks(const std::string& path) {
  struct stat info = {};
  lstat(path.c_str(), &info);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

TEST(DirectoryUsageCountsBlocksAndEntries) {
  const TemporaryDirectory top;
  EXPECT_EQ(AddUp(top.path()), 0u);
  test::WriteText(top / "a", std::string(100'000, 'x'));
  mkdir((top / "d").c_str(), 0700);
  test::WriteText(top / "d/b", std::string(5'000, 'x'));
  test::WriteText(top / "d/empty", "");
  EXPECT_EQ(AddUp(top.path()),
            Blocks(top / "a") + Blocks(top / "d") + Blocks(top / "d/b") + 4 * kEntry);
}

TEST(DirectoryUsageDoesNotCountHoles) {
  const TemporaryDirectory top;
  const int fd = open((top / "sparse").c_str(), O_WRONLY | O_CREAT, 0600);
  EXPECT_EQ(ftruncate(fd, 1'000'000'000), 0);
  close(fd);
  EXPECT_TRUE(AddUp(top.path()) < 100'000);
}

TEST(DirectoryUsageCountsAFileOfManyNamesOnce) {
  const TemporaryDirectory top;
  test::WriteText(top / "a", std::string(400'000, 'x'));
  const uint64_t alone = AddUp(top.path());
  EXPECT_EQ(link((top / "a").c_str(), (top / "b").c_str()), 0);
  EXPECT_EQ(AddUp(top.path()), alone + kEntry);
}

TEST(DirectoryUsageFollowsNoLink) {
  const TemporaryDirectory outside, top;
  test::WriteText(outside / "big", std::string(1'000'000, 'x'));
  EXPECT_EQ(symlink(outside.path().c_str(), (top / "directory").c_str()), 0);
  EXPECT_EQ(symlink((outside / "big").c_str(), (top / "file").c_str()), 0);
  EXPECT_EQ(symlink("/", (top / "root").c_str()), 0);
  EXPECT_TRUE(AddUp(top.path()) < 20'000);
}

TEST(DirectoryUsageReachesAnyDepth) {
  const TemporaryDirectory top;
  const int before = open(".", O_PATH | O_CLOEXEC);
  EXPECT_EQ(chdir(top.path().c_str()), 0);
  const std::string name(100, 'd');
  constexpr int kDepth = 200;  // longer than a path may be
  for (int i = 0; i < kDepth; ++i) {
    EXPECT_EQ(mkdir(name.c_str(), 0700), 0);
    EXPECT_EQ(chdir(name.c_str()), 0);
  }
  test::WriteText("deep", std::string(3'000'000, 'x'));
  EXPECT_EQ(fchdir(before), 0);
  close(before);
  const size_t descriptors = test::CountDescriptors();
  EXPECT_TRUE(AddUp(top.path()) >= 3'000'000 + (kDepth + 1) * kEntry);
  EXPECT_EQ(test::CountDescriptors(), descriptors);
}

LONG_TEST(DirectoryUsageStopsInTimeAndGoesOn) {
  const TemporaryDirectory top;
  for (int i = 0; i < 3'000; ++i) test::WriteText(top / std::to_string(i), "");
  DirectoryUsage usage({top.path()});
  int calls = 0;
  uint64_t last = 0;
  do {
    usage.Advance(microseconds(0));
    EXPECT_TRUE(usage.bytes() >= last);
    last = usage.bytes();
    ++calls;
  } while (!usage.complete());
  EXPECT_TRUE(calls > 10);
  EXPECT_EQ(usage.bytes(), 3'000 * kEntry);
  // A pass that has just begun does not make it look smaller.
  usage.Advance(microseconds(0));
  EXPECT_EQ(usage.bytes(), 3'000 * kEntry);
}

TEST(DirectoryUsageOfNothingIsNothing) { EXPECT_EQ(AddUp("/missing"), 0u); }

TEST(DirectoryUsageKnowsWhatLiesInMemory) {
  const TemporaryDirectory top;
  test::WriteText(top / "a", std::string(100'000, 'x'));
  char shared[] = "/dev/shm/directory-usage-XXXXXX";
  ASSERT_TRUE(mkdtemp(shared) != nullptr);
  const std::string file = std::string(shared) + "/b";
  test::WriteText(file, std::string(200'000, 'x'));
  DirectoryUsage usage({top.path(), shared});
  do {
    usage.Advance(microseconds(1'000'000));
  } while (!usage.complete());
  // Where /tmp lies in memory itself, as in a machine of an initramfs, the first file does, too.
  struct statfs system;
  ASSERT_TRUE(statfs(top.path().c_str(), &system) == 0);
  const uint64_t more = system.f_type == TMPFS_MAGIC ? 100'000 : 0;
  EXPECT_TRUE(usage.memory_bytes() >= 200'000 + more && usage.memory_bytes() < 300'000 + more);
  EXPECT_TRUE(usage.bytes() >= 300'000);
  unlink(file.c_str());
  rmdir(shared);
}

}  // namespace
}  // namespace sandbox_run
