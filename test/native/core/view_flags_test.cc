#include "core/view_flags.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::TemporaryDirectory;

constexpr int kNoNamespaces = 77;

// What `body` returns, in a process with mounts of its own.
int InOwnMounts(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const bool own =
        geteuid() == 0 ? unshare(CLONE_NEWNS) == 0 : unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!own || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      _exit(kNoNamespaces);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

unsigned long FlagsOf(const std::string& path) {
  struct statvfs info {};
  return statvfs(path.c_str(), &info) == 0 ? info.f_flag : ~0ul;
}

bool Mount(const std::string& place, unsigned long flags) {
  return mkdir(place.c_str(), 0755) == 0 &&
         mount("test", place.c_str(), "tmpfs", flags, "size=1m") == 0;
}

TEST(FlagsOfATreeOfMountsAreAddedToEachOfThemAndToNoOther) {
  const TemporaryDirectory top;
  const int step = InOwnMounts([&] {
    const std::string tree = top / "tree", inner = tree + "/with blank\tand \\012 in it";
    const std::string beside = top / "tree-beside";
    if (!Mount(tree, MS_NOEXEC) || !Mount(inner, 0) || !Mount(inner + "/deep", MS_NOSUID)) return 1;
    if (!Mount(beside, 0)) return 2;
    if (AddFlagsToTree(tree.c_str(), MS_RDONLY | MS_NODEV) != 0) return 3;
    for (const std::string& place : {tree, inner, inner + "/deep"}) {
      if ((FlagsOf(place) & (ST_RDONLY | ST_NODEV)) != (ST_RDONLY | ST_NODEV)) return 4;
      if (open((place + "/new").c_str(), O_CREAT | O_WRONLY, 0600) >= 0 || errno != EROFS) return 5;
    }
    // What they had they keep.
    if ((FlagsOf(tree) & ST_NOEXEC) == 0 || (FlagsOf(inner + "/deep") & ST_NOSUID) == 0) return 6;
    return (FlagsOf(beside) & ST_RDONLY) == 0 ? 0 : 7;
  });
  if (step == kNoNamespaces) NOT_RUN("no mount namespace can be made here");
  EXPECT_EQ(step, 0);
}

TEST(FlagsOfATreeThatIsNoMountAreAnError) {
  const TemporaryDirectory top;
  const int step = InOwnMounts([&] {
    const std::string tree = top / "a", link = top / "link";
    if (!Mount(tree, 0) || symlink(tree.c_str(), link.c_str()) != 0) return 1;
    // A link leads nowhere: what is meant is the name of a mount.
    if (AddFlagsToTree(link.c_str(), MS_RDONLY) != -ENOENT) return 2;
    return (FlagsOf(tree) & ST_RDONLY) == 0 ? 0 : 3;
  });
  if (step == kNoNamespaces) NOT_RUN("no mount namespace can be made here");
  EXPECT_EQ(step, 0);
}

}  // namespace
}  // namespace sandbox_run
