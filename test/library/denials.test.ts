import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createSandbox, type PolicyFile, type SandboxOptions } from '../../src/index.ts';
import { HOST } from '../support/tiers.ts';

const UNJUDGED: PolicyFile = { unsafe: { unjudged_commands: true } };

describe.runIf(HOST.signalScope)('what was denied, in the library', () => {
  let root: string;
  let workspace: string;
  let outside: string;
  let server: Server;
  let port: number;
  beforeAll(async () => {
    root = realpathSync(mkdtempSync('/var/tmp/denials-'));
    workspace = join(root, 'workspace');
    outside = join(root, 'outside');
    mkdirSync(workspace);
    mkdirSync(outside);
    writeFileSync(join(outside, 'file'), 'content\n');
    writeFileSync(join(outside, 'tool'), '#!/bin/sh\ntrue\n', { mode: 0o755 });
    server = createServer((socket) => socket.end());
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const address = server.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => {
    server.close();
    rmSync(root, { recursive: true, force: true });
  });

  async function sandboxWith(options: SandboxOptions = {}) {
    const sandbox = await createSandbox({ workspace, policyFiles: false, policy: UNJUDGED, ...options });
    onTestFinished(() => sandbox.close());
    return sandbox;
  }
  const brief = (denials: readonly { readonly operation: string; readonly object: string }[] | undefined) =>
    denials?.map(({ operation, object }) => `${operation} ${object.replace(outside, 'O')}`);

  it('is told of a command that failed, and of one that did not where all is looked at', async () => {
    const script = `(echo x > ${outside}/new) 2> /dev/null`;
    const usual = await sandboxWith();
    expect(brief((await usual.run(['bash', '-c', script])).denials)).toEqual(['create O/new']);
    expect((await usual.run(['bash', '-c', `${script}; true`])).denials).toBeUndefined();
    const all = await sandboxWith({ explain: 'always' });
    expect(brief((await all.run(['bash', '-c', `${script}; true`])).denials)).toContain('create O/new');
  });

  it('is that of a turn, in a session', async () => {
    const sandbox = await sandboxWith();
    const session = await sandbox.session();
    const turn = async (text: string) => brief((await session.run(text)).denials);
    expect(await turn(`mkdir ${outside}/one`)).toEqual(['create O/one']);
    expect(await turn('false')).toBeUndefined();
    expect(await turn(`mkdir ${outside}/two; mkdir ${outside}/three; false`)).toEqual([
      'create O/two',
      'create O/three',
    ]);
    await session.close();
  });

  it('is told of a limit as of everything else', async () => {
    const sandbox = await sandboxWith({ limits: { tmpBytes: 1024 ** 2 } });
    const result = await sandbox.run(['bash', '-c', 'head -c 8M /dev/zero > $TMPDIR/x; sleep 5']);
    expect(result).toMatchObject({ status: 'limit-exceeded' });
    expect(result.denials).toMatchObject([
      { operation: 'limit', object: 'tmp', control: 'resource-limits', allow: { key: 'limits.tmp_bytes' } },
    ]);
  });

  it.each(['never', 'auto', 'always'] as const)(
    'opens nothing of a listed network, however much is looked at (%s)',
    async (explain) => {
      const other = createServer((socket) => socket.end());
      await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
      onTestFinished(() => void other.close());
      const address = other.address();
      const unlisted = typeof address === 'object' && address !== null ? address.port : 0;
      const sandbox = await sandboxWith({ explain, net: [`localhost:${port}`] });
      const connect = (to: number) =>
        sandbox.run(['python3', '-c', `import socket; socket.create_connection(("127.0.0.1", ${to}))`]);
      expect((await connect(port)).exitCode).toBe(0);
      const refused = await connect(unlisted);
      expect([refused.exitCode, refused.connections]).toEqual([
        1,
        [expect.objectContaining({ verdict: 'refused', port: unlisted })],
      ]);
    },
  );

  describe.runIf(HOST.namespaces)('by another policy', () => {
    const open: PolicyFile = { ...UNJUDGED, network: { mode: 'open' } };
    const script = () =>
      [
        `cat ${outside}/file`,
        `echo x >> ${outside}/file`,
        `echo x > ${outside}/new; rm ${outside}/new`,
        `${outside}/tool`,
        `python3 -c 'import socket; socket.create_connection(("127.0.0.1", ${port}))'`,
        'echo own > own; cat own; mkdir d; rmdir d; echo x > $TMPDIR/x; cat /etc/passwd > /dev/null',
      ].join('; ');

    it('is what it would be denied, and nothing that both allow', async () => {
      const sandbox = await sandboxWith({ policy: open, writable: [outside], shadow: UNJUDGED });
      const { exitCode, wouldDeny } = await sandbox.run(['bash', '-c', script()]);
      expect(exitCode).toBe(0);
      expect(brief(wouldDeny)).toEqual(
        expect.arrayContaining(['read O/file', 'write O/file', 'create O/new', 'execute O/tool']),
      );
      const others = wouldDeny?.filter(({ object }) => !object.startsWith(outside)) ?? [];
      expect(brief(others.filter(({ object }) => object.startsWith(workspace)))).toEqual([]);
      expect(brief(others.filter(({ operation }) => operation !== 'read'))).toEqual([]);
      expect(wouldDeny?.find(({ object }) => object === join(outside, 'new'))?.allow).toMatchObject({
        key: 'filesystem.write',
        value: outside,
      });
    });

    it('is nothing of what the other policy allows as well', async () => {
      const shadow: PolicyFile = { filesystem: { write: [outside] } };
      const sandbox = await sandboxWith({ policy: open, writable: [outside], shadow });
      const { wouldDeny = [] } = await sandbox.run(['bash', '-c', script()]);
      expect(brief(wouldDeny.filter(({ object }) => object.startsWith(root)))).toEqual([]);
    });

    it('is nothing that is denied today already', async () => {
      const sandbox = await sandboxWith({ policy: open, shadow: UNJUDGED });
      const { denials, wouldDeny } = await sandbox.run(['bash', '-c', `cat ${outside}/file`]);
      expect(brief(denials)).toContain('read O/file');
      expect(brief(wouldDeny?.filter(({ object }) => object.startsWith(root)))).toEqual(undefined);
    });

    it('is told of a service of this machine', async () => {
      const shadow: PolicyFile = { network: { mode: 'listed', allow: ['other.test'] } };
      const sandbox = await sandboxWith({
        shadow,
        net: [`localhost:${port}`],
      });
      const ask = `import socket; socket.create_connection(("localhost", ${port}))`;
      const { exitCode, wouldDeny } = await sandbox.run(['python3', '-c', ask]);
      expect([exitCode, brief(wouldDeny?.filter(({ operation }) => operation === 'connect'))]).toEqual([
        0,
        [`connect 127.0.0.1:${port}`],
      ]);
    });
  });
});
