#include <unistd.h>

#include <csignal>
#include <string>

#include "check.h"
#include "core/tree_kill.h"
#include "support.h"

// sandbox_run_tests [PART OF A TEST'S NAME]
// sandbox_run_tests --list [PART OF A TEST'S NAME]: their names
// sandbox_run_tests --share DIRECTORY [PART OF A TEST'S NAME]: those that no other process with
// that directory runs sandbox_run_tests --launch TIER DIRECTORY: a launcher for a test to end
// sandbox_run_tests --probe: tries the signal scope once it is told to on standard input
int main(int argc, char** argv) {
  // As Node has it.
  signal(SIGPIPE, SIG_IGN);
  if (argc == 4 && std::string(argv[1]) == "--launch") {
    sandbox_run::test::LaunchForEver(argv[2], argv[3]);
  }
  if (argc == 2 && std::string(argv[1]) == "--probe") {
    char byte;
    return read(0, &byte, 1) == 1 && sandbox_run::SignalScopeIsProven() ? 0 : 1;
  }
  const std::string option = argc > 1 ? argv[1] : "";
  if (option == "--list") return sandbox_run::test::List(argc > 2 ? argv[2] : "");
  if (option == "--share" && argc > 2) {
    return sandbox_run::test::RunUnclaimed(argv[2], argc > 3 ? argv[3] : "");
  }
  return sandbox_run::test::RunAll(argc > 1 ? argv[1] : "");
}
