/**
 * Tool chains that users install beneath their home: programs and libraries only, no settings, no credentials.
 * `path` is relative to the home directory. `env` makes tools find it although HOME is private; `{}` stands for the path.
 */
interface ToolChain {
  readonly path: string;
  readonly reason: string;
  readonly env?: Readonly<Record<string, string>>;
}

export const TOOL_CHAINS: readonly ToolChain[] = [
  { path: '.cargo/bin', reason: 'cargo and rustup' },
  { path: '.rustup', reason: 'Rust compilers', env: { RUSTUP_HOME: '{}' } },
  { path: '.pyenv', reason: 'Pythons of pyenv', env: { PYENV_ROOT: '{}' } },
  { path: '.nvm/versions', reason: 'Nodes of nvm' },
  { path: '.volta', reason: 'Nodes of volta', env: { VOLTA_HOME: '{}' } },
  { path: '.local/share/fnm', reason: 'Nodes of fnm' },
  { path: '.local/share/mise/installs', reason: 'tools of mise' },
  { path: '.local/share/mise/shims', reason: 'tools of mise' },
  { path: '.asdf', reason: 'tools of asdf', env: { ASDF_DIR: '{}', ASDF_DATA_DIR: '{}' } },
  { path: '.local/bin', reason: 'programs of the user' },
  { path: '.local/pipx/venvs', reason: 'programs of pipx' },
  { path: '.local/share/pipx/venvs', reason: 'programs of pipx' },
  { path: '.local/share/uv/python', reason: 'Pythons of uv' },
  { path: '.local/share/uv/tools', reason: 'programs of uv' },
  { path: '.bun/bin', reason: 'bun' },
  { path: '.deno/bin', reason: 'deno' },
  { path: 'go/bin', reason: 'programs of go install' },
  { path: '.sdkman/candidates', reason: 'JVM tools of sdkman' },
];
