import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { innerTexts } from '../../../../src/gate/index.ts';
import { lossesCheck } from '../../../../src/judge/checks/losses.ts';
import { createPathLookup, createVersions } from '../../../../src/workspace/index.ts';
import { LINES_OF_GIT } from '../../../cases/losses.ts';
import { contextOf } from '../../../support/check-context.ts';
import { makeRepositories, type State, WORK } from '../../../support/repository-states.ts';

// What is asked about as a loss is what real git loses: each line is judged, and then run.

const { bash, repositoryIn } = makeRepositories();

/** The files that have the work of a kind. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  unstaged: ['m', 'Makefile'],
  staged: ['s'],
  'staged-new': ['n'],
  untracked: ['u'],
};

let count = 0;

/** Whether a line is asked about, and whether it loses work of one kind. */
async function judged(state: State, work: string, line: string) {
  const at = repositoryIn(state, `repository-${count++}`);
  bash(WORK[work] ?? '', at);
  const context = contextOf(line, {
    rules: { workspace: at, environment: ['PATH', 'HOME'] },
    ...{
      autonomy: 'contained',
      cwd: at,
      paths: createPathLookup(),
      versions: createVersions(),
      inner: innerTexts(process.env),
    },
  });
  const reasons = await lossesCheck.judge(context);
  bash(line, at);
  const isLost = (FILES[work] ?? []).some(
    (file) => !existsSync(join(at, file)) || readFileSync(join(at, file), 'utf8') !== 'mine\n',
  );
  return { asked: reasons.some(({ verdict }) => verdict === 'ask'), isLost };
}

const COARSE = new Set(['git mv -f k m', 'git rm -qf s']);
const TRACKED = ['unstaged', 'staged', 'staged-new'];

describe('what git loses is asked about, and nothing else', () => {
  it.each(LINES_OF_GIT)('%s: %s', async (state, line) => {
    for (const work of TRACKED) {
      const { asked, isLost } = await judged(state, work, line);
      // The index says only that something is staged, and not what.
      const isSure = isLost || work === 'unstaged' || !COARSE.has(line);
      if (isSure) expect([work, asked]).toEqual([work, isLost]);
    }
    // Nothing of anybody's is there.
    expect(await judged(state, '', line)).toMatchObject({ asked: false });
  });
});

describe('a file that somebody worked on in the middle of a merge', () => {
  it.each([
    ['merge', 'git merge --abort'],
    ['rebase', 'git rebase --abort'],
    ['cherry-pick', 'git cherry-pick --abort'],
  ] as const)('%s: %s is asked about', async (state, line) => {
    const asksAfter = async (text: string) => {
      const at = repositoryIn(state, `repository-${count++}`);
      bash(text, at);
      const context = contextOf(line, {
        rules: { workspace: at },
        ...{
          autonomy: 'contained',
          cwd: at,
          paths: createPathLookup(),
          versions: createVersions(),
          inner: innerTexts(process.env),
        },
      });
      return (await lossesCheck.judge(context)).some(({ verdict }) => verdict === 'ask');
    };
    expect(await asksAfter('git status; git diff; git add --refresh .')).toBe(false);
    expect(await asksAfter('echo resolved > c')).toBe(true);
    expect(await asksAfter('echo resolved > c; git add c')).toBe(true);
  });
});

describe('an alias of git is what it stands for', () => {
  it.each([
    "git config alias.nuke 'clean -fd' && git nuke",
    "git config --local alias.nuke 'clean -fd'; git nuke",
    "git config alias.nuke '!git clean -fd' && git nuke",
    "git config alias.nuke '!f() { git clean -fd; }; f' && git nuke",
    "git config alias.a b; git config alias.b 'clean -fd'; git a",
    'git config alias.nuke clean; git nuke -fd',
    'cd . && git config alias.Nuke clean; git nuke -fd',
    `GIT_CONFIG_PARAMETERS="'alias.nuke=clean -fd'" git nuke`,
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.nuke GIT_CONFIG_VALUE_0='clean -fd' git nuke",
    "printf '[alias]\\nnuke = clean -fd\\n' >> .git/config; git nuke",
  ])('%s', async (line) => {
    expect(await judged('clean', 'untracked', line)).toEqual({ asked: true, isLost: true });
  });

  it.each([
    "git config alias.st 'status -s' && git st",
    "git config alias.nuke 'clean -n' && git nuke",
    "git config alias.status 'clean -fd' && git status",
  ])('%s, which loses nothing', async (line) => {
    expect(await judged('clean', 'untracked', line)).toEqual({ asked: false, isLost: false });
  });

  it('of the repository', async () => {
    const at = repositoryIn('clean', `repository-${count++}`);
    bash("git config alias.nuke 'clean -fd'; git config alias.st status", at);
    const asks = async (line: string) => {
      const context = contextOf(line, {
        rules: { workspace: at },
        ...{
          autonomy: 'contained',
          cwd: at,
          paths: createPathLookup(),
          versions: createVersions(),
          inner: innerTexts(process.env),
        },
      });
      return (await lossesCheck.judge(context)).some(({ verdict }) => verdict === 'ask');
    };
    expect([await asks('git nuke'), await asks('git st'), await asks('git -C . nuke')]).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('a script is what it holds', () => {
  const NUKE = 'git clean -fd';
  it.each([
    `cat > x.sh <<'EOF'\n${NUKE}\nEOF\nbash x.sh`,
    `cat > x.sh <<EOF; bash x.sh\n${NUKE}\nEOF`,
    `cat <<'EOF' > x.sh && chmod +x x.sh && ./x.sh\n#!/bin/sh\n${NUKE}\nEOF`,
    `tee x.sh <<'EOF' >/dev/null\n${NUKE}\nEOF\nsh ./x.sh`,
    `cat <<'EOF' | tee x.sh >/dev/null; sh x.sh\n${NUKE}\nEOF`,
    `echo '${NUKE}' > x.sh; source x.sh`,
    `{ echo '#!/bin/sh'; echo '${NUKE}'; } > x.sh; sh x.sh`,
    `cat > x.sh <<EOF\nd=$PWD\n${NUKE}\nEOF\nbash x.sh`,
    `echo '${NUKE}' > x.sh; . ./x.sh`,
    `echo '${NUKE}' > x.sh; bash < x.sh`,
    `echo '${NUKE}' > x.sh; cat x.sh | bash`,
    `printf '%s\\n' '#!/usr/bin/env bash' '${NUKE}' > x.sh; chmod +x x.sh; timeout 9 ./x.sh`,
    `echo '${NUKE}' > x.sh; cp x.sh y.sh; bash y.sh`,
    `mkdir -p d; cd d; echo 'cd ..; ${NUKE}' > x.sh; bash x.sh`,
    `echo : > x.sh; echo '${NUKE}' >> x.sh; bash -e x.sh`,
    `echo '${NUKE}' > x.sh; echo 'bash x.sh' > y.sh; bash y.sh`,
    `echo 'git config alias.n "clean -fd"; git n' > x.sh; bash x.sh`,
    `echo 'rm -f u' > x.sh; bash x.sh`,
    `echo 'rm -f "$1"' > x.sh; bash x.sh u`,
  ])('%s', async (line) => {
    expect(await judged('clean', 'untracked', line)).toEqual({ asked: true, isLost: true });
  });

  it.each([
    "echo 'git status' > x.sh; bash x.sh",
    `echo '${NUKE}' > x.sh`,
    `echo '${NUKE}' > x.sh; cat x.sh`,
    `cat > x.py <<'EOF'\n# ${NUKE}\nEOF\ncat x.py`,
    'echo "rm -rf dist" > x.sh; bash x.sh',
  ])('%s, which loses nothing', async (line) => {
    expect(await judged('clean', 'untracked', line)).toEqual({ asked: false, isLost: false });
  });

  it('of the workspace, too; of one that is committed only what is sure', async () => {
    const at = repositoryIn('clean', `repository-${count++}`);
    bash(
      `echo '${NUKE}' > nuke.sh; printf '#!/bin/sh\\n${NUKE}\\n' > run; chmod +x run; echo 'rm -rf "$1"' > some.sh
      echo 'rm -rf "$1"' > new.sh; git add nuke.sh run some.sh; git commit -qm scripts; echo mine > u`,
      at,
    );
    const asks = async (line: string) => {
      const context = contextOf(line, {
        rules: { workspace: at },
        ...{
          autonomy: 'contained',
          cwd: at,
          paths: createPathLookup(),
          versions: createVersions(),
          inner: innerTexts(process.env),
        },
      });
      return (await lossesCheck.judge(context)).some(({ verdict }) => verdict === 'ask');
    };
    for (const line of [
      'bash nuke.sh',
      './run',
      'sh ./nuke.sh -x',
      'env bash nuke.sh',
      'cd . && . nuke.sh',
      'bash new.sh x',
    ])
      expect([line, await asks(line)]).toEqual([line, true]);
    for (const line of ['bash some.sh x', 'bash missing.sh', 'cat nuke.sh', 'bash -n missing'])
      expect([line, await asks(line)]).toEqual([line, false]);
  });
});

describe('text that is read from a file and run is what it holds', () => {
  const NUKE = 'git clean -fdq';
  const SCRIPT = `echo '${NUKE}' > x.sh; `;
  const MAKEFILE = (...lines: readonly string[]) =>
    `printf '%s\\n' ${lines.map((line) => `'${line.replace('\t', '\t')}'`).join(' ')} > Makefile; `;
  const PACKAGE = (scripts: object) => `echo '${JSON.stringify({ name: 'a', scripts })}' > package.json; `;

  it.each([
    `${SCRIPT}eval "$(cat x.sh)"`,
    `${SCRIPT}eval "$(< x.sh)"`,
    `${SCRIPT}source <(cat x.sh)`,
    `${SCRIPT}. <(head -n 5 x.sh)`,
    `${SCRIPT}bash <(cat x.sh)`,
    `${SCRIPT}bash -c "$(cat x.sh)"`,
    `${SCRIPT}sh < x.sh`,
    `${SCRIPT}cat x.sh | sh`,
    `${SCRIPT}bash <<< "$(cat x.sh)"`,
    `${SCRIPT}eval "\`cat x.sh\`"`,
    'echo u > list; xargs -a list rm',
    'echo u > list; xargs rm < list',
    'echo u > list; rm $(cat list)',
    `${MAKEFILE('clean:', '\trm -rf u')}make clean`,
    `${MAKEFILE('clean:', '\t@-rm -rf u')}make`,
    `${MAKEFILE('DATA = u', 'clean:', '\t$(RM) $(DATA)')}make clean`,
    `${MAKEFILE('DATA ?= u', 'clean: ; rm -rf $(DATA)')}make clean`,
    `${MAKEFILE('DATA = dist', 'clean:', '\trm -rf $(DATA)')}make clean DATA=u`,
    `${MAKEFILE('.PHONY: clean wipe', 'all:', '\techo', 'clean: wipe', 'wipe:', '\trm \\', '\t-f u')}make clean`,
    `mkdir -p d; echo 'all: ; rm -f ../u' > d/Makefile; make -C d`,
    `echo 'all: ; ${NUKE}' > x.mk; make -f x.mk`,
    `${MAKEFILE('all:', '\t$(MAKE) other', 'other:', '\trm -f u')}make`,
    `${MAKEFILE('all:', '\tbash x.sh')}${SCRIPT}make`,
    `${PACKAGE({ nuke: NUKE })}npm run nuke`,
    `${PACKAGE({ prenuke: 'rm -f u', nuke: 'true' })}npm run nuke`,
    `${PACKAGE({ test: 'npm run nuke', nuke: 'rm -f u' })}npm test`,
    `${PACKAGE({ nuke: 'rm -f' })}npm run nuke -- u`,
    `${PACKAGE({ nuke: 'make clean' })}${MAKEFILE('clean:', '\trm -rf u')}npm run nuke`,
    `mkdir -p d; ${PACKAGE({ nuke: NUKE })}cd d; npm run nuke`,
  ])(
    '%s',
    async (line) => {
      expect(await judged('clean', 'untracked', line)).toEqual({ asked: true, isLost: true });
    },
    60_000,
  );

  it.each([
    `${SCRIPT}echo "$(cat x.sh)"`,
    `${SCRIPT}cat <(cat x.sh)`,
    `${MAKEFILE('all:', '\techo', 'clean:', '\trm -rf u')}make`,
    `${MAKEFILE('clean:', '\trm -rf u')}make -n clean`,
    `${MAKEFILE('clean:', '\trm -rf dist *.o $(OBJECTS)')}make clean`,
    `${MAKEFILE('u:', '\trm -f u; touch u')}make u`,
    `${MAKEFILE('ifdef NEVER', 'clean:', '\trm -f u', 'else', 'clean:', '\techo', 'endif')}make clean`,
    `${MAKEFILE('clean:', '\tfor f in *.tmp; do rm -f "$$f"; done')}make clean`,
    `${MAKEFILE('clean:', '\trm -rf $(DIR)/x $(shell echo)')}make clean`,
    `${PACKAGE({ build: 'rm -rf dist && echo built', nuke: NUKE })}npm run build`,
    `${PACKAGE({ test: 'node -e 1' })}npm test`,
    'make missing; npm run missing',
  ])(
    '%s, which loses nothing',
    async (line) => {
      expect(await judged('clean', 'untracked', line)).toEqual({ asked: false, isLost: false });
    },
    60_000,
  );

  it('of a committed recipe, files that git ignores may be deleted', async () => {
    const at = repositoryIn('clean', `repository-${count++}`);
    bash(
      `printf 'clean:\\n\\trm -rf lib data\\n\\trm -f "$$f"\\nnuke:\\n\\tgit clean -fdx\\n' > Makefile
      echo '${JSON.stringify({ scripts: { clean: 'rm -rf lib', 'clean-data': 'rm -rf data' } })}' > package.json
      printf 'lib/\\n!lib/keep\\n*.out\\n' > .gitignore
      git add .; git commit -qm recipes; mkdir lib; echo 1 > lib/a.js`,
      at,
    );
    const asks = async (line: string) => {
      const context = contextOf(line, {
        rules: { workspace: at },
        ...{
          autonomy: 'contained',
          cwd: at,
          paths: createPathLookup(),
          versions: createVersions(),
          inner: innerTexts(process.env),
        },
      });
      return (await lossesCheck.judge(context)).length > 0;
    };
    for (const line of ['make clean', 'npm run clean', 'npm run clean-data', 'make -k clean'])
      expect([line, await asks(line)]).toEqual([line, false]);
    expect(await asks('rm -rf lib')).toBe(true);
    expect(await asks('make nuke')).toBe(true);
    bash('mkdir data; echo mine > data/x', at);
    for (const line of ['make clean', 'npm run clean-data'])
      expect([line, await asks(line)]).toEqual([line, true]);
    bash('rm -rf data; echo >> Makefile', at);
    expect(await asks('make clean')).toBe(true);
  });
});
