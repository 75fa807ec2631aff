import { z } from 'zod';
import { orElse } from '../../util/or-else.ts';
import { as, Draft, type ImportPlace, narrower, type Outcome, type Part, wider } from './draft.ts';
import { denyHosts, NO_HOSTS, nameHost, translateHosts } from './hosts.ts';

/** Rules of Codex: a `.rules` file. */
export function codexRules(text: string, where: ImportPlace): Draft {
  const draft = new Draft(where);
  draft.remarks.push(
    'A rules file says what is asked or refused. Import config.toml too, and put both together.',
    'There, a rule is about what runs outside the sandbox; here, nothing does.',
  );
  for (const { line, start, end, tokens } of statementsOf(text)) {
    const part = { place: [`line ${line}`], value: text.slice(start, end) };
    const outcome = ruleOf(draft, part, readCall(tokens));
    if (outcome !== 'noted') draft.note(part, outcome);
  }
  translateHosts(draft);
  return draft;
}

const NOT_UNDERSTOOD = wider('it is not understood: only calls with literals are', 'commands.rules');
const ALLOWED_BEFOREHAND = narrower('nothing runs outside the sandbox', 'security.autonomy = "autonomous"');
const ONLY_BESIDES = wider('it is reached there only if config.toml has the network on', 'no network.allow');

/** What a proxy of Codex tells apart, as ports. */
const PORTS: ReadonlyMap<unknown, number> = new Map([
  ['http', 80],
  ['https', 443],
  ['https_connect', 443],
]);

function ruleOf(draft: Draft, part: Part, call: Call | undefined): Outcome | 'noted' {
  switch (call?.name) {
    case 'prefix_rule':
      return prefixRule(draft, call.args);
    case 'network_rule': {
      const { host, protocol, decision } = call.args;
      if (decision === 'deny' || decision === 'forbidden') {
        if (typeof host !== 'string') return denyHosts(draft, 'a rule that denies names no host');
        return nameHost(draft, 'deny', part, { text: host });
      }
      const port = PORTS.get(protocol);
      if (decision !== 'allow' || typeof host !== 'string' || port === undefined) return NO_HOSTS;
      return nameHost(draft, 'allow', part, { text: host, port, outcome: ONLY_BESIDES });
    }
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
  if (data.decision === 'allow') return ALLOWED_BEFOREHAND;
  const [programs, ...places] = data.pattern;
  let all = programs.map((program) => [program.slice(program.lastIndexOf('/') + 1)]);
  const isWhole = places.every((alternatives) => {
    if (all.length * alternatives.length > MOST_ALTERNATIVES) return false;
    all = all.flatMap((before) => alternatives.map((word) => [...before, word]));
    return true;
  });
  const { justification: reason } = data;
  for (const [program = '', ...words] of all)
    policy.commands.rules.push({
      program,
      ...(words.length === 0 ? {} : { words }),
      verdict: data.decision === 'forbidden' ? 'deny' : 'ask',
      ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
    });
  if (isWhole) return as('commands.rules');
  return narrower(
    `of more than ${MOST_ALTERNATIVES} alternatives the last words are left out`,
    'commands.rules',
  );
}

/** A statement of a rules file. */
interface Statement {
  /** From 1 on. */
  readonly line: number;
  readonly start: number;
  end: number;
  readonly tokens: string[];
}

const TOKEN = /(?<gap>\s+|#[^\n]*)|[A-Za-z_]\w*|\d+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\s\S]/g;

/** A statement goes to the end of its line, or of the line that closes its last parenthesis. */
function statementsOf(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let [line, depth] = [1, 0];
  let begun: Statement | undefined;
  for (const { 0: token, index, groups } of text.matchAll(TOKEN)) {
    if (groups?.gap !== undefined) {
      if (depth <= 0 && token.includes('\n')) begun = undefined;
      line += token.split('\n').length - 1;
      continue;
    }
    if (begun === undefined) {
      begun = { line, start: index, end: index, tokens: [] };
      statements.push(begun);
      depth = 0;
    }
    begun.tokens.push(token);
    begun.end = index + token.length;
    if (token === '(' || token === '[') depth += 1;
    if (token === ')' || token === ']') depth -= 1;
  }
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
  return orElse(() => ({ name, args: JSON.parse(`{${json.join(' ')}}`) }), undefined);
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
