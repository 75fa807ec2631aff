import { as, createDraft, type Draft, loss, type Outcome } from './draft.ts';
import type { Imported, ImportPlace } from './importer.ts';
import { type Literal, readRules, type Statement } from './rules-reader.ts';

/** So many rules are made of one with alternatives. */
const MOST_ALTERNATIVES = 256;

/** Rules of Codex: a `.rules` file. */
export function importRules(text: string, _where: ImportPlace): Imported {
  const draft = createDraft();
  for (const statement of readRules(text))
    draft.note({ place: [`line ${statement.line}`], value: statement.text }, outcomeOf(draft, statement));
  draft.remarks.push(
    'A rules file says what is asked or refused. Import config.toml too, and put both together.',
    'There, a rule is about what runs outside the sandbox; here, nothing does.',
  );
  return draft.finish([], () => ({ effect: 'none', why: '', what: '' }));
}

const NOT_UNDERSTOOD = loss(
  'wider',
  'it is not understood: only calls with literals are, such as prefix_rule(pattern = ["git", "push"], decision = "prompt")',
  'write what it forbids into commands.rules',
);

function outcomeOf(draft: Draft, { call }: Statement): Outcome {
  switch (call?.name) {
    case 'prefix_rule':
      return prefixRule(draft, call.args);
    case 'network_rule':
      return call.args.decision === 'deny' || call.args.decision === 'forbidden'
        ? as('network.mode = "off"')
        : loss(
            'narrower',
            'hosts cannot be allowed one by one; the network is off',
            'leave it off, or set network.mode = "open"',
          );
    case 'host_executable':
      return loss(
        'narrower',
        'rules are about every program of that name, wherever it lies',
        'nothing is to be done',
      );
    default:
      return NOT_UNDERSTOOD;
  }
}

const KNOWN = ['pattern', 'decision', 'justification', 'match', 'not_match'];

function prefixRule(draft: Draft, args: Readonly<Record<string, Literal>>): Outcome {
  const { pattern, decision = 'allow', justification } = args;
  const words = patternOf(pattern);
  if (words === undefined || Object.keys(args).some((key) => !KNOWN.includes(key))) return NOT_UNDERSTOOD;
  if (decision === 'allow')
    return loss(
      'narrower',
      'nothing can be allowed beforehand, and nothing runs outside the sandbox',
      'approve it once for always (sandbox-run approvals), or set security.autonomy = "autonomous"',
    );
  if (decision !== 'prompt' && decision !== 'forbidden') return NOT_UNDERSTOOD;
  const { all, isCut } = alternatives(words);
  for (const [program = '', ...rest] of all)
    draft.rules.push({
      program: program.slice(program.lastIndexOf('/') + 1),
      ...(rest.length === 0 ? {} : { words: rest }),
      verdict: decision === 'forbidden' ? 'deny' : 'ask',
      ...(typeof justification === 'string' && justification !== '' ? { reason: justification } : {}),
    });
  return isCut
    ? loss(
        'narrower',
        `it has more than ${MOST_ALTERNATIVES} alternatives; the last words are left out, so that more matches`,
        'write rules into commands.rules that are narrower',
      )
    : as(
        `commands.rules${args.match === undefined && args.not_match === undefined ? '' : ' (without the examples)'}`,
      );
}

/** The words at each place; `undefined`: it is no pattern that rules could be made of. */
function patternOf(pattern: Literal | undefined): readonly (readonly string[])[] | undefined {
  if (!Array.isArray(pattern) || pattern.length === 0) return undefined;
  const places = pattern.map((word: Literal) => (Array.isArray(word) ? word : [word]));
  const isFine = places.every(
    (words, index) =>
      words.length > 0 &&
      words.every(
        (word: Literal) =>
          typeof word === 'string' && word !== '' && (index > 0 || /^[^\s]*[^\s/]$/.test(word)),
      ),
  );
  return isFine ? (places as readonly (readonly string[])[]) : undefined;
}

function alternatives(places: readonly (readonly string[])[]): {
  readonly all: readonly (readonly string[])[];
  readonly isCut: boolean;
} {
  let all: readonly (readonly string[])[] = [[]];
  for (const [index, words] of places.entries()) {
    if (index > 0 && all.length * words.length > MOST_ALTERNATIVES) return { all, isCut: true };
    all = all.flatMap((before) => words.map((word) => [...before, word]));
  }
  return { all, isCut: false };
}
