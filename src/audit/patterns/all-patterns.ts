/** What the patterns know of a decision. */
export interface ObservedDecision {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly request: string;
  /** Of a command that was asked about: what makes it what it is; see `commandWords`. */
  readonly words: ReadonlySet<string>;
  /** A person was asked, or would have been. */
  readonly asked: boolean;
  /** The policy or a person was against it. */
  readonly refused: boolean;
  /** It was launched, or a container was told that it may run it. */
  readonly launched: boolean;
  /** If it was not launched: words that lead out of the workspace, as the check of paths saw them. */
  readonly escapes: readonly string[];
  readonly writes: readonly string[];
  readonly executes: readonly string[];
}

/** What a pattern recognized. */
interface Finding {
  /** What it is about: one event is raised for it within the time that is remembered. */
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
  summary: `${DIFFERENT} different paths with \`..\` that lead out of the workspace, in ${COMMANDS} refused commands or more`,
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

/** So many earlier requests that were not approved make the next one conspicuous. */
const REFUSED_BEFORE = 2;
/** Of all words of both commands, so many are in both. */
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

/** THE registry of patterns over several commands. */
export const PATTERNS: readonly Pattern[] = [
  createThenExecute,
  repeatedApprovals,
  pathTraversal,
  manyRefusals,
];
