import { spawn } from 'node:child_process';
import { isBeneath } from '../../base/absolute-path.ts';
import { describeShortage } from '../../base/errors/shortage.ts';
import { errnoName, signalName } from '../../confine/kernel/errno.ts';
import type { ControlId } from '../../confine/plan/enforcement-report.ts';
import type { ExecutionResult } from '../../model/index.ts';
import { addressBytes, judgeAddress } from '../../policy/index.ts';
import type { PreparedSandbox, Sandbox } from '../../run/index.ts';
import type { Arena } from './arena.ts';
import {
  type Attack,
  freshName,
  type Manner,
  type Observation,
  onlyIf,
  type Place,
  type Said,
  type Staged,
  type ToldDenials,
} from './attack.ts';
import { type Bystander, endMarkedProcesses, socketIn, startBystander } from './bystander.ts';

/** Everything that is needed to carry attacks out. */
export interface CarryOutParts {
  readonly arena: Arena;
  readonly program: string;
  readonly prepared: Pick<PreparedSandbox, 'plan' | 'policy'>;
  readonly sandbox: Sandbox;
  /** One with low limits, which the caller of it closes. */
  readonly makeLimited: () => Promise<Sandbox>;
  /** One whose network lists this port of 127.0.0.1, likewise; a text: why none can be made. */
  readonly makeListed: (port: number) => Promise<Sandbox | string>;
  readonly attacks: readonly Attack[];
  readonly signal: AbortSignal;
  /** After each command in the sandbox; `control`: of the attacks that it carried out. */
  readonly onProgress: ((done: number, of: number, control: ControlId) => void) | undefined;
}

/** What was seen of each attack, by its id. */
type Seen = Map<string, Observation>;

/** An attack, staged in one place. */
interface Attempt {
  readonly attack: Attack;
  readonly staged: Staged;
}

/** What became of the moves of one command. */
interface Spoken {
  readonly said: ReadonlyMap<string, Said>;
  /** What is seen of moves that said nothing. */
  readonly silence: Observation;
  /** Missing: nobody could tell of any, as without a sandbox. */
  readonly told?: ToldDenials;
}

const NOTHING_TOLD: ToldDenials = { objects: [], isIncomplete: false };

/** So many commands at a time. */
const AT_ONCE = 4;
const TIME_LIMIT_MS = 60_000;
const TERMINAL = { cols: 80, rows: 24 };

/** Tries each attack without a sandbox, then inside if it worked there. */
export async function carryOut(parts: CarryOutParts): Promise<ReadonlyMap<string, Observation>> {
  const { arena, program, prepared, attacks, signal, onProgress } = parts;
  // Whether the policy lets commands have a path.
  const isGranted = (path: string) => prepared.plan.paths.some((grant) => isBeneath(path, grant.path));
  const outside = arena.makeOutside(isGranted);
  const directories = [
    arena.workspace,
    arena.bareWorkspace,
    ...(outside === undefined ? [] : [outside.path]),
  ];
  const victim = await startBystander(program, arena.secret, `@${freshName()}`, directories.map(socketIn));
  let listed: Sandbox | string | undefined;
  try {
    const places = makePlaces(parts, outside?.path, victim, isGranted);
    const bare = await tryIn(places.bare, attacks, signal, {
      together: () => '',
      speak: (attempts) => tryBare(program, attempts, arena, outside?.descriptor, signal),
    });
    const worth = attacks.filter(({ id }) => bare.get(id)?.kind === 'worked');
    listed = worth.some(isListed) ? await parts.makeListed(victim.listed) : undefined;
    const made = listed;
    const possible = worth.filter((attack) => typeof made !== 'string' || !isListed(attack));
    const confined = await tryIn(places.confined, possible, signal, {
      together: ({ control }) => control,
      speak: (attempts, manner) =>
        manner === 'listed' && typeof made === 'object'
          ? tryListed(parts, attempts, made, victim)
          : tryConfined(parts, attempts, manner),
      onProgress,
    });
    const reason = typeof made === 'string' ? made : '';
    return new Map([
      ...[...bare].map(([id, observation]) => [id, withoutSandbox(observation)] as const),
      ...worth.filter(isListed).map(({ id }) => [id, { kind: 'not-tried', reason }] as const),
      ...[...confined].map(([id, observation]) => [id, withinSandbox(observation)] as const),
    ]);
  } finally {
    victim.end();
    if (typeof listed === 'object') await listed.close();
  }
}

/** The first real-time signal that libc leaves to programs, and some for those who use them. */
const FIRST_SIGNAL = 40;

/** The two places in which attacks are tried. */
function makePlaces(
  { arena, program, prepared: { plan, policy } }: CarryOutParts,
  outside: string | undefined,
  victim: Bystander,
  isGranted: Place['isGranted'],
): { readonly bare: Place; readonly confined: Place } {
  let lastSignal = FIRST_SIGNAL;
  const isReadOnly = plan.paths.some(({ path, access }) => path === arena.readable && access === 'read');
  const place = (inSandbox: boolean): Place => ({
    inSandbox,
    workspace: inSandbox ? arena.workspace : arena.bareWorkspace,
    get outside() {
      onlyIf(outside !== undefined, 'the policy grants every place where a file could be put');
      return outside;
    },
    get readable() {
      onlyIf(isReadOnly, 'the policy gives nothing that may only be read');
      return arena.readable;
    },
    shared: (parent) => {
      const directory = arena.shared(parent);
      onlyIf(directory !== undefined, `nothing can be made in ${parent}`);
      return directory;
    },
    victim,
    program,
    secret: arena.secret,
    signal: () => lastSignal++,
    files: policy.filesystem,
    isGranted,
    isListed: (port) =>
      judgeAddress(plan.networkRules?.addresses ?? [], addressBytes('127.0.0.1') ?? [], port).allowed,
  });
  return { bare: place(false), confined: place(true) };
}

/** What does not work without a sandbox says nothing about one. */
function withoutSandbox(seen: Observation): Observation {
  if (seen.kind !== 'held' && seen.kind !== 'failed') return seen;
  return { kind: 'not-tried', reason: `it does not work here without a sandbox either: ${seen.reason}` };
}

/** What could be prepared without a sandbox should have been here. */
function withinSandbox(seen: Observation): Observation {
  return seen.kind === 'not-tried' ? { ...seen, kind: 'failed' } : seen;
}

/** How attacks are tried in a place. */
interface Way {
  /** Those that have this in common are made by one command, if they are not of a manner that wants one for each. */
  readonly together: (attack: Attack) => string;
  readonly speak: (attempts: readonly Attempt[], manner: Manner) => Promise<Spoken>;
  readonly onProgress?: CarryOutParts['onProgress'];
}

/** Makes all attempts, and looks at what came of them. */
async function tryIn(
  place: Place,
  attacks: readonly Attack[],
  signal: AbortSignal,
  { together, speak, onProgress }: Way,
): Promise<Seen> {
  const seen: Seen = new Map();
  const attempts = stageAll(attacks, place, seen);
  const jobs = jobsOf(attempts, together);
  const spoken: (readonly [readonly Attempt[], Spoken | Error])[] = [];
  const left = [...jobs];
  const work = async () => {
    for (let job = left.shift(); job !== undefined; job = left.shift()) {
      signal.throwIfAborted();
      const [{ attack }] = job;
      spoken.push([job, await speak(job, mannerOf(attack)).catch(toError)]);
      onProgress?.(spoken.length, jobs.length, attack.control);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    signal.throwIfAborted();
    // What had reached the victim until now is told after this.
    await place.victim.sync();
    for (const [job, words] of spoken) {
      for (const attempt of job) seen.set(attempt.attack.id, await observation(attempt, words));
    }
    return seen;
  } finally {
    for (const { staged } of attempts) if (staged.mark !== undefined) endMarkedProcesses(staged.mark);
  }
}

/** Prepares attacks in a place; what cannot be prepared is noted. */
function stageAll(attacks: readonly Attack[], place: Place, seen: Seen): readonly Attempt[] {
  return attacks.flatMap((attack) => {
    try {
      return [{ attack, staged: attack.stage(place) }];
    } catch (error) {
      seen.set(attack.id, { kind: 'not-tried', reason: toError(error).message });
      return [];
    }
  });
}

const isListed = ({ manner }: Attack) => manner === 'listed';
const mannerOf = ({ manner = 'together' }: Attack): Manner => manner;

type Job = [Attempt, ...Attempt[]];

/** Which attempts one command makes: those that do not disturb each other. */
function jobsOf(attempts: readonly Attempt[], together: Way['together']): readonly Job[] {
  const jobs = new Map<string, Job>();
  for (const attempt of attempts) {
    const { attack } = attempt;
    const manner = mannerOf(attack);
    const isShared = manner !== 'alone' && manner !== 'limited';
    const key = isShared ? `${manner} ${together(attack)}` : attack.id;
    const job = jobs.get(key);
    if (job === undefined) jobs.set(key, [attempt]);
    else job.push(attempt);
  }
  return [...jobs.values()];
}

async function observation({ attack, staged }: Attempt, spoken: Spoken | Error): Promise<Observation> {
  if (spoken instanceof Error) return { kind: 'failed', reason: spoken.message };
  const said = spoken.said.get(attack.id);
  const worked = staged.worked ?? (({ ok }) => ok);
  try {
    // A move that says nothing may have worked before it was ended.
    if (await worked(said ?? { ok: false, text: '' }, spoken.told ?? NOTHING_TOLD)) return { kind: 'worked' };
  } catch (error) {
    return { kind: 'failed', reason: `what came of it cannot be seen: ${toError(error).message}` };
  }
  if (said === undefined) return spoken.silence;
  if (said.text === 'unknown') return { kind: 'failed', reason: 'sandbox-run-attack is of another version' };
  return { kind: 'held', reason: said.ok ? 'it came to nothing' : `refused (${said.text})` };
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** The arguments for the moves of a command, which are made one after the other. */
function movesOf(attempts: readonly Attempt[]): readonly string[] {
  return attempts.flatMap(({ attack, staged }) => ['--', attack.id, ...staged.move]).slice(1);
}

/** Makes the moves without a sandbox. */
function tryBare(
  program: string,
  attempts: readonly Attempt[],
  { bareWorkspace, temporary }: Arena,
  descriptor: number | undefined,
  signal: AbortSignal,
): Promise<Spoken> {
  return new Promise((done) => {
    const chunks: Buffer[] = [];
    const child = spawn(program, movesOf(attempts), {
      cwd: bareWorkspace,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'ignore', descriptor ?? 'ignore'],
      killSignal: 'SIGKILL',
      // Not `timeout`: of a child that cannot be started its clock goes on.
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIME_LIMIT_MS)]),
    });
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    const finish = (reason: string, kind: 'failed' | 'short' = 'failed') => {
      const text = Buffer.concat(chunks).toString('latin1');
      done({ said: parse(text), silence: { kind, reason } });
    };
    child.on('error', (error) => {
      // One that was started has an end of its own.
      if (child.pid !== undefined) return;
      const short = describeShortage(error);
      finish(short ?? error.message, short === undefined ? 'failed' : 'short');
    });
    child.on('close', (code, ended) => finish(`it ended with ${ended ?? `status ${code}`}`));
  });
}

/** Makes them where one server is listed. That one must be reached, or it says nothing that others are not. */
async function tryListed(
  { program, signal }: CarryOutParts,
  attempts: readonly Attempt[],
  sandbox: Sandbox,
  victim: Bystander,
): Promise<Spoken> {
  const word = freshName();
  const allowed = ['listed-server', 'tcp', String(victim.listed), word, '--'];
  const result = await sandbox.run([program, ...allowed, ...movesOf(attempts)], {
    timeout: TIME_LIMIT_MS,
    signal,
  });
  await victim.sync();
  const said = parse(result.stdout);
  if (!victim.let(word)) {
    const why = said.get('listed-server')?.text ?? silenceOf(result).reason;
    throw new Error(`the server that is listed is not reached either (${why})`);
  }
  return { said, silence: silenceOf(result) };
}

/** Makes them inside. */
async function tryConfined(
  { program, signal, sandbox, makeLimited, prepared }: CarryOutParts,
  attempts: readonly Attempt[],
  manner: Manner,
): Promise<Spoken> {
  const chosen = manner === 'limited' ? await makeLimited() : sandbox;
  try {
    const result = await chosen.run([program, ...movesOf(attempts)], {
      timeout: TIME_LIMIT_MS,
      signal,
      ...(manner === 'terminal' ? { pty: TERMINAL } : {}),
      ...(manner === 'previewed' ? { effect: 'preview' as const } : {}),
    });
    if (result.changes?.id !== undefined) await (await chosen.changes()).discard(result.changes.id);
    const told = toldBy(result, prepared.plan.observed);
    return { said: parse(result.stdout), silence: silenceOf(result), told };
  } finally {
    if (chosen !== sandbox) await chosen.close();
  }
}

/** `observed`: of the plan. Where nothing is to be looked at, a list that lacks something is no accident. */
function toldBy(
  { denials = [], notLookedAt = [] }: ExecutionResult,
  observed: PreparedSandbox['plan']['observed'],
): ToldDenials {
  return {
    objects: denials.map(({ object }) => object),
    isIncomplete: observed !== 'nothing' && notLookedAt.includes('create'),
  };
}

function silenceOf({
  status,
  limit,
  error,
  signal,
  exitCode,
}: ExecutionResult): Exclude<Observation, { kind: 'worked' }> {
  if (limit !== undefined) return { kind: 'held', reason: `ended: more than the limit of ${limit.name}` };
  // Where changes cannot be held back, nothing is run that was to be.
  if (error?.code === 'changes.unavailable') return { kind: 'held', reason: `not run: ${error.message}` };
  if (error !== undefined) return { kind: 'failed', reason: error.message };
  return { kind: 'failed', reason: `${status}, ${signal ?? `status ${exitCode}`}` };
}

/** On a terminal, what an attack typed is echoed before its line. */
function parse(text: string): ReadonlyMap<string, Said> {
  const said = new Map<string, Said>();
  for (const line of text.split(/\r?\n/)) {
    const [, label, outcome] = /^#*([a-z0-9-]+)=(.*)$/.exec(line) ?? [];
    if (label !== undefined && outcome !== undefined) said.set(label, parseOutcome(outcome));
  }
  return said;
}

function parseOutcome(outcome: string): Said {
  const got = /^ok(?::(.*))?$/.exec(outcome);
  if (got !== null) return { ok: true, text: got[1] ?? '' };
  const [, signal] = /^signal:(\d+)$/.exec(outcome) ?? [];
  if (signal !== undefined) return { ok: false, text: signalName(Number(signal)) };
  return { ok: false, text: /^\d+$/.test(outcome) ? errnoName(Number(outcome)) : outcome };
}
