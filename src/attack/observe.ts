import type { Attack, Place } from './attack.ts';
import type { Observation } from './judge-attack.ts';
import type { Attempt, Spoken } from './trial.ts';

/** So many commands at a time. */
const AT_ONCE = 4;

/** Attempts that one command makes. */
export interface Job {
  readonly attempts: readonly Attempt[];
  readonly spoken: () => Promise<Spoken>;
}

/** Which attempts one command makes: those that do not disturb each other. */
export function jobsOf(attempts: readonly Attempt[], together: 'one' | 'each control'): readonly Attempt[][] {
  const jobs = new Map<string, Attempt[]>();
  for (const attempt of attempts) {
    const { id, control, manner = 'together' } = attempt.attack;
    const isShared = manner === 'together' || manner === 'terminal';
    const key = isShared ? `${manner} ${together === 'one' ? '' : control}` : id;
    jobs.set(key, [...(jobs.get(key) ?? []), attempt]);
  }
  return [...jobs.values()];
}

/** Makes all attempts, and looks at what came of them. */
export async function observe(
  jobs: readonly Job[],
  sync: () => Promise<void>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Observation>> {
  const spoken = new Map<Job, Spoken | Error>();
  const left = [...jobs];
  const work = async () => {
    for (let job = left.shift(); job !== undefined; job = left.shift()) {
      signal.throwIfAborted();
      spoken.set(job, await job.spoken().catch((error: unknown) => toError(error)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  signal.throwIfAborted();
  // What had reached the victim until now is told after this.
  await sync();
  const seen = new Map<string, Observation>();
  for (const [{ attempts }, words] of spoken) {
    for (const attempt of attempts) seen.set(attempt.attack.id, await observation(attempt, words));
  }
  return seen;
}

async function observation({ attack, staged }: Attempt, spoken: Spoken | Error): Promise<Observation> {
  if (spoken instanceof Error) return { kind: 'failed', reason: spoken.message };
  const said = spoken.said.get(attack.id);
  const worked = staged.worked ?? (({ ok }) => ok);
  try {
    // A move that says nothing may have worked before it was ended.
    if (await worked(said ?? { ok: false, text: '' })) return { kind: 'worked' };
  } catch (error) {
    return { kind: 'failed', reason: `what came of it cannot be seen: ${toError(error).message}` };
  }
  if (said === undefined) return spoken.silence;
  if (said.text === 'unknown') return { kind: 'failed', reason: 'sandbox-run-attack is of another version' };
  return { kind: 'held', reason: said.ok ? 'it came to nothing' : `refused (${said.text})` };
}

/** What does not work without a sandbox says nothing about one. */
export function notWorth(id: string, seen: Observation): readonly (readonly [string, Observation])[] {
  if (seen.kind === 'worked') return [];
  if (seen.kind === 'short') return [[id, seen]];
  return [
    [id, { kind: 'not-tried', reason: `it does not work here without a sandbox either: ${seen.reason}` }],
  ];
}

/** Prepares attacks in a place; what cannot be prepared is noted as `otherwise`. */
export function stageAll(
  attacks: readonly Attack[],
  place: Place,
  otherwise: 'not-tried' | 'failed',
): readonly [Attempt[], (readonly [string, Observation])[]] {
  const ready: Attempt[] = [];
  const not: (readonly [string, Observation])[] = [];
  for (const attack of attacks) {
    try {
      const staged = attack.stage(place);
      if (typeof staged === 'string') not.push([attack.id, { kind: 'not-tried', reason: staged }]);
      else ready.push({ attack, staged });
    } catch (error) {
      not.push([attack.id, { kind: otherwise, reason: toError(error).message }]);
    }
  }
  return [ready, not];
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
