import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { makeAskingConfiguration } from '../support/unjudged-policy.ts';
import { CLI, cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
execFileSync('git', ['init', '-q'], { cwd: place.workspace });
writeFileSync(join(place.workspace, 'untracked'), 'draft');

const judged = { XDG_CONFIG_HOME: makeAskingConfiguration(place.root) };
const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

/** What it shows on a terminal. */
async function onTerminal(...args: readonly string[]): Promise<string> {
  const { stdout } = await execa(
    'script',
    ['-qec', [process.execPath, CLI, ...args].map(quoted).join(' '), '/dev/null'],
    {
      ...{ cwd: place.workspace, extendEnv: false, stdin: 'ignore', reject: false },
      env: { ...place.env, ...judged, SHELL: '/bin/bash', NO_COLOR: '1' },
    },
  );
  // What a host without namespaces lacks is said on a terminal before everything else.
  const lacks = HOST.namespaces ? '' : /^sandbox-run: protected-paths only in part: .*\n/;
  return stdout.replaceAll('\r\n', '\n').replace(lacks, '');
}

describe('what is asked first and nobody can be asked', () => {
  const nobody = ['--ask', 'nobody'];

  it('is two short lines on a terminal: why, and how to run it', async () => {
    const shown = await onTerminal(...nobody, '-c', 'git clean -fdx');
    expect(shown).toBe(
      [
        'sandbox-run: asks first: git clean would delete files that are not tracked: untracked',
        // What would be lost is approved once only.
        'sandbox-run: run it: --approved',
      ].join('\n'),
    );
    expect(await onTerminal(...nobody, '--autonomy', 'supervised', 'touch', 'x')).toContain(
      'run it: --approved · always: --autonomy autonomous',
    );
  });

  it('is one line elsewhere', async () => {
    const { stderr, exitCode } = await cli(place, [...nobody, '-c', 'git clean -fdx'], { env: judged });
    expect(exitCode).toBe(126);
    expectOneLine(stderr);
    expect(stderr).toContain('(--approved runs it; --ask queue waits for sandbox-run approvals)');
  });
});

describe('a program that the sandbox does not show', () => {
  it('is named, on a terminal with the way to it', async () => {
    const bin = join(place.root, 'own-bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'hidden-tool'), '#!/bin/sh\n', { mode: 0o755 });
    const command = ['--env', `PATH=/usr/bin:/bin:${bin}`, '-c', 'hidden-tool'];
    const said = `${bin}/hidden-tool is on this machine, and the sandbox does not show it`;
    expect((await cli(place, command, { env: judged })).stderr).toContain(
      `sandbox-run: ${said} (--ro ${bin}/hidden-tool)\n`,
    );
    expect(await onTerminal(...command)).toContain(`${said} (--ro ${bin}/hidden-tool)\n`);
  });
});
