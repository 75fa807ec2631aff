import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';
import { parsedJson } from '../../base/parsed-json.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { ServiceInfo } from '../../model/index.ts';
import { openSandbox, stateDirectory } from '../../run/index.ts';
import { isInsideOwnView } from '../sh/inside.ts';
import { gateOf, terminalApprover } from '../shared/ask-here.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { jsonLine, printError, printOut } from '../shared/print.ts';
import { SignalForwarding } from '../shared/signals.ts';
import {
  handOver,
  listeningServers,
  type ServerAddress,
  startedServer,
  takeServerAddress,
} from '../warm/start.ts';
import { tableOf } from './describe.ts';
import { parseChoice, parseUp, type ServiceChoice, type ServiceCommand, type UpWish } from './options.ts';
import { chosen, noSuchService } from './places.ts';
import { isSupervised, readRecords, removeRecord, type ServiceRecord } from './records.ts';
import { wordsFromFiles } from './services-of-files.ts';

/*
 * What the commands about services do as processes of their own, where no supervisor took the call: they find the one that has
 * the service, start one, or ask the user, and hand the call over once more.
 */

/** Time for a supervisor that ends to take its socket away. */
const ENDING_MS = 100;

/** `sandbox-run up`. */
export async function up(args: readonly string[]): Promise<number> {
  const server = takeServerAddress();
  const wish = parseUp(args);
  if (wish === undefined) return 0;
  refuseInside();
  if (!('command' in wish)) return upAll(await wordsFromFiles(wish));
  if (server === undefined) return handedOver(['up', ...args], undefined);
  if (!server.isThere) {
    await startedServer(server);
    return handedOver(['up', ...args], server.path);
  }
  return startAfterQuestion(wish, args, server);
}

/** No command in a sandbox reaches a supervisor: it is told why, instead of that there is none. */
function refuseInside(): void {
  if (!isInsideOwnView()) return;
  throw new SandboxError(
    'service.unusable',
    'services are not started, seen or stopped from inside a sandbox: their user does that on a terminal outside (sandbox-run ps)',
  );
}

/** One after the other: those that are ready already are of use to the next. */
async function upAll(all: readonly (readonly string[])[]): Promise<number> {
  let status = 0;
  for (const words of all) {
    const ended = await handedOver(['up', ...words], undefined);
    status ||= ended;
  }
  return status;
}

const handedOver = async (words: readonly string[], path: string | undefined) =>
  (await handOver(words, { path, output: 'own' })).status;

/**
 * The supervisor has not taken it: the user is asked on the terminal of this process, and the answer goes with the next call, or
 * what is wrong is said.
 */
async function startAfterQuestion(
  wish: UpWish,
  args: readonly string[],
  server: ServerAddress,
): Promise<number> {
  const answer = await askedHere(wish);
  // A supervisor whose last service ended just now ends, too: another one takes the call then.
  if (answer !== undefined || !server.wasAsked) {
    await pause(ENDING_MS);
    await startedServer({ path: server.path, isThere: false });
    const words = answer === undefined ? args : [wish.name, '--approved-as', answer, ...args.slice(1)];
    return handedOver(['up', ...words], server.path);
  }
  throw new SandboxError(
    'service.unusable',
    `${wish.name} was not started: the supervisor of services at ${visibleLine(server.path, 200)} does not take it. It takes calls of its own control group, limits and rights, and none under plug-ins that it has loaded before: sandbox-run stop --all, then try again (one without services ends by itself within half an hour)`,
  );
}

/**
 * The fingerprint of what the user approved now; `undefined`: it needs no answer here.
 * @throws {SandboxError} why the sandbox cannot be made; it was refused, or nobody answered.
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

/** `sandbox-run ps`: of all supervisors, and once what was lost. */
export async function ps(args: readonly string[]): Promise<number> {
  takeServerAddress();
  const choice = parseChoice('ps', args);
  if (choice === undefined) return 0;
  refuseInside();
  if (choice.here) throw noAnswer(choice);
  const lost = readRecords().filter((record) => !isSupervised(record));
  const found = [...lost.map(lostInfo), ...(await askedAll()).map(({ info }) => info)];
  printOut(choice.json ? found.map(jsonLine).join('') : tableOf(found, Date.now()));
  for (const record of lost) {
    if (!choice.json) printError(lostInWords(record));
    removeRecord(record);
  }
  return 0;
}

/** What runs, and where the server listens that has it: services, and what agents run in the background. */
async function askedAll(): Promise<readonly { readonly info: ServiceInfo; readonly path: string }[]> {
  const recorded = readRecords()
    .filter(isSupervised)
    .map(({ server }) => join(stateDirectory(), server));
  const found: { readonly info: ServiceInfo; readonly path: string }[] = [];
  for (const path of new Set([...recorded, ...(await listeningServers())])) {
    const { stdout } = await handOver(['ps', '--here', '--json'], { path, output: 'captured' });
    found.push(
      ...stdout
        .split('\n')
        .map(parsedJson)
        .filter(isServiceInfo)
        .map((info) => ({ info, path })),
    );
  }
  return found;
}

/** Written by a server that is a program like this one, but may be of another version. */
const isServiceInfo = (value: unknown): value is ServiceInfo =>
  isObject(value) &&
  [value.name, value.workspace, value.command, value.state].every((part) => typeof part === 'string') &&
  [value.since, value.restarts].every((part) => typeof part === 'number') &&
  Array.isArray(value.ports);

/** `sandbox-run logs`. */
export const logs = (args: readonly string[]) => ofOneSupervisor('logs', args);
/** `sandbox-run stop`. */
export const stop = (args: readonly string[]) => ofOneSupervisor('stop', args);
/** `sandbox-run restart`. */
export const restart = (args: readonly string[]) => ofOneSupervisor('restart', args);

async function ofOneSupervisor(
  which: Exclude<ServiceCommand, 'up' | 'ps'>,
  args: readonly string[],
): Promise<number> {
  const server = takeServerAddress();
  const choice = parseChoice(which, args);
  if (choice === undefined) return 0;
  refuseInside();
  if (server?.wasAsked === true || choice.here) throw noAnswer(choice);
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
  if (supervisors.size === 0) return ofAgent(which, choice, args);
  let status = 0;
  for (const supervisor of supervisors) {
    const ended = await handedOver([which, '--here', ...args], join(stateDirectory(), supervisor));
    status ||= ended;
  }
  return status;
}

/** What an agent runs in the background has the number of its process for a name. */
async function ofAgent(
  which: ServiceCommand,
  choice: ServiceChoice,
  args: readonly string[],
): Promise<number> {
  const isMeant = ({ session, name }: ServiceInfo) => session !== undefined && name === choice.name;
  const found = /^\d+$/.test(choice.name ?? '')
    ? (await askedAll()).find(({ info }) => isMeant(info))
    : undefined;
  if (found === undefined) throw noSuchService(choice);
  if (which === 'stop') return handedOver([which, '--here', ...args], found.path);
  throw new SandboxError(
    'service.unusable',
    `process ${choice.name} is a command that an agent runs in the background: its output goes to the agent, which starts it (sandbox-run stop ${choice.name} ends it)`,
  );
}

const noAnswer = ({ name }: ServiceChoice) =>
  new SandboxError(
    'service.unusable',
    `the supervisor of ${name ?? 'the services'} does not answer; it may be stopped or busy, or belong to another container (sandbox-run ps names its process)`,
  );

function lostInfo({ name, workspace, at, pid }: ServiceRecord): ServiceInfo {
  return {
    ...{ name, workspace, command: '', state: 'lost', since: Date.parse(at) || 0, pid: undefined },
    ...{ ports: [], restarts: 0, session: undefined, end: 'its supervisor was killed', supervisor: pid },
  };
}

const lostInWords = ({ name, workspace, pid }: ServiceRecord) =>
  `${name} of ${visibleLine(workspace, 4096)} was lost: its supervisor, process ${pid}, ended without a word, and the service with it. Start it again as you did: sandbox-run up ${name}, with the options and the command that it had unless a policy file names it`;
