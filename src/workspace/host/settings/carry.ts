import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { TomlTable, TomlValue } from 'smol-toml';
import { absoluteOr } from '../../../base/absolute-path.ts';
import { looksSecret } from '../../../base/secret-name.ts';
import { gitSettings } from '../git/user-settings.ts';
import { carriedAliases } from '../ssh-aliases.ts';
import { type CarriedSettings, SettingsCollector, type SettingsOwner } from './carried.ts';
import {
  type FormatName,
  SETTING_VARIABLES,
  SETTINGS_LEFT_OUT,
  SETTINGS_TOOLS,
  type SettingRow,
  type SettingsPlace,
  type SettingsTool,
} from './table.ts';

/** Nothing is carried. */
export const NO_SETTINGS: CarriedSettings = { files: [], variables: {}, readable: [], remarks: [] };

const TOOLS = SETTINGS_TOOLS.map((tool) => ({ ...tool, rowOf: rowFinder(tool.rows) }));

/** Finds the row of a key: of those that name it, else of those that fit it. */
function rowFinder(all: readonly SettingRow[]): (key: string) => SettingRow | undefined {
  const exact = new Map(all.filter(({ key }) => !key.includes('*')).map((row) => [row.key, row]));
  const patterns = all
    .filter(({ key }) => key.includes('*'))
    .map((row) => ({
      row,
      matches: new RegExp(`^${row.key.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.+')}$`, 's'),
    }));
  return (key) => exact.get(key) ?? patterns.find(({ matches }) => matches.test(key))?.row;
}

const rowOfVariable = rowFinder(SETTING_VARIABLES);

/**
 * What commands with a private home get of the settings of the user's tools. Files are read, nothing is run.
 * @throws {SandboxError} `launch.failed` for a shortage: what cannot be read for now is not missing.
 */
export async function carrySettings(owner: SettingsOwner): Promise<CarriedSettings> {
  const into = new SettingsCollector(owner);
  gitSettings(into);
  sshSettings(into);
  const root = rootsOf(owner);
  for (const tool of TOOLS) await carryFiles(tool, root, into);
  for (const name of owner.variables) {
    const value = owner.environment[name];
    if (value !== undefined && !value.includes('\ufffd')) carryVariable(name, value, into);
  }
  for (const { path, tool, as } of owner.hasNetwork ? SETTINGS_LEFT_OUT : []) {
    if (!existsSync(join(owner.home, path))) continue;
    if (as === 'credential') into.leaveOutCredential(`~/${path}`);
    else into.say(`~/${path} stays outside: for commands ${tool} may fetch from elsewhere than for you`);
  }
  return into.carried();
}

/** The names by which the user calls hosts that commands can reach. */
function sshSettings(into: SettingsCollector): void {
  const { home, hasNetwork, reaches } = into.owner;
  const path = join(home, '.ssh/config');
  if (!hasNetwork || into.owner.isGranted(path)) return;
  const content = carriedAliases(into.readText(path) ?? '', reaches);
  if (content !== '') into.files.push({ path: '.ssh/config', content });
}

type ToolWithRows = SettingsTool & { readonly rowOf: (key: string) => SettingRow | undefined };

function rootsOf({
  home,
  environment,
  machine,
}: SettingsOwner): Readonly<Record<SettingsPlace['root'], string>> {
  return {
    home,
    machine,
    config: absoluteOr(environment.XDG_CONFIG_HOME, join(home, '.config')),
    cargo: absoluteOr(environment.CARGO_HOME, join(home, '.cargo')),
  };
}

async function carryFiles(
  tool: ToolWithRows,
  roots: Readonly<Record<SettingsPlace['root'], string>>,
  into: SettingsCollector,
): Promise<void> {
  const { environment } = into.owner;
  const paths = tool.places.flatMap(({ root, path, variable }) => {
    const named =
      variable === undefined ? undefined : (environment[variable] ?? environment[variable.toUpperCase()]);
    if (named !== undefined && isAbsolute(named)) return [named];
    return path === '' ? [] : [join(roots[root], path)];
  });
  // So pip is told that it has no files.
  const used = paths.includes('/dev/null') && tool.format === 'pip' ? [] : paths;
  const found = used.flatMap((path) => {
    const text = into.readText(path);
    return text === undefined || text === '' ? [] : [{ path, text }];
  });
  if (found.length === 0) return;
  const names = found.map(({ path }) => into.nameOf(path)).join(' and ');
  const decide = (key: string, value: string, index: number): string | undefined => {
    const row = tool.rowOf(key);
    if (row === undefined) return undefined;
    const where = `${key} in ${into.nameOf(found[index]?.path ?? '')}`;
    const expanded = tool.format === 'toml' ? value : withVariables(value, environment);
    if (expanded === 'secret') {
      into.leaveOutCredential(where);
      return undefined;
    }
    if (row.values?.test(expanded) === false) {
      into.say(`${where} stays outside, as it is no plain value: commands run without it`);
      return undefined;
    }
    // An escape could hide what the value is.
    if (tool.format !== 'toml' && expanded.includes('\\')) {
      into.say(`${where} is written in a way that is not understood here: commands run without it`);
      return undefined;
    }
    return into.value(row.as, expanded, where);
  };
  const content = await FORMATS[tool.format](
    found.map(({ text }) => text),
    decide,
  );
  if (content === undefined)
    into.say(
      `${names} is not understood here: for commands ${tool.tool} may fetch from elsewhere than for you`,
    );
  else if (content !== '') into.files.push({ path: tool.into, content });
}

/**
 * `${NAME}` as npm and yarn have it. What a secret is made of is one; what is not set stays as it is, as it does for npm.
 */
function withVariables(value: string, environment: SettingsOwner['environment']): string | 'secret' {
  let isSecret = false;
  const expanded = value.replace(
    /\$\{([A-Za-z_]\w*)(?:\?|:?-([^}]*))?\}/g,
    (all, name: string, otherwise?: string) => {
      const found = environment[name];
      if (found === undefined) return otherwise ?? all;
      if (looksSecret(name)) isSecret = true;
      return found;
    },
  );
  return isSecret ? 'secret' : expanded;
}

function carryVariable(name: string, value: string, into: SettingsCollector): void {
  const row = rowOfVariable(name) ?? rowOfTool(name);
  if (row === undefined || value === '') return;
  if (row.values?.test(value) === false) {
    if (row.as === 'choice')
      into.say(`${name} stays outside, as it says more than plain options: commands run without it`);
    return;
  }
  const carried = into.value(row.as, value, name);
  if (carried !== undefined) into.variables[name] = carried;
}

/** `NPM_CONFIG_STRICT_SSL` is `strict-ssl`. */
function rowOfTool(name: string): SettingRow | undefined {
  for (const tool of TOOLS) {
    const key = tool.variables?.exec(name)?.[1];
    if (key === undefined) continue;
    const lower = key.toLowerCase();
    const row = tool.rowOf(lower.replace(/(?!^)_/g, '-')) ?? tool.rowOf(lower.replaceAll('_', ''));
    if (row !== undefined) return row;
  }
  return undefined;
}

/** What is made of a setting of the file at `index`: its value for commands, or `undefined`: it is left out. */
type Decide = (key: string, value: string, index: number) => string | undefined;

/**
 * What `decide` leaves of files of one tool, later ones winning: what stays, stays as it was written. `undefined`: one of
 * them is not what the tool reads, or says something in a way that is not understood here.
 */
type Filter = (texts: readonly string[], decide: Decide) => string | undefined | Promise<string | undefined>;

const FORMATS: Readonly<Record<FormatName, Filter>> = {
  npmrc: (texts, decide) => byLines(texts, npmLine, decide),
  yarnrc: (texts, decide) => byLines(texts, yarnLine, decide),
  assignments: (texts, decide) => byLines(texts, assignment, decide),
  pip: filterSections,
  yaml: (texts, decide) => filterYaml(texts.join('\n'), decide),
  toml: filterToml,
};

const BYTE_ORDER_MARK = /^\ufeff/;

/** A line in parts: `before`, the value, `after`. */
interface SettingLine {
  readonly key: string;
  readonly before: string;
  readonly value: string;
  readonly after: string;
}

/** `'end'`: what follows means something else. */
type ReadLine = (line: string) => SettingLine | 'nothing' | 'end';

function byLines(texts: readonly string[], read: ReadLine, decide: Decide): string {
  const kept: string[] = [];
  for (const [index, text] of texts.entries()) {
    for (const line of text.replace(BYTE_ORDER_MARK, '').split(/\r?\n/)) {
      const setting = read(line);
      if (setting === 'end') break;
      if (setting === 'nothing') continue;
      const value = decide(setting.key, setting.value, index);
      if (value !== undefined) kept.push(`${setting.before}${value}${setting.after}\n`);
    }
  }
  return kept.join('');
}

/** A value in quotes, or up to a comment. */
const QUOTED = /^(\s*["']?)(.*?)(["']?\s*)$/s;

function settingLine(key: string, head: string, rest: string): SettingLine {
  const [, open = '', value = '', close = ''] = QUOTED.exec(rest) ?? [];
  return { key, before: `${head}${open}`, value, after: close };
}

/** Reads a line like npm's parser, the library `ini`. A key alone means true; npm ignores what is in a section. */
function npmLine(line: string): SettingLine | 'nothing' | 'end' {
  if (/^\s*(?:[;#]|$)/.test(line)) return 'nothing';
  if (/^\s*\[[^\]]*\]\s*$/.test(line)) return 'end';
  const [, head = '', written = '', rest] = /^(\s*([^=]*[^=\s])\s*(?:=|$))(.*)$/s.exec(line) ?? [];
  if (written === '') return 'nothing';
  const key = written
    .replace(/\[\]$/, '')
    .replace(/^["'](.*)["']$/, '$1')
    .toLowerCase();
  if (!head.endsWith('=')) return { key, before: `${head} = `, value: 'true', after: '' };
  return settingLine(key, head, rest ?? '');
}

/** `registry "https://…"`, as in a lock file of yarn. */
function yarnLine(line: string): SettingLine | 'nothing' {
  const [, head = '', written = '', rest = ''] =
    /^(("[^"]+"|[^\s"#:-][^\s":]*)(?::\s+|\s+|:$))(.*)$/s.exec(line) ?? [];
  if (written === '') return 'nothing';
  return settingLine(written.replaceAll('"', '').toLowerCase(), head, rest);
}

function assignment(line: string): SettingLine | 'nothing' {
  const [, head = '', key = '', value = ''] = /^(([A-Z][A-Z0-9_]*)=)(.*)$/s.exec(line) ?? [];
  return key === '' ? 'nothing' : { key, before: head, value, after: '' };
}

/** As Python's configparser has it: it refuses what is there twice, so that several files become one. */
function filterSections(texts: readonly string[], decide: Decide): string | undefined {
  const sections = new Map<string, Map<string, string>>();
  for (const [index, text] of texts.entries()) {
    let section: string | undefined;
    let name: string | undefined;
    const settings = new Map<string, Map<string, string[]>>();
    for (const line of text.replace(BYTE_ORDER_MARK, '').split(/\r?\n/)) {
      if (/^\s*(?:[#;]|$)/.test(line)) continue;
      const continued =
        section === undefined || name === undefined ? undefined : settings.get(section)?.get(name);
      if (/^\s/.test(line) && continued !== undefined) {
        continued.push(line.trim());
        continue;
      }
      const header = /^\[([^\]]+)\]/.exec(line)?.[1];
      if (header !== undefined) {
        section = header;
        name = undefined;
        if (!settings.has(header)) settings.set(header, new Map());
        continue;
      }
      const [, key, value = ''] = /^\s*([^=:\s][^=:]*?)\s*(?:[=:]\s*(.*?)\s*)?$/.exec(line) ?? [];
      if (section === undefined || key === undefined) return undefined;
      name = key.toLowerCase();
      settings.get(section)?.set(name, [value]);
    }
    for (const [inSection, all] of settings) {
      const kept = sections.get(inSection) ?? new Map<string, string>();
      for (const [key, lines] of all) {
        const value = decide(key.replaceAll('_', '-').replace(/^--/, ''), lines.join('\n').trim(), index);
        if (value !== undefined) kept.set(key, value);
      }
      if (kept.size > 0) sections.set(inSection, kept);
    }
  }
  return [...sections]
    .map(
      ([section, settings]) =>
        `[${section}]\n${[...settings].map(([key, value]) => `${key} = ${value.replaceAll('\n', '\n    ')}\n`).join('')}`,
    )
    .join('');
}

/**
 * Block mappings and sequences of scalars, as people write settings in YAML. What is written in another way is left out
 * where it is not asked for; where it is asked for, the file is not understood.
 */
function filterYaml(text: string, decide: Decide): string | undefined {
  /** Lines, and the levels that hold them. */
  const kept: string[] = [];
  const around: { readonly indent: number; readonly key: string; readonly line: string; written: boolean }[] =
    [];
  const keep = (line: string) => {
    for (const level of around) {
      if (!level.written) kept.push(`${level.line}\n`);
      level.written = true;
    }
    kept.push(`${line}\n`);
  };
  const isStrange = (value: string) => /^[{[&*!|>%@`]/.test(value) && value !== '[]' && value !== '{}';
  let isUnderstood = true;
  for (const line of text.replace(BYTE_ORDER_MARK, '').split(/\r?\n/)) {
    if (/^\s*(?:#|$)|^---\s*$/.test(line)) continue;
    const indent = line.search(/\S/);
    const isItem = /^\s*-\s/.test(line);
    while (around.length > 0 && (around.at(-1)?.indent ?? 0) >= indent + (isItem ? 1 : 0)) around.pop();
    const path = around.map(({ key }) => key);
    if (isItem) {
      const [, head = '', value = '', end = ''] = /^(\s*-\s+["']?)(.*?)(["']?(?:\s+#.*)?)$/.exec(line) ?? [];
      const decided = decide(path.join('.'), value, 0);
      if (decided !== undefined && isStrange(value)) isUnderstood = false;
      if (decided !== undefined) keep(`${head}${decided}${end}`);
      continue;
    }
    const [, head = '', written = '', space = '', value = '', end = ''] =
      /^(\s*("[^"]+"|'[^']+'|[^\s#:"'][^:#]*):)(\s*["']?)(.*?)(["']?(?:\s+#.*)?\s*)$/.exec(line) ?? [];
    if (written === '') {
      isUnderstood = isUnderstood && indent > 0;
      continue;
    }
    const key = written.replace(/^["'](.*)["']$/, '$1').toLowerCase();
    if (value === '') {
      around.push({ indent, key, line, written: false });
      continue;
    }
    const decided = decide([...path, key].join('.'), value, 0);
    if (decided === undefined) continue;
    if (isStrange(value)) isUnderstood = false;
    keep(`${head}${space}${decided}${end}`);
  }
  return isUnderstood ? kept.join('') : undefined;
}

/** What `decide` leaves of files in TOML, later ones winning. */
async function filterToml(texts: readonly string[], decide: Decide): Promise<string | undefined> {
  // Few users have such files.
  const { parse, stringify } = await import('smol-toml');
  let all: TomlTable = {};
  try {
    for (const [index, text] of texts.entries())
      all = merged(
        all,
        filterTable(parse(text), '', (key, value) => decide(key, value, index)),
      );
  } catch {
    return undefined;
  }
  return Object.keys(all).length === 0 ? '' : `${stringify(all)}\n`;
}

type DecideHere = (key: string, value: string) => string | undefined;

function filterTable(table: TomlTable, around: string, decide: DecideHere): TomlTable {
  const kept: TomlTable = {};
  for (const [key, value] of Object.entries(table)) {
    const filtered = filterValue(value, around === '' ? key : `${around}.${key}`, decide);
    if (filtered !== undefined) kept[key] = filtered;
  }
  return kept;
}

function filterValue(value: TomlValue, path: string, decide: DecideHere): TomlValue | undefined {
  if (typeof value === 'string') return decide(path.toLowerCase(), value);
  if (Array.isArray(value)) {
    const kept = value.flatMap((one) => filterValue(one, path, decide) ?? []);
    return kept.length === 0 ? undefined : kept;
  }
  if (typeof value === 'object' && !(value instanceof Date)) {
    const kept = filterTable(value, path, decide);
    return Object.keys(kept).length === 0 ? undefined : kept;
  }
  return decide(path.toLowerCase(), String(value)) === undefined ? undefined : value;
}

/** Tables one by one; of lists, those of the later file come first, as uv and cargo have it. */
function merged(one: TomlTable, other: TomlTable): TomlTable {
  const both: TomlTable = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const before = both[key];
    if (isTable(before) && isTable(value)) both[key] = merged(before, value);
    else if (Array.isArray(before) && Array.isArray(value)) both[key] = [...value, ...before];
    else both[key] = value;
  }
  return both;
}

const isTable = (value: TomlValue | undefined): value is TomlTable =>
  typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date);
