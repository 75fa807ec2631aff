import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { UNLISTED, VERIFY } from '../../base/words.ts';
import type { NetworkRules } from '../../confine/plan/network-rules.ts';
import { type NetworkEntry, readEntry } from './entry.ts';
import { networkRules } from './rules.ts';

/** The most characters of an entry that a message repeats. */
const ENTRY_CHARACTERS = 80;

/** Says what is wrong with an entry, in a few words; `undefined`: nothing. */
export function problemOfEntry(text: string, kind: 'allow' | 'deny'): string | undefined {
  const shown = JSON.stringify(visibleLine(text, ENTRY_CHARACTERS));
  if (text.startsWith('@')) {
    if (PRESET_NAMES.includes(text)) return undefined;
    return `there is no preset ${shown}; known: ${PRESET_NAMES.join(', ')}`;
  }
  const read = readEntry(text, kind);
  return 'problem' in read ? `${shown}: ${read.problem}` : undefined;
}

/** What a policy says of a network that is listed. */
interface ListedNetwork {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly unlisted?: (typeof UNLISTED)[number];
  readonly verify?: (typeof VERIFY)[number];
}

/**
 * The rules that entries stand for. `hostsOf` says which hosts a tool is configured to use.
 * @throws {SandboxError} `policy.invalid`, with the key, the entry and what is allowed.
 */
export function readRules(
  { allow, deny, unlisted = 'deny', verify = 'none' }: ListedNetwork,
  hostsOf: (preset: PresetOfTool) => readonly string[],
): NetworkRules {
  const read = (texts: readonly string[], kind: 'allow' | 'deny') =>
    texts.flatMap((text) => {
      const problem = problemOfEntry(text, kind);
      if (problem !== undefined) throw new SandboxError('policy.invalid', `network.${kind}: ${problem}`);
      return entriesOf(text, kind, hostsOf);
    });
  return networkRules(read(allow, 'allow'), read(deny, 'deny'), { asks: unlisted === 'ask', verify });
}

/**
 * A preset's entries are told by its name. What a tool's settings name and is no host cannot be reached anyway; to deny it is
 * refused, as nobody knows what it stands for.
 */
function entriesOf(
  text: string,
  kind: 'allow' | 'deny',
  hostsOf: (preset: PresetOfTool) => readonly string[],
): readonly NetworkEntry[] {
  const texts = isPresetOfTool(text) ? hostsOf(text) : (PRESETS[text]?.map(({ entry }) => entry) ?? [text]);
  return texts.flatMap((one) => {
    const read = readEntry(one, kind);
    if ('problem' in read) {
      if (kind === 'allow') return [];
      throw new SandboxError('policy.invalid', `network.deny: ${text} cannot be denied: ${read.problem}`);
    }
    return [one === text ? read.entry : { ...read.entry, text: `${text} (${one})` }];
  });
}

/** A host that a preset opens, and why. */
interface PresetRow {
  readonly entry: string;
  readonly reason: string;
}

/** Hosts that belong together, by the name that stands in `network.allow`. To add one: a row here. */
export const PRESETS: Readonly<Record<string, readonly PresetRow[]>> = {
  /** No host at all: where there are no namespaces, only a supervisor gives commands loopback and Unix sockets of their own. */
  '@own': [],
  '@github': [
    { entry: 'github.com', reason: 'clone and push over https, release downloads' },
    { entry: 'github.com:22', reason: 'git over ssh' },
    { entry: 'api.github.com', reason: 'gh and other clients of the API' },
    { entry: '*.githubusercontent.com', reason: 'raw files, release assets, archives' },
    { entry: 'codeload.github.com', reason: 'archives of a commit, as npm and pip install them' },
  ],
  '@pypi': [
    { entry: 'pypi.org', reason: 'the index' },
    { entry: 'files.pythonhosted.org', reason: 'what the index points to' },
  ],
  '@crates': [
    { entry: 'index.crates.io', reason: 'the sparse index' },
    { entry: 'static.crates.io', reason: 'the crates' },
    { entry: 'crates.io', reason: 'the API, and downloads of older cargo' },
  ],
  '@go': [
    { entry: 'proxy.golang.org', reason: 'modules' },
    { entry: 'sum.golang.org', reason: 'their checksums' },
    { entry: 'storage.googleapis.com', reason: 'where the proxy sends for large modules and tool chains' },
  ],
};

/** Presets whose hosts stand in the settings of a tool, outside the sandbox: companies use mirrors. */
const PRESETS_OF_TOOLS = ['@npm', '@debian'] as const;
/** One of them. */
type PresetOfTool = (typeof PRESETS_OF_TOOLS)[number];

/** Programs that fetch packages from where a preset leads. To add one: its name. */
const FETCHING: Readonly<Record<string, readonly string[]>> = {
  '@npm': ['npm', 'npx', 'pnpm', 'pnpx', 'yarn', 'bun', 'bunx', 'corepack'],
  '@pypi': ['pip', 'pip3', 'pipx', 'uv', 'uvx', 'poetry', 'pdm', 'pipenv'],
  '@crates': ['cargo'],
  '@go': ['go'],
  '@debian': ['apt', 'apt-get', 'aptitude'],
};

/** The preset with which a program finds its packages, by what it calls itself ("npm install x"); `undefined`: none is known. */
export function presetOf(program: string): string | undefined {
  const [name = ''] = program.split(' ');
  return Object.keys(FETCHING).find((preset) => FETCHING[preset]?.includes(name));
}

/** All names that stand for hosts. */
const PRESET_NAMES: readonly string[] = [...Object.keys(PRESETS), ...PRESETS_OF_TOOLS];

/** Whether it is such a name. */
export function isPresetOfTool(entry: string): entry is PresetOfTool {
  return PRESETS_OF_TOOLS.some((name) => name === entry);
}
