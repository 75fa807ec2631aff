#include "sys/tree_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::TemporaryDirectory;

constexpr size_t kMany = 1000;

std::string Paths(const std::vector<TreeEntry>& entries) {
  std::string all;
  for (const TreeEntry& entry : entries) all += entry.path + " ";
  return all;
}

TEST(WalkTreeTellsEachDirectoryBeforeWhatIsInIt) {
  const TemporaryDirectory top;
  for (const char* name : {"b", "b/inner", "a"}) mkdir((top / name).c_str(), 0700);
  for (const char* name : {"b/inner/file", "a/\xff", "z"}) test::WriteText(top / name, "x");
  EXPECT_EQ(symlink("b", (top / "link").c_str()), 0);
  const auto walked = WalkTree(top.path(), WalkKind::kPlain, kMany);
  ASSERT_TRUE(walked.ok());
  EXPECT_EQ(Paths(walked.value()), "a b link z a/\xff b/inner b/inner/file ");
}

TEST(WalkTreeFollowsNoLinkAndFailsForNone) {
  const TemporaryDirectory top;
  EXPECT_EQ(symlink("/etc", (top / "link").c_str()), 0);
  const auto walked = WalkTree(top.path(), WalkKind::kPlain, kMany);
  ASSERT_TRUE(walked.ok());
  EXPECT_EQ(Paths(walked.value()), "link ");
  EXPECT_EQ(WalkTree(top / "link", WalkKind::kPlain, kMany).ok(), false);
  EXPECT_EQ(WalkTree(top / "none", WalkKind::kPlain, kMany).ok(), false);
}

TEST(WalkTreeStopsWhereThereIsTooMuch) {
  const TemporaryDirectory top;
  for (int i = 0; i < 20; ++i) test::WriteText(top / std::to_string(i), "");
  const auto walked = WalkTree(top.path(), WalkKind::kPlain, 10);
  ASSERT_TRUE(!walked.ok());
  EXPECT_EQ(walked.failure().error, E2BIG);
}

TEST(FindShutTellsTheTopAndWhatIsNotForEverybody) {
  const TemporaryDirectory top;
  for (const char* name : {"open", "open/shut", "named", "open/named"}) {
    mkdir((top / name).c_str(), 0755);
    test::WriteText(top / name + "/file", "x");
  }
  mkdir((top / "open/deep").c_str(), 0755);
  for (const char* name : {"open/deep/private", "open/deep/public", "top", "open/deep/listed"})
    test::WriteText(top / name, "x");
  EXPECT_EQ(symlink("/etc", (top / "link").c_str()), 0);
  for (const char* name : {"open/file", "open/deep/public", "top", "open/deep/listed", "named/file",
                           "open/named/file", "open/shut/file"})
    chmod((top / name).c_str(), 0644);
  chmod((top / "open/shut").c_str(), 0711);
  chmod((top / "open/deep/private").c_str(), 0640);
  const std::set<std::string> named = {"named", "open/named", "open/deep/listed"};
  const auto found = FindShut(top.path(), named, kMany);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(Paths(found.value()),
            "named open open/deep/listed open/deep/private open/named open/shut top ");
  EXPECT_EQ(found.value()[2].info.st_mode & 07777, 0644u);
  // The time of the directory that it is in stays what it was.
  chmod((top / "open/deep/public").c_str(), 0600);
  const auto again = FindShut(top.path(), named, kMany);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().size(), found.value().size() + 1);
  EXPECT_EQ(FindShut(top.path(), named, 5).ok(), false);
  EXPECT_EQ(FindShut(top / "link", named, kMany).ok(), false);
}

// A directory that everybody but its owner may enter: its owner reads the names, and learns nothing
// of what they name (EACCES).
TEST(FindShutTellsWhatCannotBeLookedAt) {
  constexpr uid_t kUser = 65534;
  const bool is_root = geteuid() == 0;
  const TemporaryDirectory top;
  mkdir((top / "d").c_str(), 0755);
  test::WriteText(top / "d/file", "x");
  EXPECT_EQ(chmod((top / "d/file").c_str(), 0644), 0);
  EXPECT_EQ(chmod(top.path().c_str(), 0755), 0);
  if (is_root) EXPECT_EQ(chown((top / "d").c_str(), kUser, kUser), 0);
  const auto found_in = [&](mode_t mode) {
    EXPECT_EQ(chmod((top / "d").c_str(), mode), 0);
    int out[2];
    EXPECT_EQ(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
      const bool is_user = !is_root || (setgid(kUser) == 0 && setuid(kUser) == 0);
      const auto found = FindShut(top.path(), {}, kMany);
      const std::string told = is_user && found.ok() ? Paths(found.value()) : "failed";
      _exit(write(out[1], told.data(), told.size()) < 0 ? 1 : 0);
    }
    close(out[1]);
    std::string told(256, '\0');
    const ssize_t length = read(out[0], told.data(), told.size());
    close(out[0]);
    waitpid(child, nullptr, 0);
    told.resize(length < 0 ? 0 : static_cast<size_t>(length));
    return told;
  };
  EXPECT_EQ(found_in(0455), "d d/file ");
  EXPECT_EQ(found_in(0555), "d ");
}

TEST(WalkTreeReadsTheMarksOfALayer) {
  const TemporaryDirectory top;
  mkdir((top / "opaque").c_str(), 0700);
  test::WriteText(top / "own", "");
  if (setxattr((top / "opaque").c_str(), "user.overlay.opaque", "y", 1, 0) != 0)
    NOT_RUN("no user attributes here");
  EXPECT_EQ(setxattr((top / "own").c_str(), "user.mine", "1", 1, 0), 0);
  const auto walked = WalkTree(top.path(), WalkKind::kLayer, kMany);
  ASSERT_TRUE(walked.ok());
  ASSERT_EQ(walked.value().size(), 2u);
  const TreeEntry &opaque = walked.value()[0], &own = walked.value()[1];
  EXPECT_EQ(opaque.opaque, true);
  EXPECT_EQ(opaque.attributes, false);
  EXPECT_EQ(own.opaque, false);
  EXPECT_EQ(own.attributes, true);
}

TEST(CopyContentKeepsBytesTimesAndHoles) {
  const TemporaryDirectory top;
  const UniqueFd from(open((top / "from").c_str(), O_RDWR | O_CREAT, 0600));
  const std::string text(100'000, 'x');
  EXPECT_EQ(pwrite(from.get(), text.data(), text.size(), 50'000'000),
            static_cast<ssize_t>(text.size()));
  EXPECT_EQ(ftruncate(from.get(), 100'000'000), 0);
  const timespec times[] = {{1'000'000'000, 1}, {1'500'000'000, 123'456'789}};
  EXPECT_EQ(futimens(from.get(), times), 0);
  const UniqueFd to(open((top / "to").c_str(), O_RDWR | O_CREAT, 0600));
  EXPECT_TRUE(CopyContent(from.get(), to.get()).ok());
  struct stat info;
  EXPECT_EQ(fstat(to.get(), &info), 0);
  EXPECT_EQ(info.st_size, 100'000'000);
  EXPECT_EQ(info.st_mtim.tv_nsec, 123'456'789);
  EXPECT_TRUE(info.st_blocks * 512 < 10'000'000);
  std::string read(text.size(), '\0');
  EXPECT_EQ(pread(to.get(), read.data(), read.size(), 50'000'000),
            static_cast<ssize_t>(read.size()));
  EXPECT_TRUE(read == text);
}

}  // namespace
}  // namespace sandbox_run
