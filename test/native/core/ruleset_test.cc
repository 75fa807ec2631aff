#include "core/ruleset.h"

#include <fcntl.h>

#include <cerrno>
#include <vector>

#include "check.h"
#include "support.h"
#include "sys/files.h"

namespace sandbox_run {
namespace {

using test::TemporaryDirectory;
using test::WriteText;

constexpr uint64_t kExecute = 1u << 0;
constexpr uint64_t kReadFile = 1u << 2;
constexpr uint64_t kReadDir = 1u << 3;
constexpr uint64_t kRefer = 1u << 13;
constexpr uint64_t kTruncate = 1u << 14;

// Highest bit of each mask by ABI; an index beyond the table knows at least as much.
uint64_t KnownFileRights(int abi) {
  static const std::vector<int> counts = {0, 13, 14, 15, 15, 16, 16, 16, 16, 17};
  const size_t index = static_cast<size_t>(abi) < counts.size() ? abi : counts.size() - 1;
  return (uint64_t{1} << counts[index]) - 1;
}

int ErrorOf(const RulesetMasks& masks) {
  const Result<UniqueFd> ruleset = CreateRuleset(masks);
  return ruleset.ok() ? 0 : ruleset.failure().error;
}

TEST(LandlockSaysItsVersionOrWhyNot) {
  const int abi = LandlockAbi();
  EXPECT_TRUE(abi > 0 || abi == -ENOSYS || abi == -EOPNOTSUPP || abi == -EPERM);
  EXPECT_TRUE(LandlockErrata() >= 0);
}

TEST(CreateRulesetTakesEveryKnownRight) {
  const int abi = LandlockAbi();
  if (abi <= 0) NOT_RUN("the kernel has no Landlock");
  EXPECT_EQ(ErrorOf({KnownFileRights(abi), 0, 0}), 0);
  EXPECT_EQ(ErrorOf({0, 3, 0}), abi >= 4 ? 0 : E2BIG);
  EXPECT_EQ(ErrorOf({0, 0, 3}), abi >= 6 ? 0 : E2BIG);
  if (abi >= 6) EXPECT_EQ(ErrorOf({KnownFileRights(abi), 3, 3}), 0);
}

TEST(CreateRulesetRefusesUnknownRightsAndNoRights) {
  const int abi = LandlockAbi();
  if (abi <= 0) NOT_RUN("the kernel has no Landlock");
  EXPECT_EQ(ErrorOf({uint64_t{1} << 63, 0, 0}), EINVAL);
  if (abi >= 4) EXPECT_EQ(ErrorOf({kReadFile, uint64_t{1} << 63, 0}), EINVAL);
  if (abi >= 6) EXPECT_EQ(ErrorOf({kReadFile, 0, uint64_t{1} << 63}), EINVAL);
  EXPECT_EQ(ErrorOf({0, 0, 0}), ENOMSG);
  EXPECT_EQ(CreateRuleset({0, 0, 0}).failure().stage, std::string("landlock.create_ruleset"));
}

TEST(CreateRulesetGivesACloseOnExecDescriptor) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  Result<UniqueFd> ruleset = CreateRuleset({kReadFile, 0, 0});
  ASSERT_TRUE(ruleset.ok());
  EXPECT_EQ(fcntl(ruleset.value().get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(AddPathRuleWantsTheRightsOfTheKindOfObject) {
  const int abi = LandlockAbi();
  if (abi <= 0) NOT_RUN("the kernel has no Landlock");
  const TemporaryDirectory top;
  WriteText(top / "file", "x");
  const uint64_t directory_rights = kReadDir | (abi >= 2 ? kRefer : 0);
  const uint64_t file_rights = kExecute | kReadFile | (abi >= 3 ? kTruncate : 0);
  Result<UniqueFd> ruleset = CreateRuleset({directory_rights | file_rights, 0, 0});
  ASSERT_TRUE(ruleset.ok());
  const Result<UniqueFd> file = OpenPath(top / "file", "s");
  const Result<UniqueFd> directory = OpenPath(top.path(), "s");
  const int fd = ruleset.value().get();
  EXPECT_TRUE(AddPathRule(fd, directory.value().get(), directory_rights | file_rights, "d").ok());
  EXPECT_TRUE(AddPathRule(fd, file.value().get(), file_rights, "f").ok());
  Status refused = AddPathRule(fd, file.value().get(), file_rights | kReadDir, "/the/file");
  ASSERT_TRUE(!refused.ok());
  EXPECT_EQ(refused.failure().error, EINVAL);
  EXPECT_EQ(refused.failure().path, "/the/file");
  EXPECT_EQ(refused.failure().stage, std::string("landlock.add_rule"));
}

TEST(AddPathRuleRefusesWhatIsNotHandledNotGrantedOrNotOpen) {
  if (LandlockAbi() <= 0) NOT_RUN("the kernel has no Landlock");
  const TemporaryDirectory top;
  Result<UniqueFd> ruleset = CreateRuleset({kReadFile, 0, 0});
  ASSERT_TRUE(ruleset.ok());
  const Result<UniqueFd> directory = OpenPath(top.path(), "s");
  const int fd = ruleset.value().get();
  EXPECT_EQ(AddPathRule(fd, directory.value().get(), kExecute, "").failure().error, EINVAL);
  EXPECT_EQ(AddPathRule(fd, directory.value().get(), 0, "").failure().error, ENOMSG);
  EXPECT_EQ(AddPathRule(fd, -1, kReadFile, "").failure().error, EBADF);
  EXPECT_EQ(AddPathRule(-1, directory.value().get(), kReadFile, "").failure().error, EBADF);
}

}  // namespace
}  // namespace sandbox_run
