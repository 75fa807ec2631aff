import { parse } from 'smol-toml';
import { z } from 'zod';
import { orElse } from '../../util/or-else.ts';
import {
  as,
  Draft,
  type ImportPlace,
  narrower,
  type Outcome,
  type Part,
  type Table,
  tableOf,
  wider,
} from './draft.ts';
import { denyHosts, NO_HOSTS, translateHosts } from './hosts.ts';

/** Rules of Codex: a `.rules` file. */
export function codexRules(text: string, where: ImportPlace): Draft {
  const draft = new Draft(where);
  draft.remarks.push(
    'A rules file says what is asked or refused. Import config.toml too, and put both together.',
    'There, a rule is about what runs outside the sandbox; here, nothing does.',
  );
  for (const part of statementsOf(text)) {
    const outcome = ruleOf(part, draft);
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

function ruleOf(part: Part, draft: Draft): Outcome | 'noted' {
  const call = readCall(String(part.value));
  switch (call?.name) {
    case 'prefix_rule':
      return prefixRule(draft, call.args);
    case 'network_rule': {
      const { host, protocol, decision } = call.args;
      if (decision === 'deny' || decision === 'forbidden') {
        if (typeof host !== 'string') return denyHosts(draft, 'a rule that denies names no host');
        return draft.host(part, 'deny', host);
      }
      const port = PORTS.get(protocol);
      if (decision !== 'allow' || typeof host !== 'string' || port === undefined) return NO_HOSTS;
      return draft.host(part, 'allow', `${host}:${port}`, ONLY_BESIDES);
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

/** Texts, with what makes a key of one, and comments. */
const TEXT_OR_COMMENT = /(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)(\s*=)?/g;

/** The statements: one goes on while a parenthesis is open. */
function statementsOf(source: string): readonly Part[] {
  const statements: { place: Part['place']; value: string }[] = [];
  let depth = 0;
  for (const [index, line] of source.split('\n').entries()) {
    const plain = line.replace(TEXT_OR_COMMENT, ([first = '']) => (first === '#' ? '' : first));
    if (depth <= 0 && plain.trim() === '') continue;
    if (depth <= 0) statements.push({ place: [`line ${index + 1}`], value: line });
    else for (const last of statements.slice(-1)) last.value += `\n${line}`;
    depth = Math.max(depth, 0) + plain.split(/[([]/).length - plain.split(/[)\]]/).length;
  }
  return statements;
}

/**
 * Reads the literal subset of Starlark that rules of Codex are written in, `name(key = literal, …)`: what stands between the
 * parentheses is an inline table of TOML, once its texts are in double quotes. `undefined`: it is something else.
 */
function readCall(statement: string): { readonly name: string; readonly args: Table } | undefined {
  const plain = statement.replace(TEXT_OR_COMMENT, (text: string, asKey: string | undefined) => {
    if (asKey !== undefined) return '?';
    if (text.startsWith('#')) return '';
    const quoted = (inner: string) => inner.replace(/\\['"]|"/g, (quote) => (quote === "\\'" ? "'" : '\\"'));
    return text.startsWith('"') ? text : `"${quoted(text.slice(1, -1))}"`;
  });
  const [, name = '', literals = '?'] = /^\s*(\w+)\s*\((.*)\)\s*$/s.exec(plain) ?? [];
  // That would be a text over several lines.
  if (plain.includes('"""')) return undefined;
  return orElse(() => ({ name, args: tableOf(parse(`args = {${literals}}`).args) }), undefined);
}
