#!/usr/bin/env node
// Compares the options of the table of programs (src/judge/programs/grammars) with what the programs of this machine say of
// themselves: --help, and the manual page where there is one. Prints what the table lacks, and what only the table has.
// What is missing in a closed grammar is refused or asked about; what is there too much may be of another version.
//
//   npm run programs:compare                 every program that has a grammar and is installed here
//   npm run programs:compare -- ls wc        only these
//   npm run programs:compare -- --draft rg   writes a grammar for a program that has none: its options are flags or values,
//                                            and what they do is left for you to say
//   npm run programs:compare -- --unsourced  only which grammars do not say what they were compared with; 1 if there are any
//
// The programs run without network, in an empty directory, with nothing on their standard input. Those that the table calls
// dangerous are not run, nor are others where the network cannot be taken away.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';
const GRAMMARS = join(ROOT, 'src/judge/programs/grammars');

/** The options that a text of help names, without dashes. */
export function optionsOf(text, singleDash = false) {
  const found = new Set();
  for (const line of text.split('\n')) {
    // `-a, --all  what it does`: what stands behind two blanks is prose.
    const [, head] = /^\s*(?:[·•*oO]\s+)?(-.*?)(?:\s{2,}[^-\s].*|\t.*)?$/.exec(line) ?? [];
    const isEntry = head !== undefined;
    if (isEntry && singleDash) addAll(found, head, /(?:^|[\s,|[/])--?([A-Za-z0-9][\w.-]*)/g);
    else if (isEntry)
      addAll(found, head, /(?:^|[\s,|[/])(?:-([A-Za-z0-9?#@])(?![\w-])|--([A-Za-z0-9][\w-]*))/g);
    // `[-abc] [-o FILE]`, in a line of usage.
    for (const [, letters = ''] of singleDash ? [] : line.matchAll(/\[-([A-Za-z0-9]+)(?=[\]\s])/g))
      for (const letter of letters) found.add(letter);
  }
  return found;
}

function addAll(found, text, pattern) {
  for (const match of text.matchAll(pattern)) found.add(match[1] ?? match[2]);
}

/** The table, as a module that this Node can load. */
async function loadTable() {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-compare-'));
  try {
    const outfile = join(directory, 'table.mjs');
    await build({
      absWorkingDir: ROOT,
      entryPoints: ['src/judge/index.ts'],
      // The data are found beside the source.
      define: { 'import.meta.url': JSON.stringify(pathToFileURL(GRAMMARS).href) },
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      logLevel: 'warning',
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Words that take the network away from the program behind them; `undefined`: nothing here can. */
function withoutNetwork() {
  return [
    ['unshare', '--net'],
    ['unshare', '--map-root-user', '--net'],
  ].find(([program, ...args]) => spawnSync(program, [...args, 'true']).status === 0);
}

/** What a program says, on both outputs; it gets two seconds. */
function told(prefix, words, cwd) {
  const [program, ...args] = [...prefix, 'timeout', '--kill-after=1', '2', ...words];
  const { stdout, stderr } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    env: { PATH, LC_ALL: 'C', HOME: cwd, MANWIDTH: '200' },
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 1 << 24,
  });
  return `${stdout}\n${stderr}`;
}

const isInstalled = (name) => PATH.split(':').some((directory) => existsSync(join(directory, name)));
const dashed = (name, { style }) => (name.length === 1 || style === 'single-dash' ? `-${name}` : `--${name}`);

/** What a program says of itself: its help, and its manual. */
function helpOf(name, prefix) {
  const cwd = mkdtempSync(join(tmpdir(), 'sandbox-run-compare-'));
  try {
    return [
      [name, '--help'],
      ['man', '-P', 'cat', name],
    ]
      .map((words) => told(prefix, words, cwd))
      .join('\n');
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

function compare(name, grammar, known, prefix) {
  const said = optionsOf(helpOf(name, prefix), grammar.style === 'single-dash');
  const list = (names) =>
    names
      .map((option) => dashed(option, grammar))
      .sort()
      .join(' ') || 'nothing';
  console.log(
    `${name}: made from ${grammar.source ?? 'what is not said'}${grammar.open === true ? ', open' : ''}`,
  );
  console.log(`  the table lacks ${list([...said].filter((option) => !known.has(option)))}`);
  console.log(`  only the table has ${list([...known].filter((option) => !said.has(option)))}`);
}

/** Writes a grammar out of what a program says. Open, as nobody has read what its options do. */
function draft(name, prefix) {
  const file = join(GRAMMARS, `${name}.options.json`);
  if (existsSync(file)) throw new Error(`${file} exists`);
  if (!isInstalled(name)) throw new Error(`${name} is not installed`);
  const help = helpOf(name, prefix);
  const [version = ''] = told(prefix, [name, '--version'], tmpdir()).trim().split('\n');
  // `--name=VALUE`, `--name <value>`, `-n NUM`, `-n, --name=VALUE`.
  const takesValue = (option) => {
    const escaped = option.replaceAll(/[^\w]/g, '\\$&');
    const dashes = option.length === 1 ? '-' : '--';
    return new RegExp(`(?<![\\w-])${dashes}${escaped}(?:, --[\\w-]+)?(?:=\\w|[= ]<| [A-Z]{2,})`).test(help);
  };
  const options = [...optionsOf(help)];
  const grammar = {
    source: version,
    open: true,
    flags: options.filter((option) => !takesValue(option)).join(' '),
    values: options.filter(takesValue).join(' '),
  };
  const listed = Object.fromEntries(Object.entries(grammar).filter(([, value]) => value !== ''));
  writeFileSync(file, `${JSON.stringify({ [name]: listed }, undefined, 2)}\n`);
  console.log(`${file}: say of each option what it does, and name it in a row: grammar: '${name}'`);
}

/** How many grammars say what they were compared with, and which do not. */
function sayUnsourced({ PROGRAM_ROWS, grammarOf }) {
  // Rows may share a grammar.
  const grammars = new Map();
  for (const row of PROGRAM_ROWS) {
    const grammar = grammarOf(row.behaviour());
    if (grammar !== undefined) grammars.set(grammar, `${grammars.get(grammar) ?? ''} ${row.names}`.trim());
  }
  const without = [...grammars].filter(([{ source }]) => source === undefined).map(([, names]) => names);
  console.log(
    `${grammars.size - without.length} of ${grammars.size} grammars have a source; without one: ${without.join('; ') || 'none'}`,
  );
  return without.length;
}

async function main(wanted) {
  const table = await loadTable();
  if (wanted.includes('--unsourced')) process.exit(sayUnsourced(table) === 0 ? 0 : 1);
  const prefix = withoutNetwork();
  if (prefix === undefined) {
    console.error(
      'Nothing is compared: the network cannot be taken away from programs here (unshare --net).',
    );
    process.exit(1);
  }
  if (wanted[0] === '--draft') {
    for (const name of wanted.slice(1)) draft(name, prefix);
    return;
  }
  for (const row of table.PROGRAM_ROWS) {
    const behaviour = row.behaviour();
    const grammar = table.grammarOf(behaviour);
    if (grammar === undefined || behaviour.danger !== undefined) continue;
    const known = new Set(table.optionTable(grammar).rules.keys());
    for (const name of row.names.split(' '))
      if ((wanted.length === 0 || wanted.includes(name)) && isInstalled(name))
        compare(name, grammar, known, prefix);
  }
  if (wanted.length === 0) sayUnsourced(table);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
