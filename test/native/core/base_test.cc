#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "check.h"

namespace sandbox_run {
namespace {

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFdClosesWhatItOwnsAtTheEndOfItsLife) {
  int number = -1;
  {
    const UniqueFd fd(OpenNull());
    number = fd.get();
    EXPECT_TRUE(fd.valid());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_TRUE(!IsOpen(number));
}

TEST(UniqueFdMovesOwnership) {
  UniqueFd first(OpenNull());
  const int number = first.get();
  UniqueFd second(std::move(first));
  EXPECT_EQ(first.get(), -1);  // NOLINT: what a moved-from object is, is the point
  EXPECT_EQ(second.get(), number);

  UniqueFd third(OpenNull());
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_TRUE(!IsOpen(replaced));
  EXPECT_TRUE(IsOpen(number));
  EXPECT_EQ(third.get(), number);

  UniqueFd& same = third;
  third = std::move(same);
  EXPECT_TRUE(IsOpen(number));
}

TEST(UniqueFdReleasesWithoutClosing) {
  int number = -1;
  {
    UniqueFd fd(OpenNull());
    number = fd.release();
    EXPECT_TRUE(!fd.valid());
  }
  EXPECT_TRUE(IsOpen(number));
  close(number);
}

TEST(UniqueFdResetClosesTheOldOne) {
  UniqueFd fd(OpenNull());
  const int old = fd.get();
  const int next = OpenNull();
  fd.reset(next);
  EXPECT_TRUE(!IsOpen(old));
  EXPECT_EQ(fd.get(), next);
  fd.reset();
  EXPECT_TRUE(!IsOpen(next));
  EXPECT_TRUE(!fd.valid());
}

TEST(ResultHoldsAValueOrAFailure) {
  Result<std::unique_ptr<int>> good(std::make_unique<int>(7));
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good.value(), 7);
  const std::unique_ptr<int> taken = std::move(good.value());
  EXPECT_EQ(*taken, 7);

  const Result<std::string> bad(Failure{"a.stage", 13, "/a/path"});
  ASSERT_TRUE(!bad.ok());
  EXPECT_EQ(bad.failure().stage, std::string("a.stage"));
  EXPECT_EQ(bad.failure().error, 13);
  EXPECT_EQ(bad.failure().path, "/a/path");
}

TEST(StatusIsSuccessUnlessToldOtherwise) {
  const Status good;
  EXPECT_TRUE(good.ok());
  Status bad(Failure{"a.stage", 1, ""});
  ASSERT_TRUE(!bad.ok());
  EXPECT_EQ(bad.failure().error, 1);
}

}  // namespace
}  // namespace sandbox_run
