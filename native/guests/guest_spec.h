#ifndef SANDBOX_RUN_GUESTS_GUEST_SPEC_H_
#define SANDBOX_RUN_GUESTS_GUEST_SPEC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "begin/launcher_link.h"
#include "index/tree_index.h"
#include "notify/call_observer.h"
#include "notify/network_gate.h"
#include "notify/refused_sockets.h"
#include "shell/shell_turns.h"

namespace sandbox_run {

// The guests of the commands of one sandbox.
struct GuestSpec {
  // Finds what commands leave behind; nullptr: it is not wanted.
  std::shared_ptr<TreeIndex> index;
  // A set-uid program that confines the command in place of Landlock and namespaces. Each command
  // gets a warden.
  std::optional<LauncherSpec> launcher;
  // What commands may connect to. Their filter relies on a NetworkSupervisor for the answers.
  // nullptr: commands have no network, or the host's.
  std::shared_ptr<NetworkGate> network;
  // The command's filter leaves set-group-ID modes of existing objects to GroupModes. Only set
  // where calls are observed or the network is listed, so that a thread answers.
  bool group_modes = false;
  // The filter leaves calls that change one process by its number to OwnProcesses.
  bool own_processes = false;
  // The filter leaves these socket families to RefusedSockets. Only set where calls are observed.
  SocketFamilies refused_sockets;
  bool exit_tracing = false;  // the filter leaves PTRACE_O_TRACEEXIT to ExitTracing
  Observed observed = Observed::kNothing;
};

// What the guests saw a command, or one turn of a shell, do.
struct GuestEffects {
  LeftBehind left_behind;
  Connections connections;  // where the network is listed
  Denials denials;          // where calls are observed
  std::vector<Making> makings;
};

// Receives what the guests of a command report.
class GuestObserver {
 public:
  virtual ~GuestObserver() = default;
  // A program of the command looks up a name. Called on the network supervisor's thread, as are
  // OnConnectionAsked() and OnHost().
  virtual void OnQuery(uint32_t /*query*/, std::string /*message*/) {}
  // No rule covers this connection, and a person may decide.
  virtual void OnConnectionAsked(uint32_t /*number*/, Connection) {}
  // May a connection to this port be for this host?
  virtual void OnHost(uint32_t /*question*/, const std::string& /*host*/, uint16_t /*port*/) {}
  // A turn of a shell has ended.
  virtual void OnTurn(TurnEnd, GuestEffects) {}
  // Called once, before CommandObserver::OnEnd(), with what OnTurn() has not reported.
  virtual void OnEffects(GuestEffects) {}
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_GUESTS_GUEST_SPEC_H_
