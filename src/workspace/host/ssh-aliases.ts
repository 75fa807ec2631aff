import { hostAndPort } from '../../base/host-and-port.ts';
import { orElse } from '../../base/or-else.ts';
import { readRegular } from './held-directory.ts';

const CONFIG_BYTES = 256 * 1024;
/** A host name that can be a policy entry: without tokens such as `%h`. */
const HOST_NAME = /^[\w.-]+$/;

/** What of a section commands get: nothing that runs, reads or opens something. By key, in small letters. */
const CARRIED: Readonly<Record<string, RegExp>> = {
  hostname: HOST_NAME,
  user: /^[\w.@+-]+$/,
  port: /^\d{1,5}$/,
};

/** A section of such a file, with its names and patterns. */
interface Section {
  readonly names: readonly string[];
  /** Keys in small letters. */
  readonly settings: readonly (readonly [key: string, value: string])[];
}

function sectionsOf(text: string): readonly Section[] {
  const sections: { names: readonly string[]; settings: (readonly [string, string])[] }[] = [
    { names: ['*'], settings: [] },
  ];
  for (const line of text.split('\n')) {
    const [, key = '', value = ''] = /^\s*(\w+)(?:\s*=\s*|\s+)(.*?)\s*$/.exec(line) ?? [];
    const name = key.toLowerCase();
    if (name === 'host') sections.push({ names: value.split(/\s+/), settings: [] });
    else if (name === 'match') sections.push({ names: [], settings: [] });
    else if (name !== '') sections.at(-1)?.settings.push([name, value.replace(/^"(.*)"$/, '$1')]);
  }
  return sections;
}

/** Where an alias leads by sections with plain names: as ssh, the first value holds. `undefined`: its name is none of a host. */
function targetOf(alias: string, sections: readonly Section[]): { host: string; port?: string } | undefined {
  const said = new Map(
    sections.flatMap(({ names, settings }) => (names.includes(alias) ? settings : [])).toReversed(),
  );
  const host = said.get('hostname') ?? alias;
  const port = said.get('port');
  if (!HOST_NAME.test(host)) return undefined;
  return { host, ...(port !== undefined && CARRIED.port?.test(port) ? { port } : {}) };
}

/**
 * The host and port behind an alias of the user's `~/.ssh/config`, for a message: only what sections with plain names say, as
 * nothing else is sure without ssh. `entry`: `host:port`; it stays as it is where no section has its host.
 */
export function behindAlias(entry: string, home: string): string {
  const [, alias = '', port] = /^([\w.-]+):(\d+)$/.exec(entry) ?? [];
  const content = orElse(() => readRegular(`${home}/.ssh/config`, CONFIG_BYTES), undefined);
  if (alias === '' || content === undefined) return entry;
  const target = targetOf(alias, sectionsOf(content.toString()));
  if (target === undefined) return entry;
  return hostAndPort(target.host, Number(port === '22' ? (target.port ?? port) : port));
}

/**
 * What commands get of the user's `~/.ssh/config`, so that ssh knows an alias there: of aliases that lead to a host that they may
 * reach its name, user and port; '': nothing.
 */
export function carriedAliases(text: string, reaches: (host: string, port: number) => boolean): string {
  const sections = sectionsOf(text);
  const isReached = (name: string) => {
    const target = targetOf(name, sections);
    return target !== undefined && reaches(target.host, Number(target.port ?? 22));
  };
  const carried = sections.flatMap(({ names, settings }) => {
    if (names.some((name) => name.startsWith('!'))) return [];
    const isForAll = names.includes('*');
    const kept = isForAll ? ['*'] : names.filter((name) => HOST_NAME.test(name) && isReached(name));
    const lines = settings
      .filter(([key, value]) => CARRIED[key]?.test(value) === true && !(isForAll && key === 'hostname'))
      .map(([key, value]) => `  ${key} ${value}\n`);
    return kept.length === 0 || lines.length === 0 ? [] : [`Host ${kept.join(' ')}\n${lines.join('')}`];
  });
  return carried.some((section) => !section.startsWith('Host *')) ? carried.join('') : '';
}
