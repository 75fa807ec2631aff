// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
/** THE table of tools that have to work in the sandbox as they do outside. docs/tools.md is made from it. */

/** One task of one tool. A row installs nothing: where one of `programs` is absent it is left out, and the test run says so. */
export interface ToolRow {
  readonly tool: string;
  readonly task: string;
  /** What has to be in PATH besides bash and the coreutils, or absolute paths of files that have to exist. */
  readonly programs: readonly string[];
  /** Where they come from: packages of Debian, or of npm as `npm:NAME`. */
  readonly packages: string;
  readonly files?: Readonly<Record<string, string>>;
  /** Bash, run outside of the sandbox before either run, in a fresh workspace. */
  readonly before?: string;
  /** Bash, run outside and inside. Standard output, status and the files of the workspace have to be equal. */
  readonly line: string;
  /** Options of sandbox-run that the task needs. Each stands on the page. */
  readonly options?: readonly string[];
  /** Further ones where the sandbox has Landlock without namespaces. */
  readonly optionsWithoutNamespaces?: readonly string[];
  /** Paths of files that are not compared: their content or name is another one at each run. */
  readonly varies?: RegExp;
  /** Why the two runs differ today, for the page. The test then fails as soon as they are equal. */
  readonly differs?: string;
  /** Why the runs outside and inside differ where the sandbox has Landlock without namespaces. Default: `differs`. */
  readonly differsWithoutNamespaces?: string;
}

/** A tool that no row runs: neither Debian 12 nor npm has it, or what they have does not do the task outside either. */
export interface ToolWithoutRow {
  readonly tool: string;
  readonly why: string;
}

const GIT = { tool: 'git', programs: ['git'], packages: 'git', varies: /\.git\/|^repo\// } as const;
const REPOSITORY =
  'git init -q -b main . && for i in 1 2 3 4; do echo $i > f$i; git add . && git commit -qm "c$i"; done';

/** A server on a port that was free a moment ago. */
const FREE_PORT =
  'port=$(python3 -c \'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])\')';

/** Reads what a server says on descriptor 3 up to the line that tells that it listens. */
const until = (text: string) => `while read -r -u 3 said; do [[ $said == *"${text}"* ]] && break; done`;

/** Installers of hooks: what they install inside lies in a copy that the files of the workspace do not show. */
const HOOKS = { varies: /^\.git\/|^\.husky\/_|^node_modules\/\.package-lock\.json$/ } as const;
/** Where npm puts what is installed globally. */
const GLOBAL = '/usr/lib/node_modules';
const HOOK = 'echo hook >&2\n';
const REPOSITORY_WITH_HOOKS =
  'printf "node_modules\\n*.tgz\\n" >.gitignore && git init -q -b main && git add -A && git commit -qm first';
/** A project whose package lies in a file, with a lock file. */
const PROJECT = `npm install --offline --package-lock-only --ignore-scripts --silent >/dev/null && ${REPOSITORY_WITH_HOOKS}`;
const NPM_CI = 'npm ci --offline --no-audit --no-fund --silent >/dev/null';
/** The exit status alone would not show that the hook ran. */
const COMMIT = 'git commit --allow-empty -qm x 2>&1 | grep -x hook';
const withHooks = (tool: string | undefined, prepare: string) =>
  JSON.stringify({
    name: 'app',
    version: '1.0.0',
    scripts: { prepare, test: 'echo tested' },
    devDependencies: tool === undefined ? {} : { [tool]: 'file:./tool.tgz' },
  });

const C_MAIN = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n';

/** Two packages for what runs tasks in many. */
const MONOREPO = {
  files: {
    'package.json':
      '{"name":"app","version":"1.0.0","private":true,"packageManager":"npm@11.0.0","workspaces":["packages/a","packages/b"]}',
    'packages/a/package.json':
      '{"name":"a","version":"1.0.0","scripts":{"build":"echo built a"},"dependencies":{"b":"1.0.0"}}',
    'packages/b/package.json': '{"name":"b","version":"1.0.0","scripts":{"build":"echo built b"}}',
    'turbo.json': '{"tasks":{"build":{"dependsOn":["^build"]}}}',
    'nx.json': '{"targetDefaults":{"build":{"dependsOn":["^build"]}}}',
    'lerna.json': '{"version":"1.0.0"}',
  },
  before: `npm install --offline --no-audit --no-fund --silent >/dev/null && ${REPOSITORY_WITH_HOOKS}`,
} as const;

/** Why rows differ on a host without namespaces. */
/** Loopback and Unix sockets of its own, by a supervisor: the first failure names it. */
const OWN_SOCKETS = ['--net', '@own'];
const UNREADABLE =
  'its agent makes itself unreadable to its user (`PR_SET_DUMPABLE`), so `--net @own` cannot tell which socket it means; only namespaces give it some without looking';
const NO_TERMINALS = '`/dev/ptmx` is refused: only a mount namespace has terminals of its own';
const OTHER_HOME =
  '`HOME` is a private directory at another path: only a mount namespace can lay it where the home is';
const NO_SYSTEM_V = 'System V shared memory is refused: only an IPC namespace has some of its own';

export const TOOL_ROWS: readonly ToolRow[] = [
  { ...GIT, task: 'init, add, commit, log', line: `${REPOSITORY}; git log --format=%s; git status --short` },
  {
    ...GIT,
    task: 'worktree add, commit, remove',
    before: REPOSITORY,
    line: 'git worktree add -q wt -b side && (cd wt && echo x > x && git add x && git commit -qm x) && git worktree remove wt && git log --format=%s side; git worktree list | wc -l',
  },
  {
    ...GIT,
    task: 'submodule add, update, rm',
    before: `mkdir lib && (cd lib && ${REPOSITORY}) && ${REPOSITORY.replaceAll('git add .', 'git add f$i')}`,
    line: 'git -c protocol.file.allow=always submodule --quiet add ./lib sub && git commit -qm sub && git submodule status | cut -c43-; git rm -qf sub && git status --short',
  },
  {
    ...GIT,
    task: 'rebase -i with an editor',
    before: REPOSITORY,
    line: "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' GIT_EDITOR=true git rebase -q -i HEAD~3 >/dev/null 2>&1; git log --format=%s",
  },
  {
    ...GIT,
    task: 'bisect run',
    before: REPOSITORY,
    line: 'git bisect start HEAD HEAD~3 >/dev/null && git bisect run sh -c "! test -e f3" | grep -c "first bad commit"; git bisect reset 2>/dev/null; cat f4',
  },
  {
    ...GIT,
    task: 'clone, branch, merge with a conflict, stash',
    before: REPOSITORY,
    line: 'git clone -q . repo && cd repo && git switch -qc side && echo a > f1 && git commit -qam a && git switch -q main && echo b > f1 && git commit -qam b; git merge side; git diff --name-only --diff-filter=U; git checkout -q --theirs f1 && git commit -qam merged && cat f1; echo z > f2; git stash -q; cat f2; git stash pop -q; cat f2',
  },
  {
    ...GIT,
    task: 'push to and pull from a bare repository',
    before: `git init -q --bare repo && ${REPOSITORY.replaceAll('git add .', 'git add f$i')}`,
    line: 'git push -q ./repo main && git --git-dir repo log --format=%s main && git pull -q ./repo main; git gc -q; git fsck 2>&1 | grep -v notice; echo done',
  },
  {
    ...GIT,
    task: 'apply, am, format-patch, archive',
    before: REPOSITORY,
    varies: /\.git\/|^p\//,
    line: 'git format-patch -q -1 -o p && git reset -q --hard HEAD~1 && git am -q p/0001-c4.patch && git log -1 --format=%s && git archive HEAD | tar t',
  },
  {
    ...GIT,
    tool: 'git-lfs',
    task: 'track and check in a large file',
    programs: ['git', 'git-lfs'],
    packages: 'git git-lfs',
    before: `${REPOSITORY}; git lfs install --local >/dev/null`,
    line: "git lfs track '*.bin' && head -c 100000 /dev/zero > a.bin && git add . && git commit -qm lfs && git lfs ls-files",
  },
  {
    tool: 'npm',
    task: 'install a local package, run a script, npx, ls',
    programs: ['npm'],
    packages: 'npm',
    files: {
      'lib/package.json': '{"name":"lib","version":"1.0.0","bin":"cli.js"}',
      'lib/cli.js': '#!/usr/bin/env node\nconsole.log("lib runs");\n',
      'package.json':
        '{"name":"app","version":"1.0.0","scripts":{"test":"lib"},"dependencies":{"lib":"file:lib"}}',
    },
    line: 'npm install --offline --no-audit --no-fund >/dev/null && npm test --silent && npx --offline lib && npm ls',
    varies: /^node_modules\/\.package-lock\.json$/,
  },
  {
    tool: 'npm',
    task: 'pack, with a cache in the home',
    programs: ['npm'],
    packages: 'npm',
    files: { 'package.json': '{"name":"app","version":"1.0.0"}' },
    before: 'mkdir -p ~/.npm/_cacache/tmp',
    line: 'npm pack --silent && ls',
    varies: /\.tgz$/,
    differs:
      'it writes into the cache in the home, which is read-only inside (EROFS); `npm_config_cache=$TMPDIR npm pack` works',
  },
  {
    tool: 'npm',
    task: 'ci with a prepare script and workspaces',
    programs: ['npm'],
    packages: 'npm',
    files: {
      'package.json':
        '{"name":"app","version":"1.0.0","private":true,"workspaces":["packages/a","packages/b"],"scripts":{"prepare":"node -e \\"require(\'fs\').writeFileSync(\'built\',\'1\')\\""}}',
      'packages/a/package.json':
        '{"name":"a","version":"1.0.0","scripts":{"test":"node -p \\"require(\'b\')\\""},"dependencies":{"b":"1.0.0"}}',
      'packages/b/package.json': '{"name":"b","version":"1.0.0"}',
      'packages/b/index.js': 'module.exports = 42;\n',
    },
    before: 'npm install --offline --no-audit --no-fund --ignore-scripts >/dev/null && rm -rf node_modules',
    line: 'npm ci --offline --no-audit --no-fund >/dev/null && cat built && npm test --silent -w a',
    varies: /^node_modules\/\.package-lock\.json$/,
  },
  {
    ...HOOKS,
    tool: 'husky 9',
    task: 'npm ci and npm test in a fresh checkout, commit',
    programs: ['npm', 'git', `${GLOBAL}/husky/bin.js`],
    packages: 'npm:husky',
    files: { 'package.json': withHooks('husky', 'husky'), '.husky/pre-commit': HOOK },
    before: `npm pack --silent --ignore-scripts ${GLOBAL}/husky >/dev/null && mv husky-*.tgz tool.tgz && ${PROJECT}`,
    line: `${NPM_CI} && npm test -s && ${COMMIT}`,
  },
  {
    ...HOOKS,
    tool: 'husky 9',
    task: 'npm ci again, after an installation outside',
    programs: ['npm', 'git', `${GLOBAL}/husky/bin.js`],
    packages: 'npm:husky',
    files: { 'package.json': withHooks('husky', 'husky'), '.husky/pre-commit': HOOK },
    before: `npm pack --silent --ignore-scripts ${GLOBAL}/husky >/dev/null && mv husky-*.tgz tool.tgz && ${PROJECT} && ${NPM_CI}`,
    line: `${NPM_CI} && npm test -s && ${COMMIT}`,
  },
  {
    ...HOOKS,
    tool: 'husky 9',
    task: 'pnpm install, commit',
    programs: ['pnpm', 'git', `${GLOBAL}/husky/bin.js`],
    packages: 'npm:pnpm npm:husky',
    files: { 'package.json': withHooks('husky', 'husky'), '.husky/pre-commit': HOOK },
    before: `npm pack --silent --ignore-scripts ${GLOBAL}/husky >/dev/null && mv husky-*.tgz tool.tgz && ${PROJECT}`,
    line: `pnpm install --offline --silent; pnpm --silent test && ${COMMIT}`,
    varies: /^\.git\/|^\.husky\/_|^node_modules\/|^\.pnpm-store/,
  },
  {
    ...HOOKS,
    tool: 'husky 8',
    task: 'npm ci and npm test in a fresh checkout, commit',
    programs: ['npm', 'git', `${GLOBAL}/husky8/lib/bin.js`],
    packages: 'npm:husky@8',
    files: {
      'package.json': withHooks('husky', 'husky install'),
      '.husky/pre-commit': `#!/usr/bin/env sh\n. "$(dirname -- "$0")/_/husky.sh"\n${HOOK}`,
    },
    before: `chmod +x .husky/pre-commit && npm pack --silent --ignore-scripts ${GLOBAL}/husky8 >/dev/null && mv husky-*.tgz tool.tgz && ${PROJECT}`,
    line: `${NPM_CI} && npm test -s && ${COMMIT}`,
  },
  {
    ...HOOKS,
    tool: 'husky 4',
    task: 'npm rebuild, commit',
    programs: ['npm', 'git', `${GLOBAL}/husky4/bin/run.js`],
    packages: 'npm:husky@4',
    files: {
      'package.json':
        '{"name":"app","version":"1.0.0","devDependencies":{"husky":"4"},"husky":{"hooks":{"pre-commit":"echo hook >&2"}}}',
    },
    before: `mkdir node_modules && cp -r ${GLOBAL}/husky4 node_modules/husky && ${REPOSITORY_WITH_HOOKS}`,
    line: `npm rebuild husky --silent >/dev/null && ${COMMIT}`,
  },
  {
    ...HOOKS,
    tool: 'yorkie',
    task: 'npm rebuild, commit',
    programs: ['npm', 'git', `${GLOBAL}/yorkie/bin/install.js`],
    packages: 'npm:yorkie',
    files: {
      'package.json':
        '{"name":"app","version":"1.0.0","devDependencies":{"yorkie":"2"},"gitHooks":{"pre-commit":"echo hook >&2"}}',
    },
    before: `mkdir node_modules && cp -r ${GLOBAL}/yorkie node_modules/yorkie && ${REPOSITORY_WITH_HOOKS}`,
    line: `npm rebuild yorkie --silent >/dev/null && ${COMMIT}`,
  },
  {
    ...HOOKS,
    tool: 'simple-git-hooks',
    task: 'npm ci and npm test in a fresh checkout, commit',
    programs: ['npm', 'git', `${GLOBAL}/simple-git-hooks/cli.js`],
    packages: 'npm:simple-git-hooks',
    files: {
      'package.json': withHooks('simple-git-hooks', 'simple-git-hooks'),
      '.simple-git-hooks.json': '{"pre-commit":"echo hook >&2"}',
    },
    before: `npm pack --silent --ignore-scripts ${GLOBAL}/simple-git-hooks >/dev/null && mv simple-git-hooks-*.tgz tool.tgz && ${PROJECT}`,
    line: `${NPM_CI} && npm test -s && ${COMMIT}`,
  },
  {
    ...HOOKS,
    tool: 'lefthook',
    task: 'npm run prepare and npm test, commit',
    programs: ['npm', 'git', `${GLOBAL}/lefthook/bin/index.js`],
    packages: 'npm:lefthook',
    files: {
      'package.json': withHooks('lefthook', 'node node_modules/lefthook/bin/index.js install'),
      'lefthook.yml': 'pre-commit:\n  commands:\n    a:\n      run: echo hook >&2\n',
    },
    before: `mkdir node_modules && cp -r ${GLOBAL}/lefthook node_modules && ${REPOSITORY_WITH_HOOKS}`,
    line: `npm run -s prepare >/dev/null && npm test -s && echo x >x && git add x && git commit -qm x 2>&1 | grep -c hook:`,
  },
  {
    ...HOOKS,
    tool: 'pre-commit',
    task: 'install, commit',
    programs: ['git', '/usr/bin/pre-commit'],
    packages: 'git pre-commit',
    files: {
      '.pre-commit-config.yaml':
        'repos:\n- repo: local\n  hooks:\n  - id: a\n    name: a\n    entry: echo hook\n    language: system\n    verbose: true\n    always_run: true\n',
    },
    before: REPOSITORY_WITH_HOOKS,
    line: 'pre-commit install && git commit --allow-empty -qm x 2>&1 | grep -v duration',
  },
  {
    ...HOOKS,
    tool: 'git',
    task: 'core.hooksPath in a prepare script, npm ci and npm test, commit',
    programs: ['npm', 'git'],
    packages: 'npm git',
    files: {
      'package.json': withHooks(undefined, 'git config core.hooksPath .githooks'),
      '.githooks/pre-commit': `#!/bin/sh\n${HOOK}`,
    },
    before: `chmod +x .githooks/pre-commit && ${PROJECT}`,
    line: `${NPM_CI} && npm test -s && ${COMMIT}`,
  },
  {
    tool: 'pnpm',
    task: 'install of a workspace, run -r',
    programs: ['pnpm'],
    packages: 'npm:pnpm',
    files: {
      'package.json': '{"name":"app","version":"1.0.0","private":true}',
      'pnpm-workspace.yaml': 'packages:\n  - packages/a\n  - packages/b\n',
      'packages/a/package.json':
        '{"name":"a","version":"1.0.0","scripts":{"test":"node -p \\"require(\'b\')\\""},"dependencies":{"b":"workspace:*"}}',
      'packages/b/package.json': '{"name":"b","version":"1.0.0"}',
      'packages/b/index.js': 'module.exports = 42;\n',
    },
    line: 'pnpm install --offline --silent; pnpm -r --silent test',
    varies: /\.modules\.yaml$|\.pnpm-(workspace|task-run)-state/,
  },
  {
    tool: 'pnpm',
    task: 'add to node_modules that were made outside',
    programs: ['pnpm'],
    packages: 'npm:pnpm',
    files: {
      'package.json': '{"name":"app","version":"1.0.0","private":true}',
      'pnpm-workspace.yaml': 'packages:\n  - packages/a\n  - packages/b\n',
      'packages/a/package.json':
        '{"name":"a","version":"1.0.0","scripts":{"test":"node -p \\"require(\'b\')\\""},"dependencies":{"b":"workspace:*"}}',
      'packages/b/package.json': '{"name":"b","version":"1.0.0"}',
      'packages/b/index.js': 'module.exports = 42;\n',
    },
    before: 'pnpm install --offline --silent',
    line: 'pnpm add --offline --silent -w ./packages/b && cat package.json',
    varies: /\.modules\.yaml$|\.pnpm-(workspace|task-run)-state/,
    differsWithoutNamespaces: OTHER_HOME,
  },
  {
    tool: 'yarn classic',
    task: 'install of workspaces, run',
    programs: ['yarn'],
    packages: 'npm:yarn',
    files: {
      'package.json':
        '{"name":"app","version":"1.0.0","private":true,"workspaces":["packages/a","packages/b"]}',
      'packages/a/package.json':
        '{"name":"a","version":"1.0.0","scripts":{"test":"node -p \\"require(\'b\')\\""},"dependencies":{"b":"1.0.0"}}',
      'packages/b/package.json': '{"name":"b","version":"1.0.0"}',
      'packages/b/index.js': 'module.exports = 42;\n',
    },
    line: 'yarn install --offline --silent && yarn -s --cwd packages/a test',
  },
  {
    tool: 'yarn berry',
    task: 'install with Plug’n’Play, run in a workspace',
    programs: ['node', `${GLOBAL}/yarn-berry/bin/yarn.js`],
    packages: 'nodejs npm:@yarnpkg/cli-dist',
    files: {
      'package.json':
        '{"name":"app","version":"1.0.0","private":true,"workspaces":["packages/a","packages/b"]}',
      'packages/a/package.json':
        '{"name":"a","version":"1.0.0","scripts":{"test":"node -p \\"require(\'b\')\\""},"dependencies":{"b":"workspace:*"}}',
      'packages/b/package.json': '{"name":"b","version":"1.0.0"}',
      'packages/b/index.js': 'module.exports = 42;\n',
      '.yarnrc.yml': 'enableNetwork: false\nenableTelemetry: false\n',
    },
    line: `yarn() { node ${GLOBAL}/yarn-berry/bin/yarn.js "$@"; }; yarn install >/dev/null && yarn workspace a test`,
    varies: /^\.yarn\//,
  },
  {
    tool: 'bun',
    task: 'install from a path, run TypeScript, test',
    programs: ['bun'],
    packages: 'npm:bun',
    files: {
      'package.json': '{"name":"app","dependencies":{"lib":"file:lib"}}',
      'lib/package.json': '{"name":"lib","version":"1.0.0","main":"a.js"}',
      'lib/a.js': 'module.exports = 42;\n',
      'a.ts': 'import a from "lib"; const b: number = a; console.log(b);\n',
      'a.test.ts': 'import { expect, test } from "bun:test"; test("adds", () => expect(1 + 1).toBe(2));\n',
    },
    line: 'bun install --silent && bun run a.ts && bun test 2>&1 | grep -E "^ +[0-9]+ (pass|fail)"',
  },
  {
    tool: 'deno',
    task: 'runs and tests TypeScript',
    programs: ['deno'],
    packages: 'npm:deno',
    files: {
      'a.ts': 'const b: number = 42; console.log(b);\n',
      'a_test.ts': 'Deno.test("adds", () => { if (1 + 1 !== 2) throw new Error(); });\n',
    },
    line: 'export NO_COLOR=1; deno run a.ts && deno test --no-check 2>/dev/null | grep -o "1 passed | 0 failed"',
  },
  {
    ...MONOREPO,
    tool: 'turbo',
    task: 'runs a task of two packages, the second time from its cache',
    programs: ['turbo', 'npm', 'git'],
    packages: 'npm:turbo npm git',
    line: 'export TURBO_TELEMETRY_DISABLED=1; for i in 1 2; do turbo run build --no-color 2>/dev/null | grep -E "Tasks:|Cached:"; done',
    varies: /^\.turbo\/|\/\.turbo\/|^\.git\/|^node_modules\//,
  },
  {
    ...MONOREPO,
    tool: 'nx',
    task: 'run-many',
    programs: [`${GLOBAL}/nx/package.json`, 'nx', 'npm', 'git'],
    packages: 'npm:nx npm git',
    before: `${MONOREPO.before} && ln -s ${GLOBAL}/nx node_modules/nx`,
    // By default its sockets are in a directory of /tmp that belongs to whoever ran it first on the machine.
    line: `export NX_SOCKET_DIR=$(mktemp -d /tmp/nx-XXXX); NX_DAEMON=false nx run-many -t build --outputStyle=static 2>&1 | grep -c "built [ab]$"; status=$?; rm -rf "$NX_SOCKET_DIR"; exit $status`,
    varies: /^\.nx\/|^\.git\/|^node_modules\//,
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    ...MONOREPO,
    tool: 'lerna',
    task: 'run in topological order',
    programs: ['lerna', 'npm', 'git'],
    packages: 'npm:lerna npm git',
    line: 'NX_DAEMON=false lerna run build --loglevel silent 2>&1 | grep -c "built [ab]$"',
    varies: /^\.nx\/|^\.git\/|^node_modules\//,
  },
  {
    tool: 'next',
    task: 'build',
    programs: ['node', `${GLOBAL}/next/package.json`, `${GLOBAL}/react-dom/package.json`],
    packages: 'npm:next npm:react npm:react-dom',
    files: {
      'package.json': '{"name":"app","version":"1.0.0"}',
      'pages/index.js': 'export default function A() { return <p>hello</p>; }\n',
    },
    before: `mkdir node_modules && ln -s ${GLOBAL}/next ${GLOBAL}/react ${GLOBAL}/react-dom node_modules/`,
    line: 'NEXT_TELEMETRY_DISABLED=1 node node_modules/next/dist/bin/next build >log 2>&1; echo $?; grep -o "<p>hello</p>" .next/server/pages/index.html',
    varies: /^\.next\/|^log$/,
  },
  {
    tool: 'vite',
    task: 'build',
    programs: ['vite'],
    packages: 'npm:vite',
    files: {
      'package.json': '{"name":"app","type":"module"}',
      'index.html': '<script type="module" src="/a.js"></script>\n',
      'a.js': 'import { b } from "./b.js"; console.log(b);\n',
      'b.js': 'export const b = 42; export const unused = 1;\n',
    },
    line: 'vite build --logLevel silent && ls dist/assets',
  },
  {
    tool: 'jest',
    task: 'a good and a bad test, without watchman',
    programs: ['jest', 'git'],
    packages: 'npm:jest git',
    files: {
      'package.json': '{"name":"app"}',
      'a.test.js': 'test("adds", () => expect(1 + 1).toBe(2));\n',
      'b.test.js': 'test("bad", () => expect(1).toBe(2));\n',
    },
    line: 'jest --ci --no-watchman 2>&1 | grep ^Tests:; exit ${PIPESTATUS[0]}',
  },
  {
    tool: 'jest',
    task: 'the same by watchman',
    programs: ['jest', 'git', 'watchman'],
    packages: 'npm:jest git watchman',
    files: {
      'package.json': '{"name":"app"}',
      'a.test.js': 'test("adds", () => expect(1 + 1).toBe(2));\n',
      'b.test.js': 'test("bad", () => expect(1).toBe(2));\n',
    },
    line: 'jest --ci 2>&1 | grep ^Tests:; status=${PIPESTATUS[0]}; watchman shutdown-server >/dev/null 2>&1; exit $status',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'playwright',
    task: 'a page in Debian’s Chromium',
    programs: ['node', '/usr/bin/chromium', `${GLOBAL}/playwright-core/package.json`],
    packages: 'chromium npm:playwright-core',
    files: {
      'a.js': `const { chromium } = require('${GLOBAL}/playwright-core');\n(async () => {\n  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });\n  const page = await browser.newPage();\n  await page.setContent('<p>hello</p>');\n  console.log(await page.evaluate(() => document.querySelector('p').textContent + 6 * 7));\n  await browser.close();\n})();\n`,
    },
    line: 'node a.js',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'poetry',
    task: 'check, version, config',
    programs: ['poetry'],
    packages: 'python3-poetry',
    files: {
      'pyproject.toml':
        '[tool.poetry]\nname = "a"\nversion = "1.0"\ndescription = "a"\nauthors = ["a <a@example.test>"]\nreadme = "README.md"\npackages = [{ include = "a" }]\n[tool.poetry.dependencies]\npython = "^3.8"\n[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"\n',
      'README.md': 'a\n',
      'a/__init__.py': '',
    },
    line: 'poetry check --no-interaction && poetry version && poetry config virtualenvs.in-project --local true && cat poetry.toml',
  },
  {
    tool: 'pytest',
    task: '-n 2, in two processes',
    programs: ['pytest-3', '/usr/lib/python3/dist-packages/xdist/__init__.py'],
    packages: 'python3-pytest python3-pytest-xdist',
    files: {
      'test_a.py':
        "import pytest\n@pytest.mark.parametrize('n', range(8))\ndef test_n(n, tmp_path):\n  (tmp_path / 'x').write_text('x')\n",
    },
    line: 'pytest-3 -q -n 2 2>&1 | grep passed | sed "s/ in .*//"; exit ${PIPESTATUS[0]}',
    varies: /__pycache__|\.pytest_cache/,
  },
  {
    tool: 'tox',
    task: 'makes an environment and runs in it',
    programs: ['tox'],
    packages: 'tox',
    files: {
      'tox.ini':
        '[tox]\nskipsdist = true\n[testenv]\nskip_install = true\ncommands = python -c "print(42)"\n',
    },
    line: 'tox -q -e py3 2>/dev/null | grep 42; exit ${PIPESTATUS[0]}',
    varies: /^\.tox\//,
  },
  {
    tool: 'jupyter',
    task: 'nbconvert runs a notebook in a kernel',
    programs: ['jupyter-nbconvert', '/usr/share/jupyter/kernels/python3/kernel.json'],
    packages: 'jupyter-nbconvert python3-ipykernel',
    files: {
      'a.ipynb':
        '{"cells":[{"cell_type":"code","id":"a","execution_count":null,"metadata":{},"outputs":[],"source":["print(6 * 7)"]}],"metadata":{"kernelspec":{"name":"python3","display_name":"x","language":"python"}},"nbformat":4,"nbformat_minor":5}',
    },
    line: 'jupyter-nbconvert --execute --to markdown --stdout a.ipynb 2>/dev/null',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'pyzmq',
    task: 'a message between two threads of its own',
    programs: ['python3', '/usr/lib/python3/dist-packages/zmq/__init__.py'],
    packages: 'python3-zmq',
    line: `python3 -c 'import zmq; c = zmq.Context(); a, b = c.socket(zmq.PAIR), c.socket(zmq.PAIR); a.bind("inproc://x"); b.connect("inproc://x"); b.send(b"42"); print(a.recv())'`,
  },
  {
    tool: 'renice',
    task: 'a script makes itself the last in line, by its own number',
    programs: ['renice', 'chrt', 'ionice', 'taskset', 'prlimit', 'python3'],
    packages: 'util-linux python3',
    files: {
      'a.sh':
        "renice -n 19 -p $$ >/dev/null; chrt -b -p 0 $$; ionice -c3 -p $$; taskset -p 1 $$ >/dev/null; prlimit --pid $$ --nofile=80:80\nnice; ionice -p $$; chrt -p $$ | sed 's/.*: //'; taskset -p $$ | sed 's/.*: //'; ulimit -n\nsleep 60 & renice -n 19 -p $! >/dev/null; kill $!\npython3 -c 'import os; os.sched_setaffinity(os.getpid(), {0}); os.setpriority(os.PRIO_PROCESS, os.getpid(), 19)'\n",
    },
    line: 'bash a.sh; echo $?',
  },
  {
    tool: 'cargo',
    task: 'build and test of a workspace with two crates',
    programs: ['/usr/bin/cargo', '/usr/bin/rustc', 'gcc'],
    packages: 'cargo rustc gcc libc6-dev',
    files: {
      'Cargo.toml': '[workspace]\nmembers = ["a", "b"]\n',
      'a/Cargo.toml':
        '[package]\nname = "a"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\nb = { path = "../b" }\n',
      'a/src/main.rs': 'fn main() { println!("{}", b::b()); }\n#[test] fn t() { assert_eq!(b::b(), 42); }\n',
      'b/Cargo.toml': '[package]\nname = "b"\nversion = "1.0.0"\nedition = "2021"\n',
      'b/src/lib.rs': 'pub fn b() -> i32 { 42 }\n',
    },
    line: 'cargo run -q --offline && cargo test -q --offline --workspace 2>/dev/null | grep -c "test result: ok"',
    varies: /^target\//,
  },
  {
    tool: 'sccache',
    task: 'compiles by its server, the second time from its cache',
    programs: ['sccache', 'gcc', 'python3'],
    packages: 'sccache gcc libc6-dev python3',
    files: { 'a.c': C_MAIN },
    line: `${FREE_PORT}; export SCCACHE_DIR=$PWD/cache SCCACHE_SERVER_PORT=$port; for i in 1 2; do sccache gcc -c a.c -o a.o || echo no; done; sccache --stop-server 2>/dev/null | grep -E "^Cache (hits|misses)  "`,
    varies: /^cache\//,
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'gradle',
    task: 'a task of a build file, offline, without a daemon',
    programs: ['gradle', 'java'],
    packages: 'gradle default-jdk-headless',
    files: { 'build.gradle': 'task hello { doLast { println 6 * 7 } }\n', 'settings.gradle': '' },
    line: 'gradle --offline --no-daemon -q hello 2>/dev/null',
    varies: /^\.gradle\//,
    differsWithoutNamespaces: OTHER_HOME,
  },
  {
    tool: 'cmake',
    task: 'compiles by ccache',
    programs: ['cmake', 'ccache', 'gcc', 'make'],
    packages: 'cmake ccache make gcc libc6-dev',
    files: {
      'CMakeLists.txt': 'cmake_minimum_required(VERSION 3.14)\nproject(a C)\nadd_executable(a a.c)\n',
      'a.c': C_MAIN,
    },
    line: 'export CCACHE_DIR=$PWD/cache; for b in 1 2; do cmake -S . -B build -DCMAKE_C_COMPILER_LAUNCHER=ccache >/dev/null && cmake --build build >/dev/null && build/a; rm -rf build; done; ccache --print-stats | grep -E "^(direct|preprocessed)_cache_hit" | cut -f2 | sort -n | tail -1 | grep -vc "^0$"',
    varies: /^cache\//,
  },
  {
    tool: 'clang',
    task: 'address sanitizer finds an error',
    programs: ['clang'],
    packages: 'clang libc6-dev',
    files: {
      'a.c':
        '#include <stdlib.h>\nint main(int c, char **v) { char *p = malloc(4); free(p); return p[c]; }\n',
    },
    line: "clang -g -fsanitize=address -o a a.c && ./a 2>&1 | grep -o 'heap-use-after-free' | head -1; rm a",
  },
  {
    tool: 'rails',
    task: 'new',
    programs: ['rails', 'git'],
    packages: 'ruby-rails ruby-railties git',
    line: 'rails new app --minimal --skip-bundle --quiet >log 2>&1; echo $?; ls app',
    varies: /^app\/|^log$/,
  },
  {
    tool: 'composer',
    task: 'install from a path, autoload',
    programs: ['composer', 'php'],
    packages: 'composer php-cli',
    files: {
      'composer.json':
        '{"name":"a/app","repositories":[{"type":"path","url":"lib"},{"packagist.org":false}],"require":{"a/lib":"*"}}',
      'lib/composer.json': '{"name":"a/lib","version":"1.0.0","autoload":{"files":["a.php"]}}',
      'lib/a.php': '<?php echo "loaded\\n";',
    },
    line: 'COMPOSER_DISABLE_NETWORK=1 composer install -q && php -r "require \'vendor/autoload.php\';"',
    varies: /^vendor\/composer\/|^vendor\/autoload.php$/,
  },
  {
    tool: 'cpanm',
    task: 'builds, tests and installs a distribution from a directory',
    programs: ['cpanm', 'perl', 'make'],
    packages: 'cpanminus perl make',
    files: {
      'A/Makefile.PL': 'use ExtUtils::MakeMaker; WriteMakefile(NAME => "A", VERSION => "1.0");\n',
      'A/lib/A.pm': 'package A; our $VERSION = "1.0"; sub a { 42 } 1;\n',
      'A/t/a.t': 'use Test::More tests => 1; use A; is(A::a(), 42);\n',
    },
    line: 'cpanm -q -l l ./A 2>&1 | tail -1; perl -Il/lib/perl5 -MA -e "print A::a(), qq(\\n)"',
    varies: /^l\//,
  },
  {
    tool: 'dune',
    task: 'build, exec, test',
    programs: ['dune', 'ocamlopt', 'gcc'],
    packages: 'ocaml-dune ocaml-nox gcc',
    files: {
      'dune-project': '(lang dune 2.0)\n',
      dune: '(executable (name a) (modules a))\n(test (name t) (modules t))\n',
      'a.ml': 'let () = print_endline "hello"\n',
      't.ml': 'let () = assert (1 + 1 = 2)\n',
    },
    line: 'dune build 2>/dev/null; dune exec ./a.exe 2>/dev/null && dune test; echo $?',
    varies: /^_build\//,
  },
  {
    tool: 'ghc',
    task: 'compiles and runs, packages of the system',
    programs: ['ghc', 'gcc'],
    packages: 'ghc gcc',
    files: { 'a.hs': 'import qualified Data.Map as M\nmain = print (M.toList (M.fromList [(1, 42)]))\n' },
    line: 'ghc -v0 -o a a.hs && ./a && ghc-pkg list --simple-output | wc -w && runghc a.hs',
    varies: /^a$|\.(o|hi)$/,
  },
  {
    tool: 'watchman',
    task: 'a server that watches a directory',
    programs: ['watchman'],
    packages: 'watchman',
    files: { '.watchmanconfig': '{}', a: '' },
    line: 'watchman --no-pretty watch-project . | grep -c error; watchman shutdown-server >/dev/null; echo $?',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'gpg',
    task: 'a key and a signature in a home of its own',
    programs: ['gpg'],
    packages: 'gnupg',
    line: 'export GNUPGHOME=$(mktemp -d); gpg -q --batch --passphrase "" --quick-generate-key a@example.test ed25519 sign never 2>/dev/null; echo x >a; gpg -q --batch --detach-sign a && gpg --batch --verify a.sig a 2>&1 | grep -c "Good signature"; gpgconf --kill all',
    varies: /\.sig$/,
    differsWithoutNamespaces: UNREADABLE,
  },
  {
    tool: 'node-gyp',
    task: 'builds an addon against the installed headers',
    programs: ['node-gyp', 'g++', 'make', '/usr/include/node/node_api.h'],
    packages: 'g++ make libnode-dev npm:node-gyp',
    files: {
      'package.json': '{"name":"addon","version":"1.0.0"}',
      'binding.gyp': '{"targets":[{"target_name":"addon","sources":["addon.c"]}]}',
      'addon.c':
        '#include <node_api.h>\nNAPI_MODULE_INIT() { napi_value v; napi_create_int32(env, 42, &v); return v; }\n',
    },
    line: 'node-gyp rebuild --nodedir=/usr --silent >/dev/null && node -p \'require("./build/Release/addon.node")\'',
    varies: /^build\//,
  },
  {
    tool: 'node',
    task: 'worker threads, a server and a client on loopback, os.userInfo',
    programs: ['node'],
    packages: 'nodejs',
    files: {
      'a.mjs':
        "import { createServer, get } from 'node:http';\nimport { Worker } from 'node:worker_threads';\nimport { availableParallelism, userInfo } from 'node:os';\nnew Worker('console.log(6 * 7)', { eval: true }).on('exit', () => {\n  const server = createServer((_, response) => response.end('served')).listen(0, '127.0.0.1', () => {\n    get({ port: server.address().port }, (response) => response.pipe(process.stdout).on('unpipe', () => {}) && response.on('end', () => { console.log(); server.close(); }));\n  });\n});\nconsole.log(availableParallelism(), userInfo().username, userInfo().uid);\n",
    },
    line: 'node a.mjs',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'node',
    task: '--test and --watch by inotify',
    programs: ['node'],
    packages: 'nodejs',
    files: {
      'a.test.mjs':
        "import test from 'node:test';\nimport { watch, writeFileSync } from 'node:fs';\ntest('sees a change', (t, done) => {\n  const watcher = watch('.', () => { watcher.close(); done(); });\n  writeFileSync('changed', '');\n});\n",
    },
    line: 'node --test --test-reporter=tap a.test.mjs | grep -E "^# (pass|fail)"',
  },
  {
    tool: 'tsc',
    task: 'compiles a project incrementally',
    programs: ['tsc'],
    packages: 'npm:typescript',
    files: {
      'tsconfig.json':
        '{"compilerOptions":{"outDir":"out","rootDir":"src","incremental":true,"declaration":true,"types":[]},"include":["src"]}',
      'src/a.ts': 'export const a: number = 42;\n',
    },
    line: 'tsc && tsc && find out -type f | sort && cat out/a.d.ts',
  },
  {
    tool: 'python',
    task: 'venv with pip, offline',
    programs: ['python3', '/usr/lib/python3/dist-packages/pip/__init__.py'],
    packages: 'python3-venv python3-pip',
    files: {
      'pkg/pyproject.toml':
        '[project]\nname = "pkg"\nversion = "1.0"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
      'pkg/backend.py':
        "import zipfile\ndef build_wheel(directory, *_):\n  name = 'pkg-1.0-py3-none-any.whl'\n  with zipfile.ZipFile(directory + '/' + name, 'w') as z:\n    z.writestr('pkg.py', 'print(42)')\n    z.writestr('pkg-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: pkg\\nVersion: 1.0\\n')\n    z.writestr('pkg-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n    z.writestr('pkg-1.0.dist-info/RECORD', '')\n  return name\n",
    },
    line: '/usr/bin/python3 -m venv v && v/bin/pip -q --disable-pip-version-check install --no-index --no-build-isolation ./pkg && v/bin/python -m pkg && v/bin/pip --disable-pip-version-check list --format=freeze | grep pkg',
    varies: /__pycache__|RECORD$/,
  },
  {
    tool: 'python',
    task: 'multiprocessing, shared memory, semaphores',
    programs: ['python3'],
    packages: 'python3',
    files: {
      'a.py':
        "import multiprocessing as m\nfrom multiprocessing import shared_memory\ndef f(x): return x * x\nif __name__ == '__main__':\n  for method in ('fork', 'spawn', 'forkserver'):\n    with m.get_context(method).Pool(3) as pool: print(method, sum(pool.map(f, range(100))))\n  s = shared_memory.SharedMemory(create=True, size=1 << 20); s.buf[0] = 42\n  t = shared_memory.SharedMemory(name=s.name); print(t.buf[0]); t.close(); s.close(); s.unlink()\n  print(m.Lock().acquire())\n",
    },
    line: 'python3 a.py',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'python',
    task: 'home, user, locale, time zone as outside',
    programs: ['python3'],
    packages: 'python3',
    line: 'python3 -c \'import os, pwd, locale, time; from pathlib import Path; print(Path.home(), pwd.getpwuid(os.getuid()).pw_dir, locale.setlocale(locale.LC_ALL, ""), time.tzname, os.cpu_count(), len(os.sched_getaffinity(0)))\'',
    differsWithoutNamespaces: OTHER_HOME,
  },
  {
    tool: 'python',
    task: 'unittest, compileall, zipapp, sqlite3 in WAL mode',
    programs: ['python3'],
    packages: 'python3',
    files: {
      'test_a.py':
        "import sqlite3, unittest\nclass A(unittest.TestCase):\n  def test(self):\n    c = sqlite3.connect('d.db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(x)'); c.commit()\n",
      'app/__main__.py': 'print(42)\n',
    },
    line: 'python3 -m unittest -q 2>&1 | grep -c OK; python3 -m compileall -q app; python3 -m zipapp app && python3 app.pyz',
    varies: /__pycache__|\.pyz$|\.db/,
  },
  {
    tool: 'pytest',
    task: 'tmp_path, capture, a failing test',
    programs: ['pytest-3'],
    packages: 'python3-pytest',
    files: {
      'test_a.py':
        "def test_good(tmp_path):\n  (tmp_path / 'x').write_text('x')\ndef test_bad(capsys):\n  assert 1 == 2\n",
    },
    line: 'pytest-3 -q 2>&1 | grep -E "passed|assert 1 == 2$" | sed "s/ in .*//"; exit ${PIPESTATUS[0]}',
    varies: /__pycache__|\.pytest_cache/,
  },
  {
    tool: 'make',
    task: '-j with a job server and a recursive make',
    programs: ['make', 'gcc'],
    packages: 'make gcc libc6-dev',
    files: {
      Makefile:
        'all: sub a b c\n\techo all done\nsub:\n\t+$(MAKE) -C d\na b c: %: %.c\n\t$(CC) -O2 -o $@ $<\n.PHONY: all sub\n',
      'd/Makefile': 'x y z:\n\ttouch $@\nall: x y z\n.DEFAULT_GOAL := all\n',
      'a.c': C_MAIN,
      'b.c': C_MAIN,
      'c.c': C_MAIN,
    },
    line: 'make -j4 --output-sync=target >log && ./a && make -q a b c; ls',
    // Its own: make locks what it writes to, and /dev/null is everybody's.
    varies: /^log$/,
  },
  {
    tool: 'gcc',
    task: 'address and undefined sanitizer find an error',
    programs: ['gcc'],
    packages: 'gcc libc6-dev',
    files: {
      'a.c':
        '#include <stdlib.h>\nint main(int c, char **v) { char *p = malloc(4); free(p); return p[c] + v[0][0]; }\n',
      'leak.c': '#include <stdlib.h>\nint main(void) { return malloc(10) == 0; }\n',
      'good.c': C_MAIN,
    },
    line: "gcc -g -fsanitize=address,undefined -o good good.c && ./good; gcc -g -fsanitize=address -o a a.c && ./a 2>&1 | grep -o 'heap-use-after-free' | head -1; gcc -fsanitize=address -o leak leak.c && ./leak 2>&1 | grep -o 'LeakSanitizer: detected memory leaks'",
  },
  {
    tool: 'gcc',
    task: 'thread sanitizer, -flto, gcov',
    programs: ['gcc', 'gcov'],
    packages: 'gcc libc6-dev',
    files: { 'a.c': C_MAIN },
    line: 'gcc -fsanitize=thread -o t a.c && ./t; gcc -flto -O2 -o l a.c && ./l; gcc --coverage -o g a.c && ./g && gcov g-a.c | grep Lines',
    varies: /\.gc|^[tlg]$/,
  },
  {
    tool: 'gdb',
    task: 'break, backtrace, print',
    programs: ['gdb', 'gcc'],
    packages: 'gdb gcc libc6-dev',
    files: { 'a.c': 'int f(int x) { return x + 1; }\nint main(void) { return f(41); }\n' },
    line: "gcc -g -O0 -o a a.c && gdb -nx -batch -ex 'break f' -ex run -ex bt -ex 'print x' ./a 2>/dev/null | grep -E '^(#|\\$)'",
  },
  {
    tool: 'valgrind',
    task: 'memcheck finds a leak',
    programs: ['valgrind', 'gcc'],
    packages: 'valgrind gcc libc6-dev libc6-dbg',
    files: { 'a.c': '#include <stdlib.h>\nint main(void) { return malloc(10) == 0; }\n' },
    line: "gcc -g -o a a.c && valgrind --leak-check=full --error-exitcode=3 ./a 2>&1 | grep -o 'definitely lost: 10 bytes'; valgrind -q --leak-check=full --error-exitcode=3 ./a 2>/dev/null; echo $?",
  },
  {
    tool: 'strace',
    task: '-f counts the calls of a tree',
    programs: ['strace'],
    packages: 'strace',
    line: 'strace -f -e trace=execve -o t sh -c "/bin/true; /bin/true" && grep -c "execve.*= 0" t',
    varies: /^t$/,
  },
  {
    tool: 'cmake',
    task: 'configure, build, test, install',
    programs: ['cmake', 'gcc', 'make', 'ctest'],
    packages: 'cmake make gcc libc6-dev',
    files: {
      'CMakeLists.txt':
        'cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\nenable_testing()\nadd_test(NAME a COMMAND a)\ninstall(TARGETS a DESTINATION bin)\n',
      'a.c': C_MAIN,
    },
    line: 'cmake -S . -B b >/dev/null && cmake --build b -j2 >/dev/null && (cd b && ctest | grep "tests passed") && cmake --install b --prefix "$PWD/i" >/dev/null && i/bin/a',
    varies: /^b\//,
  },
  {
    tool: 'cmake',
    task: 'FetchContent of a git repository, then rm -rf build',
    programs: ['cmake', 'git', 'gcc', 'make'],
    packages: 'cmake make gcc libc6-dev git',
    files: {
      'CMakeLists.txt':
        'cmake_minimum_required(VERSION 3.14)\nproject(a C)\ninclude(FetchContent)\nFetchContent_Declare(dep GIT_REPOSITORY ${CMAKE_SOURCE_DIR}/dep GIT_TAG main)\nFetchContent_MakeAvailable(dep)\nadd_executable(a a.c)\n',
      'a.c': C_MAIN,
      'dep/CMakeLists.txt': 'add_custom_target(dep)\n',
    },
    before: '(cd dep && git init -q -b main && git add . && git commit -qm dep)',
    line: 'cmake -S . -B build >/dev/null && cmake --build build >/dev/null && build/a && ls build/_deps && rm -rf build && ls',
    varies: /\.git\//,
  },
  {
    tool: 'meson and ninja',
    task: 'setup, compile, test',
    programs: ['meson', 'ninja', 'gcc'],
    packages: 'meson ninja-build gcc libc6-dev',
    files: {
      'meson.build': "project('a', 'c')\nexe = executable('a', 'a.c')\ntest('a', exe)\n",
      'a.c': C_MAIN,
    },
    line: 'export CC=gcc; meson setup b >/dev/null && meson compile -C b >/dev/null && b/a && meson test -C b 2>&1 | grep -E "^Ok:"',
    varies: /^b\//,
  },
  {
    tool: 'ccache',
    task: 'compiles twice, the second time from its cache',
    programs: ['ccache', 'gcc'],
    packages: 'ccache gcc libc6-dev',
    files: { 'a.c': C_MAIN },
    line: 'export CCACHE_DIR=$PWD/cache; ccache gcc -c a.c && ccache gcc -c a.c && ccache --print-stats | grep -E "^(direct|preprocessed)_cache_hit"',
    varies: /^cache\//,
  },
  {
    tool: 'autotools',
    task: 'autoreconf, configure, make check',
    programs: ['autoreconf', 'automake', 'make', 'gcc'],
    packages: 'autoconf automake make gcc libc6-dev',
    files: {
      'configure.ac':
        'AC_INIT([a],[1.0])\nAM_INIT_AUTOMAKE([foreign])\nAC_PROG_CC\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n',
      'Makefile.am': 'bin_PROGRAMS = a\na_SOURCES = a.c\nTESTS = a\n',
      'a.c': C_MAIN,
    },
    line: 'autoreconf -i 2>/dev/null >&2 && ./configure -q && make -s check 2>/dev/null | grep -E "^# (PASS|FAIL)"; ./a',
    varies: /./,
  },
  {
    tool: 'bison and flex',
    task: 'a scanner and a parser',
    programs: ['bison', 'flex', 'm4'],
    packages: 'bison flex m4',
    files: { 'a.l': '%option noyywrap\n%%\n. ;\n', 'a.y': '%token A\n%%\ns: A;\n' },
    line: 'flex -o a.l.c a.l && bison -Wno-yacc -d -o a.y.c a.y && ls',
  },
  {
    tool: 'gfortran',
    task: 'compiles and runs',
    programs: ['gfortran'],
    packages: 'gfortran',
    files: { 'a.f90': "program a\nprint '(a)', 'hello'\nend program\n" },
    line: 'gfortran -o a a.f90 && ./a',
  },
  {
    tool: 'nasm and ld',
    task: 'assembles, links, runs',
    programs: ['nasm', 'ld'],
    packages: 'nasm binutils',
    files: { 'a.asm': 'global _start\n_start: mov eax, 60\nmov edi, 42\nsyscall\n' },
    line: 'nasm -f elf64 a.asm && ld -o a a.o && ./a',
  },
  {
    tool: 'go',
    task: 'build, vet, test of a module, in a repository',
    programs: ['go', 'git'],
    packages: 'golang-go git',
    files: {
      'go.mod': 'module example.test/a\n\ngo 1.19\n',
      'a.go':
        'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(f()) }\n\nfunc f() int { return 42 }\n',
      'a_test.go':
        'package main\n\nimport "testing"\n\nfunc TestF(t *testing.T) {\n\tif f() != 42 {\n\t\tt.Fatal()\n\t}\n}\n',
    },
    before: REPOSITORY,
    line: 'go vet . && go build -o a . && ./a && go version -m a | grep -c vcs.revision; go test . | cut -f1,2',
    varies: /^a$|\.git\//,
  },
  {
    tool: 'go',
    task: 'env GOPATH GOCACHE as outside',
    programs: ['go'],
    packages: 'golang-go',
    line: 'go env GOPATH GOCACHE',
    differsWithoutNamespaces: OTHER_HOME,
  },
  {
    tool: 'java',
    task: 'compiles, runs, user.home as outside',
    programs: ['java', 'javac'],
    packages: 'default-jdk-headless',
    files: {
      'A.java':
        'public class A { public static void main(String[] a) { System.out.println(System.getProperty("user.home") + " " + System.getProperty("user.name") + " " + Runtime.getRuntime().availableProcessors() + " " + Runtime.getRuntime().maxMemory()); } }\n',
    },
    line: 'javac A.java && java A && jar cf a.jar A.class && jar tf a.jar',
    varies: /\.jar$/,
  },
  {
    tool: 'maven',
    task: 'validate, offline',
    programs: ['mvn'],
    packages: 'maven',
    files: {
      'pom.xml':
        '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version></project>\n',
    },
    line: "mvn -o -q validate && echo valid; mvn -v | grep -E 'Maven home|Default locale'",
  },
  {
    tool: 'ruby',
    task: 'standard library, gems of the system',
    programs: ['ruby'],
    packages: 'ruby',
    line: 'ruby -rjson -rtempfile -rsocket -retc -e \'puts JSON.generate([Etc.getpwuid.name.size > 1, Tempfile.new.path.empty?, Etc.nprocessors]); s = TCPServer.new("127.0.0.1", 0); c = TCPSocket.new("127.0.0.1", s.addr[1]); puts 1\'; gem list 2>/dev/null | grep -c .',
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'ruby',
    task: 'Dir.home is that of passwd',
    programs: ['ruby'],
    packages: 'ruby',
    line: "ruby -retc -e 'puts Dir.home == Etc.getpwuid.dir'",
    differsWithoutNamespaces: OTHER_HOME,
  },
  {
    tool: 'bundler',
    task: 'install from a path and exec',
    programs: ['ruby', 'bundle'],
    packages: 'ruby ruby-bundler',
    files: {
      Gemfile: "gem 'leftish', path: 'leftish'\n",
      'leftish/leftish.gemspec':
        "Gem::Specification.new { |s| s.name = 'leftish'; s.version = '1.0'; s.summary = s.authors = 'x'; s.files = ['lib/leftish.rb'] }\n",
      'leftish/lib/leftish.rb': 'puts 42\n',
    },
    line: 'bundle install --local --quiet && bundle exec ruby -rleftish -e "puts 1" && cat Gemfile.lock',
  },
  {
    tool: 'php',
    task: 'extensions, a built-in server',
    programs: ['php', 'python3'],
    packages: 'php-cli python3',
    files: { 'a.php': '<?php echo "served\\n";' },
    line: `php -m | sort; ${FREE_PORT}; exec 3< <(exec php -S 127.0.0.1:$port 2>&1); server=$!; ${until('started')}; php -r "echo file_get_contents('http://127.0.0.1:$port/a.php');"; kill $server`,
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'perl',
    task: 'core modules, prove',
    programs: ['perl', 'prove'],
    packages: 'perl',
    files: { 't/a.t': 'use Test::More tests => 1; ok(-d $ENV{HOME});\n' },
    line: 'prove -q t | sed "s/,.*//;s/Files.*//"; perl -MPOSIX -MFile::Temp=tempfile -MList::Util=sum -MDigest::SHA=sha1_hex -e "print sum(1..9), q( ), sha1_hex(q(x)), qq(\\n)"',
  },
  {
    tool: 'R',
    task: 'statistics, packages of the system, a plot',
    programs: ['Rscript'],
    packages: 'r-base-core',
    line: 'Rscript -e \'cat(coef(lm(dist ~ speed, cars)), "\\n"); pdf("a.pdf"); plot(1); invisible(dev.off()); cat(nrow(installed.packages()), .libPaths(), "\\n"); library(parallel); print(unlist(mclapply(1:3, function(x) x * x)))\'',
    varies: /\.pdf$/,
  },
  {
    tool: 'ocaml',
    task: 'ocamlfind, ocamlopt',
    programs: ['ocamlopt', 'gcc'],
    packages: 'ocaml-nox gcc',
    files: { 'a.ml': 'let () = print_endline "hello"\n' },
    line: 'ocamlopt -o a a.ml && ./a && ocaml a.ml',
  },
  {
    tool: 'lua',
    task: 'runs a script',
    programs: ['lua5.4'],
    packages: 'lua5.4',
    line: 'lua5.4 -e \'print(os.getenv("HOME") ~= nil, 6 * 7, #os.tmpname() > 0)\'',
  },
  {
    tool: 'guile',
    task: 'compiles into its cache and runs',
    programs: ['guile'],
    packages: 'guile-3.0',
    files: { 'a.scm': '(use-modules (ice-9 ftw)) (display (* 6 7)) (newline)\n' },
    line: 'guile a.scm 2>/dev/null && guile a.scm 2>/dev/null',
  },
  {
    tool: 'sbcl',
    task: 'runs a script',
    programs: ['sbcl'],
    packages: 'sbcl',
    files: { 'a.lisp': '(format t "~a~%" (* 6 7))\n' },
    line: 'sbcl --script a.lisp',
  },
  {
    tool: 'erlang',
    task: 'compiles and runs a module',
    programs: ['erlc', 'erl'],
    packages: 'erlang-base',
    files: { 'a.erl': '-module(a).\n-export([main/0]).\nmain() -> io:format("~p~n", [6 * 7]), halt().\n' },
    line: 'erlc a.erl && erl -noshell -s a main',
  },
  {
    tool: 'tcl',
    task: 'runs a script',
    programs: ['tclsh'],
    packages: 'tcl',
    files: { 'a.tcl': 'puts [expr {6 * 7}]\nputs [clock format 0 -format %Y -gmt 1]\n' },
    line: 'tclsh a.tcl',
  },
  {
    tool: 'latex',
    task: 'a document to PDF',
    programs: ['pdflatex'],
    packages: 'texlive-latex-base',
    files: {
      'a.tex':
        '\\documentclass{article}\\begin{document}Hello $x^2$ \\ref{a}\\section{A}\\label{a}\\end{document}\n',
    },
    line: 'pdflatex -interaction=batchmode a.tex >/dev/null; pdflatex -interaction=batchmode a.tex >/dev/null; echo $?; head -c 5 a.pdf',
    varies: /\.(pdf|log)$/,
  },
  {
    tool: 'pandoc',
    task: 'Markdown to HTML and docx',
    programs: ['pandoc', 'unzip'],
    packages: 'pandoc unzip',
    files: { 'a.md': '# A\n\n*b* `c`\n' },
    line: 'pandoc a.md && pandoc -o a.docx a.md && unzip -l a.docx | grep -c xml',
    varies: /\.docx$/,
  },
  {
    tool: 'graphviz',
    task: 'dot to SVG and PNG, with fonts',
    programs: ['dot'],
    packages: 'graphviz',
    line: 'echo "digraph { a -> b }" | dot -Tsvg; echo "digraph { a -> b }" | dot -Tpng | head -c 4 | tail -c 3',
  },
  {
    tool: 'gnuplot',
    task: 'a plot to SVG',
    programs: ['gnuplot'],
    packages: 'gnuplot-nox',
    line: 'gnuplot -e "set term svg; set output \'a.svg\'; plot sin(x)" && grep -c path a.svg',
  },
  {
    tool: 'imagemagick',
    task: 'draws, scales, identifies, by its policy of /etc',
    programs: ['convert', 'identify'],
    packages: 'imagemagick',
    line: "convert -size 40x40 xc:red -resize 50% a.png && identify -format '%m %w %h\\n' a.png && convert -list policy | grep -c Policy",
    varies: /\.png$/,
  },
  {
    tool: 'ffmpeg',
    task: 'makes and probes a video',
    programs: ['ffmpeg', 'ffprobe'],
    packages: 'ffmpeg',
    line: 'ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x64:rate=5 -y a.mp4 </dev/null && ffprobe -v error -show_entries stream=codec_type,width,nb_frames -of csv a.mp4',
    varies: /\.mp4$/,
  },
  {
    tool: 'sqlite',
    task: 'WAL from two processes',
    programs: ['sqlite3'],
    packages: 'sqlite3',
    line: "sqlite3 d.db 'pragma journal_mode=wal; create table t(x);'; for i in 1 2 3 4; do sqlite3 -cmd '.timeout 20000' d.db \"insert into t values($i)\" & done; wait; sqlite3 d.db 'select sum(x) from t; pragma integrity_check'",
    varies: /d\.db/,
  },
  {
    tool: 'postgres',
    task: 'a server of a test: initdb, start, query, stop',
    programs: ['initdb', 'pg_ctl', 'psql'],
    packages: 'postgresql',
    line: 'initdb -D d -A trust -U me >/dev/null && pg_ctl -D d -w -l log -o "-k $PWD -c listen_addresses=" start >/dev/null && psql -h "$PWD" -U me -Atc "select 6 * 7" postgres; pg_ctl -D d -w -m fast stop',
    varies: /^d\/|^log$/,
    differsWithoutNamespaces: NO_SYSTEM_V,
  },
  {
    tool: 'redis',
    task: 'a server of a test: start, set, get, stop',
    programs: ['redis-server', 'redis-cli'],
    packages: 'redis-server redis-tools',
    line: `exec 3< <(exec redis-server --port 0 --unixsocket "$PWD/s" --save '' --daemonize no 2>&1); server=$!; ${until('accept connections')}; redis-cli -s s set a 42; redis-cli -s s get a; redis-cli -s s shutdown nosave; cat <&3 >/dev/null`,
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'tmux',
    task: 'a session of its own, send-keys, capture-pane',
    programs: ['tmux'],
    packages: 'tmux',
    line: 'tmux -f /dev/null -S "$PWD/t" new-session -d -x 80 -y 24 "echo in tmux; tmux -S $PWD/t wait-for -S up; cat"; tmux -S "$PWD/t" wait-for up; tmux -S "$PWD/t" capture-pane -p | head -1; tmux -S "$PWD/t" kill-server; rm -f t',
    differsWithoutNamespaces: NO_TERMINALS,
  },
  {
    tool: 'script',
    task: 'a pseudo terminal',
    programs: ['script'],
    packages: 'bsdutils',
    line: 'script -qec "stty -a | head -1 | cut -d\\; -f2; tty | cut -c1-9" /dev/null',
    differsWithoutNamespaces: NO_TERMINALS,
  },
  {
    tool: 'expect',
    task: 'drives a program on a terminal',
    programs: ['expect'],
    packages: 'expect',
    files: {
      'a.exp':
        'log_user 0\nspawn sh -c "read -p name? n; echo hello-\\$n"\nexpect "name?"\nsend "x\\r"\nexpect "hello-x"\nputs ok\n',
    },
    line: 'expect a.exp',
    differsWithoutNamespaces: NO_TERMINALS,
  },
  {
    tool: 'docker',
    task: 'lists containers',
    programs: ['docker'],
    packages: 'docker.io',
    line: 'docker ps',
    differs:
      'refused with its reason before it starts: its server works outside of every sandbox; `commands.permit_dangerous` permits it',
  },
  {
    tool: 'less',
    task: 'a file and a pipe',
    programs: ['less'],
    packages: 'less',
    files: { a: 'page\n' },
    line: 'less a; cat a | less -R',
  },
  {
    tool: 'vim',
    task: 'edits, with swap and undo files',
    programs: ['vim'],
    packages: 'vim',
    files: { a: 'a\n' },
    line: "vim -es -c 'set undofile undodir=. swapfile' -c '%s/a/b/' -c wq a; cat a; vim --version | head -1",
    varies: /\.un~$/,
  },
  {
    tool: 'ed',
    task: 'edits a file',
    programs: ['ed'],
    packages: 'ed',
    files: { a: 'a\n' },
    line: "printf 's/a/b/\\nw\\nq\\n' | ed -s a; cat a",
  },
  {
    tool: 'fzf',
    task: 'filters without a terminal',
    programs: ['fzf'],
    packages: 'fzf',
    line: "printf 'apple\\nbanana\\n' | fzf -f ban",
  },
  {
    tool: 'ssh',
    task: 'keygen, a server of its own on loopback, a command over it',
    programs: ['/usr/sbin/sshd', 'ssh', 'ssh-keygen', 'python3'],
    packages: 'openssh-server openssh-client python3',
    before:
      'ssh-keygen -q -t ed25519 -N "" -f host && ssh-keygen -q -t ed25519 -N "" -f key && cp key.pub auth',
    line: `${FREE_PORT}; exec 3< <(exec /usr/sbin/sshd -D -e -f /dev/null -p $port -o ListenAddress=127.0.0.1 -h "$PWD/host" -o AuthorizedKeysFile="$PWD/auth" -o StrictModes=no -o UsePAM=no -o PidFile=none 2>&1); server=$!; ${until('listening')}; ssh -F /dev/null -i key -p $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=known -o BatchMode=yes 127.0.0.1 'echo over ssh; pwd | grep -c /' 2>err; kill $server`,
    varies: /^(err|known|host|key|auth)/,
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'ssh-agent',
    task: 'an agent of its own signs a commit',
    programs: ['git', 'ssh-agent', 'ssh-add', 'ssh-keygen'],
    packages: 'git openssh-client',
    before: `${REPOSITORY}; ssh-keygen -q -t ed25519 -N "" -C me -f k`,
    line: 'eval "$(ssh-agent -s -a "$PWD/s")" >/dev/null && ssh-add -q k && git -c gpg.format=ssh -c user.signingkey=k.pub commit -q --allow-empty -S -m signed; git cat-file -p HEAD | grep -c "BEGIN SSH SIGNATURE"; ssh-agent -k >/dev/null; tail -s 0.05 --pid=$SSH_AGENT_PID -f /dev/null',
    varies: /\.git\/|^k/,
    differsWithoutNamespaces: UNREADABLE,
  },
  {
    tool: 'rsync',
    task: '-aHX --delete',
    programs: ['rsync'],
    packages: 'rsync',
    options: ['--approved'],
    line: 'mkdir -p a/d b; echo x > a/d/f; ln a/d/f a/h; ln -s f a/d/l; echo y > b/old; rsync -aHX --delete a/ b/ && ls -R b && stat -c %h b/h',
  },
  {
    tool: 'tar',
    task: 'gzip, xz, zstd; modes, links and times stay',
    programs: ['tar', 'xz', 'zstd', 'gzip'],
    packages: 'tar xz-utils zstd gzip',
    line: 'mkdir d; echo x > d/f; chmod 640 d/f; ln -s f d/l; ln d/f d/h; touch -d @1000000000 d/f; for c in gzip xz zstd; do tar --$c -cf a.$c d && mkdir $c && tar -xf a.$c -C $c && stat -c "%a %h %Y" $c/d/f; readlink $c/d/l; done',
    varies: /^a\./,
  },
  {
    tool: 'zip',
    task: 'packs, lists, unpacks',
    programs: ['zip', 'unzip'],
    packages: 'zip unzip',
    line: 'mkdir d; echo x > d/f; chmod 755 d/f; zip -qr a.zip d && rm -r d && unzip -q a.zip && stat -c "%a %n" d/f && unzip -Z1 a.zip',
    varies: /\.zip$/,
  },
  {
    tool: 'locale',
    task: 'names, sorts and dates as outside',
    programs: ['locale'],
    packages: 'libc-bin',
    line: "locale; locale -a; LC_ALL=C.UTF-8 printf '%s\\n' ä z a | sort; date -d @0 '+%c %Z'; nproc; ulimit -n; ulimit -s",
  },
  {
    tool: 'gettext',
    task: 'compiles and finds a translation',
    programs: ['msgfmt', 'gettext'],
    packages: 'gettext gettext-base',
    files: { 'a.po': 'msgid "yes"\nmsgstr "ja"\n' },
    line: 'mkdir -p de/LC_MESSAGES && msgfmt -o de/LC_MESSAGES/a.mo a.po && LANGUAGE=de TEXTDOMAINDIR=$PWD LC_ALL=C.UTF-8 gettext a yes',
  },
  {
    tool: 'inotifywait',
    task: 'sees a file that another process makes',
    programs: ['inotifywait'],
    packages: 'inotify-tools',
    line: `exec 3< <(exec inotifywait -e create --format %f . 2>&1); ${until('established')}; touch new; cat <&3`,
  },
  {
    tool: 'files',
    task: 'sparse files and holes',
    programs: ['fallocate'],
    packages: 'util-linux',
    line: 'truncate -s 1G a && stat -c "%s %b" a && fallocate -l 1M b && fallocate -p -o 0 -l 512K b && stat -c %s b && cp --sparse=always b c && stat -c %s c; rm a',
  },
  {
    tool: 'files',
    task: 'extended attributes of a user',
    programs: ['setfattr', 'getfattr'],
    packages: 'attr',
    line: 'echo x > a && setfattr -n user.k -v v a && cp --preserve=xattr a b && getfattr -n user.k --only-values b',
  },
  {
    tool: 'files',
    task: 'hard links, odd names, umask',
    programs: ['find'],
    packages: 'findutils',
    line: "umask 027; echo x > $'a\\nb'; ln $'a\\nb' ' -c'; touch $'\\xff' '*' \"q'q\"; ln -s nowhere dangling; mkfifo p; stat -c '%a %h %F' *; find . -print0 | sort -z | tr '\\0\\n' ';|'",
  },
  {
    tool: 'files',
    task: 'set-group-ID of a directory',
    programs: [],
    packages: 'coreutils',
    line: 'mkdir -m 2770 g && install -d -m 2755 h && chmod g+s . && stat -c %a g h',
  },
  {
    tool: 'machine',
    task: 'processors, memory, limits, locale and time zone as outside',
    programs: ['nproc'],
    packages: 'coreutils',
    line: 'nproc; grep MemTotal /proc/meminfo; ulimit -Hn; locale 2>/dev/null | sort; date +%z -d @0; cut -d: -f3 /proc/self/cgroup',
  },
  {
    tool: 'files',
    task: 'flock between processes, atomic rename, /tmp to the workspace',
    programs: ['flock'],
    packages: 'util-linux',
    line: 'for i in $(seq 8); do flock l sh -c "n=\\$(cat n 2>/dev/null || echo 0); echo \\$((n + 1)) > n.new; mv n.new n" & done; wait; cat n; t=$(mktemp) && echo moved > $t && mv $t here && cat here',
  },
  {
    tool: 'bash',
    task: 'process substitution, coproc, job control, traps',
    programs: ['bash'],
    packages: 'bash',
    line: 'diff <(echo a) <(echo a) && echo same; coproc cat; echo x >&${COPROC[1]}; read -r y <&${COPROC[0]}; echo $y; trap "echo term" TERM; kill $$; trap "echo bye" EXIT; (sleep 0.1; exit 7) & wait $!; echo $?; cat <<<here; exec 5<>/dev/null; ulimit -c; timeout 0.1 sleep 5; echo $?',
  },
  {
    tool: 'zsh',
    task: 'globs, completion modules',
    programs: ['zsh'],
    packages: 'zsh',
    line: "touch a b; zsh -c 'print -l *(.N); autoload -U compinit && print ok; zmodload zsh/datetime && print ${#EPOCHSECONDS}'",
  },
  {
    tool: 'fakeroot',
    task: 'files look like root’s',
    programs: ['fakeroot'],
    packages: 'fakeroot',
    line: 'fakeroot sh -c "touch a; chown 0:0 a; stat -c %u:%g a; id -u"',
    differs:
      '`chown` in the text is refused as dangerous, although fakeroot only pretends it; `commands.permit_dangerous` permits it',
  },
  {
    tool: 'bats',
    task: 'runs a test file',
    programs: ['bats'],
    packages: 'bats',
    files: { 'a.bats': '@test "adds" {\n  [ $((1 + 1)) = 2 ]\n}\n' },
    line: 'bats --tap a.bats',
  },
  {
    tool: 'shellcheck',
    task: 'finds an unquoted variable',
    programs: ['shellcheck'],
    packages: 'shellcheck',
    files: { 'a.sh': '#!/bin/sh\nx=1\necho $x\n' },
    line: 'shellcheck -f gcc a.sh',
  },
  {
    tool: 'aspell',
    task: 'checks words',
    programs: ['aspell', '/usr/lib/aspell/en.multi'],
    packages: 'aspell aspell-en',
    line: "echo 'helo world' | aspell -l en list",
  },
  {
    tool: 'parallel',
    task: 'runs jobs side by side',
    programs: ['parallel'],
    packages: 'parallel',
    line: "seq 5 | parallel --will-cite -k -j3 'echo {}'",
  },
  {
    tool: 'xml and man',
    task: 'xmllint, xsltproc, groff',
    programs: ['xmllint', 'xsltproc', 'groff'],
    packages: 'libxml2-utils xsltproc groff',
    files: { 'a.xml': '<a><b/></a>\n', 'a.1': '.TH A 1\n.SH NAME\na\n' },
    line: "xmllint --format a.xml && groff -man -Tutf8 a.1 | grep -c NAME; echo \"<x:stylesheet version='1.0' xmlns:x='http://www.w3.org/1999/XSL/Transform'/>\" > s.xsl && xsltproc s.xsl a.xml",
  },
  {
    tool: 'jq and rg',
    task: 'reads JSON, searches a tree',
    programs: ['jq', 'rg'],
    packages: 'jq ripgrep',
    files: { 'a.json': '{"a":[1,2]}\n', '.gitignore': 'ignored\n', ignored: 'needle\n', found: 'needle\n' },
    line: 'jq -c .a a.json; rg -l needle | sort',
  },
  {
    tool: 'openssl and curl',
    task: 'certificates of the system, TLS on loopback',
    programs: ['openssl', 'curl', 'python3'],
    packages: 'openssl curl ca-certificates python3',
    line: `openssl req -x509 -newkey ed25519 -nodes -keyout k.pem -out c.pem -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null; ls /etc/ssl/certs | wc -l; ${FREE_PORT}; exec 3< <(exec openssl s_server -accept 127.0.0.1:$port -key k.pem -cert c.pem -www 2>&1); server=$!; ${until('ACCEPT')}; curl -s --cacert c.pem -o page https://127.0.0.1:$port/; grep -c 's_server' page; kill $server`,
    varies: /^(k|c)\.pem$|^page$/,
    optionsWithoutNamespaces: OWN_SOCKETS,
  },
  {
    tool: 'time and cgroups',
    task: 'free, df, ps of its own, /proc/self',
    programs: ['ps', 'free'],
    packages: 'procps',
    line: "free -m | awk 'NR == 2 { print $2 }'; df -P . | awk 'NR == 2 { print $2 }'; ps -o comm= -p $$; cat /proc/self/comm; readlink /proc/self/cwd; uptime -p >/dev/null && echo up",
  },
];

export const TOOLS_WITHOUT_ROW: readonly ToolWithoutRow[] = [
  { tool: 'bazel', why: 'not in Debian 12; what npm has fetches it from elsewhere' },
  { tool: 'cabal', why: 'in Debian, but it needs the index of Hackage, which only the network has' },
  { tool: 'dotnet', why: 'not in Debian 12' },
  { tool: 'julia', why: 'not in Debian 12' },
  { tool: 'sbt', why: 'not in Debian 12' },
  { tool: 'uv', why: 'not in Debian 12; it comes from PyPI' },
  { tool: 'zig', why: 'not in Debian 12' },
];
