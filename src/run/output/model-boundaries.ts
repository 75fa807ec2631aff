import { isBeneath } from '../../base/absolute-path.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { ControlState } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { NetworkMode } from '../../model/index.ts';
import { PACKAGE_CACHES, SYSTEM_PATHS, TOOL_CHAINS } from '../../policy/index.ts';

/** The limits of a command, for a text about one that was stopped. */
export interface Boundaries {
  readonly writable: readonly string[];
  /** Paths that may be read and not written, those of `system` among them. */
  readonly readable: readonly string[];
  readonly network: NetworkMode;
  /** The entries that are listed, where some are. */
  readonly hosts?: readonly string[];
  /** Somebody is asked about other hosts. */
  readonly asksForHosts?: boolean;
  /** Of `readable`, what programs need of the system. */
  readonly system?: readonly string[];
  /** Inside of what is writable, and not writable. */
  readonly protectedPaths?: readonly string[];
  /** The command, or its session, has its own directory for temporary files, which is deleted with it. */
  readonly privateTmp?: boolean;
  /** What enforces the boundaries: the kernel, or only checks of the command's text. */
  readonly heldBy?: 'kernel' | 'checks';
  /** The policy hides files, some or none at the moment. */
  readonly hidesFiles?: boolean;
  /** The command has a loopback interface of its own. */
  readonly ownLoopback?: boolean;
}

/** By its reason the plan says where a path comes from. */
const OF_SYSTEM: ReadonlySet<string> = new Set(
  [...SYSTEM_PATHS, ...TOOL_CHAINS, ...PACKAGE_CACHES].map(({ reason }) => reason),
);

/** What a plan allows. */
export function boundariesOf(plan: LaunchPlan): Boundaries {
  const { paths, report, protectedPaths, slotDirectories, namespaces } = plan;
  const state = (id: string): ControlState | undefined =>
    report.controls.find((control) => control.id === id)?.state;
  const readable = paths.filter(({ access }) => access === 'read' || access === 'data');
  return {
    writable: paths.filter(({ access }) => access === 'write').map(({ path }) => path),
    readable: readable.map(({ path }) => path),
    system: readable.filter(({ reason }) => OF_SYSTEM.has(reason)).map(({ path }) => path),
    network: plan.network === 'listed' ? 'listed' : state('network') === 'off' ? 'open' : 'off',
    hosts: listedHosts(plan),
    ...(plan.networkRules?.placeholders === undefined ? {} : { asksForHosts: true }),
    protectedPaths,
    privateTmp: slotDirectories.includes('slot:tmp'),
    heldBy: report.backend === 'application' ? 'checks' : 'kernel',
    hidesFiles: state('hidden-paths') === 'enforced' || state('hidden-paths') === 'degraded',
    ownLoopback: namespaces?.network === true,
  };
}

/** Entries that allow, each once. A preset stands for its hosts. */
function listedHosts({ networkRules }: LaunchPlan): readonly string[] {
  const rows = networkRules === undefined ? [] : [...networkRules.names, ...networkRules.addresses];
  const rules = rows
    .filter(({ verdict }) => verdict === 'allow')
    .map(({ rule }) => rule.replace(/ \(.*/, ''));
  return [...new Set(rules)];
}

/** Paths that are named one by one; of the others only the number. */
const MOST_PATHS = 6;
const MOST_SYSTEM_PATHS = 3;
const PATH_CHARACTERS = 160;
/** Reads as nothing else between other words of a line. */
const PLAIN = /^[\w@%+=:./~-]+$/;

/** A path within a line: whatever could be taken for more than a path is in quotes. */
function shownPath(path: string): string {
  const line = visibleLine(path, PATH_CHARACTERS);
  return line === path && PLAIN.test(path) ? path : JSON.stringify(line);
}

function shownPaths(paths: readonly string[]): string {
  const more = paths.length - MOST_PATHS;
  return [...paths.slice(0, MOST_PATHS).map(shownPath), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** Names system paths, without those that lie in another one; the shortest first, because they contain the most. */
function shownSystem(paths: readonly string[]): string {
  const outer = paths.filter((path) => !paths.some((other) => other !== path && isBeneath(path, other)));
  const short = outer.sort((one, other) => one.length - other.length || (one < other ? -1 : 1));
  const shown = short.slice(0, MOST_SYSTEM_PATHS).map(shownPath).join(', ');
  return `${shown}${short.length > MOST_SYSTEM_PATHS ? ' …' : ''} (system)`;
}

const SETTINGS = 'except settings that other programs obey, such as .git/hooks';
/** Does not name the files: their names may be secret too. */
const HIDES =
  'Some files are hidden from you by the user: they are empty and cannot be written, and directories seem to have nothing in them; work without them, and do not replace or commit them.';
const OWN_TMP = '$TMPDIR, which is private and does not last';

/**
 * What is allowed, in sentences for a model whose session begins: said once, so that a refusal need not repeat it. `timeoutMs`:
 * how long a command may take; 0: as long as it wants.
 */
export function introduceBoundaries(plan: LaunchPlan, timeoutMs: number): string {
  const { workspace } = plan;
  const boundaries = boundariesOf(plan);
  const { writable, readable, network, hosts = [], system = [], protectedPaths = [] } = boundaries;
  const canWrite = writable.includes(workspace);
  const others = writable.filter((path) => path !== workspace);
  const places = [
    ...(canWrite ? [`the workspace${protectedPaths.length === 0 ? '' : ` (${SETTINGS})`}`] : []),
    ...(others.length === 0 ? [] : [shownPaths(others)]),
    ...(boundaries.privateTmp === true
      ? ['a private $TMPDIR that commands of this session share and that may be emptied between them']
      : []),
  ];
  const further = readable.filter((path) => path !== workspace && !system.includes(path));
  return [
    `Workspace: ${shownPath(workspace)}${canWrite ? '' : ' (read only)'}; commands start there.`,
    `Writable: ${places.join(', ') || 'nothing'}.`,
    `Readable: that, the programs and libraries of the system${further.length === 0 ? '' : `, ${shownPaths(further)}`}; other files of this machine, such as the home directory and credentials, are out of reach.`,
    ...(boundaries.hidesFiles === true ? [HIDES] : []),
    network === 'off'
      ? `There is no network${boundaries.ownLoopback === true ? ' but a loopback that commands of this session share' : ''}: downloads fail, and to try again does not help.`
      : network === 'listed'
        ? `Of the network ${
            boundaries.asksForHosts === true
              ? `these hosts can be reached: ${hosts.join(', ') || 'none'}; a connection to another one waits while the user is asked, and is refused without a yes`
              : `only these hosts can be reached: ${hosts.join(', ') || 'none'}; other names do not exist`
          }.`
        : 'The network can be used.',
    timeoutMs === 0
      ? 'There is no time limit.'
      : `A command is ended after ${timeoutMs / 1000} s, with everything that it started.`,
  ].join(' ');
}

/** What is allowed, in one line without a full stop. It claims no enforcement. */
export function describeBoundaries(boundaries: Boundaries): string {
  const { writable, readable, network, hosts = [], system = [], protectedPaths = [] } = boundaries;
  const own = readable.filter((path) => !system.includes(path));
  const roots = writable.length === 0 ? [] : [shownPaths(writable)];
  const write = [
    ...roots.map((shown) => (protectedPaths.length === 0 ? shown : `${shown} (${SETTINGS})`)),
    ...(boundaries.privateTmp === true ? [OWN_TMP] : []),
  ].join(', and ');
  const read = [
    ...(own.length === 0 ? [] : [shownPaths(own)]),
    ...(system.length === 0 ? [] : [shownSystem(system)]),
  ];
  return [
    ...(boundaries.heldBy === 'checks' ? ['simple commands of programs that the policy knows'] : []),
    `write in ${write === '' ? 'nothing' : write}`,
    `read that${read.length === 0 ? '' : `, and ${read.join(', ')}`}`,
    network === 'open'
      ? 'network: any host'
      : network === 'listed'
        ? `network: ${shownPaths(hosts).replaceAll(', ', ' ') || 'no host'}, and ${boundaries.asksForHosts === true ? 'others if the user says so' : 'no other host'}`
        : `network: no host${boundaries.ownLoopback === true ? ' but the loopback of the command itself' : ''}`,
  ].join('; ');
}
