#include "core/confinement.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "core/ruleset.h"
#include "support.h"

namespace sandbox_run {
namespace {

using test::Entries;
using test::Exists;
using test::PermissiveSpec;
using test::Running;
using test::RunToEnd;
using test::ShellCommand;
using test::TemporaryDirectory;
using test::WriteText;

// With a private directory `slot:tmp`, told to the command in TMPDIR.
ConfinementSpec SlotSpec(const std::string& parent) {
  ConfinementSpec spec = PermissiveSpec(parent);
  spec.slot_directories = {"slot:tmp"};
  spec.slot_variables = {{"TMPDIR", "slot:tmp"}};
  return spec;
}

Result<std::unique_ptr<Slot>> AcquireFrom(ConfinementSpec spec) {
  return Confinement(std::move(spec)).Acquire();
}

TEST(SlotIsMadeOnFirstUseAndUsedAgain) {
  const TemporaryDirectory top;
  Confinement confinement(SlotSpec(top.path()));
  EXPECT_EQ(Entries(top.path()).size(), 0u);
  Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
  ASSERT_TRUE(slot.ok());
  const std::string place = slot.value()->HostPath("slot:tmp");
  EXPECT_TRUE(Exists(place));
  WriteText(place + "/left-behind", "x");
  confinement.Clean(*slot.value());
  EXPECT_EQ(Entries(place).size(), 0u);
  confinement.Release(std::move(slot.value()));

  Result<std::unique_ptr<Slot>> again = confinement.Acquire();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value()->HostPath("slot:tmp"), place);
}

TEST(SlotsOfCommandsAtTheSameTimeAreDifferent) {
  const TemporaryDirectory top;
  Confinement confinement(SlotSpec(top.path()));
  Result<std::unique_ptr<Slot>> one = confinement.Acquire();
  Result<std::unique_ptr<Slot>> two = confinement.Acquire();
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(one.value()->HostPath("slot:tmp") != two.value()->HostPath("slot:tmp"));
}

TEST(SlotInWhichSomethingMayStillRunIsDropped) {
  const TemporaryDirectory top;
  // It ends its warden, so that nobody knows whether the tree has ended.
  const test::Threads threads(test::BareSpec(top.path()));
  EXPECT_TRUE(!RunToEnd(threads, ShellCommand("kill -9 $PPID; sleep 300")).tree_ended);
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

TEST(SlotVanishesWithTheConfinement) {
  const TemporaryDirectory top;
  {
    Confinement confinement(SlotSpec(top.path()));
    Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
    ASSERT_TRUE(slot.ok());
    confinement.Release(std::move(slot.value()));
    EXPECT_EQ(Entries(top.path()).size(), 1u);
  }
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

TEST(SlotPathsLeadToItsDirectories) {
  const TemporaryDirectory top, memory;
  ConfinementSpec spec = SlotSpec(top.path());
  spec.memory_parent = memory.path();
  Confinement confinement(std::move(spec));
  Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
  ASSERT_TRUE(slot.ok());
  EXPECT_TRUE(slot.value()->HostPath("slot:tmp").starts_with(top / "sandbox-run-"));
  EXPECT_TRUE(slot.value()->HostPath("shm:").starts_with(memory / "sandbox-run-"));
  EXPECT_EQ(slot.value()->HostPath("/plain"), "/plain");
}

TEST(SeedFilesAreThereForEveryCommand) {
  const TemporaryDirectory top;
  ConfinementSpec spec = SlotSpec(top.path());
  spec.seed_files = {{"slot:tmp/seed", "content\n"}};
  const test::Threads threads(std::move(spec));
  for (int round = 0; round < 3; ++round) {
    const Outcome outcome = RunToEnd(
        threads,
        ShellCommand("set -u; cat $TMPDIR/seed; echo changed > $TMPDIR/seed; chmod 0 $TMPDIR"));
    EXPECT_EQ(outcome.output[0].kept, "content\n");
    EXPECT_EQ(outcome.exit_code, 0);
  }
}

// As a command may: of none of this does the time of the last change have to tell.
void WriteByMapping(const std::string& file, const std::string& text) {
  const UniqueFd fd(open(file.c_str(), O_RDWR | O_CLOEXEC));
  void* const mapped = mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_TRUE(mapped != MAP_FAILED);
  // A page that was read already is written to without a word to the file system, if that has no
  // disk.
  [[maybe_unused]] const volatile char first = *static_cast<char*>(mapped);
  memcpy(mapped, text.data(), text.size());
  munmap(mapped, text.size());
}

TEST(WhateverWasDoneToASeedFileIsGoneForTheNextCommand) {
  const std::pair<const char*, std::function<void(const std::string&)>> deeds[] = {
      {"attribute",
       [](const std::string& file) {
         setxattr(file.c_str(), "user.note", "x", 1, 0);
         utimensat(AT_FDCWD, file.c_str(), nullptr, 0);
       }},
      {"times", [](const std::string& file) { utimensat(AT_FDCWD, file.c_str(), nullptr, 0); }},
      {"mode", [](const std::string& file) { chmod(file.c_str(), 0640); }},
      {"other name", [](const std::string& file) { link(file.c_str(), (file + "-2").c_str()); }},
      {"content", [](const std::string& file) { WriteByMapping(file, "CONTENT\n"); }},
      {"other file",
       [](const std::string& file) {
         WriteText(file + "-2", "content\n");
         rename((file + "-2").c_str(), file.c_str());
       }},
  };
  const TemporaryDirectory on_disk;
  std::string in_memory = "/dev/shm/sandbox-run-test-XXXXXX";
  ASSERT_TRUE(mkdtemp(in_memory.data()) != nullptr);
  for (const std::string& parent : {on_disk.path(), in_memory}) {
    ConfinementSpec spec = SlotSpec(parent);
    spec.seed_files = {{"slot:tmp/seed", "content\n"}};
    Confinement confinement(std::move(spec));
    for (const auto& [name, deed] : deeds) {
      Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
      ASSERT_TRUE(slot.ok());
      const std::string file = slot.value()->HostPath("slot:tmp/seed");
      struct stat before, after;
      ASSERT_EQ(stat(file.c_str(), &before), 0);
      deed(file);
      confinement.Clean(*slot.value());
      confinement.Release(std::move(slot.value()));
      Result<std::unique_ptr<Slot>> again = confinement.Acquire();
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(again.value()->HostPath("slot:tmp/seed"), file);
      EXPECT_EQ(std::string(name) + ": " + test::ReadText(file), std::string(name) + ": content\n");
      ASSERT_EQ(stat(file.c_str(), &after), 0);
      EXPECT_EQ(after.st_mode & 07777, 0600u);
      EXPECT_EQ(after.st_nlink, 1u);
      EXPECT_TRUE(listxattr(file.c_str(), nullptr, 0) <= 0);
      EXPECT_EQ(Entries(again.value()->HostPath("slot:tmp")).size(), 1u);
      confinement.Release(std::move(again.value()));
    }
    // Nothing done, nothing made.
    Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
    ASSERT_TRUE(slot.ok());
    const std::string file = slot.value()->HostPath("slot:tmp/seed");
    struct stat before, after;
    ASSERT_EQ(stat(file.c_str(), &before), 0);
    confinement.Clean(*slot.value());
    ASSERT_TRUE(confinement.Refresh(*slot.value()));
    ASSERT_EQ(stat(file.c_str(), &after), 0);
    EXPECT_EQ(after.st_ino, before.st_ino);
  }
  EXPECT_EQ(rmdir(in_memory.c_str()), 0);
}

TEST(SeedFilesInDirectoriesAreThereWhateverTheCommandBeforeMadeOfThem) {
  const TemporaryDirectory top;
  ConfinementSpec spec = SlotSpec(top.path());
  spec.seed_files = {{"slot:tmp/.config/tool/seed", "content\n"},
                     {"slot:tmp/.config/other", "x\n"}};
  const test::Threads threads(std::move(spec));
  for (const std::string deed :
       {"true", "echo y > $TMPDIR/.config/tool/seed", "rm -r $TMPDIR/.config",
        "mv $TMPDIR/.config $TMPDIR/moved; ln -s moved $TMPDIR/.config",
        "rm -r $TMPDIR/.config; echo z > $TMPDIR/.config", "chmod 0 $TMPDIR/.config/tool",
        "echo note > $TMPDIR/.config/tool/note", "true"}) {
    const Outcome outcome = RunToEnd(
        threads,
        ShellCommand(
            "set -u; cd $TMPDIR; cat .config/tool/seed .config/other; ls -A . .config/tool; "
            "stat -c %a .config/tool; " +
            deed));
    EXPECT_EQ(outcome.output[0].kept, "content\nx\n.:\n.config\n\n.config/tool:\nseed\n700\n");
    EXPECT_EQ(outcome.exit_code, 0);
  }
}

TEST(CommandsOneAfterTheOtherShareNoFiles) {
  if (LandlockAbi() < 6) NOT_RUN("without a signal scope every command gets a new slot");
  const TemporaryDirectory top;
  const test::Threads threads(SlotSpec(top.path()));
  std::string place;
  for (int round = 0; round < 5; ++round) {
    const Outcome outcome = RunToEnd(
        threads, ShellCommand("set -u; echo $TMPDIR; ls -A $TMPDIR; mkdir -p $TMPDIR/a/b; touch "
                              "$TMPDIR/a/b/c $TMPDIR/.hidden; chmod 0 $TMPDIR/a"));
    if (round == 0) place = outcome.output[0].kept;
    EXPECT_EQ(outcome.output[0].kept, place);
  }
}

TEST(CloseLetsRunningCommandsGoOnAndLeavesNothing) {
  const TemporaryDirectory top;
  const test::Threads threads(SlotSpec(top.path()));
  const test::Gate gate;
  Running running(threads,
                  ShellCommand("set -u; " + gate.wait() + "; touch $TMPDIR/x && echo done"));
  EXPECT_EQ(RunToEnd(threads, ShellCommand("true")).exit_code, 0);
  (*threads).Close();
  gate.Open();
  EXPECT_EQ(running.Wait().output[0].kept, "done\n");
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

TEST(ARequiredPathThatIsMissingIsNamed) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  const TemporaryDirectory top;
  for (const bool required : {true, false}) {
    ConfinementSpec spec = PermissiveSpec(top.path());
    spec.rules.push_back({top / "missing", 4, 4, required, false});
    const Result<std::unique_ptr<Slot>> slot = AcquireFrom(std::move(spec));
    EXPECT_EQ(slot.ok(), !required);
    if (slot.ok()) continue;
    EXPECT_EQ(slot.failure().stage, std::string("landlock.open"));
    EXPECT_EQ(slot.failure().error, ENOENT);
    EXPECT_EQ(slot.failure().path, top / "missing");
  }
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

TEST(APathThatBecameALinkIsRefusedEvenIfOptional) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  const TemporaryDirectory top;
  ASSERT_EQ(symlink("/etc", (top / "link").c_str()), 0);
  ConfinementSpec spec = PermissiveSpec(top.path());
  spec.rules.push_back({top / "link", 4, 4, false, false});
  const Result<std::unique_ptr<Slot>> slot = AcquireFrom(std::move(spec));
  ASSERT_TRUE(!slot.ok());
  EXPECT_EQ(slot.failure().error, ELOOP);
}

TEST(RulesTakeTheRightsOfTheKindOfObject) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  const TemporaryDirectory top;
  WriteText(top / "file", "x");
  constexpr uint64_t kReadFile = 4, kReadDir = 8;
  ConfinementSpec spec = PermissiveSpec(top.path());
  spec.rules.push_back({top / "file", kReadFile | kReadDir, kReadFile, true, false});
  spec.rules.push_back({top.path(), kReadFile | kReadDir, kReadFile, true, false});
  EXPECT_TRUE(AcquireFrom(std::move(spec)).ok());
}

TEST(ASlotOfWhichAPathVanishedOrWasReplacedIsNotUsedAgain) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  const TemporaryDirectory top, work;
  for (const char* name : {"stays", "goes", "replaced"}) WriteText(work / name, "x");
  ConfinementSpec spec = PermissiveSpec(top.path());
  for (const char* name : {"stays", "goes", "replaced"}) {
    spec.rules.push_back({work / name, 4, 4, true, false});
  }
  const test::Threads threads(std::move(spec));
  const std::string at = work.path();
  const Outcome outcome = RunToEnd(threads, ShellCommand("cd " + at +
                                                         "; echo y >> stays; rm goes; touch new; "
                                                         "mv new replaced"));
  EXPECT_EQ(outcome.exit_code, 0);
  // The slot was made for other objects: the next command gets a new one, which misses a path now.
  const Outcome next = RunToEnd(threads, ShellCommand("true"));
  ASSERT_TRUE(next.failure.has_value());
  EXPECT_EQ(next.failure->path, work / "goes");
  WriteText(work / "goes", "back");
  EXPECT_TRUE(!RunToEnd(threads, ShellCommand("true")).failure.has_value());
}

// --- views

bool MayMakeNamespaces() { return test::InOwnPidNamespace(); }

ConfinementSpec ViewSpec(const std::string& parent) {
  ConfinementSpec spec;
  spec.temporary_parent = parent;
  spec.slot_directories = {"slot:tmp"};
  NamespaceSpec namespaces;
  namespaces.network = true;
  namespaces.ipc = true;
  const auto step = [](ViewStepKind kind, const char* source, const char* target, bool read_only) {
    return ViewStepSpec{kind, source, target, read_only, false, true, false};
  };
  namespaces.view = {
      step(ViewStepKind::kBind, "slot:tmp", "/tmp", false),
      step(ViewStepKind::kBind, "/usr", "/usr", true),
      step(ViewStepKind::kBind, "/proc", "/proc", true),
      step(ViewStepKind::kSymlink, "usr/bin", "/bin", false),
      step(ViewStepKind::kSymlink, "usr/lib", "/lib", false),
      step(ViewStepKind::kSymlink, "usr/lib64", "/lib64", false),
      step(ViewStepKind::kMaskedFile, "", "/etc/shadow", false),
      step(ViewStepKind::kBetween, "", "/srv/empty", false),
  };
  spec.namespaces = std::move(namespaces);
  return spec;
}

TEST(AViewHoldsWhatItWasGivenAndNothingElse) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  const TemporaryDirectory top;
  const test::Threads threads(ViewSpec(top.path()));
  const Outcome outcome = RunToEnd(
      threads,
      ShellCommand("echo $(ls /) . $(ls -A /tmp) . $(ls /etc /srv) . $(ls /sys/class/net 2>&1); "
                   "touch /new /usr/new; touch /tmp/mine && echo written"));
  EXPECT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.output[0].kept,
            "bin etc lib lib64 proc srv tmp usr . . /etc: shadow /srv: empty . ls: cannot access "
            "'/sys/class/net': No such file or directory\nwritten\n");
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST(AViewNamesTheMissingSource) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  const TemporaryDirectory top;
  for (const bool required : {true, false}) {
    ConfinementSpec spec = ViewSpec(top.path());
    spec.namespaces->view.push_back(
        {ViewStepKind::kBind, top / "missing", "/missing", true, false, required, false});
    const Result<std::unique_ptr<Slot>> slot = AcquireFrom(std::move(spec));
    EXPECT_EQ(slot.ok(), !required);
    if (slot.ok()) continue;
    EXPECT_EQ(slot.failure().stage, std::string("view.open"));
    EXPECT_EQ(slot.failure().error, ENOENT);
    EXPECT_EQ(slot.failure().path, top / "missing");
  }
}

TEST(AWatchedPathThatACommandMadeIsShutForTheNext) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  const TemporaryDirectory top, work;
  ASSERT_EQ(mkdir((work / "there").c_str(), 0700), 0);
  ConfinementSpec spec = ViewSpec(top.path());
  spec.namespaces->view.push_back(
      {ViewStepKind::kBind, work.path(), "/work", false, false, true, false});
  for (const char* name : {"there", "made", "never", "unwatched"}) {
    spec.namespaces->view.push_back({ViewStepKind::kBind, work / name, std::string("/work/") + name,
                                     true, false, false, std::string(name) != "unwatched"});
  }
  const test::Threads threads(std::move(spec));
  const Outcome outcome = RunToEnd(
      threads, ShellCommand("cd /work; touch made unwatched; touch there/x || echo read-only"));
  EXPECT_EQ(outcome.output[0].kept, "read-only\n");
  // Now that it exists, the next command finds it shut.
  EXPECT_EQ(RunToEnd(threads, ShellCommand("echo x > /work/made")).exit_code, 2);
}

TEST(AViewLeavesThisProcessWhereItWas) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  const TemporaryDirectory top;
  const auto link = [](const char* name) {
    char text[64] = "";
    EXPECT_TRUE(readlink(name, text, sizeof(text) - 1) > 0);
    return std::string(text);
  };
  const std::string mounts = link("/proc/self/ns/mnt"), network = link("/proc/self/ns/net");
  const std::string mount_list = test::ReadText("/proc/self/mounts");
  // Those of an earlier test may still be given up.
  const std::set<std::string> descriptors = test::Descriptors();
  EXPECT_TRUE(AcquireFrom(ViewSpec(top.path())).ok());
  EXPECT_EQ(link("/proc/self/ns/mnt"), mounts);
  EXPECT_EQ(link("/proc/self/ns/net"), network);
  EXPECT_TRUE(test::ReadText("/proc/self/mounts") == mount_list);
  for (const std::string& descriptor : test::Descriptors()) {
    if (!descriptors.contains(descriptor)) EXPECT_EQ(descriptor, "none that is new");
  }
  EXPECT_EQ(Entries(top.path()).size(), 0u);
}

}  // namespace
}  // namespace sandbox_run
