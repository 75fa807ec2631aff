// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { type Case, describeCases } from './support/cases.ts';

/** Bash that makes the mark where a name leads to what the command chose. */
const writesThrough = (name: string, file: string) =>
  `echo x > ${name}; if grep -qx x ${file}; then touch "$MARK"; fi`;

const link = (one: Omit<Case, 'tool' | 'expected'>): Case => ({
  ...one,
  tool: "an agent's tool for files",
  expected: 'told',
  on: 'each tier',
});

describeCases('a link that leads a writer astray', [
  link({
    name: 'to a file of the project that is protected',
    make: 'mkdir -p .claude docs; echo {} > .claude/settings.json',
    attack: 'ln -s ../.claude/settings.json docs/vid.mp4',
    later: writesThrough('docs/vid.mp4', '.claude/settings.json'),
    path: 'docs/vid.mp4',
  }),
  link({
    name: 'to a protected file that is not there yet',
    attack: 'ln -s .vscode/tasks.json notes.md',
    later: `mkdir -p .vscode; ${writesThrough('notes.md', '.vscode/tasks.json')}`,
    path: 'notes.md',
  }),
  link({
    name: 'to a hook',
    make: 'mkdir -p .git/hooks',
    attack: 'ln -s .git/hooks/pre-commit check.sh',
    later: writesThrough('check.sh', '.git/hooks/pre-commit'),
    path: 'check.sh',
  }),
  link({
    name: 'to a file of the user outside, there or not',
    make: 'mkdir ../elsewhere; echo mine > ../elsewhere/rc',
    attack: 'ln -s "$PWD/../elsewhere/rc" a.txt; ln -s ../elsewhere/new b.txt',
    later: `${writesThrough('a.txt', '../elsewhere/rc')}; ${writesThrough('b.txt', '../elsewhere/new')}`,
    path: 'b.txt',
  }),
  link({
    name: 'to a directory outside, by another link, deep in the project',
    make: 'mkdir -p ../elsewhere a/b/c',
    attack: 'ln -s ../../../../elsewhere a/b/c/one; ln -s one a/b/c/two',
    later: writesThrough('a/b/c/two/f', '../elsewhere/f'),
    path: 'a/b/c/two',
  }),
  link({
    name: 'that was there and led elsewhere',
    make: 'mkdir ../elsewhere; echo > ../elsewhere/f; echo > ok; ln -s ok notes',
    attack: 'ln -sfn ../elsewhere/f notes',
    later: writesThrough('notes', '../elsewhere/f'),
    path: 'notes',
  }),
  link({
    name: 'of a name that is not UTF-8',
    make: 'mkdir ../elsewhere; echo > ../elsewhere/f',
    attack: `ln -s ../elsewhere/f $'n\\xff'`,
    later: writesThrough(`$'n\\xff'`, '../elsewhere/f'),
  }),
]);

const NEW: readonly (readonly [tool: string, path: string])[] = [
  ['agents', 'AGENTS.md'],
  ['agents', 'deep/in/it/AGENTS.md'],
  ['Claude Code', 'CLAUDE.md'],
  ['Gemini CLI', 'GEMINI.md'],
  ['Copilot', '.github/copilot-instructions.md'],
  ['Copilot', '.github/instructions/all.instructions.md'],
  ['Cursor', '.cursorrules'],
  ['Windsurf', '.windsurfrules'],
  ['GitHub Actions', '.github/workflows/ci.yml'],
  ['GitHub Actions', '.github/workflows/deep/other.yaml'],
  ['GitHub Actions', '.github/actions/mine/action.yml'],
  ['GitLab CI', '.gitlab-ci.yml'],
  ['CircleCI', '.circleci/config.yml'],
  ['Jenkins', 'Jenkinsfile'],
  ['Azure Pipelines', 'azure-pipelines.yml'],
  ['Pylint', '.pylintrc'],
  ['Prettier', '.prettierrc.js'],
  ['ESLint', 'eslint.config.ts'],
  ['ESLint', 'packages/a/.eslintrc.json'],
  ['Vite', 'vite.config.ts'],
  ['Vite', 'packages/a/vitest.config.mjs'],
  ['git', '.gitmodules'],
];

const file = (path: string) =>
  path.includes('/') ? `mkdir -p ${path.slice(0, path.lastIndexOf('/'))}; ` : '';

describeCases(
  'a file that comes, or that a command changes, is told',
  NEW.flatMap(([tool, path]): readonly Case[] => [
    {
      name: `${path}, new`,
      tool,
      attack: `${file(path)}echo '# evil' > ${path}`,
      later: `grep -q evil ${path} && touch "$MARK"`,
      expected: 'told',
      path,
    },
    {
      name: `${path}, changed`,
      tool,
      make: `${file(path)}echo '# mine' > ${path}; git add .; git commit -qm mine`,
      attack: `echo '# evil' >> ${path}`,
      later: `grep -q evil ${path} && touch "$MARK"`,
      expected: 'told',
      path,
    },
  ]),
);

const manifest = (one: Pick<Case, 'name' | 'make' | 'attack'> & { readonly path?: string }): Case => ({
  path: 'package.json',
  ...one,
  tool: 'npm and others',
  later: `grep -rqs evil . --include=package.json && touch "$MARK"`,
  expected: 'told',
});

describeCases('what a package.json has run', [
  manifest({ name: 'new scripts', attack: `echo '{"scripts": {"test": "evil"}}' > package.json` }),
  manifest({
    name: 'a script that is another one',
    make: `echo '{"scripts": {"test": "true"}}' > package.json`,
    attack: 'sed -i s/true/evil/ package.json',
  }),
  manifest({
    name: 'a script that comes with the second command',
    make: `echo '{"name": "x"}' > package.json`,
    attack: [
      'sed -i s/x/y/ package.json',
      `echo '{"name": "y", "scripts": {"postinstall": "evil"}}' > package.json`,
    ],
  }),
  manifest({
    name: 'hooks of husky',
    attack: `echo '{"husky": {"hooks": {"pre-commit": "evil"}}}' > package.json`,
  }),
  manifest({ name: 'what nobody can read', attack: 'echo evil > package.json' }),
  {
    name: 'another configuration of a virtual environment that was there',
    tool: 'Python',
    make: 'mkdir -p .venv/bin; ln -s /usr/bin/python3 .venv/bin/python; echo home = /usr/bin > .venv/pyvenv.cfg',
    attack: 'echo home = /evil > .venv/pyvenv.cfg',
    later: 'grep -q evil .venv/pyvenv.cfg && touch "$MARK"',
    expected: 'told',
    path: '.venv/pyvenv.cfg',
  },
  {
    name: 'a Makefile of a worktree that is not what is tracked',
    tool: 'make',
    make: `printf 'all:\\n' > Makefile; git add .; git commit -qm m`,
    attack: `git worktree add -q tree -b tree; printf 'all:\\n\\tevil\\n' > tree/Makefile`,
    later: 'grep -q evil tree/Makefile && touch "$MARK"',
    expected: 'told',
    path: 'tree/Makefile',
  },
]);

describeCases('programs in .gitmodules', [
  {
    name: 'of an update',
    tool: 'git',
    attack: `printf '[submodule "a"]\\n\\tpath = a\\n\\turl = ./a\\n\\tupdate = !touch mark\\n' > .gitmodules`,
    later: 'if grep -q "update = !" .gitmodules; then touch "$MARK"; fi',
    expected: 'shut',
    path: '.gitmodules',
    on: 'each tier',
    still: 'test "$(git config -f .gitmodules submodule.a.url)" = ./a',
  },
  {
    name: 'of an update, by other ways to write it',
    tool: 'git',
    make: `printf '[submodule "a"]\\n\\tpath = a\\n\\tupdate = merge\\n' > .gitmodules; git add .; git commit -qm m`,
    attack: `printf '[SubModule "a"]\\n\\tUPDATE=\\\\\\n!touch mark\\n[submodule "b\\xff"] update = "!touch mark"\\n' >> .gitmodules`,
    later: 'if grep -q "!touch" .gitmodules; then touch "$MARK"; fi',
    expected: 'shut',
    path: '.gitmodules',
    still: 'test "$(git config -f .gitmodules submodule.a.update)" = merge',
  },
  {
    name: 'of an update, in a project beneath and by a link',
    tool: 'git',
    attack: `mkdir -p sub; printf '[submodule "a"]\\n\\tupdate = !touch mark\\n' > sub/modules; ln -s modules sub/.gitmodules`,
    later: 'if grep -qs "update = !" sub/.gitmodules; then touch "$MARK"; fi',
    expected: 'shut',
    path: 'sub/.gitmodules',
  },
]);
