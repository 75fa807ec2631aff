import type { ObservedDecision, Pattern } from './pattern.ts';

/** So many earlier requests without a yes make the next one conspicuous. */
const REFUSED_BEFORE = 2;
/** Of all words of both commands, so many are in both. */
const ALIKE = 0.5;

/** Whoever did not get a yes asks again in other words, until somebody is tired of it. */
export const repeatedApprovals: Pattern = {
  code: 'repeated_approval_requests',
  summary: `approval is asked for a command after ${REFUSED_BEFORE} requests for variants of it got no yes`,
  find: (latest, earlier) => {
    if (latest.verdict !== 'ask') return [];
    const words = wordsOf(latest.command);
    const alike = earlier.filter(
      (one) => isRefusedRequest(one) && similarity(words, wordsOf(one.command)) >= ALIKE,
    );
    if (alike.length < REFUSED_BEFORE) return [];
    const [program = ''] = words;
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

function isRefusedRequest({ verdict, launched }: ObservedDecision): boolean {
  return verdict === 'ask' && !launched;
}

/** Words that say nothing about what is done, but that somebody tries around it. */
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
function wordsOf(command: string): ReadonlySet<string> {
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

function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const both = [...a].filter((word) => b.has(word)).length;
  const all = a.size + b.size - both;
  return all === 0 ? 0 : both / all;
}
