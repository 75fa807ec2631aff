#include "core/slot_paths.h"

#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "check.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::TemporaryDirectory;

// Longer than the clock of file systems takes for a tick.
void LetSettle() { std::this_thread::sleep_for(std::chrono::milliseconds(40)); }

bool Exists(ManyLooks& looks, const std::string& path) {
  const Result<Found> found = looks.For(path, "look");
  return found.ok() && found.value().exists;
}

TEST(ManyLooksFindWhatIsThereAndNothingElse) {
  const TemporaryDirectory top;
  for (const char* name : {".git", "Makefile", ".vscode"}) test::WriteText(top / name, "x");
  LetSettle();
  ManyLooks looks;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Exists(looks, top / "none" + std::to_string(i)), false);
  for (const char* name : {".git", "Makefile", ".vscode"}) EXPECT_TRUE(Exists(looks, top / name));
  // Where case counts the name is another one, which the directory itself says.
  EXPECT_EQ(Exists(looks, top / "makefile"), false);
}

TEST(ManyLooksTrustNoListingThatMayBeIncomplete) {
  const TemporaryDirectory top;
  test::WriteText(top / "before", "x");
  ManyLooks looks;
  // It changed just now: each name is looked at, also one that comes later.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Exists(looks, top / "none" + std::to_string(i)), false);
  test::WriteText(top / "later", "x");
  EXPECT_TRUE(Exists(looks, top / "later"));
}

TEST(ManyLooksAskForNamesThatAFileSystemMayFold) {
  const TemporaryDirectory top;
  // On a file system that ignores case "gitK" may be this one, with a Kelvin sign.
  test::WriteText(top / "git\xe2\x84\xaa", "x");
  LetSettle();
  ManyLooks looks;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Exists(looks, top / "none" + std::to_string(i)), false);
  test::WriteText(top / "later", "x");
  EXPECT_TRUE(Exists(looks, top / "later"));
}

TEST(ManyLooksFailWhereNamesCanOnlyBeListed) {
  if (geteuid() == 0) NOT_RUN("root may look everywhere");
  const TemporaryDirectory top;
  mkdir((top / "listed").c_str(), 0700);
  test::WriteText(top / "listed/file", "x");
  chmod((top / "listed").c_str(), 0600);
  LetSettle();
  ManyLooks looks;
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(looks.For(top / "listed/none" + std::to_string(i), "look").ok(), false);
  chmod((top / "listed").c_str(), 0700);
}

}  // namespace
}  // namespace sandbox_run
