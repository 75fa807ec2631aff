import { isAbsolute } from 'node:path';
import { visibleLine } from '../../base/visible-text.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { ExecutionResult } from '../../model/index.ts';
import { BRIEF, INSTALL_HERE, type Places, whyNotProposed } from '../proposals.ts';
import { shortPath, shortWord } from './denial-texts.ts';

type NotKept = NonNullable<ExecutionResult['notKept']>;

/** Paths that a message names at most. */
const NAMED = 4;
const QUOTED_CHARACTERS = 200;
const IN_HOME = 'slot:home/';

/** Paths that a command made in its private home, as its user would name them. */
export function notKept(
  made: readonly string[],
  { home }: Pick<LaunchPlan, 'home'>,
  places: Places,
): NotKept {
  return made.map((at) => {
    const inner = at.slice(IN_HOME.length);
    // Where the private home lies elsewhere, the same name in the user's own is another file.
    if (home !== places.home) return { path: isAbsolute(home) ? `${home}/${inner}` : `~/${inner}` };
    const path = `${home}/${inner}`;
    const why = whyNotProposed(path, places, 'filesystem.write', BRIEF);
    return why === undefined && visibleLine(path, QUOTED_CHARACTERS) === path && !path.includes('\ufffd')
      ? { path, allow: path }
      : { path };
  });
}

/** Names the paths that were lost with the private home, for a person; `undefined`: none was lost. */
export function notKeptForPerson({ notKept = [], cwd }: ExecutionResult): string | undefined {
  if (notKept.length === 0) return undefined;
  const flags = notKept.flatMap(({ allow }) =>
    allow === undefined ? [] : [`the option writable ${shortWord(allow, cwd)}`],
  );
  const next = flags.length === 0 ? INSTALL_HERE : `to keep it, create it first, then ${listed(flags, ' ')}`;
  return `not kept, as the home is the command's own: ${namesOf(notKept, cwd)}; ${next}`;
}

/** Names the paths that were lost with the private home, for the model that wrote the command; `undefined`: none was lost. */
export function notKeptForModel({ notKept = [], cwd }: ExecutionResult): string | undefined {
  if (notKept.length === 0) return undefined;
  return `Sandbox: gone with the private home of the command: ${namesOf(notKept, cwd)}. What is to last has to be in the workspace; only the user can allow other places.`;
}

const namesOf = (some: NotKept, cwd: string) =>
  listed(
    some.map(({ path }) => visibleLine(shortPath(path, cwd), QUOTED_CHARACTERS)),
    ', ',
  );

function listed(texts: readonly string[], separator: string): string {
  const more = texts.length - NAMED;
  return `${texts.slice(0, NAMED).join(separator)}${more > 0 ? ` and ${more} more` : ''}`;
}
