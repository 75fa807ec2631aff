import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { loadAddon } from '../../../../src/confine/native/load.ts';
import { openTrail } from '../../../../src/gate/audit/trail.ts';
import { verifyStream } from '../../../../src/gate/audit/verify.ts';
import { openRecordStream } from '../../../../src/gate/nats/record-stream.ts';
import type { RecordStream } from '../../../../src/model/index.ts';
import { type NatsServers, startNats } from '../../../support/nats.ts';
import { lacks } from '../../../support/programs.ts';
import { decision, linesOf, makeDirectory, open, result, sql } from '../audit/support.ts';

const KEY = Buffer.alloc(32, 'k');
const it = test.skipIf(lacks('nats-server'));
let servers: NatsServers;
let admin: NatsConnection;
let streams: RecordStream[] = [];
beforeAll(async () => {
  servers = await startNats({ nodes: 3 });
  admin = await connect({ servers: servers.url.split(','), maxReconnectAttempts: -1 });
}, 30_000);
afterAll(async () => {
  await admin?.close();
  await servers?.stop();
});

/** What a client that may write has over the server: the stream is made so that it may delete, too. */
const manager = () => jetstreamManager(admin);
beforeEach(async () => {
  await (await manager()).streams.add({
    name: 'sandbox-run-audit',
    subjects: ['sandbox-run.audit.*'],
    num_replicas: 3,
  });
});
afterEach(async () => {
  await Promise.all(streams.map((stream) => stream.close()));
  streams = [];
  await (await manager()).streams.delete('sandbox-run-audit').catch(() => {});
});

const toServer = async () => {
  const stream = await openRecordStream({ url: servers.url }, 'test');
  streams.push(stream);
  return stream;
};
const trailTo = (directory: string, required = true) =>
  open(directory, { hmacKey: KEY, stream: { open: toServer, required } });

/** Writes so many commands, each published on its own. */
async function commands(directory: string, count: number): Promise<void> {
  const trail = trailTo(directory);
  for (let index = 0; index < count; index += 1) {
    await trail.append(decision(`r${index}`));
    await trail.append(result(`r${index}`));
  }
  await trail.close();
}

async function entries(stream: RecordStream) {
  const found = [];
  for await (const { trail, position, lines } of stream.read())
    found.push({ trail, position, text: lines.toString() });
  return found;
}
async function verifyWith(
  stream: RecordStream,
  options: { key?: Uint8Array; complete?: boolean },
  directory?: string,
) {
  const own = directory === undefined ? undefined : await openTrail(directory, { lock: loadAddon() });
  try {
    return await verifyStream(stream, { ...options, own });
  } finally {
    own?.close();
  }
}
const verified = async (directory?: string) =>
  verifyWith(await toServer(), { key: KEY, complete: true }, directory);
const kinds = ({ problems, trails }: Awaited<ReturnType<typeof verified>>) => [
  ...new Set([...problems, ...trails.flatMap((trail) => trail.problems)].map(({ kind }) => kind)),
];
/** A trail as one text. */
const textOf = (directory: string) => `${linesOf(directory).join('\n')}\n`;

describe('the audit stream', () => {
  it('has every line of every trail as it was written, in its order', async () => {
    const directories = [makeDirectory(), makeDirectory()] as const;
    await Promise.all(directories.map((directory) => commands(directory, 5)));
    const found = await verified(directories[0]);
    expect(found).toMatchObject({ problemCount: 0, records: 20 });
    expect(found.trails.map(({ first, last, signed }) => [first, last?.seq, signed?.records])).toEqual([
      [1, 10, 10],
      [1, 10, 10],
    ]);
    const all = await entries(await toServer());
    const texts = [...new Set(all.map(({ trail }) => trail))].map((trail) =>
      all.flatMap((entry) => (entry.trail === trail ? [entry.text] : [])).join(''),
    );
    expect(texts.sort()).toEqual(directories.map(textOf).sort());
  });

  it('has the decision before the append of it settles, where that is required', async () => {
    const directory = makeDirectory();
    const trail = trailTo(directory);
    const stream = await toServer();
    for (let index = 0; index < 5; index += 1) {
      await trail.append(decision(`wait-${index}`));
      const [last] = (await entries(stream)).slice(-1);
      expect(last?.text).toContain(`wait-${index}`);
    }
    await trail.close();
  });

  it('is written by many processes’ trails of one directory without a gap or a double', async () => {
    const directory = makeDirectory();
    const trails = Array.from({ length: 6 }, () => trailTo(directory));
    await Promise.all(
      trails.map(async (trail, writer) => {
        for (let index = 0; index < 15; index += 1) await trail.append(decision(`w${writer}-${index}`));
      }),
    );
    await Promise.all(trails.map((trail) => trail.close()));
    expect(await verified(directory)).toMatchObject({
      problemCount: 0,
      records: 90,
      remarks: [expect.stringMatching(/deny-delete/)],
    });
  });

  it('is verified while its machine goes on publishing: what came later is not missing', async () => {
    const directory = makeDirectory();
    await commands(directory, 2);
    const stream = await toServer();
    const busy: RecordStream = {
      ...stream,
      async *read(since) {
        await commands(directory, 2);
        yield* stream.read(since);
      },
    };
    expect(await verifyWith(busy, { key: KEY }, directory)).toMatchObject({ problemCount: 0, records: 4 });
    // What the trail itself says of its end is for audit verify.
    sql(directory, 'DELETE FROM head');
    expect(await verifyWith(stream, { key: KEY }, directory)).toMatchObject({
      problemCount: 0,
      records: 8,
    });
  });

  describe('shows an attack by whoever may write and delete there:', () => {
    const directory = { path: '' };
    beforeEach(async () => {
      directory.path = makeDirectory();
      await commands(directory.path, 6);
      expect(kinds(await verified(directory.path))).toEqual([]);
    });
    const deleted = async (position: number) =>
      (await manager()).streams.deleteMessage('sandbox-run-audit', position, true);
    const put = async (trail: string, text: string) => {
      await admin.request(`sandbox-run.audit.${trail}`, text, { timeout: 5_000 });
    };

    it('an entry in the middle is removed', async () => {
      await deleted(4);
      const found = await verified(directory.path);
      expect(kinds(found)).toEqual(['removed']);
      // By the count of the stream, and by the chain.
      expect(found.problems).toHaveLength(1);
      expect(found.trails[0]?.problems.length).toBeGreaterThan(0);
    });

    it('the last one is removed', async () => {
      const all = await entries(await toServer());
      await deleted(all.at(-1)?.position ?? 0);
      expect(kinds(await verified())).toEqual(['removed']);
      expect(kinds(await verified(directory.path))).toEqual(['removed', 'truncated']);
    });

    it('everything of a trail is removed', async () => {
      await commands(makeDirectory(), 2);
      const all = await entries(await toServer());
      for (const { trail, position } of all) if (trail === all[0]?.trail) await deleted(position);
      expect(kinds(await verified())).toContain('removed');
    });

    it('one is changed: removed, and put there again with another text', async () => {
      const all = await entries(await toServer());
      const last = all.at(-1);
      await deleted(last?.position ?? 0);
      await put(last?.trail ?? '', (last?.text ?? '').replaceAll('"exited"', '"denied"'));
      const found = await verified(directory.path);
      expect(found.problemCount).toBeGreaterThan(0);
      expect(kinds(found)).toContain('removed');
    });

    it('the stream is made anew with one record changed, or two in another order, or one left out', async () => {
      const all = await entries(await toServer());
      const lines = all.flatMap(({ text }) => text.split('\n').filter((line) => line !== ''));
      const trail = all[0]?.trail ?? '';
      const anew = async (changed: readonly string[]) => {
        await (await manager()).streams.delete('sandbox-run-audit');
        await (await manager()).streams.add({
          name: 'sandbox-run-audit',
          subjects: ['sandbox-run.audit.*'],
          num_replicas: 3,
        });
        for (const line of changed) await put(trail, `${line}\n`);
        return verified();
      };
      // The control: as it was.
      expect(kinds(await anew(lines))).toEqual([]);
      const command = lines.findIndex((line) => line.includes('"type":"decision"'));
      const forged = lines.map((line, index) =>
        index === command ? line.replace('"outcome":"launch"', '"outcome":"denied"') : line,
      );
      expect(forged).not.toEqual(lines);
      expect(kinds(await anew(forged))).toEqual(['changed']);
      expect(kinds(await anew(lines.toSpliced(3, 2, lines[4] ?? '', lines[3] ?? '')))).toContain('reordered');
      expect(kinds(await anew(lines.toSpliced(3, 1)))).toEqual(['removed']);
      expect(kinds(await anew([...lines.slice(0, 5), lines[4] ?? '', ...lines.slice(5)]))).toEqual([
        'inserted',
      ]);
    });

    it('a chain that was made without the key', async () => {
      const other = makeDirectory();
      const trail = open(other, {
        hmacKey: Buffer.alloc(32, 'x'),
        stream: { open: toServer, required: true },
      });
      await trail.append(decision('next'));
      await trail.close();
      expect(kinds(await verified())).toEqual(['mac']);
    });

    it('what was acknowledged is gone: the next command does not run', async () => {
      const all = await entries(await toServer());
      await deleted(all.at(-1)?.position ?? 0);
      const trail = trailTo(directory.path);
      await expect(trail.append(decision('next'))).rejects.toMatchObject({
        code: 'audit.failed',
        message: expect.stringMatching(/had acknowledged record 12/),
      });
      await trail.close();
    });

    it('somebody writes into the trail of another one: the next command does not run', async () => {
      const all = await entries(await toServer());
      await put(all[0]?.trail ?? '', '{"forged":true}\n');
      const trail = trailTo(directory.path);
      await expect(trail.append(decision('next'))).rejects.toMatchObject({ code: 'audit.failed' });
      await trail.close();
      expect(kinds(await verified())).toContain('unreadable');
    });
  });

  it('made by us lets nobody delete or purge', async () => {
    await (await manager()).streams.delete('sandbox-run-audit');
    await commands(makeDirectory(), 1);
    const { streams: api } = await manager();
    await expect(api.deleteMessage('sandbox-run-audit', 1, true)).rejects.toThrow();
    await expect(api.purge('sandbox-run-audit')).rejects.toThrow();
    expect((await verified()).remarks).toEqual([]);
  });
});

describe('a server that is gone', () => {
  it('keeps a decision from being written where the stream is required; later nothing is missing or doubled', {
    timeout: 60_000,
  }, async () => {
    const alone = await startNats();
    const directory = makeDirectory();
    const toAlone = async () => {
      const stream = await openRecordStream({ url: alone.url }, 'test');
      streams.push(stream);
      return stream;
    };
    const trail = open(directory, { stream: { open: toAlone, required: true } });
    await trail.append(decision('before'));
    await alone.nodes[0]?.kill();
    await expect(trail.append(decision('refused'))).rejects.toMatchObject({
      message: expect.stringMatching(/NATS server/),
    });
    await alone.nodes[0]?.start();
    await trail.append(decision('after'));
    await trail.close();
    const stream = await toAlone();
    expect(await verifyWith(stream, { complete: true }, directory)).toMatchObject({
      problemCount: 0,
      records: 3,
      remarks: [],
    });
    // The note of what was published is lost: what counts is what the stream has.
    rmSync(join(directory, 'published'));
    const again = open(directory, { stream: { open: toAlone, required: true } });
    await again.append(decision('again'));
    await again.close();
    expect(await verifyWith(stream, { complete: true }, directory)).toMatchObject({
      problemCount: 0,
      records: 4,
    });
    await alone.stop();
  });

  it('delays what need not be there at once, and a later process publishes it', {
    timeout: 60_000,
  }, async () => {
    const alone = await startNats();
    await alone.nodes[0]?.kill();
    const directory = makeDirectory();
    const toAlone = async () => {
      const stream = await openRecordStream({ url: alone.url }, 'test');
      streams.push(stream);
      return stream;
    };
    const first = open(directory, { stream: { open: toAlone, required: false } });
    for (let index = 0; index < 700; index += 1) await first.append(decision(`r${index}`));
    await first.close();
    await alone.nodes[0]?.start();
    const second = open(directory, { stream: { open: toAlone, required: false } });
    await second.append(decision('last'));
    await second.close();
    expect(await verifyWith(await toAlone(), { complete: true }, directory)).toMatchObject({
      problemCount: 0,
      records: 701,
      remarks: [],
    });
    await alone.stop();
  });

  it('whose trail was put back to an older state is refused', async () => {
    const directory = makeDirectory();
    await commands(directory, 2);
    const older = `${directory}.older`;
    cpSync(directory, older, { recursive: true });
    await commands(directory, 2);
    rmSync(directory, { recursive: true });
    cpSync(older, directory, { recursive: true });
    rmSync(older, { recursive: true });
    const trail = trailTo(directory);
    await expect(trail.append(decision('next'))).rejects.toMatchObject({
      message: expect.stringMatching(/an older one was put/),
    });
    await trail.close();
  });
});
