#include "notify/host_object.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "check.h"

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

}  // namespace
}  // namespace sandbox_run
