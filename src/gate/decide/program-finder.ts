import { isBeneath } from '../../base/absolute-path.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import {
  createPathLookup,
  type FoundProgram,
  findProgram,
  isStillExecutable,
} from '../../workspace/index.ts';

/** A PATH without relative or empty entries, whose meaning does not depend on the working directory. */
const ABSOLUTE_PATH_LIST = /^\/[^:]*(:\/[^:]*)*$/;

/** Looks programs up as the sandbox will: with a PATH, from a directory. */
export type ProgramFinder = (name: string, searchPath: string, cwd: string) => FoundProgram;

/** Finds what the sandbox of a plan can execute; without a plan, what the host can. */
export function createProgramFinder(plan: Pick<LaunchPlan, 'paths'> | undefined): ProgramFinder {
  const executable = plan?.paths.filter((path) => path.access === 'read' || path.access === 'write');
  // Programs seldom move: the visible location of each one is remembered, its existence is the kernel's business.
  const visible = new Map<string, boolean>();
  // By path, or by name and PATH for names that are looked up there: most commands are a few programs over and over.
  const found = new Map<string, FoundProgram>();

  function isVisible(path: string): boolean {
    let known = visible.get(path);
    if (known === undefined) {
      const { canonical } = createPathLookup().resolve(path);
      known = executable?.some((allowed) => isBeneath(canonical, allowed.path)) ?? true;
      visible.set(path, known);
    }
    return known;
  }

  return function find(name, searchPath, cwd) {
    const absolute = name.startsWith('/');
    if (!absolute && (name.includes('/') || !ABSOLUTE_PATH_LIST.test(searchPath))) {
      return findProgram(name, searchPath, cwd, isVisible);
    }
    const key = absolute ? name : `${name}\0${searchPath}`;
    const known = found.get(key);
    if (known?.kind === 'found' && isStillExecutable(known.path)) return known;
    const now = findProgram(name, searchPath, cwd, isVisible);
    found.set(key, now);
    return now;
  };
}
