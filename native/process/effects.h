#ifndef SANDBOX_RUN_PROCESS_EFFECTS_H_
#define SANDBOX_RUN_PROCESS_EFFECTS_H_

#include <string>
#include <vector>

#include "notify/call_observer.h"
#include "notify/network_gate.h"
#include "process/private_copies.h"
#include "process/tree_index.h"

namespace sandbox_run {

// What a command, or one turn of a shell, did to what is looked after for it.
struct Effects {
  LeftBehind left_behind;
  std::vector<ChangedCopy> copies;
  std::vector<ChangedDirectory> changed_directories;
  Connections connections;        // where the network is listed
  Denials denials;                // where calls are looked at
  std::vector<std::string> made;  // in private directories, as spec paths
  std::vector<Making> makings;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_PROCESS_EFFECTS_H_
