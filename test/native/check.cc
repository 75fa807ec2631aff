#include "check.h"

#include <cstdio>
#include <string_view>
#include <vector>

namespace sandbox_run::test {
namespace {

struct Test {
  const char* name;
  Body body;
};

// A function, because tests register while other files' globals are being made.
std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

// Of the test that runs.
int failures = 0;
std::string not_run;

}  // namespace

bool Register(const char* name, Body body) {
  Tests().push_back({name, body});
  return true;
}

void ReportFailure(const char* file, int line, const std::string& message) {
  ++failures;
  fprintf(stderr, "  %s:%d: %s\n", file, line, message.c_str());
}

void ReportNotRun(const std::string& reason) { not_run = reason; }

int RunAll(const std::string& filter) {
  int passed = 0, failed = 0, skipped = 0;
  for (const Test& test : Tests()) {
    if (std::string_view(test.name).find(filter) == std::string_view::npos) continue;
    failures = 0;
    not_run.clear();
    test.body();
    if (failures > 0) {
      ++failed;
      fprintf(stderr, "FAILED %s\n", test.name);
    } else if (!not_run.empty()) {
      ++skipped;
      fprintf(stderr, "not run: %s: %s\n", test.name, not_run.c_str());
    } else {
      ++passed;
    }
  }
  printf("%d passed, %d failed", passed, failed);
  if (skipped > 0) printf(", %d not run", skipped);
  printf("\n");
  // A filter that matches nothing is a mistake, not a success.
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace sandbox_run::test
