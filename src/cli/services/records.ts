import { createHash } from 'node:crypto';
import {
  linkSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';
import { orElse } from '../../base/or-else.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import type { SandboxOptions } from '../../model/index.ts';
import { stateDirectory } from '../../run/index.ts';
import { ensureStateDirectory } from '../../workspace/index.ts';

/**
 * What is on the disk about a service as long as its supervisor has it: where to ask about it, and what was lost if nobody
 * answers. Nothing is started, ended or allowed because of it.
 */
export interface ServiceRecord {
  readonly name: string;
  /** Canonical. */
  readonly workspace: string;
  /** The name of the supervisor's socket in the state directory. */
  readonly server: string;
  /** The supervisor, and when the kernel started it: which start of the machine, and ticks since then. */
  readonly pid: number;
  readonly started: string;
  /** The machine and the namespace in which `pid` means something: a home directory may be shared by several. */
  readonly host: string;
  /** ISO 8601. */
  readonly at: string;
  /** Its options that commands must have, too, to reach it. */
  readonly options: SandboxOptions;
  /** It has ended by itself, and its supervisor can still be asked about it. */
  readonly hasEnded: boolean;
}

/** Milliseconds after which a record that no process can be writing any more is damaged. */
const WRITTEN_MS = 10_000;
/** Milliseconds after which records of another machine or container are forgotten. */
const FOREIGN_MS = 30 * 86_400_000;

/** The one place that the first lines of the program look for, too (`scripts/build.mjs`): it is there while services are. */
const servicesDirectory = () => join(stateDirectory(), 'services');

/** A name has one record in each workspace. */
function recordPath({ workspace, name }: Pick<ServiceRecord, 'workspace' | 'name'>): string {
  const digest = createHash('sha256').update(workspace).digest('hex').slice(0, 16);
  return join(servicesDirectory(), `${digest}-${name}.json`);
}

/** All records of this machine, by workspace and name. What is no record is taken away. */
export function readRecords(): readonly ServiceRecord[] {
  const directory = servicesDirectory();
  return orElse(() => readdirSync(directory), [])
    .flatMap((file) => readRecord(join(directory, file)) ?? [])
    .sort((one, two) => (`${one.workspace}\0${one.name}` < `${two.workspace}\0${two.name}` ? -1 : 1));
}

function readRecord(path: string): ServiceRecord | undefined {
  const value = parsedJson(orElse(() => readFileSync(path, 'utf8'), ''));
  const isWhole = isRecord(value) && recordPath(value) === path;
  if (isWhole && value.host === thisHost()) return value;
  const since = orElse(() => statSync(path).mtimeMs, Date.now());
  if (Date.now() - since < (isWhole ? FOREIGN_MS : WRITTEN_MS)) return undefined;
  orElse(() => rmSync(path, { force: true }), undefined);
  forgetDirectory();
  return undefined;
}

const thisHost = () => `${hostname()} ${orElse(() => readlinkSync('/proc/self/ns/pid'), '')}`;

function isRecord(value: unknown): value is ServiceRecord {
  if (!isObject(value)) return false;
  const { name, workspace, server, pid, started, host, at } = value;
  const texts = [name, workspace, server, started, host, at].every((part) => typeof part === 'string');
  return (
    texts &&
    typeof value.hasEnded === 'boolean' &&
    isObject(value.options) &&
    Number.isSafeInteger(pid) &&
    basename(String(server)) === server
  );
}

/** Whether the supervisor of a record is still the process that wrote it. */
export const isSupervised = ({ pid, started }: ServiceRecord) => startOf(pid) === started;

/** Whether its service runs, or is about to. */
export const isRunning = (record: ServiceRecord) => !record.hasEnded && isSupervised(record);

/** When the kernel started a process; `undefined`: there is none, or it has ended. See proc_pid_stat(5). */
function startOf(pid: number): string | undefined {
  const read = (path: string) => orElse(() => readFileSync(path, 'latin1'), '');
  const stat = read(`/proc/${pid}/stat`);
  // Behind the name, which may have blanks: the state first, and the time of the start as the 20th.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (stat === '' || fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return `${read('/proc/sys/kernel/random/boot_id').trim()} ${fields[19]}`;
}

/**
 * Notes that this process is about to start a service. `server`: the name of its socket. Returns what was there before, if it is in
 * the way: then nothing was written. A record of a service that has ended, or was lost, is replaced.
 * @throws {SandboxError} `state.unusable`, `state.untrusted`.
 */
export function claimRecord(
  service: Pick<ServiceRecord, 'name' | 'workspace' | 'server' | 'options'>,
): ServiceRecord | undefined {
  ensureStateDirectory(stateDirectory());
  const { pid } = process;
  const started = startOf(pid) ?? '';
  const at = new Date().toISOString();
  const record: ServiceRecord = {
    ...service,
    pid,
    started,
    host: thisHost(),
    at,
    hasEnded: false,
  };
  const path = recordPath(record);
  const draft = `${path}.${pid}`;
  for (let tries = 0; tries < 10; tries += 1) {
    ensureStateDirectory(servicesDirectory());
    try {
      writeFileSync(draft, JSON.stringify(record), { mode: 0o600 });
      // Whole at once, and only if there is none.
      linkSync(draft, path);
      return undefined;
    } catch (error) {
      // Another process may have taken the empty directory away.
      if (errnoOf(error) === 'ENOENT') continue;
      if (errnoOf(error) !== 'EEXIST') throw unwritable(path, error);
    } finally {
      orElse(() => rmSync(draft, { force: true }), undefined);
    }
    const before = readRecord(path);
    if (before !== undefined && isRunning(before)) return before;
    orElse(() => rmSync(path, { force: true }), undefined);
  }
  throw unwritable(path, undefined);
}

const unwritable = (path: string, cause: unknown) =>
  new SandboxError(
    'state.unusable',
    `${path} cannot be written (${errnoOf(cause) ?? 'it changes all the time'}), so the service was not started`,
    { cause },
  );

/** Notes that a service of this process has ended, or was started again. What another process has by now stays as it is. */
export function noteState(service: Pick<ServiceRecord, 'workspace' | 'name'>, hasEnded: boolean): void {
  const path = recordPath(service);
  const record = readRecord(path);
  if (record?.pid !== process.pid) return;
  const draft = `${path}.${process.pid}`;
  orElse(() => {
    writeFileSync(draft, JSON.stringify({ ...record, hasEnded }), { mode: 0o600 });
    renameSync(draft, path);
  }, undefined);
}

/** Takes the record of a process away, and the directory with the last. `pid`: that of its supervisor. */
export function removeRecord(service: Pick<ServiceRecord, 'workspace' | 'name' | 'pid'>): void {
  const path = recordPath(service);
  if (readRecord(path)?.pid === service.pid) orElse(() => rmSync(path, { force: true }), undefined);
  forgetDirectory();
}

/** As long as something is in it, it stays. */
function forgetDirectory(): void {
  orElse(() => rmdirSync(servicesDirectory()), undefined);
}
