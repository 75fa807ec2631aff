#include "core/private_copies.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "check.h"
#include "core/confinement.h"
#include "support.h"
#include "sys/kernel_abi.h"

namespace sandbox_run {
namespace {

using test::BareSpec;
using test::Entries;
using test::Exists;
using test::PermissiveSpec;
using test::ReadText;
using test::RunToEnd;
using test::ShellCommand;
using test::TemporaryDirectory;
using test::WriteText;

// A file with a copy that the command finds in $COPY.
struct World {
  TemporaryDirectory top;
  std::string source = top / "config";
  ConfinementSpec spec = PermissiveSpec(top / "slots");

  World() {
    mkdir((top / "slots").c_str(), 0700);
    WriteText(source, "[one]\n");
    spec.slot_directories = {"slot:git"};
    spec.slot_variables = {{"COPY", "slot:git/0/config"}};
    spec.copies = {{source, "slot:git/0/config"}};
  }
};

TEST(WhatEarlierCommandsSetGoesBeforeTheSourceUnlessThatSaysIt) {
  World world;
  const std::string preface = world.top / "preface";
  world.spec.copies[0].preface = preface;
  world.spec.copies[0].unless = "hookspath";
  const test::Threads threads(world.spec);
  const auto seen = [&threads] {
    return std::string(RunToEnd(threads, ShellCommand("cat \"$COPY\"")).output[0].kept.view());
  };
  EXPECT_EQ(seen(), std::string("[one]\n"));
  WriteText(preface, "[core]\n");
  EXPECT_EQ(seen(), std::string("[core]\n[one]\n"));
  // It is no change of the command's.
  EXPECT_TRUE(RunToEnd(threads, ShellCommand("true")).effects.copies.empty());
  WriteText(world.source, "[core]\nHooksPath = x\n");
  EXPECT_EQ(seen(), std::string("[core]\nHooksPath = x\n"));
  unlink(preface.c_str());
  WriteText(world.source, "[two]\n");
  EXPECT_EQ(seen(), std::string("[two]\n"));
}

TEST(CommandGetsACopyAndItsChangesAreTold) {
  World world;
  const test::Threads threads(world.spec);
  Outcome outcome = RunToEnd(threads, ShellCommand("cat \"$COPY\"; echo two >> \"$COPY\""));
  EXPECT_EQ(outcome.output[0].kept.view(), std::string("[one]\n"));
  ASSERT_TRUE(outcome.effects.copies.size() == 1);
  EXPECT_EQ(outcome.effects.copies[0].source, world.source);
  EXPECT_EQ(outcome.effects.copies[0].before, std::string("[one]\n"));
  EXPECT_EQ(outcome.effects.copies[0].after.value_or("-"), std::string("[one]\ntwo\n"));
  EXPECT_EQ(ReadText(world.source), std::string("[one]\n"));

  // The next one has a fresh one, and nothing to tell.
  Outcome next = RunToEnd(threads, ShellCommand("cat \"$COPY\"; ls -A \"${COPY%/*}\""));
  EXPECT_EQ(next.output[0].kept.view(), std::string("[one]\nconfig\n"));
  EXPECT_TRUE(next.effects.copies.empty());
}

TEST(ChangeOfTheSameLengthInTheSameTickIsTold) {
  World world;
  const test::Threads threads(world.spec);
  for (int i = 0; i < 20; ++i) {
    Outcome outcome = RunToEnd(threads, ShellCommand("printf '[two]\\n' > \"$COPY\""));
    ASSERT_TRUE(outcome.effects.copies.size() == 1);
    EXPECT_EQ(outcome.effects.copies[0].after.value_or("-"), std::string("[two]\n"));
    Outcome untouched = RunToEnd(threads, ShellCommand("cat \"$COPY\""));
    EXPECT_EQ(untouched.output[0].kept.view(), std::string("[one]\n"));
    EXPECT_TRUE(untouched.effects.copies.empty());
  }
}

TEST(ChangeOfWhichNoTimeTellsIsTold) {
  // In memory, where a page that was read already is written to without a word to the file system.
  std::string in_memory = "/dev/shm/sandbox-run-test-XXXXXX";
  ASSERT_TRUE(mkdtemp(in_memory.data()) != nullptr);
  World world;
  world.spec.temporary_parent = in_memory;
  {
    Confinement confinement(world.spec);
    Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
    ASSERT_TRUE(slot.ok());
    const std::string copy = slot.value()->HostPath("slot:git/0/config");
    test::NextTick();
    EXPECT_TRUE(slot.value()->TakeEffects({}).copies.empty());
    const UniqueFd fd(open(copy.c_str(), O_RDWR | O_CLOEXEC));
    auto* const mapped =
        static_cast<char*>(mmap(nullptr, 6, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    ASSERT_TRUE(mapped != MAP_FAILED);
    EXPECT_EQ(mapped[0], '[');
    memcpy(mapped, "[two]", 5);
    munmap(mapped, 6);
    const std::vector<ChangedCopy> changes = slot.value()->TakeEffects({}).copies;
    ASSERT_TRUE(changes.size() == 1);
    EXPECT_EQ(changes[0].after.value_or("-"), std::string("[two]\n"));
    confinement.Clean(*slot.value());
    ASSERT_TRUE(confinement.Refresh(*slot.value()));
    EXPECT_EQ(ReadText(copy), std::string("[one]\n"));
  }
  EXPECT_EQ(rmdir(in_memory.c_str()), 0);
}

TEST(AttributeOfACopyDoesNotReachTheNextCommand) {
  World world;
  Confinement confinement(world.spec);
  Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
  ASSERT_TRUE(slot.ok());
  const std::string copy = slot.value()->HostPath("slot:git/0/config");
  // At once: the time of the last change may stay as it is.
  setxattr(copy.c_str(), "user.note", "x", 1, 0);
  utimensat(AT_FDCWD, copy.c_str(), nullptr, 0);
  EXPECT_TRUE(slot.value()->TakeEffects({}).copies.empty());
  confinement.Clean(*slot.value());
  ASSERT_TRUE(confinement.Refresh(*slot.value()));
  EXPECT_EQ(listxattr(copy.c_str(), nullptr, 0), 0);
}

TEST(RenamedIntoPlaceAsGitDoesIsTold) {
  World world;
  Outcome outcome = RunToEnd(
      world.spec, ShellCommand("echo three > \"$COPY.lock\" && mv \"$COPY.lock\" \"$COPY\""));
  ASSERT_TRUE(outcome.effects.copies.size() == 1);
  EXPECT_EQ(outcome.effects.copies[0].after.value_or("-"), std::string("three\n"));
}

TEST(CopyThatIsRewrittenAsItWasIsNoChange) {
  World world;
  const test::Threads threads(world.spec);
  Outcome outcome =
      RunToEnd(threads, ShellCommand("cp \"$COPY\" \"$COPY.x\"; mv \"$COPY.x\" \"$COPY\"; "
                                     "chmod 400 \"$COPY\""));
  EXPECT_TRUE(outcome.effects.copies.empty());
  EXPECT_TRUE(RunToEnd(threads, ShellCommand("echo x >> \"$COPY\"")).effects.copies.size() == 1);
}

TEST(NextCopyFollowsTheSource) {
  World world;
  const test::Threads threads(world.spec);
  for (const char* content : {"[aaa]\n", "[bbb]\n", "[ccc]\n", "[long one]\n"}) {
    // In place and of the same length: only its time tells.
    WriteText(world.source, content);
    Outcome outcome = RunToEnd(threads, ShellCommand("cat \"$COPY\""));
    EXPECT_EQ(outcome.output[0].kept.view(), std::string(content));
    EXPECT_TRUE(outcome.effects.copies.empty());
  }
  // Replaced, as git does.
  WriteText(world.top / "new", "[ddd]\n");
  rename((world.top / "new").c_str(), world.source.c_str());
  Outcome outcome = RunToEnd(threads, ShellCommand("cat \"$COPY\""));
  EXPECT_EQ(outcome.output[0].kept.view(), std::string("[ddd]\n"));
}

TEST(LinkInPlaceOfTheCopyOrItsDirectoryIsNotFollowed) {
  World world;
  mkdir((world.top / "secrets").c_str(), 0700);
  WriteText(world.top / "secrets/config", "secret");
  const std::string secrets = world.top / "secrets";
  for (const std::string& script :
       {"rm \"$COPY\"; ln -s " + secrets + "/config \"$COPY\"",
        "rm -r \"${COPY%/*}\"; ln -s " + secrets + " \"${COPY%/*}\"",
        std::string("rm \"$COPY\"; mkfifo \"$COPY\""), std::string("rm \"$COPY\"; mkdir \"$COPY\""),
        std::string("head -c 2000000 /dev/zero > \"$COPY\""),
        std::string("rm -r \"${COPY%/*}\"")}) {
    const test::Threads threads(world.spec);
    Outcome outcome = RunToEnd(threads, ShellCommand(script));
    ASSERT_TRUE(outcome.effects.copies.size() == 1);
    EXPECT_TRUE(!outcome.effects.copies[0].after);
    Outcome next = RunToEnd(threads, ShellCommand("cat \"$COPY\""));
    EXPECT_EQ(next.output[0].kept.view(), std::string("[one]\n"));
    EXPECT_TRUE(next.effects.copies.empty());
  }
  EXPECT_EQ(ReadText(world.top / "secrets/config"), std::string("secret"));
}

TEST(SourceThatIsNoFairFileRefusesTheLaunch) {
  for (const std::string kind : {"directory", "link", "fifo", "large"}) {
    World world;
    unlink(world.source.c_str());
    if (kind == "directory") mkdir(world.source.c_str(), 0700);
    if (kind == "link") ASSERT_TRUE(symlink("/etc/hostname", world.source.c_str()) == 0);
    if (kind == "fifo") mkfifo(world.source.c_str(), 0600);
    if (kind == "large") WriteText(world.source, std::string(1024 * 1024 + 1, 'x'));
    Outcome outcome = RunToEnd(world.spec, ShellCommand("echo ran"));
    ASSERT_TRUE(outcome.failure.has_value());
    EXPECT_EQ(std::string(outcome.failure->stage), std::string("copy"));
    EXPECT_EQ(outcome.failure->path, world.source);
  }
}

TEST(SourceThatIsNotThereHasNoCopy) {
  World world;
  unlink(world.source.c_str());
  const test::Threads threads(world.spec);
  const char* look = "test -e \"$COPY\" && echo there || echo none";
  EXPECT_EQ(RunToEnd(threads, ShellCommand(look)).output[0].kept, std::string("none\n"));
  WriteText(world.source, "[late]\n");
  EXPECT_EQ(RunToEnd(threads, ShellCommand(look)).output[0].kept, std::string("there\n"));
  unlink(world.source.c_str());
  EXPECT_EQ(RunToEnd(threads, ShellCommand(look)).output[0].kept, std::string("none\n"));
}

// A view in which a link lies over the source and leads to the copy.
struct View {
  World world;
  explicit View(bool required = true) {
    ConfinementSpec& spec = world.spec;
    spec.landlock = {};
    spec.rules.clear();
    NamespaceSpec namespaces;
    const auto step = [](ViewStepKind kind, const std::string& source, const std::string& target) {
      return ViewStepSpec{kind, source, target, false, false, true, false};
    };
    namespaces.view = {
        step(ViewStepKind::kBind, "/usr", "/usr"),
        step(ViewStepKind::kSymlink, "usr/bin", "/bin"),
        step(ViewStepKind::kSymlink, "usr/lib", "/lib"),
        step(ViewStepKind::kSymlink, "usr/lib64", "/lib64"),
        step(ViewStepKind::kBind, world.top.path(), world.top.path()),
        step(ViewStepKind::kBind, "slot:git", "/.sandbox-run"),
        step(ViewStepKind::kBindLink, "/.sandbox-run/0/config", world.source),
    };
    namespaces.view.back().required = required;
    spec.namespaces = std::move(namespaces);
  }
  CommandSpec Script(const std::string& text) const {
    CommandSpec command = ShellCommand(text);
    command.cwd = world.top.path();
    return command;
  }
};

bool MayMakeNamespaces() { return test::InOwnPidNamespace(); }

TEST(LinkOverAFileLeadsToTheCopyAndHolds) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  View view;
  const test::Threads threads(view.world.spec);
  Outcome outcome = RunToEnd(
      threads, view.Script("cat config; readlink config; echo two > config; "
                           "rm config && echo removed; mv config other && echo moved; "
                           "echo evil > lock; mv -T lock config && echo replaced; cat config"));
  ASSERT_TRUE(!outcome.failure);
  EXPECT_EQ(outcome.output[0].kept.view(), std::string("[one]\n/.sandbox-run/0/config\ntwo\n"));
  ASSERT_TRUE(outcome.effects.copies.size() == 1);
  EXPECT_EQ(outcome.effects.copies[0].after.value_or("-"), std::string("two\n"));
  EXPECT_EQ(ReadText(view.world.source), std::string("[one]\n"));

  // Once the user has replaced the file, nothing lies over it any more: the next command has a new
  // view.
  WriteText(view.world.top / "new", "[user]\n");
  rename((view.world.top / "new").c_str(), view.world.source.c_str());
  Outcome next = RunToEnd(threads, view.Script("cat config; echo evil > config"));
  EXPECT_EQ(next.output[0].kept.view(), std::string("[user]\n"));
  EXPECT_EQ(ReadText(view.world.source), std::string("[user]\n"));
}

TEST(LinkIsLeftOutWhereNothingIsUnlessItIsRequired) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  View optional(/*required=*/false);
  unlink(optional.world.source.c_str());
  Outcome outcome = RunToEnd(optional.world.spec, optional.Script("ls config 2>&1 || echo none"));
  ASSERT_TRUE(!outcome.failure);
  EXPECT_TRUE(outcome.output[0].kept.view().ends_with("none\n"));
  EXPECT_TRUE(!Exists(optional.world.source));
  View required;
  unlink(required.world.source.c_str());
  Outcome refused = RunToEnd(required.world.spec, required.Script("true"));
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(std::string(refused.failure->stage), std::string("view.link"));
}

// Of this thread alone.
bool RefuseMountSetattr() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, abi::kSysMountSetattr, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{4, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(LinkIsMountedWithoutMountSetattr) {
  if (!MayMakeNamespaces()) NOT_RUN("needs the right to make namespaces");
  View view;
  std::thread([&view] {
    ASSERT_TRUE(RefuseMountSetattr());
    Confinement confinement(view.world.spec);
    const Result<std::unique_ptr<Slot>> slot = confinement.Acquire();
    ASSERT_TRUE(slot.ok());
    char content[64] = "";
    const int root = confinement.ViewRootOf(*slot.value()).value_or(-1);
    EXPECT_TRUE(readlinkat(root, view.world.source.c_str() + 1, content, sizeof(content) - 1) > 0);
    EXPECT_EQ(std::string(content), std::string("/.sandbox-run/0/config"));
  }).join();
}

}  // namespace
}  // namespace sandbox_run
