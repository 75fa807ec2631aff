#include "notify/host_object.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

namespace fs = std::filesystem;

struct Place {
  Place() {
    char name[] = "/var/tmp/host-object-XXXXXX";
    root = fs::canonical(mkdtemp(name));
    fs::create_directories(root / "a/b");
    std::ofstream(root / "a/b/file") << "x";
    fs::create_symlink("a/b", root / "link");
    fs::create_symlink(root / "a", root / "absolute");
    fs::create_symlink("../link/file", root / "a/up");
    fs::create_symlink("loop", root / "loop");
    fs::create_symlink("nothing", root / "dangling");
  }
  ~Place() { fs::remove_all(root); }
  std::string At(const char* path) const { return root.string() + "/" + path; }
  fs::path root;
};

std::string PathAt(const Place& place, const char* path, bool follows = true) {
  return FindOnHost(place.At(path), follows).path;
}

TEST(HostObjectIsFoundWithoutLinksOnTheWay) {
  const Place place;
  const std::string file = place.At("a/b/file");
  for (const char* path :
       {"a/b/file", "link/file", "absolute/b/file", "a/up", "a/../a/./b//file", "link/../b/file"}) {
    EXPECT_EQ(PathAt(place, path), file);
    EXPECT_TRUE(FindOnHost(place.At(path), true).object.valid());
  }
  EXPECT_EQ(FindOnHost("/..", true).path, std::string("/"));
  EXPECT_EQ(PathAt(place, "a/b/.."), place.At("a"));
}

TEST(HostObjectAtTheEndIsTheLinkItself) {
  const Place place;
  const HostObject link = FindOnHost(place.At("link"), false);
  EXPECT_TRUE(S_ISLNK(link.mode));
  EXPECT_EQ(link.path, place.At("link"));
}

TEST(HostObjectThatIsMissingHasADirectory) {
  const Place place;
  const HostObject missing = FindOnHost(place.At("link/new"), true);
  EXPECT_TRUE(!missing.object.valid());
  EXPECT_TRUE(missing.parent.valid());
  EXPECT_EQ(missing.path, place.At("a/b/new"));
  EXPECT_EQ(PathAt(place, "dangling"), place.At("nothing"));
  for (const char* path : {"none/new", "a/b/file/new", "loop", "loop/x"})
    EXPECT_EQ(PathAt(place, path), std::string());
}

TEST(HostObjectIsAskedForWhatMayBeDone) {
  const Place place;
  const std::string file = place.At("a/b/file");
  EXPECT_TRUE(MayDo(FindOnHost(file, true).object, R_OK | W_OK));
  EXPECT_TRUE(!MayDo(FindOnHost(file, true).object, X_OK));
  EXPECT_TRUE(!MayDo(FindOnHost(place.At("none"), true).object, R_OK));
}

// As another user than root, in a child: what it may do with files that belong to others.
TEST(HostObjectOfAnotherIsNotOursToRemoveOrChange) {
  if (!test::IsRootOfTheHost()) NOT_RUN("only root can make files of others");
  constexpr uid_t kUser = 65534, kOther = 65533;
  const Place place;
  const auto is_owned = [&place](const char* path, uid_t owner, mode_t mode) {
    const std::string whole = place.At(path);
    return chown(whole.c_str(), owner, owner) == 0 && chmod(whole.c_str(), mode) == 0;
  };
  std::ofstream(place.At("a/own")) << "x";
  EXPECT_TRUE(chmod(place.At("").c_str(), 0755) == 0);
  EXPECT_TRUE(is_owned("a", kOther, 01777) && is_owned("a/b", kOther, 0777));
  EXPECT_TRUE(is_owned("a/b/file", kOther, 0666) && is_owned("a/own", kUser, 0444));
  const pid_t child = fork();
  if (child == 0) {
    const bool is_user = setgid(kUser) == 0 && setuid(kUser) == 0;
    const HostObject own = FindOnHost(place.At("a/own"), false);
    const HostObject in_sticky = FindOnHost(place.At("a/b"), false);
    const HostObject other = FindOnHost(place.At("a/b/file"), false);
    const bool right = is_user && MayRemove(own) && MayChange(own.object) &&
                       !MayRemove(in_sticky) && MayRemove(other) && MayDo(other.object, W_OK) &&
                       !MayChange(other.object);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sandbox_run
