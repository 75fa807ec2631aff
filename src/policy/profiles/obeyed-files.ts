import { PROGRAMS_IN_HOME } from '../../base/words.ts';

/** A file, or a directory with all in it, that some program runs or obeys. */
export interface ObeyedFile {
  /** Relative; `*` only at its beginning, for any name that ends so. */
  readonly path: string;
  /**
   * Where it is obeyed: at the top of a workspace, in every directory of it, or at the top of a project. Then it is
   * treated so at the top of the workspace; in a subdirectory, which a person may open as a project, it is told.
   */
  readonly where: 'top' | 'project' | 'anywhere';
  readonly tool: string;
  readonly reason: string;
  /**
   * `shut`: a trusted program obeys it by itself, when a directory is entered or opened or the program starts there, and
   * commands hardly ever have an honest reason to write it: they may only read it.
   * `told`: a person starts it knowingly, or a tool runs it as part of the project, and honest work writes it.
   */
  readonly treatment: 'shut' | 'told';
  /**
   * What an installation makes together with it, named from the same directory: what came with that is not told. It is
   * a later change, or a later file, that is not expected.
   */
  readonly cameWith?: string;
  /** It is a directory of which every file is obeyed: each is told by itself. */
  readonly isWhole?: true;
}

const rows =
  (treatment: ObeyedFile['treatment'], where: ObeyedFile['where']) =>
  (path: string, tool: string, reason: string): ObeyedFile => ({ path, where, tool, reason, treatment });
const shut = rows('shut', 'top');
const shutInProject = rows('shut', 'project');
const shutAnywhere = rows('shut', 'anywhere');
const told = rows('told', 'top');
const toldAnywhere = rows('told', 'anywhere');

// Not here: what only names things (.gitattributes, .tool-versions, .python-version, .nvmrc), variables that no shell runs (.env).
const VERSION_CONTROL: readonly ObeyedFile[] = [
  shut('.git/hooks', 'git', 'programs that git runs'),
  shut('.git/config', 'git', 'its keys name programs that git runs'),
  shut('.git/config.worktree', 'git', 'as .git/config, of one worktree'),
  shut('.git/commondir', 'git', 'leads git to another config and other hooks (gitrepository-layout(5))'),
  shut('.husky', 'husky', 'git runs the hooks in it, as husky sets core.hooksPath'),
  // Its `update = !…` is shut by itself (settle-git.ts).
  toldAnywhere('.gitmodules', 'git', 'where submodules come from, and where their files go'),
  shutAnywhere('.hg/hgrc', 'Mercurial', 'hooks, aliases and extensions of a repository'),
  shutAnywhere('.jj/repo/config.toml', 'Jujutsu', 'names pager, editor and tools of a repository'),
];

/** Read where HOME is. A repository of settings (dotfiles) is what the home directory's links lead to. */
const SHELLS: readonly ObeyedFile[] = [
  shut('.profile', 'sh', 'run at log-in'),
  shut('.bashrc', 'bash', 'run by each interactive shell'),
  shut('.bash_profile', 'bash', 'run at log-in'),
  shut('.bash_login', 'bash', 'run at log-in'),
  shut('.bash_logout', 'bash', 'run at the end of a log-in shell'),
  shut('.bash_aliases', 'bash', 'run by the .bashrc of Debian and Ubuntu'),
  shut('.inputrc', 'readline', 'binds keys to text that is typed, a line break included'),
  shut('.zshenv', 'zsh', 'run by every zsh'),
  shut('.zprofile', 'zsh', 'run at log-in'),
  shut('.zshrc', 'zsh', 'run by each interactive shell'),
  shut('.zlogin', 'zsh', 'run at log-in, after .zshrc'),
  shut('.zlogout', 'zsh', 'run at the end of a log-in shell'),
  shut('.kshrc', 'ksh', 'what ENV names by custom'),
  shut('.mkshrc', 'mksh', 'run by each interactive shell'),
  shut('.cshrc', 'csh', 'run by every csh'),
  shut('.tcshrc', 'tcsh', 'run by every tcsh'),
  shut('.login', 'csh', 'run at log-in'),
  shut('.logout', 'csh', 'run at the end of a log-in shell'),
  shut('.config/fish', 'fish', 'config.fish, conf.d and functions'),
];

const SESSIONS: readonly ObeyedFile[] = [
  shut('.pam_environment', 'pam_env', 'variables of a log-in, where PAM still reads it'),
  shut('.xprofile', 'display managers', 'run when a desktop session begins'),
  shut('.xsessionrc', 'X session of Debian', 'run when a desktop session begins'),
  shut('.xsession', 'X session', 'run as the desktop session'),
  shut('.xinitrc', 'startx', 'run as the X session'),
  shut('.config/autostart', 'desktops', 'programs that begin with the session'),
  shut('.config/systemd', 'systemd', 'services of the user'),
  shut('.config/environment.d', 'systemd', 'variables of all services of the user'),
  shut('.ssh', 'ssh', 'config names programs (ProxyCommand), rc is run, authorized_keys lets others in'),
  shut('.gitconfig', 'git', 'the user’s keys, which name programs that git runs'),
  shut('.config/git', 'git', 'the user’s keys, which name programs that git runs'),
  shut('.tmux.conf', 'tmux', 'its commands are run at the start (run-shell)'),
  shut('.screenrc', 'screen', 'its commands are run at the start (exec)'),
  shut('.wgetrc', 'wget', 'options of every call (use_askpass names a program)'),
  shut('.curlrc', 'curl', 'options of every call: where from, and which file is written'),
];

const DIRECTORY_ENTRY: readonly ObeyedFile[] = [
  shutAnywhere('.envrc', 'direnv', 'run by the shell when the directory is entered, once allowed'),
  shut('.config/direnv', 'direnv', 'direnvrc and lib are run before each .envrc'),
  // A file stays trusted when its content changes, unless `paranoid` is set.
  shutAnywhere('mise.toml', 'mise', 'hooks and env run programs when the directory is entered, once trusted'),
  shutAnywhere('.mise.toml', 'mise', 'as mise.toml'),
  shutAnywhere('mise.local.toml', 'mise', 'as mise.toml'),
  shutAnywhere('.mise.local.toml', 'mise', 'as mise.toml'),
  shutAnywhere('.mise', 'mise', 'config.toml in it is as mise.toml; tasks in it are programs'),
  shutAnywhere('mise/config.toml', 'mise', 'as mise.toml'),
  shutAnywhere('.config/mise.toml', 'mise', 'as mise.toml'),
  shutAnywhere('.config/mise', 'mise', 'config.toml and conf.d in it are as mise.toml'),
  shutAnywhere('.rtx.toml', 'rtx', 'as mise.toml, which took its place'),
  shutAnywhere('.shadowenv.d', 'shadowenv', 'sets variables when the directory is entered, once trusted'),
  shutAnywhere('.autoenv', 'autoenv', 'run when the directory is entered, once authorized'),
  shutAnywhere('.autoenv.zsh', 'zsh-autoenv', 'run when the directory is entered, once authorized'),
  shutAnywhere('.autoenv_leave.zsh', 'zsh-autoenv', 'run when the directory is left, once authorized'),
  shutAnywhere('.rvmrc', 'rvm', 'run when the directory is entered, once trusted'),
];

const EDITORS: readonly ObeyedFile[] = [
  shutInProject(
    '.vscode',
    'VS Code',
    'tasks (also on opening a folder), settings that name programs, MCP servers',
  ),
  shutInProject('.theia', 'Theia', 'tasks and settings, as .vscode'),
  shutInProject('.devcontainer', 'Dev Containers', 'initializeCommand runs on the host'),
  shutInProject('.devcontainer.json', 'Dev Containers', 'initializeCommand runs on the host'),
  shutInProject(
    '.idea',
    'JetBrains IDEs',
    'interpreters, file watchers and start-up tasks of a trusted project',
  ),
  shutInProject('.fleet', 'Fleet', 'run configurations and settings'),
  shutInProject('.zed', 'Zed', 'settings that name language servers and formatters, tasks, debuggers'),
  shutInProject('.exrc', 'vi, Vim, Neovim', 'run on starting there, where `exrc` is set'),
  shutInProject('.vimrc', 'Vim', 'run on starting there, where `exrc` is set; in settings, always'),
  shut('.gvimrc', 'gVim', 'run on starting there, where `exrc` is set; in settings, always'),
  shutInProject('.nvimrc', 'Neovim', 'run on starting there, where `exrc` is set'),
  shutInProject('.nvim.lua', 'Neovim', 'run on starting there, where `exrc` is set'),
  shut('.config/nvim', 'Neovim', 'run on each start'),
  shutAnywhere('.lvimrc', 'localvimrc for Vim', 'run when a file beneath it is opened'),
  shutInProject('.vim', 'Vim', 'plug-ins; coc-settings.json in a project names language servers'),
  shutAnywhere('.dir-locals.el', 'Emacs', 'variables and eval forms, when a file beneath it is opened'),
  shutAnywhere('.dir-locals-2.el', 'Emacs', 'as .dir-locals.el'),
  shut('.emacs', 'Emacs', 'run on each start'),
  shut('.emacs.d', 'Emacs', 'run on each start'),
  shutInProject('.helix', 'Helix', 'languages.toml names language servers and formatters'),
];

const AGENTS: readonly ObeyedFile[] = [
  shutInProject('.claude', 'Claude Code', 'hooks, permissions, skills and commands'),
  shutInProject('.mcp.json', 'Claude Code and others', 'programs that are started as MCP servers'),
  shutInProject('.codex', 'Codex', 'config.toml and hooks of a trusted project'),
  shutInProject('.gemini', 'Gemini CLI', 'settings with hooks and MCP servers, extensions, commands'),
  shutInProject('.qwen', 'Qwen Code', 'settings with hooks and MCP servers'),
  shutInProject('.cursor', 'Cursor', 'hooks.json, mcp.json, environment.json and rules'),
  shutInProject('.windsurf', 'Windsurf', 'hooks.json, workflows and rules'),
  shutInProject('.opencode', 'opencode', 'plug-ins and tools in it are loaded on starting there'),
  shutInProject('opencode.json', 'opencode', 'names plug-ins, MCP servers, formatters and language servers'),
  shutInProject('opencode.jsonc', 'opencode', 'as opencode.json'),
  shutInProject('.github/hooks', 'Copilot CLI', 'hooks that are loaded from where it starts'),
  shutInProject('.github/copilot', 'Copilot CLI', 'its settings for a repository'),
  shutInProject('.clinerules', 'Cline', 'rules, workflows and hooks'),
  shutInProject('.cline', 'Cline', 'its settings for a project'),
  shutInProject('.roo', 'Roo Code', 'mcp.json and rules'),
  shutInProject('.continue', 'Continue', 'MCP servers, models and rules of a workspace'),
  shutInProject('.amazonq', 'Amazon Q Developer', 'agents with hooks, MCP servers'),
  shutInProject('.kiro', 'Kiro', 'hooks, agents, MCP servers and steering'),
  shutInProject('.aider.conf.yml', 'Aider', 'lint-cmd, test-cmd and notifications-command'),
  shutInProject('crush.json', 'Crush', 'MCP and language servers, and $(…) in values'),
  shutInProject('.crush.json', 'Crush', 'as crush.json'),
  shutInProject('.amp', 'Amp', 'settings with MCP servers and permissions'),
  shutInProject('.factory', 'Factory', 'hooks, MCP servers, droids and commands'),
  shutInProject('.augment', 'Augment', 'settings, hooks and commands'),
  shutInProject('.junie', 'Junie', 'MCP servers and guidelines'),
  shutInProject('.trae', 'Trae', 'MCP servers and rules'),
  shutInProject('.agent', 'Antigravity', 'workflows, and skills with their scripts'),
  shutInProject('.agents', 'several agents', 'skills with their scripts'),
  shut('sandbox-run.toml', 'sandbox-run', 'a policy'),
  shut('.sandbox-run.toml', 'sandbox-run', 'the policy of the workspace'),
];

const toldWhole = (path: string, tool: string, reason: string): ObeyedFile => ({
  ...toldAnywhere(path, tool, reason),
  isWhole: true,
});

const INSTRUCTS = 'instructs the next agent that starts there';

/** What a model takes for the words of its user. */
const INSTRUCTIONS: readonly ObeyedFile[] = [
  toldAnywhere('AGENTS.md', 'agents', INSTRUCTS),
  toldAnywhere('AGENT.md', 'agents', INSTRUCTS),
  toldAnywhere('AGENTS.override.md', 'Codex', INSTRUCTS),
  toldAnywhere('CLAUDE.md', 'Claude Code', INSTRUCTS),
  toldAnywhere('CLAUDE.local.md', 'Claude Code', INSTRUCTS),
  toldAnywhere('GEMINI.md', 'Gemini CLI', INSTRUCTS),
  toldAnywhere('QWEN.md', 'Qwen Code', INSTRUCTS),
  toldAnywhere('CRUSH.md', 'Crush', INSTRUCTS),
  toldAnywhere('WARP.md', 'Warp', INSTRUCTS),
  toldAnywhere('CONVENTIONS.md', 'Aider', INSTRUCTS),
  toldAnywhere('.cursorrules', 'Cursor', INSTRUCTS),
  toldAnywhere('.windsurfrules', 'Windsurf', INSTRUCTS),
  toldAnywhere('.roorules', 'Roo Code', INSTRUCTS),
  toldAnywhere('.rules', 'Zed', INSTRUCTS),
  toldAnywhere('.goosehints', 'Goose', INSTRUCTS),
  toldAnywhere('.github/copilot-instructions.md', 'Copilot', INSTRUCTS),
  toldWhole('.github/instructions', 'Copilot', INSTRUCTS),
  toldWhole('.github/prompts', 'Copilot', INSTRUCTS),
  toldWhole('.github/chatmodes', 'Copilot', INSTRUCTS),
  toldWhole('.github/agents', 'Copilot', INSTRUCTS),
];

const BUILDS = 'run by the build servers, with their secrets';

const BUILD_SERVERS: readonly ObeyedFile[] = [
  toldWhole('.github/workflows', 'GitHub Actions', BUILDS),
  toldWhole('.github/actions', 'GitHub Actions', BUILDS),
  toldWhole('.gitea/workflows', 'Gitea Actions', BUILDS),
  toldWhole('.forgejo/workflows', 'Forgejo Actions', BUILDS),
  toldAnywhere('action.yml', 'GitHub Actions', BUILDS),
  toldAnywhere('.gitlab-ci.yml', 'GitLab CI', BUILDS),
  toldWhole('.gitlab/ci', 'GitLab CI', BUILDS),
  toldWhole('.circleci', 'CircleCI', BUILDS),
  toldWhole('.buildkite', 'Buildkite', BUILDS),
  toldWhole('.woodpecker', 'Woodpecker', BUILDS),
  toldWhole('.tekton', 'Tekton', BUILDS),
  toldWhole('.teamcity', 'TeamCity', BUILDS),
  toldWhole('.semaphore', 'Semaphore', BUILDS),
  toldAnywhere('.woodpecker.yml', 'Woodpecker', BUILDS),
  toldAnywhere('.woodpecker.yaml', 'Woodpecker', BUILDS),
  toldAnywhere('.drone.yml', 'Drone', BUILDS),
  toldAnywhere('.travis.yml', 'Travis CI', BUILDS),
  toldAnywhere('.cirrus.yml', 'Cirrus CI', BUILDS),
  toldAnywhere('appveyor.yml', 'AppVeyor', BUILDS),
  toldAnywhere('.appveyor.yml', 'AppVeyor', BUILDS),
  toldAnywhere('azure-pipelines.yml', 'Azure Pipelines', BUILDS),
  toldAnywhere('bitbucket-pipelines.yml', 'Bitbucket Pipelines', BUILDS),
  toldAnywhere('buildspec.yml', 'CodeBuild', BUILDS),
  toldAnywhere('cloudbuild.yaml', 'Cloud Build', BUILDS),
  toldAnywhere('Jenkinsfile', 'Jenkins', BUILDS),
];

const ON_OPENING = 'run by editors when a file is opened';
const SCRIPTS = ['js', 'cjs', 'mjs', 'ts', 'cts', 'mts'];
/** A configuration that is a program, under each name that its tool looks for. */
const programs = (tool: string, reason: string, ...begin: readonly string[]): readonly ObeyedFile[] =>
  begin.flatMap((name) => SCRIPTS.map((suffix) => toldAnywhere(`${name}.${suffix}`, tool, reason)));

/** What checks, formats and bundles, as part of the project. */
const CHECKERS: readonly ObeyedFile[] = [
  ...programs('ESLint', ON_OPENING, 'eslint.config', '.eslintrc'),
  toldAnywhere('.eslintrc', 'ESLint', 'names plug-ins, which editors run when a file is opened'),
  toldAnywhere('.eslintrc.json', 'ESLint', 'names plug-ins, which editors run when a file is opened'),
  toldAnywhere('.eslintrc.yml', 'ESLint', 'names plug-ins, which editors run when a file is opened'),
  toldAnywhere('.eslintrc.yaml', 'ESLint', 'names plug-ins, which editors run when a file is opened'),
  ...programs('Prettier', ON_OPENING, 'prettier.config', '.prettierrc'),
  ...programs('Stylelint', ON_OPENING, 'stylelint.config', '.stylelintrc'),
  ...programs('Vite', 'run by every build, and by editors that show tests', 'vite.config', 'vitest.config'),
  ...programs('PostCSS', 'run by every build, and by editors', 'postcss.config', '.postcssrc'),
  ...programs('Tailwind CSS', 'run by every build, and by editors', 'tailwind.config'),
  ...programs('Svelte', 'run by every build, and by editors', 'svelte.config'),
  ...programs('Babel', 'run by every build', 'babel.config', '.babelrc'),
  ...programs('webpack', 'run by every build', 'webpack.config'),
  ...programs('Rollup', 'run by every build', 'rollup.config'),
  ...programs('Jest', 'run by tests, which editors start', 'jest.config'),
  ...programs(
    'lint-staged',
    'names programs that an installed hook runs',
    'lint-staged.config',
    '.lintstagedrc',
  ),
  ...programs('commitlint', 'run by an installed hook', 'commitlint.config', '.commitlintrc'),
  toldAnywhere('.pylintrc', 'Pylint', 'init-hook and plug-ins, which editors run when a file is opened'),
  toldAnywhere('pylintrc', 'Pylint', 'as .pylintrc'),
  toldAnywhere('conftest.py', 'pytest', 'run by tests, which editors start'),
];

const DEBUGGERS_AND_PROMPTS: readonly ObeyedFile[] = [
  shutInProject('.gdbinit', 'gdb', 'run on starting there, where auto-load has it'),
  shutInProject('.lldbinit', 'lldb', 'run on starting there, where target.load-cwd-lldbinit is set'),
  shutInProject('.pdbrc', 'pdb', 'run when the debugger starts there'),
  shutInProject('.irbrc', 'irb', 'run on starting there'),
  shutInProject('.pryrc', 'pry', 'run on starting there'),
  shutInProject('.ghci', 'ghci', 'run on starting there'),
  shutInProject('.iex.exs', 'iex', 'run on starting there'),
  // renv makes one.
  told('.Rprofile', 'R', 'run on starting there'),
];

const GIT_HOOK_RUNNERS: readonly ObeyedFile[] = [
  told('.githooks', 'git', 'what core.hooksPath names by custom'),
  told('.pre-commit-config.yaml', 'pre-commit', 'programs that an installed hook runs'),
  told('.pre-commit-hooks.yaml', 'pre-commit', 'programs that this repository offers as hooks'),
  told('lefthook.yml', 'lefthook', 'programs that an installed hook runs'),
  told('.lefthook.yml', 'lefthook', 'programs that an installed hook runs'),
  told('lefthook-local.yml', 'lefthook', 'programs that an installed hook runs'),
];

/** What is in directories that are shut at the top, where such a directory beneath was there and is only added to. */
const IN_PROJECTS_BENEATH: readonly ObeyedFile[] = [
  toldAnywhere('.vscode/tasks.json', 'VS Code', 'tasks, also on opening a folder'),
  toldAnywhere('.vscode/settings.json', 'VS Code', 'settings that name programs'),
  toldAnywhere('.vscode/launch.json', 'VS Code', 'programs that are started to be debugged'),
  toldAnywhere('.vscode/mcp.json', 'VS Code', 'programs that are started as MCP servers'),
  toldAnywhere('.devcontainer/devcontainer.json', 'Dev Containers', 'initializeCommand runs on the host'),
  toldAnywhere('.zed/settings.json', 'Zed', 'settings that name language servers and formatters'),
  toldAnywhere('.zed/tasks.json', 'Zed', 'tasks'),
  toldAnywhere('.helix/languages.toml', 'Helix', 'language servers and formatters'),
  toldAnywhere('.claude/settings.json', 'Claude Code', 'hooks and permissions'),
  toldAnywhere('.claude/settings.local.json', 'Claude Code', 'hooks and permissions'),
  toldAnywhere('.codex/config.toml', 'Codex', 'MCP servers and notify'),
  toldAnywhere('.codex/hooks.json', 'Codex', 'hooks'),
  toldAnywhere('.gemini/settings.json', 'Gemini CLI', 'hooks and MCP servers'),
  toldAnywhere('.qwen/settings.json', 'Qwen Code', 'hooks and MCP servers'),
  toldAnywhere('.cursor/hooks.json', 'Cursor', 'hooks'),
  toldAnywhere('.cursor/mcp.json', 'Cursor', 'programs that are started as MCP servers'),
  toldAnywhere('.windsurf/hooks.json', 'Windsurf', 'hooks'),
  toldAnywhere('.roo/mcp.json', 'Roo Code', 'programs that are started as MCP servers'),
  toldAnywhere('.factory/settings.json', 'Factory', 'hooks'),
  toldAnywhere('.kiro/settings/mcp.json', 'Kiro', 'programs that are started as MCP servers'),
];

const toldLater = (path: string, tool: string, reason: string, cameWith: string): ObeyedFile => ({
  ...toldAnywhere(path, tool, reason),
  cameWith,
});
const INSTALLED: readonly ObeyedFile[] = [
  toldLater(
    'pyvenv.cfg',
    'Python',
    'which installation a virtual environment takes its library from',
    'bin/python',
  ),
  toldLater('bin/python', 'Python', 'the interpreter of a virtual environment', 'pyvenv.cfg'),
  toldLater('bin/python3', 'Python', 'the interpreter of a virtual environment', 'pyvenv.cfg'),
  toldLater('bin/activate', 'Python', 'shells and editors run it', 'pyvenv.cfg'),
  toldLater('node_modules/.bin', 'npm and others', 'a tool that scripts run', 'node_modules/.bin'),
];

const PROJECTS: readonly ObeyedFile[] = [
  toldAnywhere('*.code-workspace', 'VS Code', 'tasks and settings, when it is opened'),
  toldAnywhere('*.sublime-project', 'Sublime Text', 'settings and build systems, when it is opened'),
  toldAnywhere('*.run.xml', 'JetBrains IDEs', 'a run configuration'),
  toldAnywhere(
    'package.json',
    'npm and others',
    'scripts, also those of an installation, and what tools find in it',
  ),
  toldAnywhere('.npmrc', 'npm, pnpm', 'script-shell, node-options, registry'),
  toldAnywhere('.yarnrc.yml', 'Yarn', 'yarnPath and plugins are run by every call'),
  toldAnywhere('.yarnrc', 'Yarn 1', 'yarn-path is run by every call'),
  toldAnywhere('.pnpmfile.cjs', 'pnpm', 'run by an installation'),
  toldAnywhere('bunfig.toml', 'Bun', 'preload is run by every call'),
  toldAnywhere('Makefile', 'make', 'programs that a target runs'),
  toldAnywhere('makefile', 'make', 'programs that a target runs'),
  toldAnywhere('GNUmakefile', 'GNU make', 'comes before Makefile'),
  toldAnywhere('justfile', 'just', 'programs that a recipe runs'),
  toldAnywhere('Rakefile', 'rake', 'run by every call'),
  toldAnywhere('setup.py', 'pip', 'run by an installation'),
  toldAnywhere('sitecustomize.py', 'Python', 'run on every start where it is in the module path'),
  toldAnywhere('usercustomize.py', 'Python', 'run on every start where it is in the module path'),
  toldAnywhere('.cargo/config.toml', 'cargo', 'names linker, runner, wrapper and aliases'),
  toldAnywhere('.cargo/config', 'cargo', 'as .cargo/config.toml'),
  toldAnywhere('rust-toolchain.toml', 'rustup', 'may name a tool chain by its path'),
  toldAnywhere('rust-toolchain', 'rustup', 'as rust-toolchain.toml'),
  toldAnywhere('build.rs', 'cargo', 'run by a build, which editors start on opening'),
  toldAnywhere('go.mod', 'go', 'toolchain, replace and tool lines: what is downloaded, built and run'),
  toldAnywhere('go.work', 'go', 'as go.mod, for several modules'),
  toldAnywhere('gradlew', 'Gradle', 'the wrapper, which is run in place of Gradle'),
  toldAnywhere('gradle-wrapper.properties', 'Gradle', 'what the wrapper downloads and runs'),
  toldAnywhere('gradle-wrapper.jar', 'Gradle', 'the wrapper itself'),
  toldAnywhere('gradle.properties', 'Gradle', 'JVM arguments'),
  toldAnywhere('build.gradle', 'Gradle', 'run by a build, which editors start on opening'),
  toldAnywhere('build.gradle.kts', 'Gradle', 'run by a build, which editors start on opening'),
  toldAnywhere('settings.gradle', 'Gradle', 'run by a build, which editors start on opening'),
  toldAnywhere('settings.gradle.kts', 'Gradle', 'run by a build, which editors start on opening'),
  toldAnywhere('mvnw', 'Maven', 'the wrapper, which is run in place of Maven'),
  toldAnywhere('.mvn/extensions.xml', 'Maven', 'extensions that every call loads'),
  toldAnywhere('.mvn/jvm.config', 'Maven', 'JVM arguments, which can name agents'),
  toldAnywhere('.mvn/maven.config', 'Maven', 'arguments of every call'),
  toldAnywhere('maven-wrapper.properties', 'Maven', 'what the wrapper downloads and runs'),
  toldAnywhere('maven-wrapper.jar', 'Maven', 'the wrapper itself'),
  toldAnywhere('pom.xml', 'Maven', 'plug-ins that a build runs'),
  told('.bazelrc', 'Bazel', 'options of every call, which can name programs'),
  told('tools/bazel', 'Bazel', 'a wrapper that is run in place of Bazel'),
  told('.buckconfig', 'Buck', 'names tools of a build'),
  toldAnywhere('flake.nix', 'Nix', 'shellHook is run by nix develop'),
  toldAnywhere('shell.nix', 'Nix', 'shellHook is run by nix-shell'),
  toldAnywhere('devenv.nix', 'devenv', 'enterShell is run in its shell'),
  toldAnywhere('devbox.json', 'devbox', 'init_hook is run in its shell'),
];

/** What programs of the user run or obey, by tool. */
export const OBEYED_FILES: readonly ObeyedFile[] = [
  ...VERSION_CONTROL,
  ...SHELLS,
  ...SESSIONS,
  ...DIRECTORY_ENTRY,
  ...EDITORS,
  ...AGENTS,
  ...DEBUGGERS_AND_PROMPTS,
  ...GIT_HOOK_RUNNERS,
  ...IN_PROJECTS_BENEATH,
  ...INSTRUCTIONS,
  ...BUILD_SERVERS,
  ...CHECKERS,
  ...INSTALLED,
  ...PROJECTS,
];

/** Those that are shut, at the top of a workspace and relative to it. A command may read them. */
export const PROTECTED_PATHS: readonly string[] = OBEYED_FILES.flatMap(({ path, treatment }) =>
  treatment === 'shut' ? [path] : [],
);

/** Beneath the home directory: what programs of the user run, or obey, without being asked. */
export const OBEYED_IN_HOME: readonly string[] = [
  ...['.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.profile', '.inputrc'],
  ...['.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.gitconfig', '.vimrc', '.tmux.conf'],
  '.config',
  '.local/lib',
  '.local/share/applications',
  '.local/share/systemd',
  '.local/share/bash-completion',
  '.ssh',
  '.gnupg',
  '.bashrc.d',
  '.bash_completion.d',
  '.oh-my-zsh',
  '.zsh',
  ...PROGRAMS_IN_HOME,
  '.npm-global',
  '.vim',
  '.emacs.d',
  'bin',
];
