/** A name with what it is for. */
type Row = readonly [name: string, meaning: string];

/** THE table of variables of the environment that `sandbox-run` itself reads. */
export const ENVIRONMENT: readonly Row[] = [
  ['HOME', 'Where files of the user are; without it, what the user database says.'],
  ['XDG_CONFIG_HOME', 'Where sandbox-run/policy.toml of the user is (default: ~/.config).'],
  ['XDG_STATE_HOME', 'Where the state directory sandbox-run is made (default: ~/.local/state).'],
  ['PATH', 'Where programs are looked for.'],
  ['TMPDIR', 'Where temporary files of sandbox-run itself are made (default: /tmp).'],
  ['SANDBOX_RUN_GATE', 'The socket that gate check asks, if no option names one.'],
  ['NO_COLOR', 'Unless it is empty, nothing is coloured. Without it, only what is written to a terminal is.'],
  ['TERM', 'If it is dumb, nothing is coloured, and no line is written over.'],
];

/** THE table of files. */
export const FILES: readonly Row[] = [
  ['/etc/sandbox-run/policy.toml', 'The policy of the machine.'],
  ['~/.config/sandbox-run/policy.toml', 'The policy of the user.'],
  ['.sandbox-run.toml', 'In the workspace: can only take away from what the others grant.'],
  [
    '~/.local/state/sandbox-run',
    'State: requests and grants, sessions, the actions of this hour, and the audit trail in audit.',
  ],
];
