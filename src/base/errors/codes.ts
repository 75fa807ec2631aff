/**
 * THE table of error codes. A code is stable: programs may depend on it, messages may change.
 * `exitStatus` is what the command line exits with: 123 a limit was exceeded, 125 the launcher failed, 126 refused or not executable,
 * 127 not found.
 */
export const ERROR_CODES = {
  'usage.invalid': { exitStatus: 125, meaning: 'An option or argument is unknown, missing or malformed.' },
  'policy.unreadable': { exitStatus: 125, meaning: 'A policy file cannot be read.' },
  'policy.untrusted': {
    exitStatus: 125,
    meaning: 'A user other than root and you owns a policy file, or can write it.',
  },
  'policy.invalid': { exitStatus: 125, meaning: 'A policy file is not valid TOML or breaks the schema.' },
  'policy.exists': { exitStatus: 125, meaning: 'The policy file exists already and is not overwritten.' },
  'import.invalid': {
    exitStatus: 125,
    meaning: 'The settings of another sandbox cannot be read, or that sandbox would not accept them.',
  },
  'policy.unknown_profile': { exitStatus: 125, meaning: 'The named profile does not exist.' },
  'policy.path_missing': { exitStatus: 125, meaning: 'A path that the policy requires does not exist.' },
  'policy.path_replaceable': {
    exitStatus: 125,
    meaning: 'A path of the policy goes through a symbolic link that commands could replace.',
  },
  'policy.read_only_inside_writable': {
    exitStatus: 125,
    meaning: 'A read-only path lies inside a writable one, and this host cannot enforce that.',
  },
  'workspace.missing': { exitStatus: 125, meaning: 'The workspace is not an existing directory.' },
  'workspace.unsafe': {
    exitStatus: 125,
    meaning: 'The workspace would make a system directory or a whole home directory writable.',
  },
  'home.unknown': {
    exitStatus: 125,
    meaning: 'Neither HOME nor the user database names a home directory.',
  },
  'cwd.unusable': {
    exitStatus: 125,
    meaning: 'The working directory does not exist, or the command cannot see it.',
  },
  'enforcement.unavailable': {
    exitStatus: 126,
    meaning: 'This host cannot enforce a control that the policy requires.',
  },
  'backend.unavailable': {
    exitStatus: 126,
    meaning: 'The named backend cannot be used here, or is weaker than the policy allows.',
  },
  'addon.unavailable': {
    exitStatus: 125,
    meaning: 'The native addon is not built or cannot be loaded on this host.',
  },
  'package.incomplete': {
    exitStatus: 125,
    meaning: 'Files of this package are missing, because it was made part of a bundle or copied in part.',
  },
  'confinement.failed': { exitStatus: 125, meaning: 'A kernel object of the confinement could not be made.' },
  'launch.failed': {
    exitStatus: 125,
    meaning: 'The child could not apply its confinement, so nothing was run.',
  },
  'command.denied': { exitStatus: 126, meaning: 'The policy refuses the command.' },
  'command.needs_approval': {
    exitStatus: 126,
    meaning: 'The command needs approval, and there was no one to ask.',
  },
  'command.failed': {
    exitStatus: 125,
    meaning: 'The command did not exit with 0. Only the library says so, with the option reject.',
  },
  'program.not_found': { exitStatus: 127, meaning: 'No such program in PATH, or the path does not exist.' },
  'program.not_executable': {
    exitStatus: 126,
    meaning: 'The program exists but cannot be executed, or the sandbox may not execute it.',
  },
  'limit.exceeded': {
    exitStatus: 123,
    meaning: 'The command exceeded a limit of the policy and was ended.',
  },
  'handover.unavailable': {
    exitStatus: 125,
    meaning:
      'The sandbox needs something of its process while commands run, so that no other can start them.',
  },
  'handover.spent': {
    exitStatus: 125,
    meaning: 'The command line of a sandbox was used before, or its sandbox was closed, so nothing was run.',
  },
  'file.unusable': {
    exitStatus: 125,
    meaning: 'A file cannot be read or written in the sandbox, or is too large.',
  },
  'output.lost': { exitStatus: 125, meaning: 'Output cannot be written, or is too long.' },
  'state.unusable': {
    exitStatus: 125,
    meaning: 'The state directory or the database in it cannot be used, so nothing was run.',
  },
  'state.untrusted': { exitStatus: 125, meaning: 'Other users own the state directory, or can use it.' },
  'state.reachable': {
    exitStatus: 125,
    meaning: 'Under this policy commands could reach the state directory, and approve commands for the user.',
  },
  'audit.failed': {
    exitStatus: 125,
    meaning: 'A record could not be written to the audit trail, so nothing was run.',
  },
  'audit.unreadable': {
    exitStatus: 125,
    meaning: 'The audit trail does not exist, cannot be read, or has no such record.',
  },
  'fleet.uninstalled': {
    exitStatus: 125,
    meaning: 'A package of the NATS client, which the fleet needs, is not installed.',
  },
  'fleet.unreachable': {
    exitStatus: 125,
    meaning: 'The NATS server cannot be reached, or does not answer in time, so nothing was run.',
  },
  'fleet.refused': {
    exitStatus: 125,
    meaning: 'The NATS server does not accept the credentials, or they may not do what was asked.',
  },
  'fleet.invalid': {
    exitStatus: 125,
    meaning: 'The URL, the credentials or the certificate for the NATS server are not usable.',
  },
  'approval.unknown': {
    exitStatus: 125,
    meaning: 'There is no such request or grant, or it was answered already.',
  },
  'approval.void': {
    exitStatus: 126,
    meaning: 'Something changed after the question was asked, so the approval does not hold any more.',
  },
  'fleet.unknown': { exitStatus: 125, meaning: 'There is no such queue or job.' },
  'fleet.worker_lost': {
    exitStatus: 125,
    meaning: 'The worker of a job gave no sign of life until its lease was over.',
  },
  'fleet.too_late': {
    exitStatus: 125,
    meaning: 'The job waited so long that it is not known any more whether it was run, so it was not.',
  },
  'publish.unavailable': { exitStatus: 126, meaning: 'No port can be published on this host.' },
  'publish.refused': { exitStatus: 126, meaning: 'A port or socket may not be published at that place.' },
  'publish.taken': { exitStatus: 125, meaning: 'A port that was to be published is taken.' },
  'publish.failed': { exitStatus: 125, meaning: 'A port cannot be published, for another reason.' },
  'changes.unavailable': {
    exitStatus: 126,
    meaning: 'This host or backend cannot hold the changes of a command back.',
  },
  'changes.unknown': {
    exitStatus: 125,
    meaning: 'There is no change set with that id, or nothing in it at a path.',
  },
  'changes.state': {
    exitStatus: 125,
    meaning: 'The change set is of another workspace, or its state does not allow what was asked.',
  },
  'changes.busy': { exitStatus: 125, meaning: 'Another process applies changes or takes some back.' },
  'changes.incomplete': {
    exitStatus: 125,
    meaning: 'Applying changes or taking them back stopped in the middle; the next try goes on.',
  },
  'kept.unknown': { exitStatus: 125, meaning: 'Nothing is kept under that id.' },
  'kept.in_the_way': {
    exitStatus: 125,
    meaning: 'A kept file cannot be put back: something else is in its place.',
  },
  'cache.in_use': { exitStatus: 125, meaning: 'The cache cannot be cleared while a command uses it.' },
  'session.invalid': { exitStatus: 125, meaning: 'The session is unknown or belongs to another principal.' },
  'session.closed': { exitStatus: 125, meaning: 'The shell session has ended or could not be started.' },
  'service.unknown': { exitStatus: 125, meaning: 'There is no such service, or it was lost.' },
  'service.exists': { exitStatus: 125, meaning: 'Such a service runs already, or under another supervisor.' },
  'service.unusable': { exitStatus: 125, meaning: 'The supervisor of services is not usable.' },
  'hook.unusable': {
    exitStatus: 125,
    meaning: 'A plug-in of the policy is not trusted or cannot be loaded.',
  },
  'gate.unusable': { exitStatus: 125, meaning: 'The gate server cannot be started or reached.' },
  'protocol.invalid': {
    exitStatus: 125,
    meaning: 'A message to serve is not valid JSON, or breaks the protocol.',
  },
  'protocol.version': { exitStatus: 125, meaning: 'A client and a server speak different protocols.' },
  'protocol.uninitialized': { exitStatus: 125, meaning: 'A client sent a request before initialize.' },
  'protocol.unknown_method': { exitStatus: 125, meaning: 'The server has no such method.' },
  'protocol.unknown_id': {
    exitStatus: 125,
    meaning: 'The connection has no such command or session: it has ended, or belongs to another connection.',
  },
  'protocol.too_long': { exitStatus: 125, meaning: 'A message is longer than the server accepts.' },
  'protocol.busy': { exitStatus: 125, meaning: 'A client has more open requests than the server allows.' },
  'protocol.failed': { exitStatus: 125, meaning: 'The server failed because of a defect of its own.' },
  'sandbox.closed': { exitStatus: 125, meaning: 'The sandbox was closed before the command started.' },
} as const satisfies Record<string, { readonly exitStatus: number; readonly meaning: string }>;

/** A stable error code: a key of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES;
