#ifndef SANDBOX_RUN_CORE_CGROUP_FILES_H_
#define SANDBOX_RUN_CORE_CGROUP_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandbox_run {

// A file beneath a directory, as a whole. Empty if it cannot be read.
std::string ReadAll(int directory, const char* name);

// Writes a file beneath a directory in one call, as control groups require. False: refused.
bool WriteText(int directory, const char* name, const std::string& text);

// The number after `key` at the beginning of a line ("max 3").
std::optional<uint64_t> Field(std::string_view text, std::string_view key);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CGROUP_FILES_H_
