/** A host that a preset opens, and why. */
interface PresetRow {
  readonly entry: string;
  readonly reason: string;
}

/** Hosts that belong together, by the name that stands in `network.allow`. To add one: a row here. */
export const PRESETS: Readonly<Record<string, readonly PresetRow[]>> = {
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
export type PresetOfTool = (typeof PRESETS_OF_TOOLS)[number];

/** All names that stand for hosts. */
export const PRESET_NAMES: readonly string[] = [...Object.keys(PRESETS), ...PRESETS_OF_TOOLS];

/** Whether it is such a name. */
export function isPresetOfTool(entry: string): entry is PresetOfTool {
  return PRESETS_OF_TOOLS.some((name) => name === entry);
}
