import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { explainProgram } from '../../../src/cli/index.ts';
import { findProgram, grammarOf, optionTable, PROGRAM_ROWS } from '../../../src/judge/index.ts';
import { CLASSIC_ALLOW_LIST, judgeText } from '../../support/policy-world.ts';

const PAGE = fileURLToPath(new URL('../../../docs/programs.md', import.meta.url));

const ROWS = PROGRAM_ROWS.map(({ names }) => {
  const [first = ''] = names.split(' ');
  const [summary = '', second = ''] = explainProgram(first) ?? [];
  const says = summary.slice(first.length + 2);
  const refused = /^ {2}refused/.test(second) ? `; ${second.trim()}` : '';
  return `| ${names
    .split(' ')
    .map((name) => `\`${name}\``)
    .join(' ')} | ${says}${refused} |`;
});

/** A call of each that is let through, in which one option more can stand. */
const CALLS: Readonly<Record<string, (option: string) => string>> = {
  ls: (option) => `ls ${option} src`,
  cat: (option) => `cat ${option} a.txt`,
  cp: (option) => (/^-t$|target-directory/.test(option) ? `cp ${option} a.txt` : `cp ${option} a.txt b.txt`),
  head: (option) => `head ${option} a.txt`,
  printenv: (option) => `printenv ${option} HOME`,
  pwd: (option) => `pwd ${option}`,
  rg: (option) => `rg ${option} x src`,
  sed: (option) => `sed ${option} s/a/b/ a.txt`,
  which: (option) => `which ${option} ls`,
};

/** The options of a program by what the profile says of them. */
function optionsUnderList(name: string): string {
  const { rules } = optionTable(grammarOf(findProgram(name) ?? {}) ?? {});
  const shown: Record<string, string[]> = { '': [] };
  for (const { name: option, effect, value } of rules.values()) {
    const dashed = option.length === 1 ? `-${option}` : `--${option}`;
    const given = effect === 'reads' ? 'a.txt' : effect === 'writes' ? 'docs' : name === 'sed' ? 'p' : '1';
    const call =
      value === 'required' ? (option.length === 1 ? `${dashed} ${given}` : `${dashed}=${given}`) : dashed;
    const { reasons } = judgeText(CALLS[name]?.(call) ?? '', { rules: { allow: CLASSIC_ALLOW_LIST } });
    const refusal = reasons.find(({ verdict }) => verdict === 'deny');
    const why = refusal === undefined ? '' : refusal.message.replaceAll(/ through -.*| -\S+.*/g, '');
    shown[why] = [...(shown[why] ?? []), `\`${dashed}\``];
  }
  const { '': allowed = [], ...refused } = shown;
  const refusals = Object.entries(refused).map(([why, options]) => `${options.join(' ')}: ${why}`);
  return `| \`${name}\` | ${allowed.join(' ')} | ${refusals.join('; ')} |`;
}

const TEXT = `# Programs

\`sandbox-run policy explain-program git\` shows what is known of one program: its options by what they do, its verbs, which
of its words are paths, and what it runs.

The sandbox holds every program alike; this table is what questions, refusals and explanations go by. A program that is not
in it may do anything that the sandbox lets it do, with risk medium and its use of the network unknown. To add one, add a
row to the file of its family in \`src/judge/programs/families/\` and a file of its options to \`src/judge/programs/grammars/\`.

| Programs | What is known |
|---|---|
${ROWS.join('\n')}

## The profile \`strict-nine\`

\`sandbox-run --profile strict-nine\` (or \`profile = "strict-nine"\`) runs nine programs, with the options that this table lets
through, on files of the workspace. Every other program, option and path is refused with one sentence that names it. What
options alone do not tell is looked at, too:

- \`cat\` and \`head\` need a file, a pipe or a redirect; \`cp\` needs a source and a target, and \`-r\` for directories; \`printenv\`
  takes one name, none of a secret, or none; \`which\` takes names without a slash; \`head\` takes a positive number.
- Scripts of \`sed\` may not read or write other files or run commands (\`r\`, \`w\`, \`e\`).
- Links that a search meets may not be followed out of the workspace: \`ls -LR\`, \`cp -rL\`, \`rg -L\`.
- Where a path leads has to be known beforehand. Variables that the line sets and patterns are followed: \`for f in *; do cat "$f"; done\`.
  A relative path behind \`cd -\` or \`popd\` is refused, and so is a list of files in a file (\`sort --files0-from\`, \`tar -T\`).
- Variables that change what runs, or that no table knows, may not be set: \`LD_PRELOAD=… ls\`, \`RIPGREP_CONFIG_PATH=… rg x\`. Those that
  only change what is printed may: \`LC_ALL=C ls\`.

All of this but the table of options holds for every \`commands.allow\`. With \`git\` in such a list, aliases and repositories inside the
workspace are refused, as their settings say what runs, and files that the settings of the workspace's own repository run cannot be
written. A tool that runs the code of a project (\`make\`, \`npm\`, \`pytest\`, \`node\`, \`m4\`) does that under a list, too: who lists
it lists that code, and the kernel holds it.

| Program | Options that are let through | Refused |
|---|---|---|
${CLASSIC_ALLOW_LIST.map(optionsUnderList).join('\n')}
`;

// `npx vitest run test/unit/docs -u` writes it.
it('docs/programs.md has every row of the table', async () => {
  await expect(TEXT).toMatchFileSnapshot(PAGE);
});
