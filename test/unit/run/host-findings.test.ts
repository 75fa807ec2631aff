import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HostFindings } from '../../../src/run/resolve/host-findings.ts';
import { createStartLookup } from '../../../src/workspace/index.ts';

it('answers the same question once, and another one anew', async ({ onTestFinished }) => {
  const root = realpathSync(mkdtempSync('/var/tmp/sandbox-run-findings-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const place = (name: string) => {
    mkdirSync(join(root, name, 'bin'), { recursive: true });
    mkdirSync(join(root, name, 'lib'));
    writeFileSync(join(root, name, 'bin/tool'), '#!/bin/sh\n');
    chmodSync(join(root, name, 'bin/tool'), 0o755);
    return join(root, name, 'bin');
  };
  const [one, two] = [place('one'), place('two')];
  const find = (findings: HostFindings, PATH: string, secret: readonly string[] = []) =>
    findings
      .programsOnPath(
        { home: join(root, 'home'), workspace: join(root, 'work'), secret, env: { PATH } },
        [],
        createStartLookup(),
      )
      .map(({ path }) => path);
  const findings = new HostFindings();
  expect(find(findings, one)).toEqual([join(root, 'one')]);
  rmSync(join(root, 'one/lib'), { recursive: true });
  expect(find(findings, one)).toEqual([join(root, 'one')]);
  expect(find(new HostFindings(), one)).toEqual([one]);
  expect(find(findings, two)).toEqual([join(root, 'two')]);
  expect(find(findings, one, [one])).toEqual([]);
  expect(findings.systemTree(root)).toBe(findings.systemTree(root));
  await findings.systemTree(root);
});
