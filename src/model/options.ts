import { z } from 'zod';
import { directoryPath } from '../base/directory-path.ts';
import { isObject } from '../base/is-object.ts';
import { text, type Value } from '../base/value.ts';
import {
  APPROVERS,
  AUTONOMIES,
  BACKEND_IDS,
  EFFECTS,
  EXPLAIN,
  MAX_MILLISECONDS,
  TAINTS,
  UNDO,
  UNLISTED,
} from '../base/words.ts';
import { JobOrigin } from './command.ts';
import type { GateOptions } from './gate-ports.ts';
import { MaxOutput, type OutputChunk } from './output.ts';
import type { PolicyFile } from './policy-keys.ts';
import { PUBLICATION_FORMS, publicationText, readPublication } from './publication.ts';
import type { AgentSession } from './session.ts';

/*
 * The options of the library. Each schema says for every way to be wrong what the option must be: "timeout must be …". Other
 * doors (serve) take fields from here and say themselves what those they leave out are.
 */

/** A number within limits, with one text for all ways to be none. */
function numberOf(must: string, min: number, max: number) {
  return z.number(must).min(min, must).max(max, must);
}

/** A list or an object whose parts are described by the same text. */
const STRINGS = 'an array of strings';
const VARIABLES = 'an object of strings by variable name';
const CHANGED = 'an object of strings (or undefined) by variable name';

/** What a command may use with everything that it starts, as options of the library. */
const TREE_LIMITS = ['memory', 'processes', 'cpuSeconds', 'tmpBytes'] as const;

const LIMITS = `an object of whole numbers above 0: ${TREE_LIMITS.join(', ')}`;
const SIZE = 'an object { cols, rows } of numbers from 1 to 65535';
const APPROVED = 'true, false or { fingerprint }';
const INPUT = 'a string, bytes, a stream or another async iterable of these';
const SPILL =
  'true, false or { maxBytes, stdout, stderr, append }, with absolute paths or file: URLs of the files';

const TAINT_LIST = `an array of ${TAINTS.join(', ')}`;
const SHELL_VARIABLES = 'an object of strings by names that a shell takes; other variables cannot be set';

/** A directory. A URL can be changed, so that what is read of it is its path. */
const DIRECTORY = 'a path, or a file: URL of a directory on this machine';
const directory = z
  .union([z.string(), z.instanceof(URL)], DIRECTORY)
  .transform((given, context): string | URL => {
    try {
      return directoryPath(given);
    } catch {
      context.addIssue({ code: 'custom', message: DIRECTORY });
      return z.NEVER;
    }
  });

/** A file that is written here. */
const file = z.union([z.string(), z.instanceof(URL)], SPILL).transform((given, context): string | URL => {
  try {
    const path = directoryPath(given);
    if (path.startsWith('/') && !path.includes('\0') && !path.endsWith('/')) return path;
  } catch {}
  context.addIssue({ code: 'custom', message: SPILL });
  return z.NEVER;
});

const string = z.string('a string');
const strings = z.array(z.string(STRINGS), STRINGS);
const boolean = z.boolean('true or false');

const Milliseconds = numberOf('milliseconds from 0 (none) to a year', 0, MAX_MILLISECONDS);

/**
 * Variables by name, copied. Any object will do: `process.env` is no plain one, and a variable may be called `__proto__`,
 * which zod's records leave out.
 */
function variables<Text extends string | undefined>(
  must: string,
  isValue: (value: unknown) => value is Text,
  isName = /^[^=]+$/,
) {
  return z.unknown().transform((given, context): Readonly<Record<string, Text>> => {
    const entries = isObject(given) ? Object.entries(given) : [];
    const copy: [string, Text][] = [];
    for (const [name, value] of entries) {
      if (isName.test(name) && isValue(value)) copy.push([name, value]);
      else context.addIssue({ code: 'custom', message: must, path: [name] });
    }
    if (!isObject(given)) context.addIssue({ code: 'custom', message: must });
    return Object.fromEntries(copy);
  });
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isTextOrNone = (value: unknown): value is string | undefined => value === undefined || isText(value);
/** The shell assigns them itself. */
const isAssignable = (value: unknown): value is string => isText(value) && !value.includes('\0');

const PUBLISH = `an array of ports to publish: each ${PUBLICATION_FORMS}, { port, inner, orFree, address } or { socket, inner }`;
const portNumber = numberOf(PUBLISH, 0, 65535).int(PUBLISH);
const PublishedPort = z
  .union(
    [
      z.string(PUBLISH),
      z.strictObject(
        {
          port: portNumber.describe('where programs of this machine connect; 0: any free port'),
          inner: portNumber.optional().describe('where the server listens in the sandbox. Default: the same'),
          orFree: z.boolean(PUBLISH).optional().describe('the next free port if this one is taken'),
          address: z.string(PUBLISH).optional().describe('a loopback address. Default: 127.0.0.1 and ::1'),
        },
        PUBLISH,
      ),
      z.strictObject(
        {
          socket: z
            .string(PUBLISH)
            .describe('the absolute path of a Unix socket to make, which only this user can connect to'),
          inner: portNumber.describe('where the server listens in the sandbox'),
        },
        PUBLISH,
      ),
    ],
    PUBLISH,
  )
  .refine((given) => readPublication(typeof given === 'string' ? given : publicationText(given)), PUBLISH);

/** Variables with values. */
const Variables = variables(VARIABLES, isText);

/** Variables with values; `undefined` takes one away. */
const ChangedVariables = variables(CHANGED, isTextOrNone);

/** What a command may use with everything that it starts; missing: the policy's. */
export const TreeLimits = z
  .partialRecord(
    z.enum(TREE_LIMITS, LIMITS),
    numberOf(LIMITS, 1, Number.MAX_SAFE_INTEGER).int(LIMITS).optional(),
    LIMITS,
  )
  .describe('bytes of memory, processes and threads, seconds of processor time, bytes of private files');
export type TreeLimits = Value<typeof TreeLimits>;

const characters = numberOf(SIZE, 1, 65535).int(SIZE);

/** The size of a terminal in characters, from 1 to 65535 each. */
export const TerminalSize = z.strictObject({ cols: characters, rows: characters }, SIZE);
export type TerminalSize = Value<typeof TerminalSize>;

/**
 * An approval of one request, from `sandbox.check()`. The request is made again right before the launch; if it has another
 * fingerprint (a file behind the command changed, for example), the command is refused with `approval.void`. Standard
 * input and a terminal are no part of that request: a run with one of them is refused, too.
 */
export const ApprovedRequest = z.strictObject({ fingerprint: z.string(APPROVED) }, APPROVED);
export type ApprovedRequest = Value<typeof ApprovedRequest>;

/** What somebody takes away from a policy, beside the file of the workspace: nothing of it can give anything. */
interface Narrowing {
  /** What a file in a workspace may say. */
  readonly policy?: PolicyFile | undefined;
  /** The workspace can only be read. */
  readonly readOnly?: boolean | undefined;
}

/** Options of `createSandbox`. */
export const SandboxOptions = z.strictObject({
  workspace: directory
    .optional()
    .describe(
      'The directory that commands work in, as a path or a `file:` URL. Default: the policy’s `security.workspace_dir`, else the current directory.',
    ),
  profile: string
    .optional()
    .describe('Name of a built-in profile. Default: the policy file’s, else `workspace-write`.'),
  policy: z
    .union([string, z.custom<PolicyFile>(isObject)], 'a path or an object')
    .optional()
    .describe(
      'Path of a TOML policy file, or its content as an object; comes on top of the machine’s and the user’s.',
    ),
  policyFiles: boolean
    .optional()
    .describe(
      'Internal. False: only the built-in policy and `policy`, whatever files there are; to ask what the host can do.',
    ),
  narrow: z
    .custom<Narrowing>(isObject)
    .optional()
    .describe('Internal. What a submitter of a job takes away from the policy.'),
  isCopy: boolean
    .optional()
    .describe(
      'Internal. The workspace is a copy that goes with the sandbox: nothing is lost with what is deleted there.',
    ),
  backend: z
    .enum(['auto', ...BACKEND_IDS], `one of auto, ${BACKEND_IDS.join(', ')}`)
    .optional()
    .describe(
      'What keeps commands in. Default: `auto`, the strongest that this host has and that holds what the policy requires. One that is named and cannot be used is an error, and never another.',
    ),
  autonomy: z
    .enum(AUTONOMIES, `one of ${AUTONOMIES.join(', ')}`)
    .optional()
    .describe('How much is left to the agent. Default: the policy’s, else `contained`.'),
  ask: z
    .enum(APPROVERS, `one of ${APPROVERS.join(', ')}`)
    .optional()
    .describe(
      'Who is asked what the policy asks. Default: the policy’s, else `terminal`; a library has none without an approver.',
    ),
  gate: z
    .custom<GateOptions>(isObject, 'an object')
    .optional()
    .describe(
      'What has a state or belongs to the application; each takes the place of what the policy would give.',
    ),
  principal: string
    .min(1, 'a string that is not empty')
    .optional()
    .describe(
      'Who the commands are run for: budget, approvals and sessions belong to it. Default: the user of this process.',
    ),
  session: z
    .union(
      [string, z.custom<AgentSession>((value) => isObject(value) && typeof value.onEnd === 'function')],
      'a session of openSession() or its id',
    )
    .optional()
    .describe(
      'The session of the agent, from `openSession()`, or its id. Default: none, so that nothing is remembered of it.',
    ),
  tool: z
    .string('a name of visible characters')
    .regex(/^[\x21-\x7e]{1,128}$/, 'a name of visible characters')
    .optional()
    .describe(
      'What the agent calls the tool that the commands come from, for example `Bash`: plug-ins are told it. Default: `run_command`.',
    ),
  audit: z
    .boolean('true or false')
    .optional()
    .describe(
      'Whether decisions and results go to the audit trail where the policy does not say (`audit.enabled`). Default: false.',
    ),
  readable: strings.optional().describe('Further paths to read and execute from. They must exist.'),
  writable: strings.optional().describe('Further paths to write. They must exist.'),
  hide: strings
    .optional()
    .describe(
      'What commands do not see, as patterns of `filesystem.hide` in a policy file; these are added to those of the policy.',
    ),
  net: strings
    .optional()
    .describe(
      'Hosts that commands may reach, as entries of `network.allow` in a policy file; the network is then `listed`, and these are added to those of the policy.',
    ),
  unlisted: z
    .enum(UNLISTED)
    .optional()
    .describe(
      'What becomes of a connection to a host that is not listed: `deny`, or `ask` the approver, while the connection waits; the network is then `listed`.',
    ),
  unix: strings
    .optional()
    .describe(
      'Sockets of this machine that commands may connect to, as entries of `network.unix` in a policy file; the network is then `listed`, and these are added to those of the policy.',
    ),
  publish: z
    .array(PublishedPort, PUBLISH)
    .optional()
    .describe(
      'Ports of the sandbox that programs of this machine can connect to, as entries of `network.publish` in a policy file or as objects; these are added to those of the policy. They are held while a command runs. If a port is taken, commands do not run.',
    ),
  explain: z
    .enum(EXPLAIN)
    .optional()
    .describe(
      'What is looked at to tell what the sandbox denied (`denials` of a result): `auto` all but what is read, `always` that too, which is slower, `never` nothing. Default: the policy’s.',
    ),
  shadow: z
    .union([string, z.custom<PolicyFile>(isObject)], 'the path of a policy file, or its content')
    .optional()
    .describe(
      'Another policy, as a file or its content: commands run under that of the sandbox, and `wouldDeny` of a result says what this one would have denied, in place of all policy files. It is as slow as `explain: "always"`.',
    ),
  undo: z
    .enum(UNDO, `one of ${UNDO.join(', ')}`)
    .optional()
    .describe(
      'Of which commands `sandbox.changes()` can take back what they change in the workspace: `losses` of those that would be asked about only because they may lose work there, which are not asked about then; `always` of all, which is slower; `never` of none. Default: the policy’s, else `losses`.',
    ),
  passEnv: strings.optional().describe('Names passed on from this process’s environment.'),
  env: Variables.optional().describe('Variables with values.'),
  timeout: Milliseconds.optional().describe(
    'Default time-out of a command in milliseconds, at most a year; 0: none.',
  ),
  idleTimeout: Milliseconds.optional().describe(
    'How long a command may write no output, in milliseconds, at most a year; 0: for ever. Default: the policy’s, else 0.',
  ),
  limits: TreeLimits.optional().describe(
    'What a command may use with everything that it starts. Default: the policy’s.',
  ),
  maxOutput: MaxOutput.optional().describe(
    'Bytes kept of each output stream, half from its beginning and half from its end, or so many of each. Default: 1 MiB.',
  ),
});
export type SandboxOptions = Value<typeof SandboxOptions>;

/** What gives the standard input of a command in pieces: a `Readable`, a web stream, an async generator. */
export type InputSource = AsyncIterable<string | Uint8Array>;

/** Options of one run. */
export const RunOptions = z.strictObject({
  cwd: directory
    .optional()
    .describe(
      'Where it starts: a path, absolute or relative to the workspace, or a `file:` URL. Default: the workspace.',
    ),
  env: ChangedVariables.optional().describe('Variables for this command; `undefined` takes one away.'),
  approved: z
    .union([boolean, ApprovedRequest], APPROVED)
    .optional()
    .describe(
      'A person looked at exactly this command and wants it to run: where the policy asks, that is the answer. What the policy refuses stays refused. To be set by the application, never by a model. `true` is good for whatever the command does by the time it runs; `{ fingerprint }` only while its request is the one that was shown.',
    ),
  taints: z
    .array(z.enum(TAINTS, TAINT_LIST), TAINT_LIST)
    .optional()
    .describe('What the session of the agent was exposed to.'),
  timeout: Milliseconds.optional().describe('Milliseconds, at most a year; 0: none.'),
  idleTimeout: Milliseconds.optional().describe(
    'How long the command may write no output, in milliseconds, at most a year; 0: for ever. Needs captured output.',
  ),
  signal: z
    .instanceof(AbortSignal, { error: 'an AbortSignal' })
    .optional()
    .describe('Ends the command when aborted: SIGTERM, then SIGKILL.'),
  input: z
    .union(
      [
        z.string(),
        z.custom<Uint8Array>((value) => value instanceof Uint8Array),
        z.custom<InputSource>((value) => isObject(value) && Symbol.asyncIterator in value),
      ],
      INPUT,
    )
    .optional()
    .describe(
      'What standard input has, which is empty otherwise. A stream, or another source of pieces, is read as the command takes it and ended with it, as soon as the command reads no more; nothing of it is read before the command runs. If it fails the command is ended, and the promise is rejected with its error. What it will say is not known beforehand: an approval is good for this run alone.',
    ),
  stdin: z
    .enum(['null', 'inherit'], '"null" or "inherit"')
    .optional()
    .describe('`inherit`: the command reads this process’s standard input. Default: `null`, which is empty.'),
  onOutput: z
    .custom<(chunk: OutputChunk) => void | Promise<void>>(
      (value) => typeof value === 'function',
      'a function',
    )
    .optional()
    .describe(
      'Called with output as it arrives; while a returned promise is pending, the command’s pipe fills up. The result waits for the last one, unless the command was ended (time-out, limit, `signal`, `cancel()`, `close()`): then for 250 ms at most, after which it is called no more and a warning of the result says so.',
    ),
  maxOutput: MaxOutput.optional().describe('As in `createSandbox`, for this run.'),
  encoding: z
    .enum(['utf8', 'bytes'], '"utf8" or "bytes"')
    .optional()
    .describe(
      '`bytes`: the result has the output as bytes, with nothing replaced, and not as text. Default: `utf8`.',
    ),
  escapes: z
    .enum(['keep', 'neutralize'], '"keep" or "neutralize"')
    .optional()
    .describe(
      '`neutralize`: text for a reader that is no terminal, such as a model. Escape sequences and control characters but line breaks and tabs are taken out; of a line that was written over, as progress bars are, the last state is left; bidirectional controls and invisible characters are shown as `\\u{202e}`. It is for the text of the result and of `outputText()`, which begins a new line instead, not for bytes. Default: `keep`.',
    ),
  combined: boolean
    .optional()
    .describe(
      'Both streams through one pipe: `stdout` has all output in the order in which it was written, `stderr` nothing.',
    ),
  spill: z
    .union(
      [
        boolean,
        z.strictObject(
          {
            maxBytes: z
              .union(
                [numberOf(SPILL, 0, Number.MAX_SAFE_INTEGER).int(SPILL), z.literal(Number.POSITIVE_INFINITY)],
                SPILL,
              )
              .optional(),
            stdout: file.optional(),
            stderr: file.optional(),
            append: z.boolean(SPILL).optional(),
          },
          SPILL,
        ),
      ],
      SPILL,
    )
    .optional()
    .describe(
      'Writes the whole output to files of mode 0600 in the state directory, up to 256 MiB of each stream or `maxBytes` (`Infinity`: all there is); `spilled` of the result names them. Each time, those older than 7 days are removed, and the oldest until the others have 1 GiB together. With `stdout`, `stderr` or both it is these files instead, which are emptied unless `append` is true, and never removed; what cannot be written safely (a link or another name that a command may have made) keeps the command from running.',
    ),
  stdio: z
    .enum(['capture', 'inherit'], '"capture" or "inherit"')
    .optional()
    .describe(
      '`inherit`: the command uses this process’s standard streams and nothing is captured. Default: `capture`.',
    ),
  pty: TerminalSize.optional().describe(
    'The command runs on a terminal of its own. All that it shows is `stdout`, with the echo of `input`, which is typed; at its end comes, once, the character that means the end of the input.',
  ),
  reject: boolean
    .optional()
    .describe(
      'True: the promise is rejected with a `CommandError`, which has the result, unless the command ran and exited with 0. Default: false, so that a result says what became of the command.',
    ),
  effect: z
    .enum(EFFECTS, `one of ${EFFECTS.join(', ')}`)
    .optional()
    .describe(
      '`preview`: what the command changes in the workspace waits in a change set, which `changes` of the result describes and `sandbox.changes()` applies or discards. `undoable`: it is applied when the command ends, and `sandbox.changes()` takes it back. In both, other writable paths are only read. Default: `direct` for jobs and terminals, and else what the option `undo` says.',
    ),
  on: string
    .optional()
    .describe(
      'The id of a change set that waits; the command sees the workspace with it, and is a preview (`effect: "preview"`), too.',
    ),
  background: z
    .literal(false, 'true or false')
    .optional()
    .describe('True, see `JobOptions`: what the command leaves behind runs on, and `run` gives a job.'),
  job: JobOrigin.optional().describe('Internal. The job of a fleet that the command is run for.'),
});
export type RunOptions = Value<typeof RunOptions>;

/** Options of a run in the background. Without `timeout` there is none. */
export const JobOptions = RunOptions.extend({
  background: z.literal(true, 'true or false'),
  reject: z.literal(false, 'false for a command in the background').optional(),
});
export type JobOptions = Value<typeof JobOptions>;

/** Options of `spawn`. */
export const SpawnOptions = RunOptions.pick({
  ...({ cwd: true, env: true, approved: true, taints: true, timeout: true } as const),
  ...({ signal: true, pty: true, effect: true, on: true, job: true } as const),
});
export type SpawnOptions = Value<typeof SpawnOptions>;

/** What a command would be run with, as far as it makes a difference to the decision. */
export const CheckOptions = RunOptions.pick({ cwd: true, env: true, taints: true, effect: true });
export type CheckOptions = Value<typeof CheckOptions>;

/** Options of `commandLine`. */
export const CommandLineOptions = RunOptions.pick({
  ...({ cwd: true, env: true, approved: true, taints: true, timeout: true, effect: true, on: true } as const),
}).extend({
  terminal: boolean
    .optional()
    .describe(
      'The process is started on a terminal (node-pty): the command gets one of its own behind that, with job control, and of its size. Default: false, the command has the streams that the process is started with.',
    ),
});
export type CommandLineOptions = Value<typeof CommandLineOptions>;

/** What can be kept of a shell: where it is and what it exports. What is exported may be secret. */
export const ShellSnapshot = z.strictObject({ cwd: text, env: z.record(text, text) });
export type ShellSnapshot = Value<typeof ShellSnapshot>;

/** Options of `sandbox.session()`. */
export const ShellOptions = z.strictObject({
  cwd: directory
    .optional()
    .describe(
      'Where it begins: a path, absolute or relative to the workspace, or a `file:` URL. Default: the workspace, or where the snapshot was made.',
    ),
  env: Variables.optional().describe('Variables of the shell, beyond those of every command.'),
  restore: z
    .custom<ShellSnapshot>(isObject, 'a snapshot of a session')
    .optional()
    .describe(
      'Directory and variables of another session. What would change which programs run is left out: see `warnings`.',
    ),
});
export type ShellOptions = Value<typeof ShellOptions>;

/** Options of one command of a session. */
export const TurnOptions = RunOptions.pick({
  ...({ taints: true, timeout: true, signal: true, onOutput: true, reject: true } as const),
}).extend({
  approved: boolean
    .optional()
    .describe('As of `run()`; of what a shell would do no request is made beforehand.'),
  env: variables(SHELL_VARIABLES, isAssignable, /^[A-Za-z_][A-Za-z0-9_]*$/)
    .optional()
    .describe('Variables for this command alone.'),
});
export type TurnOptions = Value<typeof TurnOptions>;
