#include <csignal>
#include <string>

#include "check.h"
#include "support.h"

// sandbox_run_tests [PART OF A TEST'S NAME]
// sandbox_run_tests --launch TIER DIRECTORY: a launcher for a test to end
int main(int argc, char** argv) {
  // As Node has it.
  signal(SIGPIPE, SIG_IGN);
  if (argc == 4 && std::string(argv[1]) == "--launch") {
    sandbox_run::test::LaunchForEver(argv[2], argv[3]);
  }
  return sandbox_run::test::RunAll(argc > 1 ? argv[1] : "");
}
