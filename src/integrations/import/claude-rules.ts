import type { RuleInFile } from '../../model/policy-keys.ts';
import type { Word } from './access-words.ts';
import { type ClaudeBases, claudePath, READING_TOOLS, readClaudeRule, WRITING_TOOLS } from './claude-rule.ts';
import { as, type Draft, loss, type Outcome } from './draft.ts';
import type { Leaf } from './place.ts';

type List = 'allow' | 'ask' | 'deny';
/** Paths that the rules name. */
export type Words = Record<'allowRead' | 'allowWrite' | 'denyRead' | 'denyWrite', Word[]>;

/** Tools of which a denial without a path is one of all files: it holds for the sandbox of commands too. */
const ABOUT_EVERY_FILE: ReadonlySet<string> = new Set(['Read', 'Edit', 'Write', 'MultiEdit', 'Update']);

/** What a rule is translated to; `undefined`: known once all paths are known. */
export function translateRule(
  draft: Draft,
  words: Words,
  list: List,
  leaf: Leaf,
  text: string,
  bases: ClaudeBases,
): Outcome | undefined {
  const rule = readClaudeRule(text);
  if (rule === undefined) return unreadable(list);
  const { tool, specifier } = rule;
  if (tool === 'Bash' || tool === '*') return commandRule(draft, list, text, specifier);
  if (tool === 'WebFetch' || tool === 'WebSearch') return webRule(list);
  const reads = READING_TOOLS.has(tool);
  if (!reads && !WRITING_TOOLS.has(tool)) return OTHER_TOOL;
  // Without a path, or with `**`, a denial is about every file, and not only about the tool.
  if (specifier === undefined && (list === 'allow' || !ABOUT_EVERY_FILE.has(tool))) return OTHER_TOOL;
  const path =
    specifier === undefined ? { text: '/', base: '/', anyDepth: false } : claudePath(specifier, bases);
  const word: Word = { ...leaf, text: path.text, base: path.base, firm: true };
  if (list === 'allow') {
    if (path.anyDepth) return as('the workspace, which can be used');
    words[reads ? 'allowRead' : 'allowWrite'].push(word);
    return undefined;
  }
  const denial: Word = list === 'ask' ? { ...word, asked: true } : word;
  if (reads) {
    words.denyRead.push(denial);
    return undefined;
  }
  words.denyWrite.push(denial);
  return path.anyDepth
    ? loss(
        'wider',
        'a name without a directory is meant at any depth there, and only at the top of the workspace it is protected here',
        'name the other places in filesystem.protect',
      )
    : undefined;
}

const OTHER_TOOL = loss(
  'none',
  'it is about another tool of Claude Code, or about all uses of one, and not about commands',
  'leave it in Claude Code',
);

function unreadable(list: List): Outcome {
  return list === 'allow'
    ? loss('narrower', 'it is no rule of the form Tool(specifier)', 'correct it and import again')
    : loss('wider', 'it is no rule of the form Tool(specifier)', 'correct it and import again');
}

function webRule(list: List): Outcome {
  if (list === 'deny') return as('network.mode = "off"');
  return loss(
    'narrower',
    'hosts cannot be allowed or asked about one by one; the network is off',
    'leave it off, or set network.mode = "open" if commands may reach every host',
  );
}

function commandRule(draft: Draft, list: List, text: string, specifier: string | undefined): Outcome {
  if (list === 'allow')
    return loss(
      'narrower',
      'nothing can be allowed beforehand: what is of medium or high risk is asked',
      'approve it once for always (sandbox-run approvals), or set security.autonomy = "autonomous"',
    );
  const found =
    specifier === undefined ? { rules: [{ program: '*' }], isBroader: false } : rulesOfPattern(specifier);
  if (found === undefined)
    return loss(
      'wider',
      'it names no program that a rule could be about',
      'write a rule into commands.rules',
    );
  for (const rule of found.rules)
    draft.rules.push({ ...rule, verdict: list, reason: `Claude Code: ${text}` });
  if (!found.isBroader) return as('commands.rules');
  return loss(
    'narrower',
    'rules here compare program and words; the one that was made for it matches more commands',
    'make the rule in commands.rules narrower if that is too much',
  );
}

/** Rules that match at least what a pattern of commands matches. */
interface PatternRules {
  readonly rules: readonly Pick<RuleInFile, 'program' | 'words'>[];
  /** They may match more. */
  readonly isBroader: boolean;
}

/** From here on a pattern is about more than the words of one simple command. */
const BEYOND_WORDS = /["'\\$`|&;<>(){}#\n]/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/**
 * A pattern of Claude Code (`git push *`, `npm run test:*`) as rules. There it is compared with the text of a command, and
 * `*` goes over blanks; here each word is. What is kept of it are words that every text has that it matches, in order.
 * `undefined`: it says nothing that a rule could be made of.
 */
function rulesOfPattern(pattern: string): PatternRules | undefined {
  const trimmed = pattern.trim().replace(/:\*$/, ' *');
  const beyond = trimmed.search(BEYOND_WORDS);
  const isCut = beyond !== -1;
  const tokens = (isCut ? trimmed.slice(0, beyond) : trimmed).split(/\s+/).filter((token) => token !== '');
  // The word that was cut through is not whole.
  if (isCut && !/\s$/.test(trimmed.slice(0, beyond))) tokens.pop();
  while (tokens[0] !== undefined && ASSIGNMENT.test(tokens[0])) tokens.shift();
  const [first, ...rest] = tokens;
  if (first === undefined) return undefined;
  const words = rest.map(ownPart).filter((word) => word !== '*');
  const endsOpen = tokens.at(-1)?.endsWith('*') === true;
  const isBroader =
    isCut || !endsOpen || rest.slice(0, -1).some((token) => token.includes('*')) || first.includes('/');
  const program = programOf(first);
  if (program === undefined) return undefined;
  // It may stand for the program and words behind it.
  const more =
    first.startsWith('*') && first !== '*' ? [{ program: '*', words: [ownPart(first), ...words] }] : [];
  return { rules: [{ program, words }, ...more], isBroader };
}

/** Of a word with `*` the part that lies in one word: `http*evil` may go over several. */
function ownPart(token: string): string {
  const parts = token.split('*');
  if (parts.length === 1) return token;
  const [head = ''] = parts;
  if (head !== '') return `${head}*`;
  const tail = parts.at(-1) ?? '';
  if (parts.length === 2) return tail === '' ? '*' : `*${tail}`;
  const inner = parts.slice(1).find((part) => part !== '');
  return inner === undefined ? '*' : `*${inner}*`;
}

/** Rules compare the last part of what is run. */
function programOf(token: string): string | undefined {
  const part = ownPart(token);
  const name = part.slice(part.lastIndexOf('/') + 1);
  return name === '' ? undefined : name;
}
