import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';

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

/** What a file that we make begins with. */
const EMPTY = '{}\n';

/**
 * The text of settings with exactly the wanted hooks of ours, and everything else as it is, byte by byte. `undefined`: no file
 * is needed, as nothing but ours was in it, or there is none.
 * @throws {SandboxError} `usage.invalid` for text that cannot be changed without losing something.
 */
export function changedSettings(
  text: string | undefined,
  change: SettingsChange,
  path: string,
): string | undefined {
  // A file that is not there is not made in order to take something out of it.
  if (text === undefined && change.wanted.length === 0) return undefined;
  if (text?.trim() === '' && change.wanted.length === 0) return text;
  const before = text === undefined || text.trim() === '' ? EMPTY : text;
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
  return now === EMPTY && change.wanted.length === 0 ? undefined : now;
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
  // JSON readers use only one of two members with the same name, so ours could have no effect.
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

/** A value in a JSON text, and where it stands. */
type JsonNode =
  | {
      readonly kind: 'object';
      readonly start: number;
      readonly end: number;
      readonly members: readonly JsonMember[];
    }
  | {
      readonly kind: 'array';
      readonly start: number;
      readonly end: number;
      readonly items: readonly JsonNode[];
    }
  | { readonly kind: 'scalar'; readonly start: number; readonly end: number };

/** A member of an object; `start` is where its name begins. */
interface JsonMember {
  readonly name: string;
  readonly start: number;
  readonly value: JsonNode;
}

/**
 * Where everything stands in a text, so that it can be changed in one place and stays as it is in all others.
 * The text has to be JSON: the caller has parsed it.
 */
function readJsonText(text: string): JsonNode {
  let at = 0;
  const skip = () => {
    while (/[\s]/.test(text[at] ?? '')) at += 1;
  };
  const string = (): string => {
    const start = at;
    for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
    at += 1;
    return JSON.parse(text.slice(start, at));
  };
  /** The members between two brackets, each read by `one`. */
  const list = (close: string, one: () => void): void => {
    at += 1;
    for (skip(); text[at] !== close; skip()) {
      if (text[at] === ',') {
        at += 1;
        skip();
      }
      one();
    }
    at += 1;
  };
  const value = (): JsonNode => {
    skip();
    const start = at;
    if (text[at] === '{') {
      const members: JsonMember[] = [];
      list('}', () => {
        const from = at;
        const name = string();
        skip();
        at += 1;
        members.push({ name, start: from, value: value() });
      });
      return { kind: 'object', start, end: at, members };
    }
    if (text[at] === '[') {
      const items: JsonNode[] = [];
      list(']', () => items.push(value()));
      return { kind: 'array', start, end: at, items };
    }
    if (text[at] === '"') string();
    else while (/[^\s,\]}]/.test(text[at] ?? ',')) at += 1;
    return { kind: 'scalar', start, end: at };
  };
  return value();
}

/** The indentation of one step, as the text has it. */
function indentationOf(text: string): string {
  return /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';
}

/** Something between two brackets. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** The text without one of the entries of a list, with its comma; empty brackets if it was the only one. */
function withoutEntry(text: string, around: Span, entries: readonly Span[], index: number): string {
  const entry = entries[index];
  if (entry === undefined) return text;
  const [before, after] = [entries[index - 1], entries[index + 1]];
  if (after !== undefined) return text.slice(0, entry.start) + text.slice(after.start);
  if (before !== undefined) return text.slice(0, before.end) + text.slice(entry.end);
  // What stood between empty brackets stays.
  const rest = entry.start === around.start + 1 ? entry.end : around.end - 1;
  return text.slice(0, around.start + 1) + text.slice(rest);
}

/**
 * True if the only entry was put between brackets that were there already, with nothing between them: `withEntry` then
 * begins no line, which neither a program that writes JSON nor we ourselves would do with lists of our own.
 */
function wasEmpty(text: string, around: Span, entries: readonly Span[]): boolean {
  const [only, more] = entries;
  if (only === undefined || more !== undefined) return false;
  return only.start === around.start + 1 && text.slice(only.start, only.end).includes('\n');
}

/** The text with one more entry at the end of a list. `depth`: how many brackets are around the entry. */
function withEntry(
  text: string,
  around: Span,
  entries: readonly Span[],
  entry: string,
  depth: number,
): string {
  const step = indentationOf(text);
  const indented = entry.replaceAll('\n', `\n${step.repeat(depth)}`);
  const last = entries.at(-1);
  if (last !== undefined)
    return `${text.slice(0, last.end)},\n${step.repeat(depth)}${indented}${text.slice(last.end)}`;
  if (depth > 1) return text.slice(0, around.start + 1) + indented + text.slice(around.start + 1);
  const inner = `\n${step.repeat(depth)}${indented}\n${step.repeat(depth - 1)}`;
  return text.slice(0, around.start + 1) + inner + text.slice(around.end - 1);
}
