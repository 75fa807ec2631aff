import type { ShellFacts } from '../../model/shell-facts.ts';
import type { ShellState } from './shell-state.ts';

/** What a decision has to know of a shell. `state`: `undefined` if it does not say. `first`: as it began. */
export function factsOf(
  state: ShellState | undefined,
  first: ShellState | undefined,
  ranUnseenCode: boolean,
): ShellFacts {
  if (state === undefined)
    return {
      names: [],
      doubts: ['the shell did not report its state'],
      places: ['PWD', 'HOME'],
      directoryDoubt: 'so its directory is unknown',
    };
  const doubts = [
    ...(ranUnseenCode
      ? ['code was run that could not be read beforehand, so any word may mean something else']
      : []),
    ...(state.traps.length > 0 ? ['a trap is set, which runs more than the words of a command say'] : []),
    ...state.unusual.map((name) => `${name} is set, which changes what words mean`),
  ];
  return {
    names: [...state.functions, ...state.aliases],
    doubts,
    places: [
      ...(state.exported.PWD === state.logicalCwd ? [] : ['PWD']),
      ...(state.exported.HOME === first?.exported.HOME ? [] : ['HOME']),
    ],
    directoryDoubt: state.searchesDirectories
      ? 'CDPATH is set, so a relative cd may lead anywhere'
      : state.logicalCwd === state.cwd
        ? undefined
        : `the shell came to ${state.cwd} through a link, so a relative cd may lead elsewhere`,
  };
}

/** Names that a shell sets by itself, that mean something for one shell alone, or that are looked at separately. */
const OF_THE_SHELL: ReadonlySet<string> = new Set(['PWD', 'OLDPWD', 'SHLVL', '_', 'PATH']);

/** What the environment of a shell is compared with: what the policy gives every command. */
interface Baseline {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** HOME and TMPDIR may be known only when the shell has started: they are what it began with. */
  readonly first: ShellState;
}

/** What the environment of a shell is beyond that, as an `env` option; `undefined`: nothing. */
export function changedVariables(
  state: ShellState,
  { variables, first }: Baseline,
): Readonly<Record<string, string | undefined>> | undefined {
  const usual: Readonly<Record<string, string | undefined>> = {
    ...pick(first.exported, ['HOME', 'TMPDIR']),
    ...variables,
  };
  const changed: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(state.exported)) {
    if (!OF_THE_SHELL.has(name) && usual[name] !== value) changed[name] = value;
  }
  for (const [name, value] of Object.entries(usual)) {
    if (value !== undefined && !OF_THE_SHELL.has(name) && !Object.hasOwn(state.exported, name))
      changed[name] = undefined;
  }
  // Exported or not, it decides what the shell itself finds.
  if (state.path !== usual.PATH) changed.PATH = state.path;
  return Object.keys(changed).length === 0 ? undefined : changed;
}

function pick(from: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}
