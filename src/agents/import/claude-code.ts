import { basename, dirname } from 'node:path';
import { ANY_WORDS, type RuleInFile } from '../../model/index.ts';
import { namePath } from './access.ts';
import {
  as,
  Draft,
  type ImportPlace,
  narrower,
  type Outcome,
  type Reader,
  type Rows,
  type Table,
  tableOf,
  unrelated,
  wider,
} from './draft.ts';
import { denyHosts, NO_HOSTS } from './hosts.ts';
import { isAlways, modes, variable } from './readers.ts';
import { concluded, sandboxRows } from './srt.ts';

/** Permission rules and sandbox settings of Claude Code: `settings.json`. */
export function claudeCode(settings: Table, where: ImportPlace): Draft {
  const draft = new Draft(where);
  draft.remarks.push(
    'There, rules say what is asked; here, the risk of a command does (security.autonomy), and rules besides.',
    'Rules about other tools than Bash, hooks and managed settings stay in force in Claude Code.',
  );
  const rows = rowsOf(basesOf(where));
  draft.read(settings, rows, ([first = '']) => first !== 'permissions' && first !== 'sandbox');
  const sandbox = tableOf(settings.sandbox);
  return concluded(draft, sandbox, ['sandbox'], sandbox.enabled === true);
}

const AUTONOMOUS = 'security.autonomy = "autonomous"';
const ALWAYS = 'every command runs in the sandbox';
const OUTSIDE = 'another terminal for what has to run outside of it';
const ASKED_OUTSIDE = narrower('what leaves the sandbox is asked about', AUTONOMOUS);

const rowsOf = (bases: ClaudeBases): Rows => ({
  'permissions.deny[]': rule('deny', bases),
  'permissions.ask[]': rule('ask', bases),
  'permissions.allow[]': rule('allow', bases),
  'permissions.additionalDirectories[]': (part, draft) => {
    if (typeof part.value !== 'string') return undefined;
    const meaning = { text: part.value, base: bases.cwd, firm: true, literal: true };
    return namePath(draft, 'allowWrite', part, meaning);
  },
  'permissions.defaultMode': modes({
    default: { autonomy: 'supervised' },
    manual: { autonomy: 'supervised' },
    acceptEdits: { autonomy: 'contained', outcome: ASKED_OUTSIDE },
    auto: { autonomy: 'contained', outcome: ASKED_OUTSIDE },
    plan: { autonomy: 'readonly' },
    dontAsk: { autonomy: 'supervised', ask: 'nobody' },
    bypassPermissions: { autonomy: 'supervised', outcome: narrower('commands are asked about', AUTONOMOUS) },
  }),
  'permissions.disableBypassPermissionsMode': unrelated('it is about a mode of Claude Code'),
  'sandbox.enabled': isAlways(true, ALWAYS, OUTSIDE),
  'sandbox.failIfUnavailable': isAlways(true, 'what cannot be enforced is not run', 'sandbox.minimum'),
  'sandbox.allowUnsandboxedCommands': isAlways(false, ALWAYS, OUTSIDE),
  'sandbox.autoAllowBashIfSandboxed': isAlways(false, 'what is of medium or high risk is asked', AUTONOMOUS),
  'sandbox.excludedCommands[]': narrower(ALWAYS, OUTSIDE),
  ...Object.fromEntries(
    Object.entries(sandboxRows(bases.settings)).map(([name, row]) => [`sandbox.${name}`, row]),
  ),
  'env.*': variable,
});

/** Where Claude Code looks for the path of a rule. */
interface ClaudeBases {
  /** Of the settings file: the project, or `~/.claude`. */
  readonly settings: string;
  readonly cwd: string;
}

/**
 * Settings of a project lie in its `.claude`; those of the user in that of the home. The product goes by the name under
 * which it finds them, so that goes first; where the name says nothing, what it leads to.
 */
function basesOf({ file, home, workspace, lookup }: ImportPlace): ClaudeBases {
  const canonical = (path: string) => lookup.resolve(path).canonical;
  const cwd = canonical(workspace);
  const byName = dirname(file);
  const ofUser = canonical(`${home}/.claude`);
  for (const directory of [byName, canonical(byName), dirname(canonical(file))]) {
    if (canonical(directory) === ofUser) return { settings: ofUser, cwd };
    if (basename(directory) === '.claude') return { settings: canonical(dirname(directory)), cwd };
  }
  return { settings: cwd, cwd };
}

type List = 'allow' | 'ask' | 'deny';

const READING_TOOLS = ['Read', 'Glob', 'Grep', 'LS', 'NotebookRead'];
const WRITING_TOOLS = ['Edit', 'Write', 'MultiEdit', 'NotebookEdit', 'Update'];
/** Tools of which a denial without a path is one of all files: it holds for the sandbox of commands too. */
const ABOUT_EVERY_FILE = ['Read', 'Edit', 'Write', 'MultiEdit', 'Update'];

const NO_RULE = 'it is no rule of the form Tool(specifier)';
const ALLOWED_BEFOREHAND = narrower('what is of medium or high risk is asked about', 'sandbox-run approvals');
const OTHER_TOOL = unrelated('it is about another tool of Claude Code, or about all uses of one');
const AT_ANY_DEPTH = wider('only at the top of the workspace that name is protected', 'filesystem.protect');

/** A permission rule: `Tool`, which is about every use of the tool, or `Tool(specifier)`. */
const rule =
  (list: List, bases: ClaudeBases): Reader =>
  (part, draft) => {
    if (typeof part.value !== 'string') return undefined;
    const text = part.value;
    const [, tool, , inner] = /^([A-Za-z_][\w-]*|\*)(\(([\s\S]*)\))?$/.exec(text.trim()) ?? [];
    const specifier = inner === undefined || /^\**$/.test(inner) ? undefined : inner;
    const isAllowed = list === 'allow';
    if (tool === undefined) return isAllowed ? narrower(NO_RULE) : wider(NO_RULE, 'such a rule');
    if (tool === 'Bash' || tool === '*')
      return isAllowed ? allowRule(draft, text, specifier) : commandRule(draft, list, text, specifier);
    if (tool === 'WebFetch' || tool === 'WebSearch') {
      const [, host] = /^domain:(\S+)$/.exec(specifier ?? '') ?? [];
      if (tool === 'WebFetch' && host !== undefined && list !== 'ask') return draft.host(part, list, host);
      return list === 'deny' ? denyHosts(draft, `${tool} is denied as a whole`) : NO_HOSTS;
    }
    const reads = READING_TOOLS.includes(tool);
    if (!reads && !WRITING_TOOLS.includes(tool)) return OTHER_TOOL;
    // Without a path, or with `**`, a denial is about every file, and not only about the tool.
    if (specifier === undefined && (isAllowed || !ABOUT_EVERY_FILE.includes(tool))) return OTHER_TOOL;
    const { anyDepth, ...path } = pathOf(specifier ?? '//', bases);
    if (isAllowed && anyDepth) return as('the workspace, which can be used');
    const use = `${isAllowed ? 'allow' : 'deny'}${reads ? 'Read' : 'Write'}` as const;
    // `**` is every file, and no name.
    const isName = reads && anyDepth && !/^\**\/?$/.test(path.text);
    namePath(draft, use, part, { ...path, firm: true, asked: list === 'ask', anyDepth: isName });
    return anyDepth && !reads ? AT_ANY_DEPTH : 'noted';
  };

/** A path of a rule in plain form, and what it is relative to. A bare name is meant at any depth. */
function pathOf(specifier: string, { settings, cwd }: ClaudeBases) {
  if (specifier.startsWith('//')) return { text: specifier.slice(1), base: '/', anyDepth: false };
  if (specifier.startsWith('~')) return { text: specifier, base: cwd, anyDepth: false };
  if (specifier.startsWith('/')) return { text: `.${specifier}`, base: settings, anyDepth: false };
  const text = specifier.replace(/^\.\//, '');
  // As in .gitignore: without a slash but the last, it is a name and not a path.
  return { text, base: cwd, anyDepth: text === specifier && !text.replace(/\/$/, '').includes('/') };
}

/** Rules that match at least what a rule about commands matches. */
function commandRule(
  draft: Draft,
  verdict: 'ask' | 'deny',
  text: string,
  specifier: string | undefined,
): Outcome {
  const every = { rules: [{ program: '*' }], isBroader: false };
  const { rules, isBroader } = specifier === undefined ? every : rulesOfPattern(specifier);
  if (rules.length === 0) return wider('it names no program', 'commands.rules');
  const reason = `Claude Code: ${text}`;
  draft.policy.commands.rules.push(...rules.map((made) => ({ ...made, verdict, reason })));
  if (!isBroader) return as('commands.rules');
  return narrower('the rule that was made for it matches more commands', 'commands.rules');
}

/**
 * A rule that allows at most what the source allows: the words of a pattern, with any behind them where it ends with a `*` of its
 * own. Of other patterns none is made.
 */
function allowRule(draft: Draft, text: string, specifier: string | undefined): Outcome {
  const pattern = specifier?.trim() ?? '';
  const isPrefix = /(?::| )\*$/.test(pattern);
  const [program = '', ...words] = pattern.replace(/(?::| )\*$/, '').split(/\s+/);
  const isPlain = [program, ...words].every((word) => word !== '' && !/[*=]/.test(word));
  if (specifier === undefined || BEYOND_WORDS.test(pattern) || !isPlain || program.includes('/'))
    return ALLOWED_BEFOREHAND;
  draft.policy.commands.rules.push({
    ...{ program, words: isPrefix ? [...words, ANY_WORDS] : words, verdict: 'allow' },
    reason: `Claude Code: ${text}`,
  });
  return as('commands.rules');
}

/** From here on a pattern is about more than the words of one simple command. */
const BEYOND_WORDS = /["'\\$`|&;<>(){}#\n]/;

/**
 * A pattern of Claude Code (`git push *`, `npm run test:*`) as rules. There it is compared with the text of a command, and
 * `*` goes over blanks; here each word is. What is kept of it are words that every text has that it matches, in order. No
 * rules: it says nothing that one could be made of. `isBroader`: they may match more.
 */
function rulesOfPattern(pattern: string): {
  readonly rules: readonly Pick<RuleInFile, 'program' | 'words'>[];
  readonly isBroader: boolean;
} {
  const trimmed = pattern.trim().replace(/:\*$/, ' *');
  const beyond = trimmed.search(BEYOND_WORDS);
  const whole = beyond === -1 ? trimmed : trimmed.slice(0, beyond);
  const tokens = whole.split(/\s+/).filter((token) => token !== '');
  // The word that is cut through is not whole.
  if (beyond !== -1 && whole === whole.trimEnd()) tokens.pop();
  const from = tokens.findIndex((token) => !/^[A-Za-z_]\w*=/.test(token));
  const [first = '', ...rest] = from === -1 ? [] : tokens.slice(from);
  // Rules compare the last part of what is run.
  const program = ownPart(first).replace(/^.*\//s, '');
  if (program === '') return { rules: [], isBroader: false };
  const words = rest.map(ownPart).filter((word) => word !== '*');
  const isBroader =
    beyond !== -1 ||
    tokens.at(-1)?.endsWith('*') !== true ||
    rest.slice(0, -1).some((token) => token.includes('*')) ||
    first.includes('/');
  const rules: Pick<RuleInFile, 'program' | 'words'>[] = [{ program, words }];
  // It may stand for the program and words behind it.
  if (first.startsWith('*') && first !== '*') rules.push({ program: '*', words: [ownPart(first), ...words] });
  return { rules, isBroader };
}

/** Of a word with `*` the part that lies in one word: `http*evil` may go over several. */
function ownPart(token: string): string {
  const [head = '', ...others] = token.split('*');
  if (others.length === 0) return token;
  if (head !== '') return `${head}*`;
  const inner = others.find((part) => part !== '') ?? '';
  return others.length === 1 || inner === '' ? `*${inner}` : `*${inner}*`;
}
