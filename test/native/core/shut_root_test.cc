#include "core/shut_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "check.h"
#include "core/child.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::DirectoriesInRoot;
using test::InAProcess;
using test::MayMount;
using test::TemporaryDirectory;

constexpr int kNoNamespaces = 77;

bool Shut(const std::vector<std::string>& kept, RootFailure* failure) {
  std::vector<const char*> paths;
  for (const std::string& path : kept) paths.push_back(path.c_str());
  return ShutRoot(paths.data(), paths.size(), failure);
}

bool IsStage(const RootFailure& failure, const char* stage) {
  return failure.stage != nullptr && strcmp(failure.stage, stage) == 0;
}

bool IsReadOnly(const char* path) {
  struct statvfs info = {};
  return statvfs(path, &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

TEST(RootIsShutAndWhatIsKeptIsNot) {
  if (!MayMount()) NOT_RUN("no mount namespace can be made here");
  TemporaryDirectory directory;
  const bool was_read_only = IsReadOnly("/");
  const int step = InAProcess([&] {
    RootFailure failure;
    std::vector<std::string> kept = DirectoriesInRoot();
    kept.push_back("/sandbox-run-is-gone");
    if (!Shut(kept, &failure)) return 1;
    for (const char* way : {"/", "/..", "/../..", "/proc/self/root", "/tmp/.."}) {
      const std::string at = std::string(way) + "/sandbox-run-was-here";
      if (open(at.c_str(), O_CREAT | O_WRONLY, 0600) >= 0 || errno != EROFS) return 2;
      if (chmod(way, 0777) == 0 || errno != EROFS) return 3;
    }
    if (open((directory / "file").c_str(), O_CREAT | O_WRONLY, 0600) < 0) return 4;
    return IsRootShut(&failure) ? 0 : 5;
  });
  EXPECT_EQ(step, 0);
  EXPECT_TRUE(test::Exists(directory / "file"));
  // Here, nothing of it is seen.
  EXPECT_EQ(IsReadOnly("/"), was_read_only);
}

TEST(RootThatIsShutAlreadyIsShutAgain) {
  if (!MayMount()) NOT_RUN("no mount namespace can be made here");
  EXPECT_EQ(InAProcess([] {
              RootFailure failure;
              if (!Shut(DirectoriesInRoot(), &failure)) return 1;
              return Shut(DirectoriesInRoot(), &failure) ? 0 : 2;
            }),
            0);
}

TEST(RootThatCannotBeShutIsAFailure) {
  EXPECT_EQ(InAProcess([] {
              DropCapabilities();
              RootFailure failure;
              if (Shut({}, &failure)) return 1;
              return IsStage(failure, "root.namespace") && failure.error == -EPERM ? 0 : 2;
            }),
            0);
  if (!MayMount()) NOT_RUN("no mount namespace can be made here");
  TemporaryDirectory directory;
  // A root that is no mount cannot be made read-only by itself.
  EXPECT_EQ(InAProcess([&] {
              if (chroot(directory.path().c_str()) != 0) return kNoNamespaces;
              RootFailure failure;
              if (Shut({}, &failure)) return 1;
              return IsStage(failure, "root.propagation") ? 0 : 2;
            }),
            0);
}

TEST(RootUnderAnotherOneIsNotShut) {
  if (!MayMount()) NOT_RUN("no mount namespace can be made here");
  const int step = InAProcess([] {
    if (unshare(CLONE_NEWNS) != 0) return kNoNamespaces;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 1;
    // The same file system, so that only the mount tells: what `read-only /` of Firejail does.
    if (mount("/", "/", nullptr, MS_BIND | MS_REC, nullptr) != 0) return 2;
    if (mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) return 3;
    RootFailure failure;
    if (IsRootShut(&failure) || !IsStage(failure, "root.covered")) return 4;
    RootFailure again;
    if (Shut(DirectoriesInRoot(), &again)) return 5;
    return IsStage(again, "root.covered") ? 0 : 6;
  });
  EXPECT_EQ(step, 0);
}

TEST(RootOfItsOwnerIsOpenEvenIfItCannotBeWritten) {
  if (!test::IsRootOfTheHost()) NOT_RUN("only root can make files of others");
  if (!MayMount()) NOT_RUN("no mount namespace can be made here");
  const auto judged = [](uid_t owner, mode_t mode) {
    // Not in that process, which does not come to its end.
    TemporaryDirectory directory;
    return InAProcess([&] {
      if (unshare(CLONE_NEWNS) != 0) return kNoNamespaces;
      if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 10;
      if (mount("root", directory.path().c_str(), "tmpfs", 0, nullptr) != 0) return 11;
      if (chown(directory.path().c_str(), owner, 12345) != 0) return 12;
      if (chmod(directory.path().c_str(), mode) != 0) return 13;
      if (chroot(directory.path().c_str()) != 0 || DropCapabilities() != 0) return 14;
      RootFailure failure;
      if (IsRootShut(&failure)) return 0;
      return IsStage(failure, "root.open") ? 1 : 2;
    });
  };
  EXPECT_EQ(judged(geteuid(), 0755), 1);
  EXPECT_EQ(judged(geteuid(), 0555), 1);
  // It cannot even be looked at.
  EXPECT_EQ(judged(geteuid(), 0), 2);
  EXPECT_EQ(judged(12345, 0757), 1);
  EXPECT_EQ(judged(12345, 0755), 0);
  EXPECT_EQ(judged(12345, 0701), 0);
}

}  // namespace
}  // namespace sandbox_run
