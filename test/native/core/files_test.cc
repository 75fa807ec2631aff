#include "sys/files.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "core/child.h"
#include "support.h"
#include "sys/removal.h"

namespace sandbox_run {
namespace {

using test::Entries;
using test::Exists;
using test::TemporaryDirectory;
using test::WriteText;

// Runs it without capabilities: permissions then bind even root, as they do every other owner.
void WithoutCapabilities(const std::function<void()>& act) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (DropCapabilities() != 0) _exit(1);
    act();
    _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(OpenPathNamesTheObjectWithoutReadingIt) {
  const TemporaryDirectory top;
  WriteText(top / "file", "x");
  Result<UniqueFd> fd = OpenPath(top / "file", "a.stage");
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(fcntl(fd.value().get(), F_GETFL) & O_PATH, O_PATH);
  EXPECT_EQ(fcntl(fd.value().get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  char byte;
  EXPECT_EQ(read(fd.value().get(), &byte, 1), -1);
}

TEST(OpenPathRefusesASymbolicLinkAnywhere) {
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "real").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((top / "real/inner").c_str(), 0700), 0);
  ASSERT_EQ(symlink("real", (top / "link").c_str()), 0);
  ASSERT_EQ(symlink("inner", (top / "real/last").c_str()), 0);
  EXPECT_TRUE(OpenPath(top / "real/inner", "a.stage").ok());
  for (const std::string& path : {top / "link", top / "link/inner", top / "real/last"}) {
    const Result<UniqueFd> fd = OpenPath(path, "a.stage");
    ASSERT_TRUE(!fd.ok());
    EXPECT_EQ(fd.failure().error, ELOOP);
    EXPECT_EQ(fd.failure().path, path);
    EXPECT_EQ(fd.failure().stage, std::string("a.stage"));
  }
}

TEST(OpenPathSaysWhatIsMissing) {
  const TemporaryDirectory top;
  WriteText(top / "file", "x");
  EXPECT_EQ(OpenPath(top / "none", "s").failure().error, ENOENT);
  EXPECT_EQ(OpenPath(top / "file/none", "s").failure().error, ENOTDIR);
}

TEST(MakePrivateDirectoryIsClosedToOthersWhateverTheUmask) {
  const TemporaryDirectory top;
  for (const mode_t mask : {0, 022, 077}) {
    const mode_t before = umask(mask);
    Result<std::string> made = MakePrivateDirectory(top.path(), "p-");
    umask(before);
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(made.value().starts_with(top / "p-"));
    struct stat info;
    ASSERT_EQ(stat(made.value().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
  }
  EXPECT_EQ(Entries(top.path()).size(), 3u);
}

TEST(MakePrivateDirectoryNamesTheParentItCannotUse) {
  const Result<std::string> made = MakePrivateDirectory("/nowhere", "p-");
  ASSERT_TRUE(!made.ok());
  EXPECT_EQ(made.failure().error, ENOENT);
  EXPECT_EQ(made.failure().stage, std::string("private_directory"));
  EXPECT_EQ(made.failure().path, "/nowhere");
}

// Other launchers sweep all the time, in every moment of it.
LONG_TEST(MakeLockedDirectoryHoldsItsOwnWhileOthersSweep) {
  const TemporaryDirectory top;
  std::atomic<bool> is_done = false;
  std::atomic<int> swept = 0;
  std::vector<std::thread> sweepers;
  for (int i = 0; i < 2; ++i) {
    sweepers.emplace_back([&] {
      while (!is_done) {
        RemoveStaleDirectories(top.path(), "p-");
        ++swept;
      }
    });
  }
  int made = 0;
  while (made < 2'000 || swept < 2'000) {
    std::string path;
    Result<UniqueFd> lock = MakeLockedDirectory(top.path(), "p-", path);
    if (!lock.ok()) EXPECT_EQ(lock.failure().path + " " + strerror(lock.failure().error), "made");
    if (!lock.ok() || mkdir((path + "/in-it").c_str(), 0700) != 0) break;
    ++made;
    const int seen = swept;
    if (made % 100 == 0) {
      while (swept < seen + 4) std::this_thread::yield();
    }
    EXPECT_EQ(rmdir((path + "/in-it").c_str()), 0);
    EXPECT_EQ(rmdir(path.c_str()), 0);
  }
  is_done = true;
  for (std::thread& sweeper : sweepers) sweeper.join();
  EXPECT_TRUE(made >= 2'000);
  // One that nobody holds goes: they do sweep.
  ASSERT_TRUE(MakePrivateDirectory(top.path(), "p-").ok());
  RemoveStaleDirectories(top.path(), "p-");
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

TEST(RemoveContentsKeepsTheDirectoryItself) {
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "a").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((top / "a/b").c_str(), 0700), 0);
  WriteText(top / "a/b/file", "x");
  WriteText(top / "file", "x");
  ASSERT_EQ(mkfifo((top / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(RemoveContents(top.path()));
  EXPECT_EQ(Entries(top.path()).size(), 0u);
  EXPECT_TRUE(Exists(top.path()));
}

TEST(RemoveContentsKeepsWhatItIsToldToAndTheWayThere) {
  const TemporaryDirectory top;
  for (const char* name : {"keep", "keep/deep", "keep/deep/point", "keep/other", "gone"}) {
    ASSERT_EQ(mkdir((top / name).c_str(), 0700), 0);
  }
  for (const char* name : {"keep/file", "keep/deep/point/inside", "keep/other/file", "gone/file",
                           "keep/deep/point-too", "kept-file"}) {
    WriteText(top / name, "x");
  }
  EXPECT_TRUE(RemoveContents(top.path(), {top / "keep/deep/point", top / "kept-file"}));
  EXPECT_TRUE(Exists(top / "keep/deep/point/inside"));
  EXPECT_TRUE(Exists(top / "kept-file"));
  EXPECT_EQ(Entries(top.path()).size(), 2u);
  EXPECT_EQ(Entries(top / "keep").size(), 1u);
  EXPECT_EQ(Entries(top / "keep/deep").size(), 1u);
}

TEST(RemoveContentsKeepsAWholeInWhichSomethingIsKeptToo) {
  const TemporaryDirectory top;
  for (const char* name : {"whole", "whole/point", "gone"}) {
    ASSERT_EQ(mkdir((top / name).c_str(), 0700), 0);
  }
  WriteText(top / "whole/file", "x");
  EXPECT_TRUE(RemoveContents(top.path(), {top / "whole/point", top / "whole"}));
  EXPECT_TRUE(Exists(top / "whole/file"));
  EXPECT_EQ(Entries(top.path()).size(), 1u);
}

TEST(PrivateDirectoryIsEmptiedOfNotesToo) {
  const TemporaryDirectory top;
  const std::string way = top / "way", kept = top / "way/kept";
  for (const std::string& path : {way, kept}) ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  WriteText(top / "file", "x");
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  for (const std::string& path : {way, top.path()}) {
    setxattr(path.c_str(), "user.note", "x", 1, 0);
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
    ASSERT_EQ(chmod(path.c_str(), 01777), 0);
  }
  EXPECT_TRUE(EmptyPrivateDirectory(top.path(), {kept}));
  EXPECT_EQ(Entries(top.path()).size(), 1u);
  EXPECT_TRUE(Exists(kept));
  for (const std::string& path : {way, top.path()}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_TRUE(info.st_mtime > 1);
    EXPECT_EQ(listxattr(path.c_str(), nullptr, 0), 0);
  }
  EXPECT_TRUE(!EmptyPrivateDirectory(top / "nowhere", {}));
}

TEST(RemoveContentsDoesNotFollowLinks) {
  const TemporaryDirectory top, outside;
  WriteText(outside / "precious", "x");
  ASSERT_EQ(symlink(outside.path().c_str(), (top / "link").c_str()), 0);
  ASSERT_EQ(symlink("/nowhere", (top / "dangling").c_str()), 0);
  EXPECT_TRUE(RemoveContents(top.path()));
  EXPECT_EQ(Entries(top.path()).size(), 0u);
  EXPECT_TRUE(Exists(outside / "precious"));

  ASSERT_EQ(symlink(outside.path().c_str(), (top / "link").c_str()), 0);
  EXPECT_TRUE(!RemoveContents(top / "link"));
  EXPECT_TRUE(Exists(outside / "precious"));
}

TEST(RemoveContentsOpensWhatItsOwnerHasShut) {
  const TemporaryDirectory top;
  for (const char* name : {"shut", "shut/inner", "read-only", "read-only/inner"}) {
    ASSERT_EQ(mkdir((top / name).c_str(), 0700), 0);
    WriteText(top / name + "/file", "x");
  }
  for (const auto& [name, mode] :
       {std::pair("shut/inner", 0000), std::pair("shut", 0000), std::pair("read-only/inner", 0500),
        std::pair("read-only", 0500)}) {
    ASSERT_EQ(chmod((top / name).c_str(), static_cast<mode_t>(mode)), 0);
  }
  WithoutCapabilities([&] { EXPECT_TRUE(RemoveContents(top.path())); });
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

// Makes a chain of directories too long for one path.
void MakeDeepTree(const std::string& top, int depth) {
  UniqueFd at(open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < depth; ++i) {
    ASSERT_EQ(mkdirat(at.get(), "directory", 0700), 0);
    at.reset(openat(at.get(), "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid());
    const UniqueFd file(openat(at.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_TRUE(file.valid());
  }
}

LONG_TEST(RemoveContentsRemovesATreeOfAnyDepth) {
  const TemporaryDirectory top;
  MakeDeepTree(top.path(), 1500);
  const size_t descriptors = test::CountDescriptors();
  EXPECT_TRUE(RemoveContents(top.path()));
  EXPECT_EQ(Entries(top.path()).size(), 0u);
  EXPECT_EQ(test::CountDescriptors(), descriptors);
}

TEST(RemoveContentsRemovesADeepTreeOfReadOnlyDirectories) {
  const TemporaryDirectory top;
  MakeDeepTree(top.path(), 150);
  ASSERT_EQ(system(("chmod -R a-w " + top.path() + "/directory").c_str()), 0);
  WithoutCapabilities([&] { EXPECT_TRUE(RemoveContents(top.path())); });
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

TEST(RemoveContentsStaysOnItsFileSystem) {
  if (!test::InOwnPidNamespace()) NOT_RUN("needs a mount namespace of its own");
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "mount").c_str(), 0700), 0);
  WriteText(top / "file", "x");
  ASSERT_EQ(mount("none", (top / "mount").c_str(), "tmpfs", 0, nullptr), 0);
  WriteText(top / "mount/precious", "x");
  EXPECT_TRUE(!RemoveContents(top.path()));
  EXPECT_TRUE(Exists(top / "mount/precious"));
  EXPECT_TRUE(!Exists(top / "file"));
  EXPECT_EQ(umount((top / "mount").c_str()), 0);
}

TEST(RemoveTreeRemovesTheDirectoryToo) {
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "a").c_str(), 0700), 0);
  WriteText(top / "a/file", "x");
  UniqueFd held(open((top / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  UniqueFd again(open((top / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  RemoveTree(std::move(held), top / "a");
  EXPECT_TRUE(!Exists(top / "a"));
  RemoveTree(std::move(again), top / "a");  // nothing there: nothing happens
}

// Takes every descriptor that this process may have.
std::vector<UniqueFd> TakeAllDescriptors() {
  std::vector<UniqueFd> taken;
  for (;;) {
    UniqueFd one(open("/", O_PATH | O_CLOEXEC));
    if (!one.valid()) return taken;
    taken.push_back(std::move(one));
  }
}

TEST(RemoveTreeHasDescriptorsOfItsOwnWhereThereAreNoOthers) {
  const TemporaryDirectory top;
  std::string path = top / "a";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  UniqueFd held(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Wide and deep: with a descriptor for each level there would not be enough.
  for (int depth = 0; depth < 80; ++depth) {
    for (const char* name : {"/x", "/y"}) ASSERT_EQ(mkdir((path + name).c_str(), 0700), 0);
    WriteText(path + "/y/file", "x");
    path += "/x";
  }
  KeepDescriptorsForRemoval();
  {
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit low = {64, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    const std::vector<UniqueFd> taken = TakeAllDescriptors();
    EXPECT_EQ(open("/", O_PATH | O_CLOEXEC), -1);
    RemoveTree(std::move(held), top / "a");
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  }
  EXPECT_TRUE(!Exists(top / "a"));
}

TEST(WhatCouldNotBeRemovedIsRemovedWhenItCanBe) {
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "a").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((top / "a/b").c_str(), 0700), 0);
  WriteText(top / "a/b/file", "x");
  UniqueFd held(open((top / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // Not even what is kept can be used.
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  RemoveTree(std::move(held), top / "a");
  RetryRemovals(Retry::kShortages);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(Exists(top / "a/b"));
  RetryRemovals(Retry::kShortages);
  EXPECT_TRUE(!Exists(top / "a"));
}

TEST(WhatTookTheNameIsNotRemovedLaterEither) {
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "a").c_str(), 0700), 0);
  WriteText(top / "a/file", "x");
  UniqueFd held(open((top / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  RemoveTree(std::move(held), top / "a");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(rename((top / "a").c_str(), (top / "moved").c_str()), 0);
  ASSERT_EQ(mkdir((top / "a").c_str(), 0700), 0);
  WriteText(top / "a/file", "x");
  RetryRemovals(Retry::kAll);
  EXPECT_TRUE(Exists(top / "a/file"));
}

TEST(MakeLockedDirectoryLeavesNothingThatItCannotHold) {
  const TemporaryDirectory top;
  std::string path;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<UniqueFd> refused = MakeLockedDirectory(top.path(), "held-", path);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(!refused.ok());
  EXPECT_EQ(refused.failure().error, EMFILE);
  EXPECT_EQ(Entries(top.path()).size(), 0u);
  EXPECT_TRUE(MakeLockedDirectory(top.path(), "held-", path).ok());
  EXPECT_EQ(Entries(top.path()).size(), 1u);
}

TEST(RemoveTreeLeavesAloneWhatTookTheName) {
  const TemporaryDirectory top;
  ASSERT_EQ(mkdir((top / "a").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((top / "victim").c_str(), 0700), 0);
  WriteText(top / "a/file", "x");
  WriteText(top / "victim/file", "x");
  UniqueFd held(open((top / "a").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(rename((top / "a").c_str(), (top / "moved").c_str()), 0);
  ASSERT_EQ(symlink((top / "victim").c_str(), (top / "a").c_str()), 0);
  RemoveTree(std::move(held), top / "a");
  EXPECT_TRUE(Exists(top / "victim/file"));
  EXPECT_TRUE(Exists(top / "a"));
  EXPECT_EQ(Entries(top / "moved").size(), 0u);
}

}  // namespace
}  // namespace sandbox_run
