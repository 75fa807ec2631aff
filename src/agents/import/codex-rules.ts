import { parse } from 'smol-toml';
import { z } from 'zod';
import { orElse } from '../../base/or-else.ts';
import { ANY_WORDS } from '../../model/index.ts';
import {
  as,
  Draft,
  type ImportPlace,
  narrower,
  type Outcome,
  type Reader,
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
  draft.read(statementsOf(text), { '*': rule });
  translateHosts(draft);
  return draft;
}

const ALLOWED_BEFOREHAND = narrower('nothing runs outside the sandbox', 'security.autonomy = "autonomous"');
const ONLY_BESIDES = wider('it is reached there only if config.toml has the network on', 'no network.allow');

/** What a proxy of Codex tells apart, as ports. */
const PORTS: ReadonlyMap<unknown, number> = new Map([
  ['http', 80],
  ['https', 443],
  ['https_connect', 443],
]);

/** A call with literals is understood, and nothing else. */
const rule: Reader = (part, draft) => {
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
      return undefined;
  }
};

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

const VERDICTS = { allow: 'allow', prompt: 'ask', forbidden: 'deny' } as const;

/** More alternatives than this are no rule that a person writes. */
const MOST_ALTERNATIVES = 256;

function prefixRule({ policy }: Draft, args: unknown): Outcome | undefined {
  const { data } = PREFIX_RULE.safeParse(args);
  if (data === undefined) return undefined;
  const { pattern, decision, justification: reason } = data;
  if (pattern.reduce((count, { length }) => count * length, 1) > MOST_ALTERNATIVES) return undefined;
  const [programs, ...places] = pattern;
  let all = programs.map((program) => [program.slice(program.lastIndexOf('/') + 1)]);
  for (const place of places) all = all.flatMap((before) => place.map((word) => [...before, word]));
  // There, what stands behind the prefix is allowed, too; a pattern here would mean more than a word there.
  const isAllowed = decision === 'allow';
  if (isAllowed && all.flat().some((word) => word.includes('*'))) return ALLOWED_BEFOREHAND;
  for (const [program = '', ...words] of all)
    policy.commands.rules.push({
      program,
      ...(words.length === 0 && !isAllowed ? {} : { words: isAllowed ? [...words, ANY_WORDS] : words }),
      verdict: VERDICTS[decision],
      ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
    });
  return as('commands.rules');
}

/** Texts, with what makes a key of one, and comments. */
const TEXT_OR_COMMENT = /(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*)(\s*=)?/g;

/** The statements, by the line that each begins in: one goes on while a parenthesis is open. */
function statementsOf(text: string): Table {
  const statements: Record<string, string> = {};
  let [begun, depth] = ['', 0];
  for (const [index, line] of text.split('\n').entries()) {
    const plain = line.replace(TEXT_OR_COMMENT, ([first = '']) => (first === '#' ? '' : first));
    if (depth <= 0 && plain.trim() === '') continue;
    if (depth <= 0) [begun, depth] = [`line ${index + 1}`, 0];
    statements[begun] = `${statements[begun] ?? ''}${line}\n`;
    depth += plain.split(/[([]/).length - plain.split(/[)\]]/).length;
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
