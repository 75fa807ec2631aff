#include "check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace sandbox_run::test {
namespace {

struct Test {
  const char* name;
  Body body;
  bool is_long;
};

// A function, because tests register while other files' globals are being made.
std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

// Of the test that runs.
int failures = 0;
std::string not_run;

std::vector<Test> TestsNamed(const std::string& filter) {
  std::vector<Test> found;
  for (const Test& test : Tests()) {
    if (std::string_view(test.name).find(filter) != std::string_view::npos) found.push_back(test);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Test& a, const Test& b) { return a.is_long && !b.is_long; });
  return found;
}

enum class Result { kPassed, kFailed, kNotRun };

Result Run(const Test& test) {
  failures = 0;
  not_run.clear();
  test.body();
  if (failures > 0) {
    fprintf(stderr, "FAILED %s\n", test.name);
    return Result::kFailed;
  }
  if (!not_run.empty()) {
    fprintf(stderr, "not run: %s: %s\n", test.name, not_run.c_str());
    return Result::kNotRun;
  }
  return Result::kPassed;
}

}  // namespace

bool Register(const char* name, Body body, bool is_long) {
  for (const Test& test : Tests()) {
    if (std::string_view(test.name) != name) continue;
    fprintf(stderr, "two tests are called %s\n", name);
    abort();
  }
  Tests().push_back({name, body, is_long});
  return true;
}

void ReportFailure(const char* file, int line, const std::string& message) {
  ++failures;
  fprintf(stderr, "  %s:%d: %s\n", file, line, message.c_str());
}

void ReportNotRun(const std::string& reason) { not_run = reason; }

int RunAll(const std::string& filter) {
  int passed = 0, failed = 0, skipped = 0;
  for (const Test& test : TestsNamed(filter)) {
    const Result result = Run(test);
    passed += result == Result::kPassed;
    failed += result == Result::kFailed;
    skipped += result == Result::kNotRun;
  }
  printf("%d passed, %d failed", passed, failed);
  if (skipped > 0) printf(", %d not run", skipped);
  printf("\n");
  // A filter that matches nothing is a mistake, not a success.
  return failed == 0 && passed > 0 ? 0 : 1;
}

int List(const std::string& filter) {
  for (const Test& test : TestsNamed(filter)) printf("%s\n", test.name);
  return 0;
}

int RunUnclaimed(const std::string& directory, const std::string& filter) {
  bool any_failed = false;
  for (const Test& test : TestsNamed(filter)) {
    const std::string claim = directory + "/" + test.name;
    const int fd = open(claim.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) continue;
    // Not kept open: tests count this process's descriptors.
    close(fd);
    const auto begin = std::chrono::steady_clock::now();
    const Result result = Run(test);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    any_failed |= result == Result::kFailed;
    const char* const words[] = {"passed", "failed", "not-run"};
    FILE* const file = fopen(claim.c_str(), "we");
    if (file == nullptr) abort();
    fprintf(file, "%s %.0f\n", words[static_cast<int>(result)], time.count());
    fclose(file);
  }
  return any_failed ? 1 : 0;
}

}  // namespace sandbox_run::test
