// The program `sandbox-run-steps`: what stands in for a shell where nothing could hold one (backend
// `application`).

#include "steps/run_steps.h"

int main(int argc, char** argv) { return sandbox_run::RunSteps(argc, argv); }
