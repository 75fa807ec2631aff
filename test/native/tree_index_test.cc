#include "index/tree_index.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "hosted.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::NextTick;
using test::ShellCommand;
using test::TemporaryDirectory;
using test::WriteText;

struct Tree {
  TemporaryDirectory top;
  IndexSpec spec;
  std::shared_ptr<TreeIndex> index;

  Tree() {
    spec.root = top.path();
    spec.names = {".git", ".envrc", "package.json"};
    spec.suffixes = {".iml"};
    spec.git_names = {"config", "HEAD"};
    spec.max_directories = 1000;
  }
  void Directories(std::initializer_list<const char*> paths) const {
    for (const char* path : paths) EXPECT_EQ(mkdir((top / path).c_str(), 0700), 0);
  }
  void File(const std::string& path, const std::string& text = "x") const {
    WriteText(top / path, text);
  }
  void Repository(const std::string& path) const {
    for (const char* part : {"", "/.git", "/.git/hooks", "/.git/objects", "/.git/objects/aa"}) {
      mkdir((top / path + part).c_str(), 0700);
    }
    File(path + "/.git/HEAD");
    File(path + "/.git/config");
    File(path + "/.git/hooks/a.sample");
  }
  // As a user leaves it: nothing of it is new.
  Indexed Read() {
    index = std::make_shared<TreeIndex>(spec);
    NextTick();
    Result<Indexed> read = index->Read();
    EXPECT_TRUE(read.ok());
    return read.ok() ? std::move(read.value()) : Indexed();
  }
  std::string Show(const Indexed& indexed) const {
    std::vector<std::string> paths;
    for (const IndexEntry& entry : indexed.entries) {
      paths.push_back(entry.path.substr(top.path().size() + 1));
    }
    return Join(paths);
  }
  std::string Show(const LeftBehind& left) const {
    std::vector<std::string> lines;
    for (const ChangedEntry& one : left.entries) {
      const char* changes[] = {"+", "~", "-"};
      lines.push_back((one.earlier ? "?" : "") +
                      std::string(changes[static_cast<size_t>(one.change)]) +
                      one.entry.path.substr(top.path().size() + 1));
    }
    return Join(lines);
  }
  static std::string Join(std::vector<std::string>& lines) {
    std::sort(lines.begin(), lines.end());
    std::string joined;
    for (const std::string& line : lines) joined += (joined.empty() ? "" : " ") + line;
    return joined;
  }
  template <typename Act>
  std::string During(Act act) {
    const auto activity = index->Begin();
    act();
    return Show(activity->Look());
  }
  std::string DuringShell(const std::string& script) {
    return During(
        [&] { EXPECT_EQ(system(("cd '" + top.path() + "' && { " + script + "; }").c_str()), 0); });
  }
};

TEST(IndexNotesWhatItIsToldTo) {
  Tree tree;
  tree.Repository("repo");
  tree.Directories({"a", "a/b", "node_modules", "node_modules/.bin", "node_modules/one",
                    "node_modules/one/lib", "node_modules/@s", "node_modules/@s/two",
                    "node_modules/@s/two/node_modules", "bare", "bare/hooks", "other",
                    "other/hooks"});
  tree.File("a/b/x.iml");
  tree.File("a/b/config");
  tree.File("repo/.git/hooks/pre-commit");
  tree.File("repo/.git/objects/aa/package.json");
  tree.File("node_modules/.bin/tool");
  EXPECT_EQ(symlink("../one/x", (tree.top / "node_modules/.bin/link").c_str()), 0);
  tree.File("node_modules/one/package.json");
  tree.File("node_modules/one/lib/package.json");
  tree.File("node_modules/@s/two/package.json");
  tree.File("bare/HEAD");
  tree.File("bare/config");
  tree.File("bare/hooks/update");
  tree.File("other/hooks/update");
  EXPECT_EQ(symlink("/etc", (tree.top / "a/etc").c_str()), 0);
  const Indexed indexed = tree.Read();
  EXPECT_EQ(tree.Show(indexed),
            "a/b/x.iml bare/HEAD bare/config bare/hooks/update node_modules/.bin/tool "
            "repo/.git "
            "repo/.git/HEAD repo/.git/config repo/.git/hooks/pre-commit");
  EXPECT_EQ(indexed.directories, 15u);
  EXPECT_TRUE(!indexed.spent);
}

// From the third look on it has the kernel tell in which directories something came.
LONG_TEST(IndexTellsTheSameOfDirectoriesThatItWatches) {
  Tree tree;
  tree.Directories({"a", "a/b", "c"});
  tree.Read();
  const auto watch = [&tree] {
    NextTick();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(tree.DuringShell("true"), "");
    NextTick();
  };
  watch();
  EXPECT_EQ(tree.DuringShell("touch a/b/.envrc"), "+a/b/.envrc");
  EXPECT_EQ(tree.DuringShell("mv a/b c/d"), "+c/d/.envrc -a/b/.envrc");
  watch();
  EXPECT_EQ(tree.DuringShell("rm c/d/.envrc; mkdir -p a/e/f; touch a/e/f/x.iml"),
            "+a/e/f/x.iml -c/d/.envrc");
  watch();
  // Another directory under the same name, and the old one elsewhere.
  EXPECT_EQ(tree.DuringShell("mv c/d old; mkdir c/d; touch c/d/.envrc old/package.json"),
            "+c/d/.envrc +old/package.json");
  watch();
  // More than the kernel remembers.
  EXPECT_EQ(tree.DuringShell("for i in $(seq 9000); do : > a/$i; done; rm a/[0-9]*; "
                             "touch old/x.iml"),
            "+old/x.iml");
  watch();
  EXPECT_EQ(tree.DuringShell("rm -r a c; mkdir -p c/.git; touch c/.git/config"),
            "+c/.git +c/.git/config -a/e/f/x.iml -c/d/.envrc");
}

// inotify(7) says nothing of a mount: that the table of mounts changed is what is noticed.
TEST(IndexThatWatchesSeesWhatIsMountedOverADirectory) {
  if (unshare(CLONE_NEWNS) != 0) return;  // an ordinary user's processes mount nothing
  EXPECT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  Tree tree;
  const TemporaryDirectory elsewhere;
  EXPECT_EQ(mkdir((elsewhere / "d").c_str(), 0700), 0);
  UniqueFd(open((elsewhere / "d/.envrc").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  tree.Directories({"a", "a/b"});
  tree.Read();
  NextTick();
  for (int look = 0; look < 6; ++look) EXPECT_EQ(tree.During([] {}), "");
  const std::string over = tree.top / "a/b";
  NextTick();
  EXPECT_EQ(tree.During([&] {
    EXPECT_EQ(mount((elsewhere / "d").c_str(), over.c_str(), nullptr, MS_BIND, nullptr), 0);
    // Only what is made or changed meanwhile is the command's.
    UniqueFd(open((over + "/x.iml").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }),
            "+a/b/x.iml");
  EXPECT_EQ(umount2(over.c_str(), MNT_DETACH), 0);
}

// What happened while it could not look is not taken for the user's afterwards.
TEST(IndexOwesWhatItCouldNotLookAt) {
  Tree tree;
  tree.Directories({"a"});
  tree.Read();
  const auto activity = tree.index->Begin();
  tree.File("a/.envrc");
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const LeftBehind nothing = activity->Look();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(tree.Show(nothing), "");
  EXPECT_TRUE(!nothing.unreadable.empty());
  NextTick();
  EXPECT_EQ(tree.DuringShell("true"), "?+a/.envrc");
}

TEST(IndexTellsWhatACommandDid) {
  Tree tree;
  tree.Repository("repo");
  tree.File("package.json");
  tree.File(".envrc");
  tree.Read();
  EXPECT_EQ(tree.DuringShell("true"), "");
  EXPECT_EQ(tree.DuringShell("touch x repo/y; mkdir new; touch new/z; rm -r new"), "");
  EXPECT_EQ(tree.DuringShell("echo evil > repo/.git/hooks/pre-commit; rm .envrc; "
                             "echo y > package.json; mkdir -p d/e; touch d/e/m.iml"),
            "+d/e/m.iml +repo/.git/hooks/pre-commit -.envrc ~package.json");
  NextTick();
  EXPECT_EQ(tree.DuringShell("true"), "");
  EXPECT_EQ(tree.DuringShell("chmod +x repo/.git/hooks/pre-commit"), "~repo/.git/hooks/pre-commit");
  NextTick();
  EXPECT_EQ(tree.DuringShell("rm -r d"), "-d/e/m.iml");
  NextTick();
  // In place, of the same size, with the old times, as fast as can be.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(tree.DuringShell("touch -r package.json t; printf z > package.json; "
                               "touch -r t package.json"),
              "~package.json");
  }
}

TEST(IndexSeesDirectoriesThatWereOnlyMoved) {
  Tree tree;
  const TemporaryDirectory elsewhere;
  tree.Directories({"a", "b"});
  tree.Repository("a/repo");
  tree.Read();
  EXPECT_EQ(tree.DuringShell("mv a/repo b/"),
            "+b/repo/.git +b/repo/.git/HEAD +b/repo/.git/config -a/repo/.git -a/repo/.git/HEAD "
            "-a/repo/.git/config");
  // Swapped for another of the same names.
  EXPECT_EQ(tree.DuringShell("cp -r b/repo c && mv b/repo d && mv c b/repo && rm -r d"),
            "~b/repo/.git ~b/repo/.git/HEAD ~b/repo/.git/config");
  // Away and back is nothing new.
  EXPECT_EQ(tree.DuringShell("mv b/repo c; mv c b/repo"), "");
  // From outside, with old times.
  mkdir((elsewhere / "r").c_str(), 0700);
  WriteText(elsewhere / "r/.envrc", "x");
  NextTick();
  EXPECT_EQ(tree.DuringShell("mv '" + (elsewhere / "r") + "' b/"), "+b/r/.envrc");
}

TEST(IndexPassesOverTheUsersOwn) {
  Tree tree;
  tree.Repository("repo");
  tree.Directories({"mine"});
  tree.File(".envrc");
  tree.Read();
  tree.File("repo/.git/hooks/post-commit");
  tree.File(".envrc", "longer");
  tree.File("mine/package.json");
  tree.Repository("clone");
  NextTick();
  // Even where the command changes the same directories.
  EXPECT_EQ(tree.DuringShell("touch repo/.git/hooks/x.sample mine/x clone/x"), "");
  tree.File("mine/new.iml");
  NextTick();
  EXPECT_EQ(tree.DuringShell("touch mine/other.iml"), "+mine/other.iml");
}

TEST(IndexTellsEachChangeOnceAndSaysWhatMayBeOfAnother) {
  Tree tree;
  tree.Directories({"a"});
  tree.Read();
  const auto first = tree.index->Begin();
  tree.File("a/one.iml");
  NextTick();
  {
    const auto second = tree.index->Begin();
    tree.File("a/two.iml");
    NextTick();
    EXPECT_EQ(tree.Show(second->Look()), "+a/two.iml ?+a/one.iml");
  }
  NextTick();
  EXPECT_EQ(tree.Show(first->Look()), "");
}

TEST(IndexTellsWhatCameBetweenTurns) {
  Tree tree;
  tree.Read();
  const auto shell = tree.index->Begin();
  shell->BeginTurn(FileClockNow());
  EXPECT_EQ(tree.Show(shell->Look()), "");
  NextTick();
  tree.File("between.iml");
  NextTick();
  shell->BeginTurn(FileClockNow());
  tree.File("during.iml");
  EXPECT_EQ(tree.Show(shell->Look()), "+during.iml ?+between.iml");
}

TEST(IndexSeesADirectoryBecomeOneOfGit) {
  Tree tree;
  tree.Directories({"bare", "bare/hooks"});
  tree.File("bare/hooks/update");
  tree.File("bare/config");
  EXPECT_EQ(tree.Show(tree.Read()), "");
  EXPECT_EQ(tree.DuringShell("touch bare/HEAD"), "+bare/HEAD +bare/config +bare/hooks/update");
}

TEST(IndexThatGaveBackItsWatchesTellsTheSame) {
  Tree tree;
  tree.Directories({"a", "b"});
  tree.Read();
  for (int look = 0; look < 6; ++look) EXPECT_EQ(tree.During([] {}), "");
  for (int again = 0; again < 2; ++again) {
    tree.index->StopWatching();
    for (const std::string name : {"a/.envrc", "b/.envrc"}) {
      NextTick();
      EXPECT_EQ(tree.During([&] { tree.File(name); }), "+" + name);
      EXPECT_EQ(tree.During([&] { unlink((tree.top / name).c_str()); }), "-" + name);
    }
  }
}

TEST(IndexWatchesFurtherPaths) {
  Tree tree;
  const TemporaryDirectory elsewhere;
  const std::string path = elsewhere / "d/file";
  const auto during = [&](const std::string& script) {
    const auto activity = tree.index->Begin();
    EXPECT_EQ(system(("cd '" + elsewhere.path() + "'; " + script).c_str()), 0);
    const LeftBehind left = activity->Look();
    if (left.entries.size() != 1) return std::to_string(left.entries.size());
    EXPECT_EQ(left.entries[0].entry.path, path);
    return std::string(left.entries[0].change == EntryChange::kAppeared   ? "+"
                       : left.entries[0].change == EntryChange::kVanished ? "-"
                                                                          : "~");
  };
  tree.Read();
  tree.index->WatchPaths({path});
  NextTick();
  EXPECT_EQ(during("true"), "0");
  EXPECT_EQ(during("mkdir e; touch e/file"), "0");
  NextTick();
  EXPECT_EQ(during("mv e d"), "+");
  EXPECT_EQ(during("echo x >> d/file"), "~");
  EXPECT_EQ(during("mv d e"), "-");
  EXPECT_EQ(during("true"), "0");
  mkdir((elsewhere / "d").c_str(), 0700);
  WriteText(path, "x");
  NextTick();
  EXPECT_EQ(during("true"), "0");
}

TEST(IndexDoesNotFollowLinksThatTakeAPlace) {
  Tree tree;
  const TemporaryDirectory elsewhere;
  mkdir((elsewhere / "b").c_str(), 0700);
  WriteText(elsewhere / "b/.envrc", "x");
  tree.Directories({"a", "a/b"});
  tree.File("a/b/.envrc");
  tree.Read();
  EXPECT_EQ(tree.DuringShell("mv a z; ln -s '" + elsewhere.path() + "' a"),
            "+z/b/.envrc -a/b/.envrc");
  EXPECT_EQ(tree.DuringShell("echo more >> a/b/.envrc"), "");
}

TEST(IndexSaysWhatItCouldNotLookAt) {
  Tree tree;
  if (geteuid() == 0) NOT_RUN("root reads everything");
  tree.Directories({"shut", "later"});
  tree.File("shut/.envrc");
  chmod((tree.top / "shut").c_str(), 0);
  const Indexed indexed = tree.Read();
  ASSERT_EQ(indexed.unreadable.size(), 1u);
  EXPECT_EQ(indexed.unreadable[0], tree.top / "shut");
  const auto look = [&tree](const std::string& script) {
    const auto activity = tree.index->Begin();
    EXPECT_EQ(system(("cd '" + tree.top.path() + "'; " + script).c_str()), 0);
    return activity->Look();
  };
  EXPECT_TRUE(look("true").empty());
  const LeftBehind left = look("touch later/.envrc; chmod 0 later");
  ASSERT_EQ(left.unreadable.size(), 1u);
  EXPECT_EQ(left.unreadable[0], tree.top / "later");
  EXPECT_TRUE(look("true").empty());
  NextTick();
  EXPECT_EQ(tree.Show(look("chmod 700 shut later")), "+later/.envrc +shut/.envrc");
}

TEST(IndexIsReadWithinItsBudgetAndSaysSo) {
  Tree tree;
  tree.Directories({"a", "a/b", "a/b/c"});
  tree.File("a/b/c/.envrc");
  tree.spec.max_directories = 3;
  const Indexed indexed = tree.Read();
  EXPECT_TRUE(indexed.spent);
  EXPECT_EQ(indexed.directories, 3u);
  // What was not known is not taken for new; what comes is.
  EXPECT_EQ(tree.DuringShell("touch a/b/x; mkdir a/b/d; touch a/b/d/.envrc"), "+a/b/d/.envrc");
}

// What is read again says what a first walk says, whatever was done to hide it; so does what
// another process does with what was saved before.
TEST(IndexThatIsReadAgainSaysWhatAnotherOneWould) {
  Tree tree;
  tree.Directories({"a", "a/deep", "b", "b/sub", "bare", "same"});
  tree.Repository("b/sub");
  EXPECT_EQ(tree.Show(tree.Read()), "b/sub/.git b/sub/.git/HEAD b/sub/.git/config");
  std::string saved = tree.index->Save();
  const auto read_again = [&tree, &saved](const char* expected) {
    TreeIndex recalled(tree.spec);
    recalled.Recall(saved);
    Result<Indexed> by_saved = recalled.Read();
    EXPECT_EQ(tree.Show(by_saved.value()), expected);
    Result<Indexed> again = tree.index->Read();
    EXPECT_TRUE(again.ok());
    if (!again.ok()) return;
    EXPECT_EQ(tree.Show(again.value()), expected);
    EXPECT_TRUE(again.value().unreadable.empty());
    TreeIndex other(tree.spec);
    Result<Indexed> first = other.Read();
    EXPECT_EQ(tree.Show(first.value()), expected);
    EXPECT_EQ(again.value().directories, first.value().directories);
    EXPECT_EQ(by_saved.value().directories, first.value().directories);
    saved = recalled.Save();
    EXPECT_TRUE(!saved.empty());
  };
  read_again("b/sub/.git b/sub/.git/HEAD b/sub/.git/config");
  // In a directory that was there, with the times that it had.
  struct stat before;
  EXPECT_EQ(stat((tree.top / "a/deep").c_str(), &before), 0);
  tree.Repository("a/deep");
  const timespec times[] = {before.st_atim, before.st_mtim};
  EXPECT_EQ(utimensat(AT_FDCWD, (tree.top / "a/deep").c_str(), times, 0), 0);
  read_again(
      "a/deep/.git a/deep/.git/HEAD a/deep/.git/config b/sub/.git b/sub/.git/HEAD "
      "b/sub/.git/config");
  // One directory in the place of the other, both as they were.
  EXPECT_EQ(renameat2(AT_FDCWD, (tree.top / "a").c_str(), AT_FDCWD, (tree.top / "b").c_str(),
                      RENAME_EXCHANGE),
            0);
  read_again(
      "a/sub/.git a/sub/.git/HEAD a/sub/.git/config b/deep/.git b/deep/.git/HEAD "
      "b/deep/.git/config");
  std::filesystem::remove_all(tree.top / "a");
  std::filesystem::remove_all(tree.top / "b/deep");
  read_again("");
  // What is in it had no meaning before.
  tree.File("bare/config");
  read_again("");
  tree.File("bare/HEAD");
  read_again("bare/HEAD bare/config");
  unlink((tree.top / "bare/HEAD").c_str());
  unlink((tree.top / "bare/config").c_str());
  // Made and made again in no time, before and after a look.
  for (int i = 0; i < 300; ++i) {
    tree.File("same/.envrc");
    read_again("same/.envrc");
    unlink((tree.top / "same/.envrc").c_str());
    read_again("");
  }
  EXPECT_EQ(rename((tree.top / "same").c_str(), (tree.top / "other").c_str()), 0);
  tree.Directories({"same"});
  tree.File("other/.envrc");
  read_again("other/.envrc");
}

// Read by another process: what was saved, with the moment at which it is given.
Indexed Recalled(const Tree& tree, const std::string& saved, const SavedMoment& now) {
  TreeIndex index(tree.spec);
  index.Recall(saved, now);
  Result<Indexed> read = index.Read();
  EXPECT_TRUE(read.ok());
  return read.ok() ? std::move(read.value()) : Indexed();
}

TEST(SavedIndexIsReadOnlyWhereSomethingChanged) {
  Tree tree;
  tree.Directories({"a", "a/b", "a/c", "d"});
  tree.File("d/.envrc");
  EXPECT_EQ(tree.Read().read, 5u);
  std::string saved = tree.index->Save();
  const auto recalled = [&] { return Recalled(tree, saved, SavedMoment::Now()); };
  EXPECT_EQ(recalled().read, 0u);
  EXPECT_EQ(recalled().directories, 5u);
  EXPECT_EQ(tree.Show(recalled()), "d/.envrc");
  tree.File("a/c/.envrc");
  EXPECT_EQ(recalled().read, 1u);
  EXPECT_EQ(tree.Show(recalled()), "a/c/.envrc d/.envrc");
  // What was done between two processes is nobody's to be told; what a command does is.
  tree.index = std::make_shared<TreeIndex>(tree.spec);
  tree.index->Recall(saved);
  EXPECT_TRUE(tree.index->Read().ok());
  NextTick();
  EXPECT_EQ(tree.DuringShell("touch a/b/.envrc; rm d/.envrc; mv a/c e"),
            "+a/b/.envrc +e/.envrc -a/c/.envrc -d/.envrc");
  // A look in the tick of a change does not say what comes later in it.
  for (int i = 0; i < 100; ++i) {
    const std::string name = "d/" + std::to_string(i);
    tree.Directories({name.c_str()});
    saved = tree.index->Save();
    tree.File(name + "/.envrc");
    const std::string shown = tree.Show(recalled());
    EXPECT_TRUE(shown.find(name + "/.envrc") != std::string::npos);
    EXPECT_TRUE(tree.index->Read().ok());
  }
}

TEST(SavedIndexIsPassedOverWhereItsTimesMeanNothing) {
  Tree tree;
  tree.Directories({"a", "a/b"});
  tree.Read();
  constexpr int64_t kSecond = 1'000'000'000;
  const SavedMoment now = SavedMoment::Now();
  const std::string saved = tree.index->Save(now);
  const auto read_at = [&](SavedMoment moment) { return Recalled(tree, saved, moment).read; };
  EXPECT_EQ(read_at(now), 0u);
  // Set forward, no time comes again.
  EXPECT_EQ(read_at({now.of, now.real_ns + 90 * kSecond, now.counted_ns}), 0u);
  // Set back: at once, and by as much as has passed since.
  EXPECT_EQ(read_at({now.of, now.real_ns - kSecond, now.counted_ns}), 3u);
  EXPECT_EQ(read_at({now.of, now.real_ns + kSecond, now.counted_ns + 3 * kSecond}), 3u);
  EXPECT_EQ(read_at({now.of, now.real_ns, now.counted_ns - 1}), 3u);
  // Of another boot or addon, and where none is known.
  EXPECT_EQ(read_at({now.of + "x", now.real_ns, now.counted_ns}), 3u);
  EXPECT_EQ(read_at({"", now.real_ns, now.counted_ns}), 3u);
  EXPECT_EQ(tree.index->Save({"", now.real_ns, now.counted_ns}), "");
  // Other names are looked for, or somewhere else.
  tree.File("a/b/added");
  tree.spec.names.push_back("added");
  EXPECT_EQ(tree.Show(Recalled(tree, saved, now)), "a/b/added");
  Tree other;
  other.Directories({"a"});
  EXPECT_EQ(Recalled(other, saved, now).read, 2u);
}

TEST(SavedIndexThatIsDamagedIsPassedOver) {
  Tree tree;
  tree.Directories({"a", "a/b"});
  tree.Repository("a/b");
  const std::string all = tree.Show(tree.Read());
  const SavedMoment now = SavedMoment::Now();
  const std::string saved = tree.index->Save(now);
  EXPECT_EQ(Recalled(tree, saved, now).read, 0u);
  const size_t directories = Recalled(tree, saved, now).directories;
  for (size_t at = 0; at < saved.size(); ++at) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_EQ(Recalled(tree, damaged, now).read, directories);
    EXPECT_EQ(Recalled(tree, saved.substr(0, at), now).read, directories);
    // With the sum that belongs to it: it may say what it likes, and nothing is read beyond it.
    for (const int change : {0x01, 0x40, 0xff}) {
      damaged = saved.substr(0, saved.size() - sizeof(uint64_t));
      if (at >= damaged.size()) break;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      SavedWriter forged;
      for (const char byte : damaged) forged.Put(byte);
      TreeIndex index(tree.spec);
      index.Recall(std::move(forged).Take(), now);
      EXPECT_TRUE(index.Read().ok());
    }
  }
  EXPECT_EQ(tree.Show(Recalled(tree, saved + "x", now)), all);
}

TEST(SavedIndexSaysNothingOfAnotherFileSystem) {
  Tree tree;
  tree.Directories({"a", "a/deep", "b"});
  if (unshare(CLONE_NEWNS) != 0) return;
  EXPECT_EQ(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  const std::string at = tree.top / "a";
  EXPECT_EQ(mount("none", at.c_str(), "tmpfs", 0, nullptr), 0);
  tree.Directories({"a/mounted"});
  tree.Read();
  const std::string saved = tree.index->Save();
  const auto recalled = [&] { return Recalled(tree, saved, SavedMoment::Now()); };
  // Another one may get the number of its device, with the same numbers and times in it.
  EXPECT_EQ(recalled().read, 2u);
  EXPECT_EQ(recalled().directories, 4u);
  tree.File("a/mounted/.envrc");
  EXPECT_EQ(tree.Show(recalled()), "a/mounted/.envrc");
  EXPECT_EQ(umount2(at.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(tree.Show(recalled()), "");
  tree.File("a/deep/.envrc");
  EXPECT_EQ(tree.Show(recalled()), "a/deep/.envrc");
  // One directory over another.
  tree.File("b/.envrc");
  EXPECT_EQ(tree.Show(recalled()), "a/deep/.envrc b/.envrc");
  EXPECT_EQ(mount(at.c_str(), (tree.top / "b").c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_EQ(tree.Show(recalled()), "a/deep/.envrc b/deep/.envrc");
  EXPECT_EQ(umount2((tree.top / "b").c_str(), MNT_DETACH), 0);
}

// From that many directories on it is looked at them on several threads.
LONG_TEST(IndexOfManyDirectoriesSeesWhatAnotherOneWould) {
  Tree tree;
  tree.spec.max_directories = 5'000;
  for (int i = 0; i < 50; ++i) {
    const std::string outer = std::to_string(i);
    tree.Directories({outer.c_str()});
    for (int j = 0; j < 50; ++j) tree.Directories({(outer + "/" + std::to_string(j)).c_str()});
  }
  tree.Read();
  const std::string saved = tree.index->Save();
  const auto everywhere = [&](const char* expected) {
    EXPECT_EQ(tree.Show(tree.index->Read().value()), expected);
    EXPECT_EQ(tree.Show(Recalled(tree, saved, SavedMoment::Now())), expected);
    TreeIndex other(tree.spec);
    EXPECT_EQ(tree.Show(other.Read().value()), expected);
  };
  everywhere("");
  tree.File("0/.envrc");
  tree.File("49/49/.envrc");
  everywhere("0/.envrc 49/49/.envrc");
  // Two in each other's place, one in that of a file, one gone and one shut.
  EXPECT_EQ(renameat2(AT_FDCWD, (tree.top / "49").c_str(), AT_FDCWD, (tree.top / "7").c_str(),
                      RENAME_EXCHANGE),
            0);
  everywhere("0/.envrc 7/49/.envrc");
  std::filesystem::remove_all(tree.top / "12");
  tree.File("12");
  EXPECT_EQ(symlink("7", (tree.top / "13/link").c_str()), 0);
  std::filesystem::remove_all(tree.top / "14/3");
  EXPECT_EQ(symlink("../7", (tree.top / "14/3").c_str()), 0);
  everywhere("0/.envrc 7/49/.envrc");
  EXPECT_EQ(tree.DuringShell("mkdir 20/7/new; touch 20/7/new/.envrc; rm 0/.envrc; mv 7/49 7/x"),
            "+20/7/new/.envrc +7/x/.envrc -0/.envrc -7/49/.envrc");
}

TEST(IndexOfNothingFailsTheWalkAndTheLaunch) {
  const TemporaryDirectory top;
  IndexSpec spec;
  spec.root = top / "missing";
  spec.max_directories = 10;
  const auto index = std::make_shared<TreeIndex>(spec);
  EXPECT_TRUE(!index->Read().ok());
  GuestSpec guests;
  guests.index = index;
  const Outcome outcome = test::Hosted(test::PermissiveSpec(top.path()), guests).Run("echo ran");
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->stage, std::string("index"));
  EXPECT_EQ(outcome.output[0].kept, "");
}

TEST(CommandTellsWhatItLeftInTheIndex) {
  Tree tree;
  const TemporaryDirectory slots;
  tree.Repository("repo");
  tree.Read();
  GuestSpec guests;
  guests.index = tree.index;
  const test::Hosted hosted(test::PermissiveSpec(slots.path()), guests);
  // What it left behind is ended first, and what that did is told, too.
  GuestEffects seen;
  const Outcome outcome =
      hosted.Run(ShellCommand("cd '" + tree.top.path() +
                              "/repo'; (exec >&- 2>&-; while :; do date > .git/hooks/x; done) & "
                              "echo a > .envrc"),
                 &seen);
  EXPECT_TRUE(outcome.tree_ended);
  const std::string told = tree.Show(seen.left_behind);
  EXPECT_TRUE(told == "+repo/.envrc +repo/.git/hooks/x" || told == "+repo/.envrc");
  hosted.Run(ShellCommand("true"), &seen);
  EXPECT_TRUE(!seen.left_behind.spent);
}

LONG_TEST(IndexHoldsATreeDeeperThanItsThreadsStack) {
  Tree tree;
  tree.Read();
  const auto activity = tree.index->Begin();
  UniqueFd at(open(tree.top.path().c_str(), O_RDONLY | O_DIRECTORY));
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(mkdirat(at.get(), "d", 0700), 0);
    at.reset(openat(at.get(), "d", O_RDONLY | O_DIRECTORY));
  }
  const LeftBehind left = activity->Look();
  // Beyond what a path can name.
  EXPECT_EQ(left.unreadable.size(), 1u);
  at.reset();
  EXPECT_EQ(system(("cd '" + tree.top.path() + "' && rm -r d").c_str()), 0);
  EXPECT_TRUE(activity->Look().entries.empty());
}

TEST(IndexTellsNoMoreThanSomebodyCanListenTo) {
  Tree tree;
  EXPECT_EQ(tree.spec.max_told, 200'000u);
  tree.spec.max_told = 1'000;
  tree.Read();
  const auto activity = tree.index->Begin();
  for (int i = 0; i < 1'250; ++i) tree.File(std::to_string(i) + ".iml");
  const LeftBehind first = activity->Look();
  EXPECT_EQ(first.entries.size(), 1'000u);
  EXPECT_TRUE(first.spent);
  const LeftBehind rest = activity->Look();
  EXPECT_TRUE(!rest.spent);
  // Each of them; one that was made in the tick of a look may be told by both.
  std::set<std::string> told;
  for (const LeftBehind* left : {&first, &rest}) {
    for (const ChangedEntry& entry : left->entries) told.insert(entry.entry.path);
  }
  EXPECT_EQ(told.size(), 1'250u);
}

TEST(IndexIsSharedByThreads) {
  Tree tree;
  tree.Directories({"a", "b"});
  tree.Read();
  std::vector<std::thread> threads;
  size_t told[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round) {
        const auto activity = tree.index->Begin();
        tree.File((i == 0 ? "a/" : "b/") + std::to_string(round) + ".iml");
        told[i] += activity->Look().entries.size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Each at least once; those of one tick maybe twice.
  EXPECT_TRUE(told[0] + told[1] >= 200);
}

}  // namespace
}  // namespace sandbox_run
