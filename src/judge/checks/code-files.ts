import { dirname } from 'node:path';
import type { CheckContext } from './check.ts';
import { mayWrite } from './locations.ts';

/** Files whose content decides what a script does, as far as its text names them. */
export interface CodeFiles {
  /** Canonical paths, of files that commands can change; there or not. The scripts themselves are among them. */
  readonly files: readonly string[];
  /** What it may run besides, which nobody can know beforehand: as it stands there, or in a few words. */
  readonly unseen: readonly string[];
}

/** What a text names. */
interface Named {
  /** Files that it loads, from its directory or from where it runs: each possibility, there or not. */
  readonly loads: readonly string[];
  /** Packages of a directory that its tools look for upwards. */
  readonly packages?: readonly string[];
  readonly unseen: readonly string[];
}

/** More code than that no approval can be bound to. */
const MOST_FILES = 2_000;
/** Words of one text that may be files. */
const MOST_WORDS = 4_000;

/** Follows what scripts load: sourced files, required and imported modules, and whatever else they name that is a file. */
export function codeFrom(
  scripts: readonly string[],
  cwds: readonly string[],
  context: CheckContext,
): CodeFiles {
  const files = new Set<string>();
  const unseen = new Set<string>();
  const pending = [...scripts];
  const add = (path: string) => {
    const { kind, canonical } = context.paths.resolve(path);
    if (kind === 'directory' || files.has(canonical) || !mayWrite(canonical, context)) return;
    files.add(canonical);
    if (kind === 'other') pending.push(canonical);
  };
  for (const script of scripts) if (mayWrite(script, context)) files.add(script);
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (files.size > MOST_FILES)
      return { files: [...files], unseen: [...unseen, `more than ${MOST_FILES} files`] };
    const text = mayWrite(next, context) ? context.inner?.read(next) : undefined;
    if (text === undefined) continue;
    const { loads, packages = [], unseen: more } = namedIn(next, text);
    const directories = [dirname(next), ...cwds];
    for (const name of loads) for (const directory of directories) add(pathIn(directory, name));
    for (const name of wordsOf(text)) {
      for (const directory of directories) {
        const path = pathIn(directory, name);
        if (context.paths.resolve(path).kind === 'other') add(path);
      }
    }
    for (const one of packages)
      if (isInstalled(one, dirname(next), context)) unseen.add(`node_modules/${one}`);
    for (const one of more) unseen.add(one);
  }
  return { files: [...files], unseen: [...unseen] };
}

const pathIn = (directory: string, name: string) => (name.startsWith('/') ? name : `${directory}/${name}`);

/** All that could be the name of a file with a dot or a slash in it. */
function wordsOf(text: string): readonly string[] {
  const found = new Set(text.match(/[\w@+~.,=-]*[./][\w@+~./-]*\w/g) ?? []);
  return [...found].filter((word) => word.length < 256).slice(0, MOST_WORDS);
}

/** Packages that commands can change. */
function isInstalled(name: string, directory: string, context: CheckContext): boolean {
  for (let at = directory; mayWrite(at, context); at = dirname(at)) {
    const { kind } = context.paths.resolve(`${at}/node_modules/${name}`);
    if (kind !== 'missing') return true;
    if (at === '/') return false;
  }
  return false;
}

/** How the languages that are read name what they load. */
const LANGUAGES = {
  shell: {
    names: /\.(?:sh|bash|zsh|ksh|env)$/,
    interpreters: /\b(?:ba|da|z|k|mk|a)?sh\b/,
    named: namedInShell,
  },
  script: {
    names: /\.[cm]?[jt]sx?$/,
    interpreters: /\b(?:node|deno|bun|tsx|ts-node)\b/,
    named: namedInScript,
  },
  python: { names: /\.pyw?$/, interpreters: /\bpython[\d.]*\b/, named: namedInPython },
} as const;

/** Languages that are not parsed: only their words are looked at. */
const FOREIGN = /\.(?:rb|pl|pm|php|lua|tcl|r|jl|exs?|groovy|scala|kts?|raku)$/i;

function namedIn(path: string, text: string): Named {
  const [, shebang] = /^#!(.*)/.exec(text) ?? [];
  const all = Object.values(LANGUAGES);
  const [language] = all.filter(({ names, interpreters }) =>
    shebang === undefined ? names.test(path) : interpreters.test(shebang),
  );
  if (language !== undefined) return language.named(text);
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (shebang !== undefined || FOREIGN.test(path)) return { loads: [], unseen: [`what ${name} loads`] };
  // Which one it is only its interpreter knows.
  const found = all.map(({ named }) => named(text));
  return {
    loads: found.flatMap(({ loads }) => loads),
    packages: found.flatMap(({ packages = [] }) => packages),
    unseen: found.flatMap(({ unseen }) => unseen),
  };
}

/** The directory of the script itself. */
const OWN_DIRECTORY = /dirname\s+(?:--\s+)?"?\$\{?(?:0|BASH_SOURCE)|\$\{?(?:BASH_SOURCE|0%)/;

function namedInShell(text: string): Named {
  const loads: string[] = [];
  const unseen: string[] = [];
  const lines = text
    .replace(/\\\n/g, ' ')
    .matchAll(
      /(?:^|[\s;&|({`])(?:source|\.|exec|(?:ba|da|z|k)?sh|node|python[\d.]*)[ \t]+(?:-[\w-]+[ \t]+)*([^;&|\n]+)/g,
    );
  for (const [, rest = ''] of lines) {
    const [word = ''] = /^(?:"[^"$`]*"|'[^']*'|[^\s"'$`]+(?=\s|$))/.exec(rest) ?? [];
    if (word !== '') loads.push(word.replace(/^["']|["']$/g, ''));
    else if (/[$`]/.test(rest)) {
      const [tail] = /[\w.-]+(?:\/[\w.-]+)*(?=["')\s]*$)/.exec(rest) ?? [];
      if (tail !== undefined) loads.push(tail);
      if (tail === undefined || !OWN_DIRECTORY.test(rest)) unseen.push(rest.trim());
    }
  }
  for (const [, code] of text.matchAll(/(?:^|[\s;&|({`])(eval\b[^\n]*)/g))
    unseen.push(code?.trim() ?? 'eval');
  if (/\|\s*(?:ba|da|z|k)?sh\b/.test(text)) unseen.push('what is piped into a shell there');
  return { loads, unseen };
}

/** Endings that a module's file may have. All are checked, because a file that appears later may be loaded instead. */
const ENDINGS = [
  '',
  '.js',
  '.mjs',
  '.cjs',
  '.json',
  '.ts',
  '.mts',
  '.tsx',
  '/package.json',
  '/index.js',
  '/index.ts',
];

function namedInScript(text: string): Named {
  const wanted = text.matchAll(
    /(?:\b(?:require|import)(?:\.resolve)?\s*\(\s*|\bfrom\s*|\bimport\s*)(["'`])([^"'`\n]+)\1/g,
  );
  const names = [...wanted].map(([, , name = '']) => name);
  const isPath = (name: string) => /^(?:\.|\/)/.test(name);
  const packages = names
    .filter((name) => !isPath(name) && !/^node:/.test(name))
    .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
  const open = text.match(
    /\b(?:require|import)\s*\(\s*(?!["'])[^)\n]*\)?|\beval\s*\([^\n]*|\bnew Function\b[^\n]*|\bcreateRequire\b|\bModule\._load\b|["'](?:node:)?(?:vm|child_process)["']/g,
  );
  return {
    loads: names.filter(isPath).flatMap((name) => ENDINGS.map((ending) => `${name}${ending}`)),
    packages,
    unseen: open ?? [],
  };
}

function namedInPython(text: string): Named {
  const modules: string[] = [];
  for (const [, list = ''] of text.matchAll(/^[ \t]*import[ \t]+([\w., \t]+)/gm))
    modules.push(...list.split(',').map((one) => one.trim().split(/\s/)[0] ?? ''));
  for (const [, from = '', list = ''] of text.matchAll(
    /^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+\(?([\w, \t\n]+)/gm,
  )) {
    const name = from.replace(/^\.+/, '');
    modules.push(name, ...list.split(',').map((one) => `${name}.${one.trim().split(/\s/)[0]}`));
  }
  const paths = modules.map((name) => name.replace(/^\.|\.$/g, '').replaceAll('.', '/')).filter(Boolean);
  const all = paths.flatMap((path) => {
    const parts = path.split('/');
    return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
  });
  const open = text.match(
    /\bimportlib\b[^\n]*|\b__import__\b[^\n]*|\b(?:exec|eval|execfile)\s*\([^\n]*|\brunpy\b|\bsys\.path\b[^\n]*|\bsubprocess\b|\bos\.system\b[^\n]*/g,
  );
  return {
    loads: [...new Set(all)].flatMap((path) => [`${path}.py`, `${path}/__init__.py`]),
    unseen: open ?? [],
  };
}
