import { ERROR_CODES } from '../../errors/codes.ts';
import { EXIT_STATUS } from '../../run/exit-status.ts';

/** An exit status, as documentation shows it. */
export interface ExitStatusRow {
  /** A number, or `128+n`. */
  readonly status: string;
  readonly meaning: string;
  /** Error codes that end with it. */
  readonly codes: readonly string[];
}

/** What each status means; {@link ERROR_CODES} says which error ends with which. */
const MEANINGS: readonly (readonly [status: number, meaning: string])[] = [
  [0, 'The command exited 0; of other subcommands: done, or yes.'],
  [
    1,
    'doctor: the default profile cannot be enforced, or an attack escaped. audit: verify found something wrong, show, search or acknowledge nothing.',
  ],
  [EXIT_STATUS.asks, 'check: the policy asks.'],
  [123, 'The command used more than a limit of the policy allows, and was ended.'],
  [EXIT_STATUS.timedOut, 'The command took longer than its time-out, and was ended.'],
  [125, 'sandbox-run itself failed, or was called wrongly; the command was not run, or its output is lost.'],
  [126, 'The command was refused, or the program cannot be executed. check, gate check: refused.'],
  [127, 'The program was not found.'],
];

/**
 * THE table of exit statuses: the command's own; else one of these. `sandbox-run help exit-status` is made
 * from it, docs/command-line.md and the man page are tested against it.
 */
export function exitStatuses(): readonly ExitStatusRow[] {
  const codesOf = (status: number) =>
    Object.entries(ERROR_CODES)
      .filter(([, { exitStatus }]) => exitStatus === status)
      .map(([code]) => code);
  return [
    ...MEANINGS.map(([status, meaning]) => ({ status: String(status), meaning, codes: codesOf(status) })),
    {
      status: `${EXIT_STATUS.signal}+n`,
      meaning: 'Signal n ended the command; or sandbox-run, before the command was started.',
      codes: [],
    },
  ];
}
