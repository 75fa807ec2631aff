import { SandboxError } from '../../errors/sandbox-error.ts';
import { visibleLine } from '../../util/visible-text.ts';
import {
  indentationOf,
  type JsonMember,
  type JsonNode,
  readJsonText,
  wasEmpty,
  withEntry,
  withoutEntry,
} from './json-text.ts';

/** One hook of ours in an agent's settings. */
export interface WantedHook {
  /** Name of the event. */
  readonly event: string;
  /** The group as it stands there. */
  readonly group: Readonly<Record<string, unknown>>;
}

/** What is ours in a file, and what is to be there. */
export interface SettingsChange {
  readonly isOurs: (command: string) => boolean;
  readonly wanted: readonly WantedHook[];
}

/**
 * The text of settings with exactly the wanted hooks of ours, and everything else as it is, byte by byte. `undefined`: there
 * is no file, and none is needed.
 * @throws {SandboxError} `usage.invalid` for text that cannot be changed without losing something.
 */
export function changedSettings(text: string, change: SettingsChange, path: string): string;
export function changedSettings(
  text: string | undefined,
  change: SettingsChange,
  path: string,
): string | undefined;
export function changedSettings(
  text: string | undefined,
  change: SettingsChange,
  path: string,
): string | undefined {
  // A file that is not there is not made in order to take something out of it.
  if (text === undefined && change.wanted.length === 0) return undefined;
  if (text?.trim() === '' && change.wanted.length === 0) return text;
  const before = text === undefined || text.trim() === '' ? '{}\n' : text;
  check(before, path);
  if (hasExactly(before, change)) return before;
  let now = before;
  for (;;) {
    const less = withoutOne(now, change.isOurs);
    if (less === undefined) break;
    now = less;
  }
  for (const hook of change.wanted) now = withHook(now, hook);
  // What was made by hand must be what was meant.
  check(now, path);
  if (!hasExactly(now, change)) throw unusable(path, 'it has a shape that this program does not know');
  return now;
}

function check(text: string, path: string): void {
  if (text.startsWith('\ufeff'))
    throw unusable(path, 'it begins with a byte order mark, which is no JSON; save it without one');
  try {
    JSON.parse(text);
  } catch {
    throw unusable(path, 'it is not plain JSON (a comment or a comma too many would be lost)');
  }
  const root = readJsonText(text);
  if (root.kind !== 'object') throw unusable(path, 'it is not a JSON object');
  // Of two members with one name only one counts: what is put into the other has no effect.
  const once = (where: string, names: readonly string[]) => {
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined)
      throw unusable(path, `${visibleLine(JSON.stringify(where + twice), 100)} stands in it twice`);
  };
  const ofRoot = root.members.map(({ name }) => name);
  once(
    '',
    ofRoot.filter((name) => name === 'hooks' || name === 'disableAllHooks'),
  );
  const hooks = memberOf(root, 'hooks');
  if (hooks !== undefined && hooks.value.kind !== 'object') throw unusable(path, '"hooks" is not an object');
  for (const { name, value } of membersOf(hooks?.value))
    if (value.kind !== 'array')
      throw unusable(path, `${visibleLine(JSON.stringify(`hooks.${name}`), 100)} is not a list`);
  once('hooks.', namesOf(hooks?.value));
  for (const { name, value } of membersOf(hooks?.value))
    for (const group of itemsOf(value)) {
      once(`hooks.${name}.`, namesOf(group));
      for (const entry of itemsOf(memberOf(group, 'hooks')?.value))
        once(`hooks.${name}.hooks.`, namesOf(entry));
    }
}

const unusable = (path: string, why: string) =>
  new SandboxError(
    'usage.invalid',
    `${path} is left as it is: ${why}; add the hooks by hand (--dry-run of an empty file shows them)`,
  );

const memberOf = (node: JsonNode, name: string) => membersOf(node).find((member) => member.name === name);
const membersOf = (node: JsonNode | undefined): readonly JsonMember[] =>
  node?.kind === 'object' ? node.members : [];
const namesOf = (node: JsonNode | undefined) => membersOf(node).map(({ name }) => name);
const itemsOf = (node: JsonNode | undefined): readonly JsonNode[] =>
  node?.kind === 'array' ? node.items : [];
const spansOf = (members: readonly JsonMember[]) =>
  members.map(({ start, value }) => ({ start, end: value.end }));

/** Every hook of ours, as the group that it stands in. */
function ours(text: string, isOurs: SettingsChange['isOurs']) {
  const hooks = memberOf(readJsonText(text), 'hooks')?.value;
  return membersOf(hooks).flatMap((event) =>
    itemsOf(event.value).flatMap((group, groupAt) => {
      const list = memberOf(group, 'hooks')?.value;
      return itemsOf(list).flatMap((entry, at) => {
        const command = JSON.parse(text.slice(entry.start, entry.end))?.command;
        if (typeof command !== 'string' || !isOurs(command)) return [];
        return [{ hooks, event, group, groupAt, list, entry, at }];
      });
    }),
  );
}

function hasExactly(text: string, { isOurs, wanted }: SettingsChange): boolean {
  const found = ours(text, isOurs).map(
    ({ event, group }) => [event.name, text.slice(group.start, group.end)] as const,
  );
  // As the agent reads it.
  const hooks = JSON.parse(text).hooks ?? {};
  return (
    found.length === wanted.length &&
    wanted.every(({ event, group }) =>
      (Object.hasOwn(hooks, event) ? [...hooks[event]] : []).some(
        (other) => JSON.stringify(other) === JSON.stringify(group),
      ),
    ) &&
    wanted.every(({ event, group }) =>
      found.some(
        ([name, source]) => name === event && JSON.stringify(JSON.parse(source)) === JSON.stringify(group),
      ),
    )
  );
}

/** Without one hook of ours, and without what it leaves empty; `undefined`: there is none. */
function withoutOne(text: string, isOurs: SettingsChange['isOurs']): string | undefined {
  const [found] = ours(text, isOurs);
  if (found?.hooks === undefined || found.list === undefined) return undefined;
  const { hooks, event, groupAt, list, at } = found;
  // The user put another hook beside it.
  if (itemsOf(list).length > 1) return withoutEntry(text, list, itemsOf(list), at);
  const groups = itemsOf(event.value);
  if (groups.length > 1 || wasEmpty(text, event.value, groups))
    return withoutEntry(text, event.value, groups, groupAt);
  const events = membersOf(hooks);
  if (events.length > 1 || wasEmpty(text, hooks, spansOf(events)))
    return withoutEntry(text, hooks, spansOf(events), events.indexOf(event));
  const root = readJsonText(text);
  const members = membersOf(root);
  return withoutEntry(
    text,
    root,
    spansOf(members),
    members.findIndex(({ name }) => name === 'hooks'),
  );
}

function withHook(text: string, { event, group }: WantedHook): string {
  const step = indentationOf(text);
  const json = (value: unknown) => JSON.stringify(value, null, step);
  const root = readJsonText(text);
  const hooks = memberOf(root, 'hooks')?.value;
  if (hooks === undefined)
    return withEntry(text, root, spansOf(membersOf(root)), `"hooks": ${json({ [event]: [group] })}`, 1);
  const groups = membersOf(hooks).find(({ name }) => name === event)?.value;
  if (groups === undefined)
    return withEntry(text, hooks, spansOf(membersOf(hooks)), `${json(event)}: ${json([group])}`, 2);
  return withEntry(text, groups, itemsOf(groups), json(group), 3);
}
