import { z } from 'zod';
import { as, Draft, narrower, type Outcome, wider } from './draft.ts';
import type { Imported, ImportPlace } from './importer.ts';

/** Rules of Codex: a `.rules` file. */
export function codexRules(text: string, where: ImportPlace): Imported {
  const draft = new Draft(where);
  draft.remarks.push(
    'A rules file says what is asked or refused. Import config.toml too, and put both together.',
    'There, a rule is about what runs outside the sandbox; here, nothing does.',
  );
  for (const { line, text: value, tokens } of statementsOf(text))
    draft.note({ place: [`line ${line}`], value }, outcomeOf(draft, readCall(tokens)));
  return draft.imported();
}

const NOT_UNDERSTOOD = wider(
  'it is not understood: only calls with literals are, such as prefix_rule(pattern = ["git", "push"], decision = "prompt")',
  'write what it forbids into commands.rules',
);

function outcomeOf(draft: Draft, call: Call | undefined): Outcome {
  switch (call?.name) {
    case 'prefix_rule':
      return prefixRule(draft, call.args);
    case 'network_rule':
      if (call.args.decision === 'deny' || call.args.decision === 'forbidden')
        return as('network.mode = "off"');
      return narrower(
        'hosts cannot be allowed one by one; the network is off',
        'leave it off, or set network.mode = "open"',
      );
    case 'host_executable':
      return narrower('rules are about every program of that name, wherever it lies');
    default:
      return NOT_UNDERSTOOD;
  }
}

/** What may stand at one place of a command. */
const words = (word: z.ZodString) => z.union([word.transform((only) => [only]), z.array(word).min(1)]);

const PREFIX_RULE = z.strictObject({
  // The first is a program, of which rules compare the last part.
  pattern: z.tuple([words(z.string().regex(/^\S*[^\s/]$/))], words(z.string().min(1))),
  decision: z.enum(['allow', 'prompt', 'forbidden']).default('allow'),
  justification: z.unknown().optional(),
  match: z.unknown().optional(),
  not_match: z.unknown().optional(),
});

/** So many rules are made of one with alternatives. */
const MOST_ALTERNATIVES = 256;

function prefixRule({ policy }: Draft, args: unknown): Outcome {
  const { data } = PREFIX_RULE.safeParse(args);
  if (data === undefined) return NOT_UNDERSTOOD;
  if (data.decision === 'allow')
    return narrower(
      'nothing can be allowed beforehand, and nothing runs outside the sandbox',
      'approve it once for always (sandbox-run approvals), or set security.autonomy = "autonomous"',
    );
  const [programs, ...places] = data.pattern;
  let all: readonly (readonly string[])[] = [[]];
  let taken = 0;
  for (const alternatives of places) {
    if (all.length * programs.length * alternatives.length > MOST_ALTERNATIVES) break;
    all = all.flatMap((before) => alternatives.map((word) => [...before, word]));
    taken += 1;
  }
  const reason = data.justification;
  for (const program of programs)
    for (const words of all)
      policy.commands.rules.push({
        program: program.slice(program.lastIndexOf('/') + 1),
        ...(words.length === 0 ? {} : { words: [...words] }),
        verdict: data.decision === 'forbidden' ? 'deny' : 'ask',
        ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
      });
  if (taken < places.length)
    return narrower(
      `it has more than ${MOST_ALTERNATIVES} alternatives; the last words are left out, so that more matches`,
      'write rules into commands.rules that are narrower',
    );
  const hasExamples = data.match !== undefined || data.not_match !== undefined;
  return as(`commands.rules${hasExamples ? ' (without the examples)' : ''}`);
}

/** A statement of a rules file. */
interface Statement {
  /** From 1 on. */
  readonly line: number;
  readonly text: string;
  readonly tokens: readonly string[];
}

const TOKEN = /(?<gap>\s+|#[^\n]*)|[A-Za-z_]\w*|\d+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\s\S]/g;

/** A statement goes to the end of its line, or of the line that closes its last parenthesis. */
function statementsOf(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let [line, depth, end] = [1, 0, 0];
  let begun: { readonly line: number; readonly start: number; readonly tokens: string[] } | undefined;
  const finish = () => {
    if (begun !== undefined) statements.push({ ...begun, text: text.slice(begun.start, end) });
    begun = undefined;
    depth = 0;
  };
  for (const { 0: token, index, groups } of text.matchAll(TOKEN)) {
    if (groups?.gap === undefined) {
      begun ??= { line, start: index, tokens: [] };
      begun.tokens.push(token);
      end = index + token.length;
      if (token === '(' || token === '[') depth += 1;
      if (token === ')' || token === ']') depth -= 1;
    } else {
      if (depth <= 0 && token.includes('\n')) finish();
      line += token.split('\n').length - 1;
    }
  }
  finish();
  return statements;
}

interface Call {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/**
 * Reads the literal subset of Starlark that rules of Codex are written in, `name(key = literal, …)`, by writing it as JSON.
 * `undefined`: it is something else.
 */
function readCall([name = '', open, ...rest]: readonly string[]): Call | undefined {
  if (!/^\w+$/.test(name) || open !== '(' || rest.pop() !== ')') return undefined;
  const names = rest.filter((_, index) => rest[index + 1] === '=');
  if (new Set(names).size < names.length) return undefined;
  const json = rest.map((token, index) => jsonOf(token, rest[index + 1]));
  try {
    return { name, args: JSON.parse(`{${json.join(' ')}}`) };
  } catch {
    return undefined;
  }
}

const AS_JSON: ReadonlyMap<string, string> = new Map([
  ['True', 'true'],
  ['False', 'false'],
  ['None', 'null'],
  ['[', '['],
  [']', ']'],
  [',', ','],
  ['=', ':'],
]);

/** Of a text what JSON writes otherwise. */
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["\\'", "'"],
  ['"', '\\"'],
  ['\t', '\\t'],
]);

function jsonOf(token: string, next: string | undefined): string {
  const nothing = '?';
  if (next === '=') return /^[A-Za-z_]/.test(token) ? `"${token}"` : nothing;
  // A comma may stand at the end there.
  if (token === ',' && (next === undefined || next === ']')) return '';
  if (/^\d/.test(token)) return token;
  if (/^(["']).*\1$/s.test(token)) {
    const inner = token.slice(1, -1).replace(/\\[\s\S]|["\t]/g, (part) => ESCAPES.get(part) ?? part);
    return `"${inner}"`;
  }
  return AS_JSON.get(token) ?? nothing;
}
