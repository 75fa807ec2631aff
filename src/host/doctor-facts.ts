import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { CgroupFacts, ProcessFacts, ProgramFacts, Sysctl } from '../model/doctor-report.ts';

const NAMESPACE_SYSCTLS = [
  'kernel.unprivileged_userns_clone',
  'kernel.apparmor_restrict_unprivileged_userns',
  'user.max_user_namespaces',
  'user.max_mnt_namespaces',
  'user.max_net_namespaces',
  'user.max_ipc_namespaces',
] as const;

const VERSION_TIMEOUT_MS = 5_000;
const CAP_SYS_ADMIN = 21n;
const SETUID_BIT = 0o4000;

/** The settings that decide who may make namespaces. */
export function namespaceSysctls(): readonly Sysctl[] {
  return NAMESPACE_SYSCTLS.map((name) => ({
    name,
    value: readIfAny(`/proc/sys/${name.replaceAll('.', '/')}`)?.trim() ?? null,
  }));
}

/** Names of the seccomp actions that the kernel has (SECCOMP_RET_*, in lower case); undefined if it does not say. */
export function seccompActions(): readonly string[] | undefined {
  return readIfAny('/proc/sys/kernel/seccomp/actions_avail')?.trim().split(/\s+/);
}

/** The active security modules; undefined where securityfs is not mounted. For advice only, never for a decision. */
export function securityModules(): string | undefined {
  return readIfAny('/sys/kernel/security/lsm')?.trim();
}

/** Where this process stands in the control groups. */
export function cgroupFacts(): CgroupFacts {
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
export async function programFacts(name: string): Promise<ProgramFacts> {
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, name))
    .find(isExecutable);
  if (path === undefined) return { name, path: null, version: null, problem: null, setuidRoot: false };
  const { mode, uid } = statSync(path);
  return { name, path, ...(await askVersion(path)), setuidRoot: uid === 0 && (mode & SETUID_BIT) !== 0 };
}

/** Who we are. */
export function processFacts(): ProcessFacts {
  const status = readIfAny('/proc/self/status') ?? '';
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1];
  const capabilities = BigInt(`0x${field('CapEff') ?? '0'}`);
  const mode = field('Seccomp');
  return {
    uid: process.getuid?.() ?? -1,
    sysAdmin: ((capabilities >> CAP_SYS_ADMIN) & 1n) === 1n,
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
  const { execa } = await import('execa');
  const result = await execa(path, ['--version'], {
    reject: false,
    stdin: 'ignore',
    timeout: VERSION_TIMEOUT_MS,
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    extendEnv: false,
  });
  const version = result.exitCode === 0 ? (/\d+(\.\d+)+/.exec(result.stdout)?.[0] ?? null) : null;
  if (version !== null) return { version, problem: null };
  const said = `${result.stderr}\n${result.stdout}`.split('\n').find((line) => line.trim() !== '');
  return { version, problem: said?.trim() ?? 'it does not say its version' };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function readIfAny(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
