import type { AttackOutcome } from '../model/attack-report.ts';
import type { Control, ControlId } from '../model/enforcement-report.ts';
import type { SandboxOptions } from '../model/options.ts';

import type { Arena } from './arena.ts';
import type { Attack } from './attack.ts';

import { startBystander } from './bystander.ts';
import { judgeAttack, type Observation } from './judge-attack.ts';
import { endMarkedProcesses } from './marked-processes.ts';
import { jobsOf, notWorth, observe, stageAll } from './observe.ts';
import { LOW_LIMITS } from './own-attacks.ts';
import { freshName, isGrantedBy, makePlaces, socketsIn } from './places.ts';
import { type Attacked, type Prepare, prepareAttacked } from './prepare-attacked.ts';
import { type Attempt, tryBare, tryConfined } from './trial.ts';

/** Everything that is needed to carry attacks out. */
export interface CarryOutParts {
  readonly arena: Arena;
  readonly program: string;
  readonly attacked: Attacked;
  /** What the sandbox was made from. */
  readonly options: SandboxOptions;
  readonly prepare: Prepare | undefined;
  readonly attacks: readonly Attack[];
  readonly signal: AbortSignal;
  readonly onProgress: ((done: number, of: number, control: ControlId) => void) | undefined;
}

/** Tries each attack without a sandbox, then inside if it worked there. */
export async function carryOut(parts: CarryOutParts): Promise<ReadonlyMap<ControlId, AttackOutcome[]>> {
  const { arena, program, attacked, attacks, signal } = parts;
  const { plan, policy } = attacked.prepared;
  const outside = arena.makeOutside(isGrantedBy(plan));
  const sockets = socketsIn(arena, outside);
  const bystander = await startBystander(
    program,
    arena.secret,
    `@${freshName()}`,
    Object.values(sockets).filter((path) => path !== undefined),
  );
  const marks: string[] = [];
  const note = (attempts: readonly Attempt[]) =>
    marks.push(...attempts.flatMap(({ staged }) => staged.mark ?? []));
  try {
    const { victim } = bystander;
    const places = makePlaces({ arena, outside, sockets, victim, program, plan, policy });
    const seen = new Map<string, Observation>();

    const [bare, notBare] = stageAll(attacks, places.bare, 'not-tried');
    noteAll(seen, notBare);
    note(bare);
    const at = { cwd: arena.bareWorkspace, temporary: arena.temporary, signal };
    const inBare = jobsOf(bare, 'one').map((attempts) => ({
      attempts,
      spoken: () => tryBare(program, attempts, { ...at, descriptor: outside?.descriptor }),
    }));
    const free = await observe(inBare, bystander.sync, signal);
    noteAll(
      seen,
      [...free].flatMap(([id, observation]) => notWorth(id, observation)),
    );

    const worth = attacks.filter(({ id }) => !seen.has(id));
    const [confined, notStaged] = stageAll(worth, places.confined, 'failed');
    noteAll(seen, notStaged);
    note(confined);
    const limited = limitedSandbox(parts);
    try {
      let done = 0;
      const jobs = jobsOf(confined, 'each control');
      const inside = jobs.map((attempts) => ({
        attempts,
        spoken: async () => {
          const manner = attempts[0]?.attack.manner ?? 'together';
          const chosen = manner === 'limited' ? (await limited()).sandbox : attacked.sandbox;
          const spoken = await tryConfined(chosen, program, attempts, manner, signal);
          done++;
          const [first] = attempts;
          if (first !== undefined) parts.onProgress?.(done, jobs.length, first.attack.control);
          return spoken;
        },
      }));
      noteAll(seen, [...(await observe(inside, bystander.sync, signal))]);
    } finally {
      await limited.close();
    }
    return outcomesOf(attacks, seen, plan.report.controls, plan.report.backend);
  } finally {
    bystander.end();
    for (const mark of marks) endMarkedProcesses(mark);
  }
}

/** The sandbox with low limits, made when it is wanted. */
function limitedSandbox({ options, prepare }: CarryOutParts) {
  let making: Promise<Attacked> | undefined;
  const get = () => {
    making ??= prepareAttacked({ ...options, limits: LOW_LIMITS }, prepare);
    return making;
  };
  const close = async () => {
    const made = await making?.catch(() => undefined);
    await made?.sandbox.close();
  };
  return Object.assign(get, { close });
}

function outcomesOf(
  attacks: readonly Attack[],
  seen: ReadonlyMap<string, Observation>,
  controls: readonly Control[],
  backend: Parameters<typeof judgeAttack>[3],
): ReadonlyMap<ControlId, AttackOutcome[]> {
  return new Map(
    controls.map((control) => [
      control.id,
      attacks
        .filter((attack) => attack.control === control.id)
        .map((attack) => {
          const what = seen.get(attack.id) ?? { kind: 'failed', reason: 'it was not carried out' };
          return judgeAttack(attack, what, control, backend);
        }),
    ]),
  );
}

function noteAll(seen: Map<string, Observation>, more: readonly (readonly [string, Observation])[]): void {
  for (const [id, observation] of more) seen.set(id, observation);
}
