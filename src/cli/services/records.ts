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
 * A file about a service that exists as long as its supervisor knows the service. It says where to ask about the service, and names a
 * lost one if the supervisor is gone. It is not trusted: nothing is started, ended or allowed because of a record.
 */
export interface ServiceRecord {
  readonly name: string;
  /** Canonical. */
  readonly workspace: string;
  /** The name of the supervisor's socket in the state directory. */
  readonly server: string;
  /** The process ID of the supervisor. */
  readonly pid: number;
  /** When the kernel started the supervisor: the boot ID and clock ticks since the boot. Tells a later process with the same ID apart. */
  readonly started: string;
  /** The host name and PID namespace in which `pid` is valid: several machines or containers may share a home directory. */
  readonly host: string;
  /** When the record was written: ISO 8601. */
  readonly at: string;
  /** Those of the service's options that a command must share to reach it. */
  readonly options: SandboxOptions;
  /** The service has ended by itself; its supervisor still answers questions about it. */
  readonly hasEnded: boolean;
}

/** Milliseconds for which an unreadable record may still be in the making. An older one is damaged and removed. */
const WRITTEN_MS = 10_000;
/** Milliseconds after which records of another machine or container are removed. */
const FOREIGN_MS = 30 * 86_400_000;

/** The directory exists only while there are records: the program's first lines (`scripts/build.mjs`) look for it, too. */
const servicesDirectory = () => join(stateDirectory(), 'services');

/** Where the record of a service is: one file for each pair of workspace and name. */
function recordPath({ workspace, name }: Pick<ServiceRecord, 'workspace' | 'name'>): string {
  const digest = createHash('sha256').update(workspace).digest('hex').slice(0, 16);
  return join(servicesDirectory(), `${digest}-${name}.json`);
}

/** All records of this machine, sorted by workspace and name. Removes damaged records and old ones of other machines. */
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

/** Whether the service of a record runs or is being started. */
export const isRunning = (record: ServiceRecord) => !record.hasEnded && isSupervised(record);

/** When the kernel started a process, as in `ServiceRecord.started`; `undefined`: it does not exist or has ended. See proc_pid_stat(5). */
function startOf(pid: number): string | undefined {
  const read = (path: string) => orElse(() => readFileSync(path, 'latin1'), '');
  const stat = read(`/proc/${pid}/stat`);
  // Counted after the name, which may contain blanks: field 0 is the state, field 19 the start time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (stat === '' || fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return `${read('/proc/sys/kernel/random/boot_id').trim()} ${fields[19]}`;
}

/**
 * Writes the record of a service that this process is about to start. If a record of a running service with that name exists, nothing
 * is written and that record is returned. A record of a service that has ended or was lost is replaced.
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
      // A link makes the whole content visible at once, and fails if there is a record.
      linkSync(draft, path);
      return undefined;
    } catch (error) {
      // Another process may have removed the directory because it was empty.
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
    `the service was not started: cannot write ${path} (${errnoOf(cause) ?? 'other processes keep replacing it'})`,
    { cause },
  );

/** Writes into the record that a service of this process has ended or was started again. A record of another process is left alone. */
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

/** Removes the record of a service if it belongs to the supervisor `pid`, and the directory if that was the last record. */
export function removeRecord(service: Pick<ServiceRecord, 'workspace' | 'name' | 'pid'>): void {
  const path = recordPath(service);
  if (readRecord(path)?.pid === service.pid) orElse(() => rmSync(path, { force: true }), undefined);
  forgetDirectory();
}

/** Removes the directory of records if it is empty; rmdir fails otherwise. */
function forgetDirectory(): void {
  orElse(() => rmdirSync(servicesDirectory()), undefined);
}
