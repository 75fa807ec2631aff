import { accessSync, constants, lstatSync, readFileSync, realpathSync, type Stats } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname } from 'node:path';
import { isBeneath } from '../../../base/absolute-path.ts';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import { refuseShortageOf } from '../../../base/errors/shortage.ts';
import { orElse } from '../../../base/or-else.ts';
import type { Trial, TryCommand } from '../../../confine/backends/backend.ts';
import { errnoName } from '../../../confine/kernel/errno.ts';
import { SET_USER_ID } from '../../../confine/kernel/mode-bits.ts';
import type { NativeConfinementSpec } from '../../../confine/native/contract.ts';
import type { FirejailFacility } from '../../../confine/plan/host-features.ts';
import type { NativeSetUidLauncher } from './native-launcher.ts';
import { canChangeRoot, describeRootFailure, keptOpen, topEntries } from './root-directory.ts';

/** A usable Firejail, or one sentence against it. */
type FirejailProbe = FirejailFacility | { readonly reason: string };

/** What became of a question to Firejail. */
type Answer = Omit<Trial, 'failure'>;

let cached: Promise<FirejailProbe> | undefined;

/**
 * Whether this host has a Firejail that starts something for us. Tried once per process.
 * @throws {SandboxError} `launch.failed` if there is not enough of something to try it now, which says nothing of Firejail.
 */
export function probeFirejail(tryCommand: TryCommand): Promise<FirejailProbe> {
  cached ??= probeNow(tryCommand).catch((error: unknown) => {
    cached = undefined;
    throw error;
  });
  return cached;
}

async function probeNow(tryCommand: TryCommand): Promise<FirejailProbe> {
  const found = findFirejail();
  if ('reason' in found) return found;
  if (gainsNothing()) {
    return {
      reason:
        'set-uid programs gain nothing in this process (no_new_privs), so Firejail cannot work; start sandbox-run outside of the sandbox that it is in',
    };
  }
  const answer = await askFirejail(found.path, ['--version']);
  const said = versionIn(answer, found.path);
  if ('reason' in said) return said;
  const { version } = said;
  const program = harmlessProgram(['/']);
  if (program === undefined)
    return { reason: 'Firejail cannot be tried: there is neither /usr/bin/true nor /bin/true' };
  const open = canChangeRoot() ? keptOpen(topEntries(), []) : undefined;
  const reason = against(await tryCommand(plainSpec(found.path, open), program), version);
  if (reason !== undefined) return { reason };
  return { path: found.path, version };
}

/**
 * What `firejail --version` said; only a whole answer of one that ended well counts.
 * @throws {SandboxError} `launch.failed` if it was killed.
 */
export function versionIn(
  answer: Answer,
  path: string,
): { readonly version: readonly number[] } | { readonly reason: string } {
  if (answer.killed) throw wasKilled();
  const version = answer.exitCode === 0 ? parseVersion(answer.stdout) : undefined;
  if (version === undefined) {
    return {
      reason:
        refusal(answer) ??
        `${path} --version says no version that sandbox-run understands (it ended with ${answer.exitCode ?? 'a signal'}); install 0.9.68 or later`,
    };
  }
  const tooOld = refuseVersion(version);
  return tooOld === undefined ? { version } : { reason: tooOld };
}

/** Memory ran out, it was ended from outside, or it was late: another attempt may succeed. */
const wasKilled = () =>
  new SandboxError(
    'launch.failed',
    'Firejail was killed while it was tried, or took too long, which says nothing of it; try again when this host has more time and memory',
  );

const tried = new Map<string, Promise<void>>();

/**
 * Starts what does nothing as a command of this plan, once per process.
 * @throws {SandboxError} `backend.unavailable` with Firejail's own reason; `launch.failed` as for `probeFirejail`.
 */
export function trySpec(
  tryCommand: TryCommand,
  { version }: FirejailFacility,
  spec: NativeConfinementSpec & { readonly setUidLauncher: NativeSetUidLauncher },
  granted: readonly string[],
): Promise<void> {
  const program = harmlessProgram(granted);
  if (program === undefined) return Promise.resolve();
  const { settings, conditional, keptOpen: open = [] } = spec.setUidLauncher;
  const key = [settings, ...conditional.map((one) => one.settings), ...open].join('\0');
  const before = tried.get(key);
  if (before !== undefined) return before;
  const attempt = (async () => {
    const reason = against(await tryCommand(spec, program), version);
    if (reason !== undefined) throw new SandboxError('backend.unavailable', reason);
  })().catch((error: unknown) => {
    if (error instanceof SandboxError && error.code === 'launch.failed') tried.delete(key);
    throw error;
  });
  tried.set(key, attempt);
  return attempt;
}

/** Beneath something that the sandbox shows. */
function harmlessProgram(granted: readonly string[]): string | undefined {
  return ['/usr/bin/true', '/bin/true'].find((program) => {
    try {
      accessSync(program, constants.X_OK);
      return granted.some((path) => isBeneath(program, path));
    } catch {
      return false;
    }
  });
}

/** Exit status of a launcher that SIGKILL ended. */
const KILLED_STATUS = '137';

/**
 * Undefined: nothing is to be said against it.
 * @throws {SandboxError} `launch.failed` for a shortage.
 */
function against(trial: Trial, version: readonly number[]): string | undefined {
  const { failure, exitCode } = trial;
  if (trial.killed || (failure?.stage === 'launcher' && failure.path === KILLED_STATUS)) throw wasKilled();
  if (failure === undefined) return exitCode === 0 ? undefined : describe(trial, version);
  refuseShortageOf(errnoName(failure.errno), 'Firejail');
  const root = describeRootFailure(failure);
  if (root !== undefined) return root;
  // Its own end; its words say why.
  if (failure.stage === 'launcher') return describe({ ...trial, exitCode: Number(failure.path) }, version);
  const errno = failure.errno === 0 ? '' : `: ${errnoName(failure.errno)}`;
  return `Firejail ${showVersion(version)} cannot start a command here (${failure.stage}${errno})`;
}

function describe(answer: Answer, version: readonly number[]): string {
  return (
    refusal(answer) ??
    `Firejail ${showVersion(version)} cannot make the sandbox here (it ended with ${answer.exitCode ?? 'a signal'}): ${firstError(answer)}`
  );
}

function refusal({ stderr, stdout }: Answer): string | undefined {
  if (!/not allowed to use Firejail/i.test(`${stderr}${stdout}`)) return undefined;
  // Its list of users says nothing of that one.
  return userName() === 'nobody'
    ? 'Firejail refuses the user nobody, whatever its list of users says; start sandbox-run as another user, such as setpriv --reuid=1000 --regid=1000 --clear-groups'
    : 'this user may not use Firejail; as root: firecfg --add-users NAME (the list is /etc/firejail/firejail.users)';
}

/** `undefined`: the user has no name here. */
function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

/** For people; nothing is decided by it. */
function firstError({ stderr, stdout }: Answer): string {
  const lines = `${stderr}\n${stdout}`.split('\n').map((line) => line.trim());
  const line =
    lines.find((one) => /error/i.test(one)) ?? lines.find((one) => one !== '') ?? 'it says nothing';
  return line.replace(/[^\P{C}]/gu, '?').slice(0, 200);
}

function gainsNothing(): boolean {
  return orElse(() => /^NoNewPrivs:\s*1$/m.test(readFileSync('/proc/self/status', 'utf8')), false);
}

/** A sandbox of Firejail's with nothing in it but what every one has. */
function plainSpec(program: string, keptOpen: readonly string[] | undefined): NativeConfinementSpec {
  const launcher: NativeSetUidLauncher = {
    program,
    arguments: ['--quiet', '--noprofile', '--caps.drop=all', '--nonewprivs', '--keep-fd=3,4,5'],
    settings: '',
    conditional: [],
    slotSetting: '',
    foregroundSettings: '',
    deadlineOption: '--timeout=',
    env: 'PATH=/usr/sbin:/usr/bin:/sbin:/bin\0',
    keptOpen,
  };
  return {
    landlock: { handledFs: 0n, handledNet: 0n, scoped: 0n },
    rules: [],
    filter: new Uint8Array(),
    namespaces: undefined,
    limits: [],
    treeLimits: {
      memoryBytes: 0,
      processes: 0,
      cpuMs: 0,
      tmpBytes: 0,
      idleTimeoutMs: 0,
      cgroupParent: '',
      cgroupClone: false,
    },
    umask: -1,
    temporaryParent: tmpdir(),
    memoryParent: '',
    slotDirectories: [],
    toldDirectories: [],
    seedFiles: [],
    copies: [],
    slotVariables: [],
    setUidLauncher: launcher,
    processTree: 'subreaper',
    exitTracing: false,
    groupModes: false,
    ownProcesses: false,
    refusedSockets: { inet: false, unix: false },
    observed: 'nothing',
  };
}

/** Where Firejail is looked for: never where a PATH leads. */
const PLACES = ['/usr/bin/firejail', '/usr/local/bin/firejail'];

const WRITABLE_BY_OTHERS = 0o022;

/** Port: what is said of a path without following a last link. */
type Look = (path: string) => Pick<Stats, 'uid' | 'mode' | 'isFile'> | undefined;

/** The Firejail of this host, if only root can have changed it. */
export function findFirejail(
  look: Look = lookNow,
  resolve: (path: string) => string | undefined = resolveNow,
): { readonly path: string } | { readonly reason: string } {
  const found = PLACES.flatMap((place) => resolve(place) ?? [])[0];
  if (found === undefined) {
    return {
      reason: `Firejail is not installed (neither ${PLACES.join(' nor ')}); install the package firejail`,
    };
  }
  const program = look(found);
  if (program === undefined || !program.isFile() || program.uid !== 0)
    return { reason: `${found} is not a program of root's, so it is not trusted; install Firejail anew` };
  if ((program.mode & SET_USER_ID) === 0) {
    return {
      reason: `${found} has no set-uid bit, without which it can do nothing; as root: chmod u+s ${found}`,
    };
  }
  for (let path = found; ; path = dirname(path)) {
    const one = look(path);
    if (one === undefined || one.uid !== 0 || (one.mode & WRITABLE_BY_OTHERS) !== 0) {
      return {
        reason: `others than root can change ${path}, so Firejail is not trusted; as root: chmod go-w ${path}`,
      };
    }
    if (path === '/') return { path: found };
  }
}

function lookNow(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function resolveNow(path: string): string | undefined {
  return orElse(() => realpathSync(path), undefined);
}

/** Firejail answers in a tenth of a second; one that hangs is not used. */
const PATIENCE_MS = 15_000;

/**
 * Starts Firejail to ask it something. With an environment of its own and without standard input: nothing that the user
 * has set changes the answer.
 * @throws {SandboxError} `launch.failed` if there is not enough of something to start it.
 */
export function askFirejail(path: string, options: readonly string[]): Promise<Answer> {
  // Loaded on demand: hosts with Landlock do not need it.
  const { execFile } = process.getBuiltinModule('node:child_process');
  return new Promise<Answer>((answered, failed) => {
    const child = execFile(
      path,
      options,
      {
        timeout: PATIENCE_MS,
        killSignal: 'SIGKILL',
        cwd: '/',
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
        maxBuffer: 64 * 1024,
        encoding: 'utf8',
      },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        const exitCode = typeof code === 'number' ? code : undefined;
        if (typeof code === 'string') failed(error);
        else answered({ exitCode, killed: error?.signal === 'SIGKILL', stdout, stderr });
      },
    );
    child.stdin?.end();
  }).catch(({ code, message }: NodeJS.ErrnoException) => {
    refuseShortageOf(String(code), 'Firejail');
    return { exitCode: undefined, killed: false, stdout: '', stderr: message };
  });
}

/** A version of Firejail as numbers, for example [0, 9, 72] or [0, 9, 64, 4]. */
export type FirejailVersion = readonly number[];

/** The version in the first line of `firejail --version`; `undefined`: there is none. */
export function parseVersion(output: string): FirejailVersion | undefined {
  const match = /^firejail version (\d+(?:\.\d+){1,3})(?![\d.])/m.exec(output);
  return match?.[1]?.split('.').map(Number);
}

/** As people write it. */
function showVersion(version: FirejailVersion): string {
  return version.join('.');
}

/** Whether a version is the other or a later one. */
function isSince(version: FirejailVersion, since: FirejailVersion): boolean {
  for (let at = 0; at < Math.max(version.length, since.length); at++) {
    const difference = (version[at] ?? 0) - (since[at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** What sandbox-run uses of Firejail that some versions from 0.9.64 on lack. */
export type FirejailFeature = keyof typeof FEATURES;

interface Feature {
  /** The first version that has it. */
  readonly since: FirejailVersion;
  /** The first version that has it no more. */
  readonly until?: FirejailVersion;
  /** What is impossible without it; `undefined`: it is only an additional protection. */
  readonly essential?: string;
}

/** THE table of features by version, from Firejail's release notes (0.9.64 to 0.9.80). */
const FEATURES = {
  /** `shell none`, the default from 0.9.72 on, which knows the setting no more. */
  'shell-none': { since: [0, 9, 0], until: [0, 9, 72] },
  noinput: { since: [0, 9, 66] },
  'any-top-directory': {
    since: [0, 9, 66],
    essential: 'it cannot show single paths of every directory in / (whitelist)',
  },
  noprinters: { since: [0, 9, 68] },
  'keep-fd': {
    since: [0, 9, 68],
    essential: 'it does not say which descriptors a command gets (--keep-fd)',
  },
  'deterministic-exit': {
    since: [0, 9, 68],
    essential: 'it does not end what a command leaves behind (--deterministic-shutdown)',
  },
  'restrict-namespaces': { since: [0, 9, 72] },
} as const satisfies Record<string, Feature>;

/** The features in the order of the table. */
export const FIREJAIL_FEATURES = Object.keys(FEATURES) as readonly FirejailFeature[];

/** Whether a version has a feature. */
export function hasFeature(version: FirejailVersion, feature: FirejailFeature): boolean {
  const { since, until }: Feature = FEATURES[feature];
  return isSince(version, since) && (until === undefined || !isSince(version, until));
}

/** Why a version is unusable; `undefined`: it is usable. The newest reason, because that names the version that helps. */
export function refuseVersion(version: FirejailVersion): string | undefined {
  const missing = FIREJAIL_FEATURES.filter((feature) => !hasFeature(version, feature)).flatMap((feature) => {
    const { essential, since }: Feature = FEATURES[feature];
    return essential === undefined ? [] : [{ essential, since }];
  });
  const worst = missing.at(-1);
  if (worst === undefined) return undefined;
  return `Firejail ${showVersion(version)} is too old: ${worst.essential}; install ${showVersion(worst.since)} or later`;
}
