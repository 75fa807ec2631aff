// Part of the program `sandbox-run-relay` in builds with sanitizers. It is started without
// variables, and descriptor 2 may be one of its sockets: so the options of the sanitizers, and
// where their reports go, are compiled in.

#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>

#include <cstdint>

extern "C" {

// No process may look into the relay, which the search for leaks would do.
const char* __asan_default_options() { return "detect_leaks=0:symbolize=0:exitcode=66"; }
const char* __ubsan_default_options() { return "halt_on_error=1:symbolize=0:exitcode=66"; }
const char* __tsan_default_options() { return "halt_on_error=1:symbolize=0:exitcode=66"; }

__attribute__((constructor)) void SendReportsToFile() {
  const int reports = open(SANDBOX_RUN_SANITIZED, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (reports < 0) return;
  // Above its other descriptors, which it counts from 0.
  const int high = fcntl(reports, F_DUPFD_CLOEXEC, 100);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(high)));
}

}  // extern "C"
