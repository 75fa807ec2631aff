#include "sys/control_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "check.h"
#include "core/cgroup_files.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::ReadText;
using test::TemporaryDirectory;
using test::WriteText;

const std::string kService = "/user.slice/user-1000.slice/user@1000.service";
const std::string kApps = kService + "/app.slice";
const std::string kTerminal = kApps + "/app-org.gnome.Terminal.slice";
const std::string kTab = kTerminal + "/vte-spawn-1.scope";
const std::string kOtherTab = kTerminal + "/vte-spawn-2.scope";

// Directories with the files of groups of this user, as systemd makes them for the tabs of a
// terminal. The first group that is the user's is kService: the one around it has no list of
// members, and so is not the user's, whoever runs the test.
class Groups {
 public:
  // Files that the kernel lets be written, with what it says where nothing was set.
  static constexpr std::pair<const char*, const char*> kUnset[] = {
      {"cgroup.freeze", "0\n"},
      {"cgroup.max.depth", "max\n"},
      {"cgroup.max.descendants", "max\n"},
      {"cgroup.type", "domain\n"},
      {"cpu.idle", "0\n"},
      {"cpu.max", "max 100000\n"},
      {"cpu.weight", "100\n"},
      {"cpuset.cpus", "\n"},
      {"cpuset.mems", "\n"},
      {"io.latency", ""},
      {"io.max", ""},
      {"io.weight", "default 100\n"},
      {"memory.high", "max\n"},
      {"memory.low", "0\n"},
      {"memory.max", "max\n"},
      {"memory.min", "0\n"},
      {"memory.oom.group", "0\n"},
      {"memory.swap.max", "max\n"},
      {"memory.zswap.writeback", "1\n"},
  };

  Groups() {
    for (const std::string& above :
         {std::string("/user.slice"), kService.substr(0, kService.rfind('/'))})
      EXPECT_EQ(mkdir((root() + above).c_str(), 0755), 0);
    for (const std::string& group : {kService, kApps, kTerminal, kTab, kOtherTab}) Make(group);
  }

  void Make(const std::string& group) {
    EXPECT_EQ(mkdir((root() + group).c_str(), 0755), 0);
    for (const auto& [file, unset] : kUnset) Write(group, file, unset);
    // What moves, ends, measures or tells.
    for (const char* file : {"cgroup.procs", "cgroup.threads", "cgroup.kill", "cgroup.pressure",
                             "cgroup.subtree_control", "cpu.weight.nice", "memory.reclaim"})
      Write(group, file, "9");
    Write(group, "memory.current", "4096\n");
    EXPECT_EQ(chmod((root() + group + "/memory.current").c_str(), 0444), 0);
    Write(group, "pids.max", "max\n");
  }
  void Write(const std::string& group, const std::string& file, const std::string& text) {
    WriteText(root() + group + "/" + file, text);
  }
  std::string root() const { return top_.path(); }

  // The text of a process in a group.
  std::string TextOf(const std::string& group) const { return TextFor(group, geteuid()); }
  std::string TextFor(const std::string& group, uid_t user) const {
    return TextFrom("0::" + group + "\n", user);
  }
  std::string TextFrom(const std::string& membership, uid_t user = geteuid()) const {
    const auto made = std::make_unique<ControlGroup>();
    made->Set(membership);
    made->OmitGroupsWithoutSettings(root().c_str(), user);
    return std::string(made->text());
  }

 private:
  const TemporaryDirectory top_;
};

TEST(ControlGroupsInWhichNothingIsSetAreTheOneThatTheirUserWasGiven) {
  const Groups groups;
  const std::string one = "0::" + kService + "\n";
  for (const std::string& group : {kService, kApps, kTerminal, kTab, kOtherTab})
    EXPECT_EQ(groups.TextOf(group), one);
}

TEST(ControlGroupThatSetsSomethingIsNotLeftOut) {
  Groups groups;
  for (const auto& [file, unset] : Groups::kUnset) {
    for (const std::string& group : {kTab, kTerminal}) {
      groups.Write(group, file, "77\n");
      EXPECT_EQ(groups.TextOf(kTab), "0::" + group + "\n");
      groups.Write(group, file, unset);
    }
    EXPECT_EQ(groups.TextOf(kTab), "0::" + kService + "\n");
  }
  groups.Write(kTerminal, "memory.max", "1073741824\n");
  EXPECT_EQ(groups.TextOf(kTab), groups.TextOf(kOtherTab));
}

TEST(ControlGroupWithAFileThatNobodyKnowsIsLeftOutOnlyIfThatCannotBeWritten) {
  Groups groups;
  groups.Write(kTab, "hugetlb.2MB.max", "max\n");
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kTab + "\n");
  EXPECT_EQ(chmod((groups.root() + kTab + "/hugetlb.2MB.max").c_str(), 0444), 0);
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kService + "\n");
}

TEST(ControlGroupsThatAllowAsManyProcessesAreOne) {
  Groups groups;
  groups.Write(kTab, "pids.max", "4915\n");
  groups.Write(kOtherTab, "pids.max", "4915\n");
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kService + "\npids.max 4915\n");
  EXPECT_EQ(groups.TextOf(kOtherTab), groups.TextOf(kTab));
  // One that does not lie as deep.
  const std::string scope = kApps + "/run-u1.scope";
  groups.Make(scope);
  EXPECT_TRUE(groups.TextOf(scope) != groups.TextOf(kTab));
  groups.Write(scope, "pids.max", "4915\n");
  EXPECT_EQ(groups.TextOf(scope), groups.TextOf(kTab));

  groups.Write(kOtherTab, "pids.max", "100\n");
  EXPECT_EQ(groups.TextOf(kOtherTab), "0::" + kService + "\npids.max 100\n");
  groups.Write(kTerminal, "pids.max", "5000\n");
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kService + "\npids.max 4915\npids.max 5000\n");
  // Of one that is not left out it is no part: its path says all.
  groups.Write(kTerminal, "cpu.max", "50000 100000\n");
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kTerminal + "\npids.max 4915\n");
}

TEST(ControlGroupOfAnotherUserIsNotLeftOut) {
  const Groups groups;
  EXPECT_EQ(groups.TextFor(kTab, geteuid() + 1), "0::" + kTab + "\n");
  EXPECT_EQ(unlink((groups.root() + kTab + "/cgroup.procs").c_str()), 0);
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kTab + "\n");
  // Nor one that the user was given in a group of somebody else.
  EXPECT_EQ(unlink((groups.root() + kApps + "/cgroup.procs").c_str()), 0);
  EXPECT_EQ(groups.TextOf(kTerminal), "0::" + kTerminal + "\n");
}

TEST(ControlGroupThatCannotBeLookedAtIsNotLeftOut) {
  Groups groups;
  for (const std::string& membership :
       {"0::" + kTab + " (deleted)\n", "0::/.." + kTab + "\n", "0::" + kApps + "/gone.scope\n",
        "4:memory:/a\n0::" + kTab + "\n", "0::" + kTab, std::string("0::/\n"), std::string("0::\n"),
        std::string("\n"), std::string()})
    EXPECT_EQ(groups.TextFrom(membership), membership);
  // If one group cannot be read, no group is omitted.
  EXPECT_EQ(symlink("no-such", (groups.root() + kTerminal + "/cpu.uclamp.max").c_str()), 0);
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kTab + "\n");
}

TEST(ControlGroupsBeneathWhatIsNoRootOfAllGroupsAreNotLeftOut) {
  Groups groups;
  groups.Write("", "cgroup.type", "domain\n");
  EXPECT_EQ(groups.TextOf(kTab), "0::" + kTab + "\n");
}

// Where groups can be made here: cgroup2 is mounted, and may be written.
std::optional<std::string> RealRoot() {
  const std::string mounts = ReadAll(AT_FDCWD, "/proc/self/mountinfo");
  const size_t type = mounts.find(" - cgroup2 ");
  if (type == std::string::npos) return std::nullopt;
  char place[4096];
  const size_t line = mounts.rfind('\n', type) + 1;
  if (sscanf(mounts.c_str() + line, "%*d %*d %*s / %4095s", place) != 1) return std::nullopt;
  return place;
}

// Groups in each other, that vanish with the object.
class RealGroups {
 public:
  explicit RealGroups(std::string root) : root_(std::move(root)) {}
  ~RealGroups() {
    for (auto group = made_.rbegin(); group != made_.rend(); ++group)
      rmdir((root_ + *group).c_str());
  }
  bool Make(const std::string& group) {
    if (mkdir((root_ + group).c_str(), 0755) != 0) return false;
    made_.push_back(group);
    return true;
  }
  bool Write(const std::string& group, const std::string& file, const std::string& text) const {
    const UniqueFd directory(open((root_ + group).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return sandbox_run::WriteText(directory.get(), file.c_str(), text);
  }
  std::string TextOf(const std::string& group) const {
    const auto made = std::make_unique<ControlGroup>();
    made->Set("0::" + group + "\n");
    made->OmitGroupsWithoutSettings(root_.c_str(), geteuid());
    return std::string(made->text());
  }

 private:
  const std::string root_;
  std::vector<std::string> made_;
};

TEST(ControlGroupOfTheKernelIsLeftOutUntilSomethingIsSet) {
  const std::optional<std::string> root = RealRoot();
  if (!root) NOT_RUN("cgroup2 is not mounted");
  RealGroups groups(*root);
  const std::string top = "/sandbox-run-test-" + std::to_string(getpid());
  if (!groups.Make(top)) NOT_RUN("control groups cannot be made");
  // As far as the root hands them down.
  for (const char* controller : {"+cpu", "+memory", "+pids", "+io", "+cpuset"})
    groups.Write(top, "cgroup.subtree_control", controller);
  ASSERT_TRUE(groups.Make(top + "/one") && groups.Make(top + "/two"));
  EXPECT_EQ(groups.TextOf(top + "/one"), "0::" + top + "\n");
  EXPECT_EQ(groups.TextOf(top + "/two"), "0::" + top + "\n");
  const std::pair<const char*, std::pair<const char*, const char*>> changes[] = {
      {"cgroup.max.depth", {"3", "max"}}, {"cgroup.freeze", {"1", "0"}},
      {"cpu.max", {"50000", "max"}},      {"cpu.weight", {"50", "100"}},
      {"cpuset.cpus", {"0", "\n"}},       {"memory.high", {"1G", "max"}},
      {"memory.low", {"1M", "0"}},        {"memory.max", {"1G", "max"}},
      {"memory.oom.group", {"1", "0"}},   {"memory.swap.max", {"0", "max"}},
  };
  for (const auto& [file, texts] : changes) {
    if (access((*root + top + "/two/" + file).c_str(), F_OK) != 0) continue;
    ASSERT_TRUE(groups.Write(top + "/two", file, texts.first));
    EXPECT_EQ(groups.TextOf(top + "/two"), "0::" + top + "/two\n");
    ASSERT_TRUE(groups.Write(top + "/two", file, texts.second));
    EXPECT_EQ(groups.TextOf(top + "/two"), "0::" + top + "\n");
  }
  if (groups.Write(top + "/two", "pids.max", "4915"))
    EXPECT_EQ(groups.TextOf(top + "/two"), "0::" + top + "\npids.max 4915\n");
}

TEST(ControlGroupIsReadAsItsProcessReadsIt) {
  const auto own = std::make_unique<ControlGroup>();
  const auto other = std::make_unique<ControlGroup>();
  ASSERT_TRUE(own->Read("self"));
  EXPECT_EQ(std::string(own->text()), ReadText("/proc/self/cgroup"));
  ASSERT_TRUE(other->Read(std::to_string(getpid()).c_str()));
  own->OmitGroupsWithoutSettings();
  other->OmitGroupsWithoutSettings();
  EXPECT_EQ(own->text(), other->text());
  if (geteuid() == 0) EXPECT_EQ(std::string(own->text()), ReadText("/proc/self/cgroup"));
  EXPECT_TRUE(!other->Read("no-process"));
}

}  // namespace
}  // namespace sandbox_run
