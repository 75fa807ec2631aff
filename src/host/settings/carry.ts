import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { absoluteOr } from '../../util/absolute-path.ts';
import { looksSecret } from '../../util/secret-name.ts';
import { gitSettings } from '../git/user-settings.ts';
import { type CarriedSettings, SettingsCollector, type SettingsOwner } from './carried.ts';
import { FORMATS } from './formats.ts';
import {
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
  if (row === undefined || value === '' || row.values?.test(value) === false) return;
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
