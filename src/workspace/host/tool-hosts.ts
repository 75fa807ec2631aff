import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOr } from '../../base/errors/shortage.ts';
import type { Environment } from './surroundings.ts';

/** Where npm fetches from unless it is told otherwise. */
const NPM_REGISTRY = 'https://registry.npmjs.org/';
/** A registry for all packages or those of a scope. */
const NPM_KEY = /^\s*(?:@[^\s:=]+:)?registry\s*=\s*["']?(?<url>[^\s"']+)/gim;
/** A line of sources.list, or a field of a .sources file. */
const APT_LINE = /^\s*(?:deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?|URIs:\s*)(?<urls>.*)$/gim;

/** Directories and variables in which tools are configured. */
interface ToolPlaces {
  readonly home: string;
  readonly etc: string;
  readonly environment: Environment;
}

/**
 * The hosts that a tool of this machine is configured to use, as entries of `network.allow`. Nothing in a workspace is
 * looked at: commands can write there.
 */
export function hostsOfTool(preset: '@npm' | '@debian', places: ToolPlaces): readonly string[] {
  const urls = preset === '@npm' ? npmRegistries(places) : aptSources(places);
  return [...new Set(urls.flatMap(entryOf))];
}

function npmRegistries({ home, etc, environment }: ToolPlaces): readonly string[] {
  // npm sets the first for what it runs, such as `npx sandbox-run`, also from an .npmrc of the project.
  const isRunByNpm = environment.npm_execpath !== undefined || environment.npm_command !== undefined;
  const variable =
    (isRunByNpm ? undefined : environment.npm_config_registry) ?? environment.NPM_CONFIG_REGISTRY;
  const files = [join(home, '.npmrc'), join(etc, 'npmrc')].flatMap((path) => matches(path, NPM_KEY, 'url'));
  const named = [...(variable === undefined ? [] : [variable]), ...files];
  return named.length === 0 ? [NPM_REGISTRY] : named;
}

function aptSources({ etc }: ToolPlaces): readonly string[] {
  const directory = join(etc, 'apt/sources.list.d');
  const files = [join(etc, 'apt/sources.list'), ...listed(directory).map((name) => join(directory, name))];
  return files
    .flatMap((path) => matches(path, APT_LINE, 'urls'))
    .flatMap((line) => line.split(/\s+/))
    .filter((word) => /^https?:/i.test(word));
}

/** `https://mirror.example.org:8443/x` is `mirror.example.org:8443`. */
function entryOf(url: string): readonly string[] {
  try {
    const { protocol, hostname, port } = new URL(url);
    if (hostname === '' || !/^https?:$/.test(protocol)) return [];
    return [`${hostname}:${port === '' ? (protocol === 'https:' ? '443' : '80') : port}`];
  } catch {
    return [];
  }
}

function matches(path: string, pattern: RegExp, group: string): readonly string[] {
  return [...textOf(path).matchAll(pattern)].map((match) => match.groups?.[group] ?? '');
}

/** The text of a file; empty if it cannot be read, so that no host is allowed for it. */
function textOf(path: string): string {
  return readOr(() => readFileSync(path, 'utf8'), '');
}

function listed(directory: string): readonly string[] {
  return readOr(() => readdirSync(directory).filter((name) => /\.(?:list|sources)$/.test(name)), []);
}
