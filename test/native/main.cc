#include <csignal>
#include <string>

#include "check.h"

// sandbox_run_tests [PART OF A TEST'S NAME]
int main(int argc, char** argv) {
  // As Node has it.
  signal(SIGPIPE, SIG_IGN);
  return sandbox_run::test::RunAll(argc > 1 ? argv[1] : "");
}
