import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type AuditRecord, createSandbox, type SandboxOptions } from '../../src/index.ts';
import { expectNothingLeft } from '../support/leftovers.ts';
import { makePlace } from './support.ts';

const place = makePlace();
// The built-in policy, and not the one that lets other tests run everything.
process.env.XDG_CONFIG_HOME = join(place.root, 'no-config');
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

const sandboxWith = (options: SandboxOptions = {}) =>
  createSandbox({ workspace: place.workspace, ...options });

describe('a check of a command', () => {
  it('says what a run would, and nothing is run, recorded, counted or asked', async () => {
    const records: AuditRecord[] = [];
    const asked: string[] = [];
    await using sandbox = await sandboxWith({
      autonomy: 'supervised',
      policy: { security: { max_actions_per_hour: 1 } },
      principal: 'checker',
      gate: {
        audit: { append: async (entry) => void records.push(entry) },
        approver: {
          ask: async (request) => {
            asked.push(request.fingerprint);
            return { approved: true, scope: 'once', by: 'the test' };
          },
        },
      },
    });
    const verdicts = [];
    for (const command of ['echo hi', 'touch made', 'touch /etc/shadow', ['ls'] as const, 'if']) {
      const { decision } = await sandbox.check(command);
      verdicts.push(decision?.verdict);
    }
    expect(verdicts).toEqual(['allow', 'ask', 'deny', 'allow', 'deny']);
    expect({ records, asked, files: readdirSync(place.workspace) }).toEqual({
      records: [],
      asked: [],
      files: [],
    });
    // The one action of the hour is still there.
    expect(await sandbox.run('echo hi')).toMatchObject({ status: 'exited' });
  });

  it('shows what a person has to see, with a fingerprint of everything that matters', async () => {
    await using sandbox = await sandboxWith({ autonomy: 'supervised' });
    const script = join(place.workspace, 'script.sh');
    writeFileSync(script, 'echo one\n', { mode: 0o755 });
    const fingerprints = new Set<string | undefined>();
    const look = async (...[command, options]: Parameters<typeof sandbox.check>) => {
      const { request } = await sandbox.check(command, options);
      expect(request).toMatchObject({ command, decision: { verdict: 'ask' } });
      fingerprints.add(request?.fingerprint);
    };
    await look('./script.sh');
    await look('./script.sh');
    expect(fingerprints.size).toBe(1);
    await look('./script.sh 2');
    await look('./script.sh', { env: { X: '1' } });
    writeFileSync(script, 'echo two\n');
    await look('./script.sh');
    expect(fingerprints.size).toBe(4);
  });

  it.each(['a\0b', '\ud800', '', `echo ${'x'.repeat(130_000)}`, '$('.repeat(5000)])(
    'answers for text that is no command (%#)',
    async (command) => {
      await using sandbox = await sandboxWith();
      const { decision } = await sandbox.check(command);
      expect(['ask', 'deny', 'allow']).toContain(decision?.verdict);
      await sandbox.check('ls', { cwd: command.slice(0, 4095) });
    },
  );

  it('decides nothing where commands are not judged, nor after the end', async () => {
    const sandbox = await sandboxWith({ policy: { unsafe: { unjudged_commands: true } } });
    expect(await sandbox.check('touch x')).toEqual({ decision: undefined, request: undefined });
    await sandbox.close();
    await expect(sandbox.check('ls')).rejects.toMatchObject({ code: 'sandbox.closed' });
  });

  it('has no options but those that matter', async () => {
    await using sandbox = await sandboxWith();
    for (const options of [{ approved: true }, { timeout: 1 }, { cwd: 7 }])
      await expect(sandbox.check('ls', options as never)).rejects.toMatchObject({ code: 'usage.invalid' });
  });
});
