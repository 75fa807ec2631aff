#ifndef SANDBOX_RUN_CORE_EFFECTS_H_
#define SANDBOX_RUN_CORE_EFFECTS_H_

#include <string>
#include <vector>

#include "core/private_copies.h"

namespace sandbox_run {

// What a command, or one turn of a shell, did to what is private to it.
struct Effects {
  std::vector<ChangedCopy> copies;
  std::vector<ChangedDirectory> changed_directories;
  std::vector<std::string> made;  // in private directories, as spec paths
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_EFFECTS_H_
