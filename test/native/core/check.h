#ifndef SANDBOX_RUN_TEST_CHECK_H_
#define SANDBOX_RUN_TEST_CHECK_H_

#include <sstream>
#include <string>

// A test framework of one page: TEST(Name) { EXPECT_EQ(a, b); ... }. A failed expectation is
// reported and the test goes on; ASSERT_* leaves the test. LONG_TEST: it takes a second or more,
// and is begun before the others, so that it does not run alone at the end.

namespace sandbox_run::test {

using Body = void (*)();

// Adds a test to the list; the value is meaningless.
bool Register(const char* name, Body body, bool is_long);
void ReportFailure(const char* file, int line, const std::string& message);
// This host cannot make what the test needs; counted and shown with the reason.
void ReportNotRun(const std::string& reason);

// Runs those whose name contains `filter`; returns the exit status.
int RunAll(const std::string& filter);
// Prints their names.
int List(const std::string& filter);
// Runs those of them that no other process runs. For each one it makes a file of that name in
// `directory`, which is empty while the test runs and then says how it ended:
// "passed|failed|not-run MILLISECONDS".
int RunUnclaimed(const std::string& directory, const std::string& filter);

template <typename T>
std::string Show(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}
inline std::string Show(bool value) { return value ? "true" : "false"; }

template <typename A, typename B>
bool ExpectEqual(const A& actual, const B& expected, const char* text, const char* file, int line) {
  if (actual == expected) return true;
  ReportFailure(file, line,
                std::string(text) + " is " + Show(actual) + ", expected " + Show(expected));
  return false;
}

inline bool ExpectTrue(bool actual, const char* text, const char* file, int line) {
  if (!actual) ReportFailure(file, line, std::string(text) + " does not hold");
  return actual;
}

}  // namespace sandbox_run::test

#define SANDBOX_RUN_TEST(name, is_long)                     \
  static void name();                                       \
  [[maybe_unused]] static const bool name##_is_registered = \
      ::sandbox_run::test::Register(#name, name, is_long);  \
  static void name()
#define TEST(name) SANDBOX_RUN_TEST(name, false)
#define LONG_TEST(name) SANDBOX_RUN_TEST(name, true)
#define EXPECT_EQ(actual, expected) \
  ::sandbox_run::test::ExpectEqual((actual), (expected), #actual, __FILE__, __LINE__)
#define EXPECT_TRUE(condition) \
  ::sandbox_run::test::ExpectTrue((condition), #condition, __FILE__, __LINE__)
#define ASSERT_TRUE(condition) \
  if (!EXPECT_TRUE(condition)) return
#define ASSERT_EQ(actual, expected) \
  if (!EXPECT_EQ(actual, expected)) return
#define NOT_RUN(reason)                          \
  do {                                           \
    ::sandbox_run::test::ReportNotRun((reason)); \
    return;                                      \
  } while (false)

#endif  // SANDBOX_RUN_TEST_CHECK_H_
