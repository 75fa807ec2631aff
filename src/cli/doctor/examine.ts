import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { arch, release, tmpdir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { BACKEND_IDS } from '../../base/words.ts';
import { errnoName } from '../../confine/kernel/errno.ts';
import { NEWEST_KNOWN_ABI } from '../../confine/kernel/landlock/rights.ts';
import { SET_USER_ID } from '../../confine/kernel/mode-bits.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { requireDemands } from '../../confine/plan/enforcement.ts';
import type { BackendId, Control } from '../../confine/plan/enforcement-report.ts';
import type { HostFeatures } from '../../confine/plan/host-features.ts';
import { CAP_SYS_ADMIN, hasCapability, probeHost } from '../../confine/probe.ts';
import type { CgroupFacts, DoctorReport, ProcessFacts, ProgramFacts, Sysctl } from '../../model/index.ts';
import { PROFILES, profileFile } from '../../policy/index.ts';
import { closePrepared, openSandbox, prepareSandbox } from '../../run/index.ts';
import { packageVersion } from '../../version.ts';
import { findProgram } from '../../workspace/index.ts';
import { noTemporaryDirectory } from '../attack/arena.ts';
import { caller } from '../shared/caller.ts';
import { type Findings, remediesFor } from './remedies.ts';

/** Landlock's published errata: number, first ABI concerned, meaning. Bit n-1 of the kernel's answer says fixed. */
const ERRATA = [
  { number: 1, sinceAbi: 4, meaning: 'TCP rights also restricted other stream protocols' },
  { number: 2, sinceAbi: 6, meaning: 'the signal scope stood between threads of one process' },
  { number: 3, sinceAbi: 1, meaning: 'disconnected directories were judged by a wrong parent' },
  { number: 4, sinceAbi: 1, meaning: 'overlay whiteouts can be made without make_reg' },
] as const;

/** Every action that seccomp knows, the strictest first. */
const SECCOMP_ACTIONS = [
  'kill_process',
  'kill_thread',
  'trap',
  'errno',
  'user_notif',
  'trace',
  'log',
  'allow',
] as const;

const PROGRAMS = ['firejail', 'bwrap'] as const;

/** What making a sandbox on this host showed. */
interface Trial {
  readonly backends: DoctorReport['backends'];
  readonly problem: SandboxError | undefined;
  readonly backend: string | null;
  readonly controls: readonly Control[];
  readonly features: HostFeatures | undefined;
}

/** Looks at everything that decides what can be enforced here. Tries every backend, and runs `true` under the first. */
export async function examineHost(): Promise<DoctorReport> {
  const addon = addonOrReason();
  const [trial, programs] = await Promise.all([
    addon instanceof SandboxError
      ? { problem: addon, backends: [], backend: null, controls: [], features: undefined }
      : tryDefaultProfile(),
    Promise.all(PROGRAMS.map(programFacts)),
  ]);
  const who = processFacts();
  const namespaces = trial.features?.namespaces;
  const asked =
    addon instanceof SandboxError
      ? undefined
      : { kernel: addon.probe(), features: trial.features ?? probeHost(addon) };
  const found: Findings = {
    version: packageVersion,
    ok: trial.problem === undefined,
    problem:
      trial.problem === undefined ? null : { code: trial.problem.code, message: trial.problem.problem },
    backend: trial.problem === undefined ? trial.backend : null,
    profile: PROFILES[0].name,
    host: { kernel: release(), architecture: arch(), node: process.version, ...who },
    addon: {
      available: !(addon instanceof SandboxError),
      reason: addon instanceof SandboxError ? addon.problem : null,
    },
    backends: trial.backends,
    landlock: describeLandlock(asked),
    seccomp: describeSeccomp(asked),
    namespaces: {
      available: namespaces?.available ?? null,
      user: !who.sysAdmin,
      reason: namespaces === undefined || namespaces.available ? null : namespaces.reason,
      sysctls: namespaceSysctls(),
    },
    cgroup: { ...cgroupFacts(), place: trial.features?.cgroup.path ?? null },
    programs,
    controls: trial.controls,
    securityModules: securityModules(),
    addonRemedy: addon instanceof SandboxError ? addon.remedy : undefined,
  };
  const { securityModules: _, addonRemedy: __, ...report } = found;
  return { ...report, remedies: remediesFor(found) };
}

function addonOrReason(): NativeAddon | SandboxError {
  try {
    return loadAddon();
  } catch (error) {
    if (error instanceof SandboxError) return error;
    throw error;
  }
}

/** Makes the default profile's kernel objects with every demand taken back, so that the report comes in any case. */
async function tryDefaultProfile(): Promise<Trial> {
  const demand = profileFile(PROFILES[0]).demand ?? {};
  const relaxed = Object.fromEntries(Object.keys(demand).map((id) => [id, 'best-effort' as const]));
  let workspace: string | undefined;
  let known: Omit<Trial, 'problem'> = { backends: [], backend: null, controls: [], features: undefined };
  try {
    workspace = temporaryWorkspace();
    known = { ...known, backends: await tryBackends(workspace) };
    const prepared = await prepareSandbox(
      {
        workspace,
        policyFiles: false,
        policy: { demand: relaxed, sandbox: { minimum: 'firejail' } },
      },
      caller(),
    );
    closePrepared(prepared);
    const { report } = prepared.plan;
    const controls = report.controls.map((control) => ({
      ...control,
      demand: demand[control.id] ?? 'best-effort',
    }));
    known = { ...known, backend: report.backend, controls, features: prepared.confinement.features };
    requireDemands({ ...report, controls });
    return { ...known, problem: await runTrue(workspace) };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return { ...known, problem: error };
  } finally {
    if (workspace !== undefined) rmSync(workspace, { recursive: true, force: true });
  }
}

type BackendFacts = DoctorReport['backends'][number];

/** Which backends hold the default profile here, as far as they can by their nature, the strongest first: each is tried. */
async function tryBackends(workspace: string): Promise<readonly BackendFacts[]> {
  const facts: BackendFacts[] = [];
  for (const id of BACKEND_IDS) facts.push({ id, ...(await tryBackend(id, workspace)) });
  return facts;
}

async function tryBackend(backend: BackendId, workspace: string): Promise<Omit<BackendFacts, 'id'>> {
  try {
    const prepared = await prepareSandbox(
      {
        workspace,
        policyFiles: false,
        backend,
        policy: { sandbox: { minimum: backend } },
      },
      caller(),
    );
    closePrepared(prepared);
    return { available: true, reason: null };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    // Not how to name another.
    const { message } = error.cause instanceof SandboxError ? error.cause : error;
    return { available: false, reason: message };
  }
}

async function runTrue(workspace: string): Promise<SandboxError | undefined> {
  await using sandbox = await openSandbox({ workspace, policyFiles: false }, caller());
  const result = await sandbox.run(['true']);
  if (result.error !== undefined) return new SandboxError(result.error.code, result.error.message);
  if (result.status === 'exited' && result.exitCode === 0) return undefined;
  const how = result.signal ?? `status ${result.exitCode}`;
  return new SandboxError('launch.failed', `\`true\` did not run in the sandbox: ${result.status}, ${how}`);
}

function temporaryWorkspace(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'sandbox-run-doctor-'));
  } catch (error) {
    throw noTemporaryDirectory(error);
  }
}

/** What the kernel reported. It is asked even if no backend could be prepared. */
interface Asked {
  readonly kernel: ReturnType<NativeAddon['probe']>;
  readonly features: HostFeatures;
}

function describeLandlock(asked: Asked | undefined): DoctorReport['landlock'] {
  const newestKnownAbi = NEWEST_KNOWN_ABI;
  if (asked === undefined) {
    const reason = 'unknown without the addon';
    return { available: null, abi: null, newestKnownAbi, errata: [], errno: null, reason };
  }
  const { landlockAbi, landlockErrata } = asked.kernel;
  const { landlock, landlockAbi: abi } = asked.features;
  return {
    available: abi > 0,
    abi,
    newestKnownAbi,
    errata: ERRATA.filter((erratum) => erratum.sinceAbi <= abi).map(({ number, meaning }) => ({
      number,
      meaning,
      fixed: ((landlockErrata >> (number - 1)) & 1) === 1,
    })),
    errno: abi > 0 ? null : errnoName(-landlockAbi),
    reason: landlock.available ? null : landlock.reason,
  };
}

function describeSeccomp(asked: Asked | undefined): DoctorReport['seccomp'] {
  const listed = seccompActions();
  const seccomp = asked?.features.seccomp;
  return {
    available: asked === undefined ? (listed?.includes('errno') ?? null) : asked.kernel.seccompErrno === 0,
    actions: SECCOMP_ACTIONS.map((name) => ({ name, available: listed?.includes(name) ?? null })),
    reason: seccomp === undefined || seccomp.available ? null : seccomp.reason,
  };
}

const NAMESPACE_SYSCTLS = [
  'kernel.unprivileged_userns_clone',
  'kernel.apparmor_restrict_unprivileged_userns',
  'user.max_user_namespaces',
  'user.max_mnt_namespaces',
  'user.max_net_namespaces',
  'user.max_ipc_namespaces',
] as const;

const VERSION_TIMEOUT_MS = 5_000;

/** The settings that decide who may make namespaces. */
function namespaceSysctls(): readonly Sysctl[] {
  return NAMESPACE_SYSCTLS.map((name) => ({
    name,
    value: readIfAny(`/proc/sys/${name.replaceAll('.', '/')}`)?.trim() ?? null,
  }));
}

/** Names of the seccomp actions that the kernel has (SECCOMP_RET_*, in lower case); undefined if it does not say. */
function seccompActions(): readonly string[] | undefined {
  return readIfAny('/proc/sys/kernel/seccomp/actions_avail')?.trim().split(/\s+/);
}

/** The active security modules; undefined where securityfs is not mounted. For advice only, never for a decision. */
function securityModules(): string | undefined {
  return readIfAny('/sys/kernel/security/lsm')?.trim();
}

/** Where this process stands in the control groups. */
function cgroupFacts(): CgroupFacts {
  const mounts = (readIfAny('/proc/self/mounts') ?? '').split('\n').map((line) => line.split(' '));
  const v1 = mounts.some(([, , type]) => type === 'cgroup');
  const v2 = mounts.find(([, , type]) => type === 'cgroup2')?.[1];
  const own = /^0::(.*)$/m.exec(readIfAny('/proc/self/cgroup') ?? '')?.[1];
  const version = v2 === undefined ? (v1 ? 'v1' : 'none') : v1 ? 'v1+v2' : 'v2';
  if (v2 === undefined || own === undefined) return { version, path: null, controllers: [], writable: false };
  const path = join(v2, own);
  const controllers = readIfAny(join(path, 'cgroup.controllers'))?.trim().split(/\s+/) ?? [];
  const writable = mayWrite(path) && mayWrite(join(path, 'cgroup.procs'));
  return { version, path, controllers: controllers.filter(Boolean), writable };
}

/** Looks a program up and asks it for its version. */
async function programFacts(name: string): Promise<ProgramFacts> {
  const places = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute);
  const found = findProgram(name, places.join(delimiter), '/', () => true);
  if (places.length === 0 || found.kind !== 'found')
    return { name, path: null, version: null, problem: null, setuidRoot: false };
  const { path } = found;
  const { mode, uid } = statSync(path);
  return { name, path, ...(await askVersion(path)), setuidRoot: uid === 0 && (mode & SET_USER_ID) !== 0 };
}

/** Who we are. */
function processFacts(): ProcessFacts {
  const status = readIfAny('/proc/self/status') ?? '';
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1];
  const mode = field('Seccomp');
  return {
    uid: process.getuid?.() ?? -1,
    sysAdmin: hasCapability(CAP_SYS_ADMIN),
    container: containerKind(),
    seccompMode: mode === undefined ? null : Number(mode),
    noNewPrivs: field('NoNewPrivs') === '1',
  };
}

function containerKind(): string | null {
  if (existsSync('/.dockerenv')) return 'Docker';
  if (existsSync('/run/.containerenv')) return 'Podman';
  if (/microsoft/i.test(readIfAny('/proc/sys/kernel/osrelease') ?? '')) return 'WSL';
  return null;
}

async function askVersion(path: string): Promise<Pick<ProgramFacts, 'version' | 'problem'>> {
  const { execFile } = await import('node:child_process');
  return new Promise((answered) => {
    const options = {
      ...{ timeout: VERSION_TIMEOUT_MS, maxBuffer: 64 * 1024, encoding: 'utf8' as const },
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
    };
    execFile(path, ['--version'], options, (error, stdout, stderr) => {
      const version = error === null ? (/\d+(\.\d+)+/.exec(stdout)?.[0] ?? null) : null;
      const said = `${stderr}\n${stdout}`.split('\n').find((line) => line.trim() !== '');
      const problem = version === null ? (said?.trim() ?? 'it does not say its version') : null;
      answered({ version, problem });
    }).stdin?.end();
  });
}

function mayWrite(path: string): boolean {
  return orElse(() => {
    accessSync(path, constants.W_OK);
    return true;
  }, false);
}

const readIfAny = (path: string) => orElse(() => readFileSync(path, 'utf8'), undefined);
