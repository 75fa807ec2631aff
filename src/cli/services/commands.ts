import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { ServiceInfo } from '../../model/index.ts';
import { openSandbox, stateDirectory } from '../../run/index.ts';
import { requireExactVariables } from '../../workspace/index.ts';
import { isInsideOwnView } from '../sh/inside.ts';
import { gateOf, terminalApprover } from '../shared/ask-here.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { jsonLine, printError, printOut } from '../shared/print.ts';
import { SignalForwarding } from '../shared/signals.ts';
import {
  ensureServer,
  handOver,
  isAnswering,
  listeningServers,
  noPlaceForServer,
  type ServerAddress,
  takeServerAddress,
} from '../warm/start.ts';
import { tableOf } from './describe.ts';
import { parseChoice, parseUp, type ServiceChoice, type ServiceCommand, type UpWish } from './options.ts';
import { chosen, noSuchService } from './places.ts';
import { isSupervised, readRecords, removeRecord, type ServiceRecord } from './records.ts';
import { servicesOfFiles } from './services-of-files.ts';

/*
 * The service commands as ordinary processes. They run here if no supervisor has accepted the call: this code finds the supervisor
 * of the service, starts one, or asks the user, and then hands the call over again.
 */

/** Milliseconds in which a supervisor that is ending removes its socket. */
const ENDING_MS = 100;

/** `sandbox-run up`. */
export async function up(args: readonly string[]): Promise<number> {
  const server = takeServerAddress();
  const wish = parseUp(args);
  if (wish === undefined) return 0;
  refuseInside();
  // No server can be told them, and a service would have others.
  requireExactVariables(process.env, Object.keys(process.env));
  if (!('command' in wish)) return upAll(await servicesOfFiles(wish), wish.name === undefined);
  if (server === undefined) return callSupervisor(['up', ...args], undefined);
  if (server.path === '') throw noPlaceForServer();
  if (!server.isThere) {
    await ensureServer(server);
    return callSupervisor(['up', ...args], server.path);
  }
  return startAfterQuestion(wish, args, server);
}

/** A sandboxed command reaches no supervisor. Without this check its message would be that none runs, which may be wrong. */
function refuseInside(): void {
  if (!isInsideOwnView()) return;
  throw new SandboxError(
    'service.unusable',
    'services cannot be started, listed or stopped from inside a sandbox: the user does that in a terminal outside (sandbox-run ps)',
  );
}

/** Starts services one after the other, because a later one may need an earlier one to be ready. */
async function upAll(all: Awaited<ReturnType<typeof servicesOfFiles>>, isEach: boolean): Promise<number> {
  let status = 0;
  for (const { name, words, isRunning } of all) {
    // Nobody has named it: what was wanted is there.
    if (isEach && isRunning) {
      printOut(`${name} runs already\n`);
      continue;
    }
    const ended = await callSupervisor(['up', ...words], undefined);
    status ||= ended;
  }
  return status;
}

/** Hands a call over to the supervisor at `path`, with this process's streams, and returns the exit status. */
const callSupervisor = async (words: readonly string[], path: string | undefined) =>
  (await handOver(words, { path, output: 'own' })).status;

/**
 * For an `up` that the supervisor has not accepted: asks the user on the terminal of this process if the policy wants that, and hands
 * the call over again with the answer.
 * @throws {SandboxError} why the service was not started.
 */
async function startAfterQuestion(
  wish: UpWish,
  args: readonly string[],
  server: ServerAddress,
): Promise<number> {
  const answer = await askedHere(wish);
  // The supervisor may be ending because its last service has just ended: then a new one accepts the call.
  if (answer !== undefined || !server.wasAsked) {
    await pause(ENDING_MS);
    await ensureServer({ path: server.path, isThere: false });
    const words = answer === undefined ? args : [wish.name, '--approved-as', answer, ...args.slice(1)];
    return callSupervisor(['up', ...words], server.path);
  }
  if (!(await isAnswering(server.path))) throw await noAnswer(server);
  throw new SandboxError(
    'service.unusable',
    `${wish.name} was not started: the supervisor at ${visibleLine(server.path, 200)} did not accept it. A supervisor accepts only calls with its own control group, limits and rights, and none under plug-ins that it has already loaded: sandbox-run stop --all, then try again (a supervisor without services ends within half an hour)`,
  );
}

/**
 * Asks the user on this terminal, if the policy wants that. Returns the fingerprint of the approved request; `undefined`: nothing was
 * to be asked here.
 * @throws {SandboxError} if the sandbox cannot be made, the user refused, or nobody answered.
 */
async function askedHere({ command, sandbox: options, run, name }: UpWish): Promise<string | undefined> {
  using signals = new SignalForwarding();
  await using sandbox = await openSandbox({ ...options, gate: gateOf({ quiet: true }, signals) }, caller());
  if (run.approved !== false) return undefined;
  const current = currentDirectory();
  const cwd = isBeneath(current, sandbox.workspace) ? current : sandbox.workspace;
  const { decision, request } = await sandbox.check(command, { cwd, taints: run.taints, effect: 'direct' });
  if (decision?.verdict !== 'ask' || request === undefined || sandbox.policy.approval.ask !== 'terminal')
    return undefined;
  const approver = await terminalApprover(() => signals.raise('SIGINT'));
  const answer = await approver.ask(request, { timeoutMs: sandbox.policy.approval.timeoutMs });
  if (answer.approved) return request.fingerprint;
  throw new SandboxError('command.denied', `${name} was not started: its user did not approve it`);
}

/** `sandbox-run ps`: asks all supervisors, and reports each service that was lost once. */
export async function ps(args: readonly string[]): Promise<number> {
  const server = takeServerAddress();
  const choice = parseChoice('ps', args);
  if (choice === undefined) return 0;
  refuseInside();
  if (choice.here) throw await noAnswer(server);
  const lost = readRecords().filter((record) => !isSupervised(record));
  const { asked, status } = await askedAll();
  const found = [...lost.map(lostInfo), ...asked.map(({ info }) => info)];
  // Of those that did not answer nothing is known, also not that nothing runs.
  const isAllKnown = status === 0 || found.length > 0;
  if (isAllKnown) printOut(choice.json ? found.map(jsonLine).join('') : tableOf(found, Date.now()));
  for (const record of lost) {
    if (!choice.json) printError(lostInWords(record));
    removeRecord(record);
  }
  return status;
}

/**
 * The services and the background commands of agents, each with the path of the socket at which its server listens. `status`: not 0 if a
 * server did not answer, which has been said.
 */
async function askedAll(): Promise<{
  readonly asked: readonly { readonly info: ServiceInfo; readonly path: string }[];
  readonly status: number;
}> {
  const recorded = readRecords()
    .filter(isSupervised)
    .map(({ server }) => join(stateDirectory(), server));
  const asked: { readonly info: ServiceInfo; readonly path: string }[] = [];
  let status = 0;
  for (const path of new Set([...recorded, ...(await listeningServers())])) {
    const { stdout, status: ended } = await handOver(['ps', '--here', '--json'], {
      path,
      output: 'captured',
    });
    status ||= ended;
    asked.push(
      ...stdout
        .split('\n')
        .map(parsedJson)
        .filter(isServiceInfo)
        .map((info) => ({ info, path })),
    );
  }
  return { asked, status };
}

/** Checks what a server wrote: it may run another version of this program. */
const isServiceInfo = (value: unknown): value is ServiceInfo =>
  isObject(value) &&
  [value.name, value.workspace, value.command, value.state].every((part) => typeof part === 'string') &&
  [value.since, value.restarts].every((part) => typeof part === 'number') &&
  Array.isArray(value.ports);

/** `sandbox-run logs`. */
export const logs = (args: readonly string[]) => callOwners('logs', args);
/** `sandbox-run stop`. */
export const stop = (args: readonly string[]) => callOwners('stop', args);
/** `sandbox-run restart`. */
export const restart = (args: readonly string[]) => callOwners('restart', args);

/** Hands the call over to each supervisor that has one of the services which the command line names. */
async function callOwners(
  which: Exclude<ServiceCommand, 'up' | 'ps'>,
  args: readonly string[],
): Promise<number> {
  const server = takeServerAddress();
  const choice = parseChoice(which, args);
  if (choice === undefined) return 0;
  refuseInside();
  if (server?.wasAsked === true || choice.here) throw await noAnswer(server);
  const meant = chosen(readRecords(), choice);
  const lost = meant.filter((record) => !isSupervised(record));
  for (const record of lost) removeRecord(record);
  const supervisors = new Set(meant.filter(isSupervised).map((record) => record.server));
  if (supervisors.size === 0 && lost.length > 0 && which === 'stop') {
    for (const record of lost) printError(lostInWords(record));
    return 0;
  }
  const [first] = lost;
  if (supervisors.size === 0 && first !== undefined)
    throw new SandboxError('service.unknown', lostInWords(first));
  if (supervisors.size === 0) return callAgentServer(which, choice, args);
  let status = 0;
  for (const supervisor of supervisors) {
    const ended = await callSupervisor([which, '--here', ...args], join(stateDirectory(), supervisor));
    status ||= ended;
  }
  return status;
}

/** For a name that is a process ID: an agent may run it in the background. Only `stop` does something with such a command. */
async function callAgentServer(
  which: ServiceCommand,
  choice: ServiceChoice,
  args: readonly string[],
): Promise<number> {
  const isMeant = ({ session, name }: ServiceInfo) => session !== undefined && name === choice.name;
  const found = /^\d+$/.test(choice.name ?? '')
    ? (await askedAll()).asked.find(({ info }) => isMeant(info))
    : undefined;
  if (found === undefined) throw noSuchService(choice);
  if (which === 'stop') return callSupervisor([which, '--here', ...args], found.path);
  throw new SandboxError(
    'service.unusable',
    `process ${choice.name} is not a service but a background command of an agent, which started it and gets its output: it can only be ended here (sandbox-run stop ${choice.name})`,
  );
}

/** Why a server that was asked has not performed a call. */
async function noAnswer(server: ServerAddress | undefined): Promise<SandboxError> {
  const path = server?.path ?? '';
  const all = readRecords().filter((record) => record.server === basename(path) && isSupervised(record));
  const [first] = all;
  const who =
    first === undefined
      ? `the server at ${visibleLine(path, 200)}`
      : `the supervisor of ${all.map(({ name }) => name).join(', ')} (process ${first.pid})`;
  const why = (await isAnswering(path))
    ? 'does not take this call: it takes those of its own namespaces and root directory, and none from another container'
    : 'does not answer: it is suspended or busy, or runs in another container';
  return new SandboxError('service.unusable', `${who} ${why}`);
}

function lostInfo({ name, workspace, at, pid }: ServiceRecord): ServiceInfo {
  return {
    ...{ name, workspace, command: '', state: 'lost', since: Date.parse(at) || 0, pid: undefined },
    ...{ ports: [], restarts: 0, session: undefined, end: 'its supervisor was killed', supervisor: pid },
  };
}

const lostInWords = ({ name, workspace, pid }: ServiceRecord) =>
  `${name} of ${visibleLine(workspace, 4096)} was lost: its supervisor, process ${pid}, ended unexpectedly, and the service with it. To start it again: sandbox-run up ${name}, with its options and command unless a policy file names it`;
