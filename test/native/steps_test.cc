#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "steps/redirects.h"
#include "steps/run_steps.h"
#include "steps/step_list.h"
#include "support.h"
#include "sys/open_beneath.h"

namespace sandbox_run {
namespace {

using test::Exists;
using test::ReadText;
using test::TemporaryDirectory;
using test::WriteText;
using Tokens = std::vector<std::string>;

std::vector<char*> Pointers(Tokens& tokens) {
  std::vector<char*> pointers;
  for (std::string& token : tokens) pointers.push_back(token.data());
  return pointers;
}

bool IsList(Tokens tokens) {
  std::vector<char*> pointers = Pointers(tokens);
  return IsStepList(pointers.data(), pointers.data() + pointers.size());
}

// A root with a scratch file for what is printed, and a child that runs the list in it.
class Steps {
 public:
  Steps() { mkdir((top_ / "root").c_str(), 0700); }

  std::string root() const { return top_ / "root"; }
  std::string operator/(const std::string& name) const { return root() + "/" + name; }
  std::string outside(const std::string& name) const { return top_ / name; }

  // The exit status, or minus a signal.
  int Run(Tokens list, const std::string& directory = "") {
    Tokens tokens = {"sandbox-run-steps", root(), "1"};
    tokens.insert(tokens.end(), list.begin(), list.end());
    return RunArguments(std::move(tokens), directory);
  }

  int RunArguments(Tokens tokens, const std::string& directory = "") {
    std::vector<char*> pointers = Pointers(tokens);
    pointers.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
      const int in = open("/dev/null", O_RDONLY);
      const int out = open((top_ / "output").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      const int error = open((top_ / "error").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (dup2(in, 0) != 0 || dup2(out, 1) != 1 || dup2(error, 2) != 2) _exit(99);
      for (int fd = 3; fd < 1024; ++fd) close(fd);
      if (chdir((root() + "/" + directory).c_str()) != 0) _exit(98);
      _exit(RunSteps(static_cast<int>(pointers.size()) - 1, pointers.data()));
    }
    int how = 0;
    waitpid(pid, &how, 0);
    return WIFSIGNALED(how) ? -WTERMSIG(how) : WEXITSTATUS(how);
  }

  std::string output() const { return ReadText(top_ / "output"); }
  std::string error() const { return ReadText(top_ / "error"); }

 private:
  const TemporaryDirectory top_;
};

Tokens Shell(const std::string& script) { return {"run", "/bin/sh", "3", "sh", "-c", script}; }

Tokens operator+(Tokens left, const Tokens& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST(StepsListsAreReadStrictly) {
  const Tokens good = Tokens{"1", "2", "then", "2", "1", "write", "1", "f"} + Shell("x") +
                      Tokens{"1", "copy", "2", "1", "nothing", "or", "1", "0", "cd", "a"};
  EXPECT_TRUE(IsList(good));
  // Every part of it, and everything behind it, is something else.
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(!IsList(Tokens(good.begin(), good.begin() + static_cast<ptrdiff_t>(length))));
  }
  EXPECT_TRUE(!IsList(good + Tokens{""}));
  EXPECT_TRUE(!IsList(good + good));
  const std::vector<Tokens> wrong = {
      {},
      {"2", "1", "then", "1", "0", "nothing"},
      {"1", "0"},
      {"1", "1", "and", "1", "0", "nothing"},
      {"1", "1", "then", "0"},
      {"1", "1", "then", "01", "0", "nothing"},
      {"1", "1", "then", "+1", "0", "nothing"},
      {"1", "1", "then", " 1", "0", "nothing"},
      {"1", "1", "then", "", "0", "nothing"},
      {"1", "99999999", "then", "1", "0", "nothing"},
      {"1", "1", "then", "9999999", "0", "nothing"},
      {"1", "1", "then", "-1", "0", "nothing"},
      {"1", "1", "then", "1", "1", "write", "10", "f", "nothing"},
      {"1", "1", "then", "1", "1", "write", "1", "", "nothing"},
      {"1", "1", "then", "1", "1", "copy", "1", "x", "nothing"},
      {"1", "1", "then", "1", "1", "else", "1", "f", "nothing"},
      {"1", "1", "then", "1", "0", "run", "relative", "1", "x"},
      {"1", "1", "then", "1", "0", "run", "/bin/true", "0"},
      {"1", "1", "then", "1", "0", "run", "/bin/true", "5", "true"},
      {"1", "1", "then", "1", "0", "missing", "1", "x"},
      {"1", "1", "then", "2", "0", "cd", "a", "0", "nothing"},
      {"1", "1", "then", "1", "1", "close", "0", "cd", "a"},
      {"1", "1", "then", "1", "0", "cd", ""},
      {"1", "1", "then", "1", "0", "exec", "x"},
  };
  for (const Tokens& tokens : wrong) EXPECT_TRUE(!IsList(tokens));
}

TEST(StepsOfAMalformedListDoNothing) {
  Steps steps;
  const Tokens touch = {"then", "1", "1", "write", "1", "made", "nothing"};
  EXPECT_EQ(steps.Run(Tokens{"2"} + touch + Tokens{"then", "1", "0", "run"}), 125);
  EXPECT_EQ(steps.Run(Tokens{"1"} + touch + Tokens{"more"}), 125);
  EXPECT_EQ(steps.RunArguments({"sandbox-run-steps"}), 125);
  EXPECT_EQ(steps.RunArguments({"sandbox-run-steps", steps.root()}), 125);
  EXPECT_EQ(steps.RunArguments(Tokens{"sandbox-run-steps", "/", "1", "1"} + touch), 125);
  EXPECT_EQ(steps.RunArguments(Tokens{"sandbox-run-steps", "", "1", "1"} + touch), 125);
  EXPECT_EQ(steps.RunArguments(Tokens{"sandbox-run-steps", "relative", "1", "1"} + touch), 125);
  EXPECT_TRUE(!Exists(steps / "made"));
  EXPECT_EQ(steps.Run(Tokens{"1"} + touch), 0);
  EXPECT_TRUE(Exists(steps / "made"));
}

TEST(StepsOutsideOfTheRootDoNothing) {
  Steps steps;
  const std::string other = steps.outside("other");
  EXPECT_EQ(steps.Run({"2", "then", "1", "1", "write", "1", "made", "nothing", "then", "1", "1",
                       "write", "1", other, "nothing"}),
            125);
  EXPECT_EQ(steps.Run({"1", "then", "1", "1", "write", "1", steps.root() + "other", "nothing"}),
            125);
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "cd", "/"}), 125);
  EXPECT_TRUE(!Exists(steps / "made"));
  EXPECT_TRUE(!Exists(other));
  // Only found out when it is opened.
  EXPECT_EQ(steps.Run({"1", "then", "1", "1", "write", "1", "../other", "nothing"}), 1);
  EXPECT_EQ(steps.Run({"1", "then", "1", "1", "write", "1", steps.root() + "/../other", "nothing"}),
            1);
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "cd", ".."}), 1);
  EXPECT_TRUE(!Exists(other));
  // The directory itself.
  EXPECT_EQ(steps.Run({"1", "then", "1", "1", "write", "1", "made", "nothing"}, ".."), 125);
  EXPECT_TRUE(!Exists(steps / "made"));
}

TEST(StepsFollowNoLinks) {
  Steps steps;
  const std::string secret = steps.outside("secret");
  WriteText(secret, "secret");
  ASSERT_EQ(symlink(secret.c_str(), (steps / "file").c_str()), 0);
  ASSERT_EQ(symlink("..", (steps / "up").c_str()), 0);
  ASSERT_EQ(symlink("missing", (steps / "dangling").c_str()), 0);
  ASSERT_EQ(symlink("/proc/self/root", (steps / "magic").c_str()), 0);
  for (const char* kind : {"read", "write", "append", "update"}) {
    for (const char* path :
         {"file", "up/secret", "dangling", "magic", "up/root/made", "./file", "file/"}) {
      EXPECT_EQ(steps.Run(Tokens{"1", "then", "1", "1", kind, "0", path} +
                          Tokens{"run", "/bin/cat", "1", "cat"}),
                1);
      EXPECT_EQ(steps.output(), std::string());
      EXPECT_TRUE(steps.error().find("sandbox-run-steps: ") == 0);
    }
  }
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "cd", "up"}), 1);
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "cd", "magic"}), 1);
  EXPECT_EQ(ReadText(secret), std::string("secret"));
  EXPECT_TRUE(!Exists(steps / "missing"));
}

TEST(OpenBeneathIsTheSameWithoutOpenat2) {
  Steps steps;
  ASSERT_EQ(mkdir((steps / "a").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((steps / "a/b").c_str(), 0700), 0);
  WriteText(steps / "a/b/file", "x");
  ASSERT_EQ(symlink("a", (steps / "link").c_str()), 0);
  ASSERT_EQ(symlink("file", (steps / "a/b/last").c_str()), 0);
  WriteText(steps.outside("secret"), "secret");
  const UniqueFd root(open(steps.root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const char* const paths[] = {"a/b/file",
                               "a//b/./file",
                               "a/b/../b/file",
                               "a/../../secret",
                               "..",
                               "../root/a/b/file",
                               "link/b/file",
                               "a/b/last",
                               "a/b/missing",
                               "a/missing/file",
                               "a/b/file/x",
                               "a/b",
                               ".",
                               "a/b/",
                               "a/b/file/",
                               "/etc/passwd",
                               "a/b/..",
                               "link",
                               "a/b/last/"};
  for (const char* path : paths) {
    const int asked = OpenBeneath(root.get(), path, O_RDONLY | O_CLOEXEC, 0);
    const int walked = OpenBeneathByWalking(root.get(), path, O_RDONLY | O_CLOEXEC, 0);
    if (!EXPECT_EQ(asked >= 0, walked >= 0)) test::ReportFailure(__FILE__, __LINE__, path);
    if (asked >= 0 && walked >= 0) {
      struct stat one = {};
      struct stat other = {};
      EXPECT_EQ(fstat(asked, &one), 0);
      EXPECT_EQ(fstat(walked, &other), 0);
      EXPECT_EQ(one.st_ino, other.st_ino);
    } else if (!EXPECT_EQ(asked, walked)) {
      test::ReportFailure(__FILE__, __LINE__, path);
    }
    if (asked >= 0) close(asked);
    if (walked >= 0) close(walked);
  }
  const UniqueFd made(
      OpenBeneathByWalking(root.get(), "a/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(made.valid());
  EXPECT_EQ(OpenBeneathByWalking(root.get(), "../new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
            -EXDEV);
}

// While one thread swaps a directory and a file for links and back, nothing is ever opened outside.
TEST(OpenBeneathLosesNoRace) {
  Steps steps;
  ASSERT_EQ(mkdir((steps / "real").c_str(), 0700), 0);
  WriteText(steps / "real/file", "inside");
  ASSERT_EQ(mkdir(steps.outside("trap").c_str(), 0700), 0);
  WriteText(steps.outside("trap/file"), "outside");
  ASSERT_EQ(symlink(steps.outside("trap").c_str(), (steps / "bait").c_str()), 0);
  struct stat trap = {};
  ASSERT_EQ(stat(steps.outside("trap/file").c_str(), &trap), 0);
  std::atomic<bool> over{false};
  std::atomic<long> swaps{0};
  std::thread swapper([&] {
    while (!over) {
      // Each name is the directory, then the link, then the directory again.
      if (renameat2(AT_FDCWD, (steps / "real").c_str(), AT_FDCWD, (steps / "bait").c_str(),
                    RENAME_EXCHANGE) == 0)
        ++swaps;
    }
  });
  const UniqueFd root(open(steps.root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  int opened = 0;
  int refused = 0;
  for (int round = 0; round < 20000 || (round < 2000000 && (opened == 0 || refused == 0));
       ++round) {
    const int fd =
        round % 2 == 0
            ? OpenBeneath(root.get(), "real/../real/file", O_RDONLY | O_CLOEXEC, 0)
            : OpenBeneathByWalking(root.get(), "real/../real/file", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
      ++refused;
      continue;
    }
    ++opened;
    struct stat info = {};
    fstat(fd, &info);
    EXPECT_TRUE(info.st_ino != trap.st_ino);
    close(fd);
  }
  over = true;
  swapper.join();
  EXPECT_TRUE(swaps > 0);
  EXPECT_TRUE(opened > 0);
  EXPECT_TRUE(refused > 0);
}

TEST(StepsOpenOnlyRegularFiles) {
  Steps steps;
  ASSERT_EQ(mkfifo((steps / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((steps / "directory").c_str(), 0700), 0);
  for (const char* kind : {"read", "write", "append", "update"}) {
    // Neither hangs.
    EXPECT_EQ(steps.Run({"1", "then", "1", "1", kind, "0", "fifo", "nothing"}), 1);
    EXPECT_EQ(steps.Run({"1", "then", "1", "1", kind, "0", "directory", "nothing"}), 1);
    EXPECT_EQ(steps.Run({"1", "then", "1", "1", kind, "0", "/dev/null", "nothing"}), 0);
    EXPECT_EQ(steps.Run({"1", "then", "1", "1", kind, "0", "/dev/zero", "nothing"}), 125);
  }
}

TEST(StepsGiveStagesNothingButWhatTheyAskFor) {
  Steps steps;
  WriteText(steps / "in", "input");
  const Tokens list = {"run", "/bin/ls", "2", "ls", "/proc/self/fd"};
  // 3 is the directory that ls reads.
  const std::string three = "0\n1\n2\n3\n";
  EXPECT_EQ(steps.Run(Tokens{"1", "then", "1", "1", "read", "0", "in"} + list), 0);
  EXPECT_EQ(steps.output(), three);
  EXPECT_EQ(steps.Run(Tokens{"2", "then", "2", "0"} + list +
                      Tokens{"1", "text", "5", "x", "run", "/bin/cat", "1", "cat"} +
                      Tokens{"and", "1", "0"} + list),
            0);
  EXPECT_EQ(steps.output(), three + three);
  EXPECT_EQ(steps.Run(Tokens{"1", "then", "1", "1", "write", "7", "seven"} + list), 0);
  EXPECT_EQ(steps.output(), std::string("0\n1\n2\n3\n7\n"));
  // A descriptor that nobody opened is not one of ours.
  for (const char* from : {"3", "4", "9"}) {
    EXPECT_EQ(steps.Run(Tokens{"1", "then", "2", "1", "copy", "1", from} + Shell("echo x") +
                        Tokens{"0"} + Shell("cat")),
              0);
    EXPECT_EQ(steps.output(), std::string());
  }
}

TEST(StepsResetWhatALauncherIgnores) {
  Steps steps;
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(steps.Run({"1", "then", "2", "0", "run", "/usr/bin/yes", "1", "yes", "0", "run",
                       "/usr/bin/head", "2", "head", "-1"}),
            0);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(steps.output(), std::string("y\n"));
  EXPECT_EQ(steps.error(), std::string());
}

TEST(StepsHaveTheStatusOfAShell) {
  Steps steps;
  const auto exits = [](int status) { return Shell("exit " + std::to_string(status)); };
  EXPECT_EQ(steps.Run(Tokens{"1", "then", "1", "0"} + exits(7)), 7);
  EXPECT_EQ(steps.Run(Tokens{"1", "then", "2", "0"} + exits(7) + Tokens{"0"} + exits(3)), 3);
  EXPECT_EQ(
      steps.Run(Tokens{"2", "then", "1", "0"} + exits(7) + Tokens{"and", "1", "0"} + exits(3)), 7);
  EXPECT_EQ(steps.Run(Tokens{"2", "then", "1", "0"} + exits(7) + Tokens{"or", "1", "0"} + exits(3)),
            3);
  EXPECT_EQ(steps.Run(Tokens{"3", "then", "1", "0"} + exits(7) + Tokens{"and", "1", "0"} +
                      exits(3) + Tokens{"or", "1", "0"} + exits(5)),
            5);
  EXPECT_EQ(
      steps.Run(Tokens{"2", "then", "1", "0"} + exits(7) + Tokens{"then", "1", "0"} + exits(0)), 0);
  EXPECT_EQ(steps.Run(Tokens{"2", "then", "1", "0"} + Shell("kill -9 $$") +
                      Tokens{"and", "1", "0"} + exits(0)),
            137);
  // The only command takes the place of the list.
  EXPECT_EQ(steps.Run(Tokens{"1", "then", "1", "0"} + Shell("kill -9 $$")), -9);
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "missing", "127", "none"}), 127);
  EXPECT_EQ(steps.error(), std::string("sandbox-run-steps: none: command not found\n"));
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "run", "/nonexistent", "1", "gone"}), 127);
  WriteText(steps / "file", "");
  EXPECT_EQ(steps.Run({"1", "then", "1", "0", "run", steps / "file", "1", "file"}), 126);
}

TEST(StepsKeepWordsAsTheyAre) {
  Steps steps;
  const Tokens words = {
      "", "a b", "line\nline", "*", "$HOME", "-n", "\xff\xfe", std::string(100000, 'x'), "'\"\\"};
  std::string expected;
  for (const std::string& word : words) expected += "<" + word + ">";
  EXPECT_EQ(steps.Run(Tokens{"1", "then", "1", "0", "run", "/usr/bin/printf",
                             std::to_string(words.size() + 2), "printf", "<%s>"} +
                      words),
            0);
  EXPECT_EQ(steps.output(), expected);
}

LONG_TEST(StepsRunThousands) {
  Steps steps;
  const Tokens one = {"then", "1", "1", "append", "1", "log", "nothing"};
  Tokens list = {"2000"};
  for (int index = 0; index < 2000; ++index) list.insert(list.end(), one.begin(), one.end());
  EXPECT_EQ(steps.Run(list), 0);
  const Tokens cat = {"1", "close", "9", "run", "/bin/cat", "1", "cat"};
  Tokens pipeline = {"1", "then", "50"};
  for (int index = 0; index < 50; ++index) pipeline.insert(pipeline.end(), cat.begin(), cat.end());
  EXPECT_EQ(steps.Run(pipeline), 0);
}

TEST(StepsChangeTheDirectoryBeneathTheRoot) {
  Steps steps;
  ASSERT_EQ(mkdir((steps / "a").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((steps / "b").c_str(), 0700), 0);
  EXPECT_EQ(steps.Run(Tokens{"3", "then", "1", "0", "cd", "a", "and", "1", "0", "cd", "../b", "and",
                             "1", "1", "write", "1", "here"} +
                      Shell("pwd -P")),
            0);
  EXPECT_EQ(ReadText(steps / "b/here"), steps / "b" + "\n");
  EXPECT_EQ(steps.Run({"2", "then", "1", "0", "cd", "../b", "and", "1", "1", "write", "1", "../top",
                       "nothing"},
                      "a"),
            0);
  EXPECT_TRUE(Exists(steps / "top"));
  EXPECT_EQ(steps.Run({"2", "then", "1", "0", "cd", "none", "and", "1", "1", "write", "1", "never",
                       "nothing"}),
            1);
  EXPECT_TRUE(!Exists(steps / "never"));
}

TEST(StepsReadTextsAndReportInOrder) {
  Steps steps;
  const std::string text(200000, 't');
  EXPECT_EQ(
      steps.Run(Tokens{"1", "then", "1", "1", "text", "0", text, "run", "/bin/cat", "1", "cat"}),
      0);
  EXPECT_EQ(steps.output(), text);
  // As in a shell: what is redirected before the failure takes the message, and what is behind it
  // is not opened.
  EXPECT_EQ(steps.Run({"1", "then", "1", "3", "write", "2", "errors", "read", "0", "none", "write",
                       "1", "out", "nothing"}),
            1);
  EXPECT_EQ(ReadText(steps / "errors"),
            std::string("sandbox-run-steps: none: No such file or directory\n"));
  EXPECT_TRUE(!Exists(steps / "out"));
}

}  // namespace
}  // namespace sandbox_run
