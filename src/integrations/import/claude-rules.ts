import type { Word } from './access-words.ts';
import { type ClaudeBases, claudePath, READING_TOOLS, readClaudeRule, WRITING_TOOLS } from './claude-rule.ts';
import { rulesOfPattern } from './command-rules.ts';
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
