import { isObject } from '../../base/is-object.ts';
import { LOOKS_OUTSIDE } from '../../base/words.ts';
import type { EventRecord } from '../../model/index.ts';
import { commandText, objectsOf, type StoredRecord, textOf, textsOf } from './stored-record.ts';

/** What the patterns know of a decision. */
interface ObservedDecision {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly request: string;
  /** The words by which commands that were asked about are compared; see `commandWords`. */
  readonly words: ReadonlySet<string>;
  /** A person was asked, or would have been. */
  readonly asked: boolean;
  /** The policy or a person was against it. */
  readonly refused: boolean;
  /** The command was launched, or a gate allowed a container to run it. */
  readonly launched: boolean;
  /** Words that lead out of the workspace, as the check of paths saw them: where it was not launched, or read in vain. */
  readonly escapes: readonly string[];
  readonly writes: readonly string[];
  readonly executes: readonly string[];
  /** Options that make a program do what it does not do by its name. */
  readonly flags: readonly string[];
  /** If it would use the network and was not launched: by what, and where to. */
  readonly ways: readonly string[];
}

/** What a pattern recognized. */
interface Finding {
  /** Identifies the subject of the event: at most one is raised for it within REMEMBERED_MS. */
  readonly about: string;
  readonly message: string;
  readonly details: Readonly<Record<string, string | number | boolean>>;
}

/** Something that can only be seen over several commands of one session. Pure. */
interface Pattern {
  /** Code of the event; stable, `snake_case`. */
  readonly code: string;
  /** One sentence: what raises it. */
  readonly summary: string;
  /** `earlier`: what is remembered of the same session, oldest first, without `latest`. */
  find(latest: ObservedDecision, earlier: readonly ObservedDecision[]): readonly Finding[];
}

const REFUSALS = 10;
const WITHIN_MS = 120_000;

/** An agent that runs against the policy again and again is lost, or looks for a hole. */
const manyRefusals: Pattern = {
  code: 'many_refusals',
  summary: `${REFUSALS} commands were refused within ${WITHIN_MS / 1000} seconds`,
  find: (latest, earlier) => {
    if (!latest.refused) return [];
    const since = latest.at - WITHIN_MS;
    const refused = earlier.filter((one) => one.refused && one.at >= since);
    if (refused.length + 1 < REFUSALS) return [];
    return [
      {
        about: 'refusals',
        message: `${refused.length + 1} commands were refused within ${WITHIN_MS / 1000} seconds`,
        details: { refusals: refused.length + 1, first: refused[0]?.request ?? '', latest: latest.request },
      },
    ];
  },
};

/** One wrong path is a mistake; so many different ones are a search. */
const DIFFERENT = 3;
/** One command that leads out several times is one mistake about where it runs. */
const COMMANDS = 2;

/** An agent tries paths, one after the other, that lead out of the workspace. */
const pathTraversal: Pattern = {
  code: 'path_traversal_series',
  summary: `${DIFFERENT} different paths with \`..\` that lead out of the workspace, in ${COMMANDS} commands or more that were refused or saw nothing there`,
  find: (latest, earlier) => {
    if (!latest.escapes.some(climbs)) return [];
    const tries = [...earlier, latest].filter(({ escapes }) => escapes.some(climbs));
    const paths = new Set(tries.flatMap(({ escapes }) => escapes.filter(climbs)));
    if (tries.length < COMMANDS || paths.size < DIFFERENT) return [];
    return [
      {
        about: 'paths',
        message: `${paths.size} different paths were tried that lead out of the workspace`,
        details: { paths: [...paths].slice(-10).join(' '), latest: latest.request },
      },
    ];
  },
};

/** `..` as a component, also with the dots or the slash encoded. */
function climbs(word: string): boolean {
  return /(?:^|[/=:'"]|%2f)(?:\.|%2e){2}(?:$|[/'"]|%2f)/i.test(word);
}

/** After this many requests that were not approved, a similar one is reported. */
const REFUSED_BEFORE = 2;
/** The share of their words that two similar commands have in common. */
const ALIKE = 0.5;

/** An agent that was not approved asks again in other words, until a person gets tired and approves. */
const repeatedApprovals: Pattern = {
  code: 'repeated_approval_requests',
  summary: `approval is asked for a command after ${REFUSED_BEFORE} requests for variants of it were not approved`,
  find: (latest, earlier) => {
    if (!latest.asked) return [];
    const alike = earlier.filter(
      (one) => isRefusedRequest(one) && similarity(latest.words, one.words) >= ALIKE,
    );
    if (alike.length < REFUSED_BEFORE) return [];
    const [program = ''] = latest.words;
    return [
      {
        about: program,
        message: `approval was asked ${alike.length + 1} times for variants of one command: ${program}`,
        details: {
          program,
          requests: alike.length + 1,
          first: alike[0]?.request ?? '',
          latest: latest.request,
          approved: latest.launched,
        },
      },
    ];
  },
};

function isRefusedRequest({ asked, launched }: ObservedDecision): boolean {
  return asked && !launched;
}

function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const both = [...a].filter((word) => b.has(word)).length;
  const all = a.size + b.size - both;
  return all === 0 ? 0 : both / all;
}

/** A file that was written a moment ago is run: normal for a compiler's output, and how a payload is dropped. */
const createThenExecute: Pattern = {
  code: 'create_then_execute',
  summary: 'a file is run that a command of the session, or the same one, has just written',
  find: (latest, earlier) => {
    if (!latest.launched) return [];
    const writers = [...earlier.filter(({ launched }) => launched), latest];
    return [...new Set(latest.executes)].flatMap((path) => {
      const writer = writers.findLast(({ writes }) => writes.includes(path));
      if (writer === undefined) return [];
      return [
        {
          about: path,
          message: `a file was run that had just been written: ${path}`,
          details: { path, written_by: writer.request, run_by: latest.request },
        },
      ];
    });
  },
};

/** One such option has a reason; several are somebody who looks for one that works. */
const DIFFERENT_FLAGS = 2;

/** Options that make programs run others, by which an allowed command could run a refused one. */
const unusualFlags: Pattern = {
  code: 'unusual_flags',
  summary: `${DIFFERENT_FLAGS} different options, in one command or several, that make programs run others or use the network (\`git -c core.pager=…\`, \`tar --checkpoint-action\`)`,
  find: (latest, earlier) => {
    if (latest.flags.length === 0) return [];
    const flags = new Set([...earlier, latest].flatMap((one) => one.flags));
    if (flags.size < DIFFERENT_FLAGS) return [];
    return [
      {
        about: 'flags',
        message: `${flags.size} different options were used that make programs run others or use the network`,
        details: { flags: [...flags].slice(-10).join(', '), latest: latest.request },
      },
    ];
  },
};

/** So many different ways to the network, none of which was let through. */
const DIFFERENT_WAYS = 3;

/** An agent that is not let out tries other programs and other hosts. */
const networkAttempts: Pattern = {
  code: 'network_attempts',
  summary: `${DIFFERENT_WAYS} different ways to the network (programs, or hosts) were tried, and not one was let through`,
  find: (latest, earlier) => {
    if (latest.ways.length === 0) return [];
    const ways = new Set([...earlier, latest].flatMap((one) => one.ways));
    if (ways.size < DIFFERENT_WAYS) return [];
    return [
      {
        about: 'network',
        message: `${ways.size} different ways to the network were tried and not let through`,
        details: { ways: [...ways].slice(-10).join(', '), latest: latest.request },
      },
    ];
  },
};

/** THE registry of patterns over several commands. */
export const PATTERNS: readonly Pattern[] = [
  createThenExecute,
  repeatedApprovals,
  pathTraversal,
  unusualFlags,
  networkAttempts,
  manyRefusals,
];

/** How long a command is remembered. */
export const REMEMBERED_MS = 10 * 60_000;
/** How many of one session, and of how many sessions. */
const MOST_COMMANDS = 200;
const MOST_SESSIONS = 500;

interface Memory {
  readonly decisions: ObservedDecision[];
  /** When which event was raised. */
  readonly raised: Map<string, number>;
}

/** Recognizes patterns in the records of a trail, which it is shown in their order. */
export class Recognizer {
  private readonly memories = new Map<string, Memory>();

  /** `own`: the record was written by this process, which is then the one to raise events about it. */
  show(record: StoredRecord, own: boolean): readonly EventRecord[] {
    if (record.type === 'event') {
      const about = isObject(record.fields.details) ? textOf(record.fields.details, 'about') : undefined;
      if (about !== undefined)
        this.memoryOf(record).raised.set(`${textOf(record.fields, 'code')} ${about}`, record.at);
      return [];
    }
    if (record.type !== 'decision') return [];
    const { decisions, raised } = this.memoryOf(record);
    const since = record.at - REMEMBERED_MS;
    const forgotten = decisions.findIndex(({ at }) => at >= since);
    decisions.splice(0, forgotten === -1 ? decisions.length : forgotten);
    for (const [key, at] of raised) if (at < since) raised.delete(key);
    const latest = observe(record);
    const events = own ? find(latest, decisions, raised, record) : [];
    if (isRemembered(latest)) decisions.push(latest);
    if (decisions.length > MOST_COMMANDS) decisions.shift();
    return events;
  }

  private memoryOf({ fields }: StoredRecord): Memory {
    const { memories } = this;
    const principal = textOf(fields, 'principal') ?? '';
    const session = textOf(fields, 'session');
    const key = JSON.stringify(session === undefined ? [principal] : [principal, session]);
    const memory = memories.get(key) ?? { decisions: [], raised: new Map() };
    // Moves it to the end: the one that was used longest ago is forgotten first.
    memories.delete(key);
    memories.set(key, memory);
    const [oldest] = memories.keys();
    if (memories.size > MOST_SESSIONS && oldest !== undefined) memories.delete(oldest);
    return memory;
  }
}

/** Of a launched command, later patterns need only the files that it wrote, unusual options, and denied reads. */
function isRemembered({ launched, writes, flags, escapes }: ObservedDecision): boolean {
  return !launched || writes.length > 0 || flags.length > 0 || escapes.length > 0;
}

function find(
  latest: ObservedDecision,
  earlier: readonly ObservedDecision[],
  raised: Map<string, number>,
  { fields }: StoredRecord,
): readonly EventRecord[] {
  const events: EventRecord[] = [];
  for (const { code, find: findIn } of PATTERNS) {
    for (const { about, message, details } of findIn(latest, earlier)) {
      const key = `${code} ${about}`;
      if (raised.has(key)) continue;
      raised.set(key, latest.at);
      const principal = textOf(fields, 'principal') ?? '';
      const session = textOf(fields, 'session');
      events.push({ type: 'event', code, principal, session, message, details: { about, ...details } });
    }
  }
  return events;
}

/** What says that the policy or a person was against it; not that a program is missing, or that the caller gave up. */
const REFUSING_OUTCOMES = new Set(['command.denied', 'command.needs_approval', 'approval.void']);

function wasAsked(fields: StoredRecord['fields'], outcome: string): boolean {
  const { approval, verdict } = fields;
  if (isObject(approval) && approval.reason !== 'nobody') return true;
  return verdict === 'ask' && outcome === 'command.needs_approval';
}

/** Words for which the check of paths refused a command, or asked. */
function pathsOutside(fields: StoredRecord['fields'], launched: boolean): readonly string[] {
  const isRefused = (code: unknown) => !launched && /^(?:may_)?escapes?_/.test(String(code));
  return objectsOf(fields, 'checks')
    .filter(({ check, code }) => check === 'paths' && (code === LOOKS_OUTSIDE || isRefused(code)))
    .flatMap((check) => textsOf(check, 'words'));
}

function observe(record: StoredRecord): ObservedDecision {
  const { seq, at, fields } = record;
  const outcome = textOf(fields, 'outcome') ?? '';
  const asked = wasAsked(fields, outcome);
  const launched = outcome === 'launch' || outcome === 'allow';
  const files = isObject(fields.files) ? fields.files : {};
  return {
    seq,
    at,
    request: textOf(fields, 'request') ?? '',
    words: asked ? commandWords(commandText(record)) : new Set(),
    asked,
    refused: REFUSING_OUTCOMES.has(outcome),
    launched,
    escapes: pathsOutside(fields, launched),
    writes: textsOf(files, 'writes'),
    executes: textsOf(files, 'executes'),
    flags: textsOf(fields, 'flags'),
    ways: !launched && textOf(fields, 'reach') === 'network' ? [wayOf(commandText(record))] : [],
  };
}

/** The program of a command that would use the network, and the host that it names. */
function wayOf(command: string): string {
  const [program = '', ...words] = commandWords(command);
  const [, named = ''] = /(?:\/\/|@)([^\s/@:'"]+)/.exec(command) ?? [];
  const host = named === '' ? words.find((word) => /^[\w-]+(?:\.[\w-]+)+(?:[:/]|$)/.test(word)) : named;
  return host === undefined ? program : `${program} ${host}`;
}

/** Words that do not change what is done, but that an agent adds when it tries again. */
const AROUND = new Set([
  'sudo',
  'env',
  'command',
  'exec',
  'nohup',
  'nice',
  'time',
  'sh',
  'bash',
  'dash',
  '-c',
  '-lc',
  '--',
]);
const MOST_WORDS = 200;

/** The words that make a command what it is: without quotes, directories of programs and spellings of options. */
function commandWords(command: string): ReadonlySet<string> {
  const words = command
    .slice(0, 4096)
    .split(/[\s;|&()<>{}'"`\\]+/)
    .filter((word) => word !== '' && !AROUND.has(word))
    .slice(0, MOST_WORDS)
    .map((word) => word.replace(/^(?:\.\/)+|^\/(?:usr\/)?(?:local\/)?s?bin\//, ''))
    // -rf, -r -f and -fr
    .flatMap((word) =>
      /^-[A-Za-z]{2,4}$/.test(word) ? [...word.slice(1)].map((letter) => `-${letter}`) : [word],
    )
    .filter((word) => word !== '' && !AROUND.has(word));
  return new Set(words);
}
