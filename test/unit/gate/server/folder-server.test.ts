import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FolderLimits } from '../../../../src/gate/server/folder/folder-limits.ts';
import { type FolderServerOptions, serveFolder } from '../../../../src/gate/server/folder/folder-server.ts';
import type { GateServer } from '../../../../src/gate/server/ports.ts';
import { loadAddon } from '../../../../src/native/load.ts';
import { eventually, sleep } from '../../../support/eventually.ts';
import { makeRoom, OWN_UID, pause, requestText, serverParts } from './support.ts';

const { tryLock } = loadAddon();
const NOBODY = 65534;
const isRoot = OWN_UID === 0;

let room: ReturnType<typeof makeRoom>;
let requests: string;
let responses: string;
let servers: GateServer[];

beforeEach(() => {
  room = makeRoom();
  requests = join(room.path, 'requests');
  responses = join(room.path, 'responses');
  mkdirSync(requests, { mode: 0o755 });
  mkdirSync(responses, { mode: 0o755 });
  servers = [];
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()));
  const left = existsSync(responses) ? readdirSync(responses) : [];
  room.dispose();
  expect(left.filter((name) => name.startsWith('.'))).toEqual([]);
});

async function serve(limits: Partial<FolderLimits> = {}, more: Partial<FolderServerOptions> = {}) {
  const { parts, ...fakes } = serverParts();
  const problems: string[] = [];
  const server = await serveFolder({
    requests,
    responses,
    tryLock,
    onProblem: (message) => problems.push(message),
    ...parts,
    limits: { pollMs: 30, ...limits },
    ...more,
  });
  servers.push(server);
  return { server, problems, ...fakes };
}

/** As a client does it. */
function put(name: string, text: string | Buffer): void {
  const temporary = join(requests, `.tmp-${name}`);
  writeFileSync(temporary, text);
  renameSync(temporary, join(requests, name));
}
const ask = (id: string, command?: string, more?: object) =>
  put(`${id}.json`, requestText(id, command, more));
const answerPath = (id: string) => join(responses, `${id}.json`);
const answer = (id: string) => JSON.parse(readFileSync(answerPath(id), 'utf8'));
const answered = (id: string) => eventually(() => expect(existsSync(answerPath(id))).toBe(true));
const emptied = () => eventually(() => expect(readdirSync(requests)).toEqual([]));

describe('a gate on folders', () => {
  it('answers a file with a file, and takes the request away', async () => {
    const { asked } = await serve();
    ask('a', 'allow it', { session: 's' });
    await answered('a');
    await emptied();
    expect(answer('a')).toEqual({ request_id: 'a', decision: 'allow' });
    expect((statSync(answerPath('a')).mode & 0o777).toString(8)).toBe('644');
    expect(asked).toMatchObject([{ requestId: 'a', session: 's', principal: `uid:${OWN_UID}` }]);
  });

  it('answers where the folder tells of nothing', async () => {
    await serve({ watch: false, pollMs: 20 });
    ask('a', 'allow');
    await answered('a');
  });

  it('answers what came before it started', async () => {
    ask('a', 'allow');
    await serve();
    await answered('a');
  });

  it('answers at once where it is told, however slow the poll', async () => {
    await serve({ pollMs: 1_000_000 });
    await pause(50);
    ask('a', 'allow');
    await answered('a');
  });

  it('answers in whatever order decisions are made, and withdraws what is taken away', async () => {
    const { waiting, withdrawn } = await serve();
    ask('slow', 'ask');
    ask('gone', 'ask');
    await eventually(() => expect(waiting.size).toBe(2));
    ask('fast', 'allow');
    await answered('fast');
    rmSync(join(requests, 'gone.json'));
    await eventually(() => expect(withdrawn).toEqual(['gone']));
    waiting.get('slow')?.(true);
    await answered('slow');
    expect(answer('slow')).toMatchObject({ decision: 'allow' });
    expect(answer('gone')).toMatchObject({ decision: 'deny' });
  });

  it('withdraws what is exchanged for another while it is decided', async () => {
    const { waiting, asked, withdrawn } = await serve();
    ask('a', 'ask harmless');
    await eventually(() => expect(waiting.size).toBe(1));
    ask('a', 'allow evil');
    await eventually(() => expect(withdrawn).toEqual(['a']));
    await answered('a');
    expect(answer('a')).toMatchObject({ decision: 'deny' });
    await emptied();
    expect(asked.map(({ command }) => command)).toEqual(['ask harmless']);
  });

  it('decides no more at a time than the limit, and all of it in the end', async () => {
    const { waiting, asked } = await serve({ pending: 3 });
    for (let number = 0; number < 9; number += 1) ask(`${number}`, 'ask');
    await eventually(() => expect(asked).toHaveLength(3));
    await pause(50);
    expect(asked).toHaveLength(3);
    const done = new Set<string>();
    await eventually(() => {
      for (const [id, decide] of waiting) {
        decide(true);
        done.add(id);
      }
      expect(done.size).toBe(9);
    });
    await emptied();
    expect(readdirSync(responses)).toHaveLength(9);
  });

  it('denies what is pending when it ends', async () => {
    const { server, waiting, withdrawn } = await serve();
    ask('a', 'ask');
    await eventually(() => expect(waiting.size).toBe(1));
    await server.close();
    expect(withdrawn).toEqual(['a']);
    expect(answer('a')).toEqual({
      request_id: 'a',
      decision: 'deny',
      reason: 'the gate server is stopping',
    });
    expect(readdirSync(requests)).toEqual([]);
  });

  it('keeps answers for an hour, those of an earlier server too, and not too many', async () => {
    writeFileSync(answerPath('old'), '{}');
    utimesSync(answerPath('old'), 1, 1);
    writeFileSync(answerPath('new'), '{}');
    writeFileSync(join(responses, '.tmp-half'), '{');
    writeFileSync(join(responses, 'README'), 'not ours');
    await serve({ responses: 3 });
    await eventually(() => expect(readdirSync(responses).sort()).toEqual(['README', 'new.json']));
    for (const id of ['a', 'b', 'c']) {
      ask(id, 'allow');
      await answered(id);
    }
    await eventually(() =>
      expect(readdirSync(responses).sort()).toEqual(['README', 'a.json', 'b.json', 'c.json']),
    );
  });

  it('says so when the folder of requests is removed', async () => {
    const { problems } = await serve();
    rmSync(requests, { recursive: true });
    await eventually(() => expect(problems).toEqual([expect.stringContaining('was removed')]));
  });
});

describe('what a container puts there instead of a request', () => {
  it.each([
    [
      'a link to a request',
      'x.json',
      (path: string) => {
        writeFileSync(join(room.path, 'elsewhere'), requestText('x', 'allow'));
        symlinkSync(join(room.path, 'elsewhere'), path);
      },
    ],
    ['a link to a secret', 'x.json', (path: string) => symlinkSync('/etc/shadow', path)],
    ['a link to nothing', 'x.json', (path: string) => symlinkSync('/nonexistent', path)],
    ['a link to itself', 'x.json', (path: string) => symlinkSync('x.json', path)],
    ['a FIFO', 'x.json', (path: string) => void spawnSync('mkfifo', [path])],
    ['a directory', 'x.json', (path: string) => mkdirSync(path)],
    [
      'a file that is too long',
      'x.json',
      (path: string) => writeFileSync(path, `${requestText('x', 'allow')}${' '.repeat(256 * 1024)}`),
    ],
    [
      'a file without an end',
      'x.json',
      (path: string) => {
        writeFileSync(path, '');
        execFileSync('truncate', ['-s', '1T', path]);
      },
    ],
  ])('%s is refused and removed', async (_, name, make) => {
    make(join(requests, name));
    const { codes, asked, refused } = await serve();
    await emptied();
    expect(codes()).toEqual(['forged_file']);
    expect(refused[0]).toMatchObject({ principal: `uid:${OWN_UID}`, transport: 'folder', requestId: 'x' });
    expect(asked).toEqual([]);
    expect(readdirSync(responses)).toEqual([]);
    // And it goes on.
    ask('a', 'allow');
    await answered('a');
  });

  it('a hard link to somebody else’s request is refused, and that file stays', async () => {
    const victim = join(room.path, 'victim');
    writeFileSync(victim, requestText('x', 'allow'));
    linkSync(victim, join(requests, 'x.json'));
    const { codes, asked } = await serve();
    await emptied();
    expect(codes()).toEqual(['forged_file']);
    expect(asked).toEqual([]);
    expect(existsSync(victim)).toBe(true);
  });

  it('a socket is refused and removed', async () => {
    const socket = createServer().listen(join(requests, 'x.json'));
    await eventually(() => expect(lstatSync(join(requests, 'x.json')).isSocket()).toBe(true));
    const { codes } = await serve();
    await emptied();
    expect(codes()).toEqual(['forged_file']);
    await new Promise((done) => socket.close(done));
  });

  it.runIf(isRoot)('a device is refused and removed', async () => {
    if (spawnSync('mknod', [join(requests, 'x.json'), 'c', '1', '5']).status !== 0) return;
    const { codes } = await serve();
    await emptied();
    expect(codes()).toEqual(['forged_file']);
  });

  it('a directory with something in it is refused once, and does not hold up the others', async () => {
    mkdirSync(join(requests, 'x.json'));
    writeFileSync(join(requests, 'x.json/y.json'), requestText('y', 'allow'));
    const { codes } = await serve();
    ask('a', 'allow');
    await answered('a');
    await pause(150);
    expect(codes()).toEqual(['forged_file']);
    expect(readdirSync(requests)).toEqual(['x.json']);
    // Taken away and put there again, it is another one.
    rmSync(join(requests, 'x.json'), { recursive: true });
    await pause(100);
    mkdirSync(join(requests, 'x.json'));
    await emptied();
    expect(codes()).toEqual(['forged_file', 'forged_file']);
  });

  it.each([
    ['a hidden file', '.x.json'],
    ['no .json', 'x'],
    ['nothing before it', '.json'],
    ['blanks', 'a b.json'],
    ['a line break', 'a\n.json'],
    ['an escape sequence', '\u001b[2J.json'],
    ['a letter from elsewhere', 'ä.json'],
    ['too long a name', `${'x'.repeat(129)}.json`],
    ['a backslash', '..\\x.json'],
  ])('a name with %s is refused and removed', async (_, name) => {
    writeFileSync(join(requests, name), requestText('x', 'allow'));
    const { codes, asked, refused } = await serve();
    await emptied();
    expect(codes()).toEqual(['forged_name']);
    expect(refused[0]?.message).not.toContain('\u001b');
    expect(asked).toEqual([]);
    expect(readdirSync(responses)).toEqual([]);
  });

  it('a name that is no text is refused and removed', async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${requests}/`), Buffer.from([0xff, 0xfe])]), 'x');
    const { codes } = await serve();
    await emptied();
    expect(codes()).toEqual(['forged_name']);
  });

  it.each([
    ['another id', 'y'],
    ['a path for an id', '../x'],
    ['a path that is absolute', '/etc/x'],
    ['a hidden id', '.x'],
  ])('a request with %s than its name is refused, under its name', async (_, id) => {
    const { codes, asked } = await serve();
    put('x.json', requestText(id, 'allow'));
    await answered('x');
    await emptied();
    expect(answer('x')).toMatchObject({ request_id: 'x', decision: 'deny' });
    expect(codes()).toHaveLength(1);
    expect(['forged_name', 'malformed']).toContain(codes()[0]);
    expect(asked).toEqual([]);
    expect(readdirSync(responses)).toEqual(['x.json']);
    expect(readdirSync(room.path).sort()).toEqual(['requests', 'responses']);
  });

  it.each([
    ['nothing', ''],
    ['half a request', requestText('x', 'allow').slice(0, -5)],
    ['two requests', `${requestText('x', 'allow')}\n${requestText('x', 'allow')}\n`],
    ['bytes', Buffer.from([0, 255, 1])],
    ['a further key', requestText('x', 'allow', { decision: 'allow' })],
  ])('a file with %s is refused', async (_, text) => {
    const { codes, asked } = await serve();
    put('x.json', text);
    await answered('x');
    await emptied();
    expect(answer('x')).toMatchObject({ decision: 'deny' });
    expect(codes()).toEqual(['malformed']);
    expect(asked).toEqual([]);
  });

  it('an id that was answered before is refused, and its answer stays', async () => {
    const { codes, asked } = await serve();
    ask('a', 'no');
    await answered('a');
    await emptied();
    const before = readFileSync(answerPath('a'), 'utf8');
    ask('a', 'allow');
    await eventually(() => expect(codes()).toEqual(['replayed_id']));
    await emptied();
    expect(readFileSync(answerPath('a'), 'utf8')).toBe(before);
    expect(asked).toHaveLength(1);
  });

  it('an id whose answer was there before the question is refused, whatever lies there', async () => {
    symlinkSync('/nonexistent', answerPath('a'));
    const { codes } = await serve();
    ask('a', 'allow');
    await eventually(() => expect(codes()).toEqual(['replayed_id']));
    expect(lstatSync(answerPath('a')).isSymbolicLink()).toBe(true);
  });

  it('a request that nobody waits for any more is refused', async () => {
    ask('a', 'allow');
    await pause(60);
    const { codes, asked } = await serve({ requestAgeMs: 50 });
    await answered('a');
    expect(codes()).toEqual(['stale']);
    expect(asked).toEqual([]);
  });

  it('a file that never gets its name is removed after a while, and not before', async () => {
    writeFileSync(join(requests, '.tmp-half'), requestText('half', 'allow'));
    const { codes } = await serve({ temporaryMs: 300 });
    await pause(150);
    expect(readdirSync(requests)).toEqual(['.tmp-half']);
    await emptied();
    expect(codes()).toEqual(['stale']);
  });

  it('a file that is being written all the time is not half read', async () => {
    const { asked } = await serve();
    const writer = spawn(process.execPath, [
      '-e',
      `const fs = require('fs');
      const end = Date.now() + 500;
      for (let i = 0; Date.now() < end; i++)
        fs.writeFileSync(${JSON.stringify(join(requests, 'x.json'))}, ${JSON.stringify(requestText('x', 'no'))} + ' '.repeat(i % 5000));`,
    ]);
    expect(await once(writer, 'close')).toEqual([0, null]);
    await emptied();
    for (const { command } of asked) expect(command).toBe('no');
  });

  it('a name that is exchanged all the time leads nowhere, blocks nothing and leaves nothing open', async () => {
    const secret = join(room.path, 'secret');
    writeFileSync(secret, requestText('x', 'allow secret'));
    const { asked, codes } = await serve();
    const open = () => readdirSync('/proc/self/fd').length;
    const before = open();
    const attacker = spawn(process.execPath, [
      '-e',
      `const fs = require('fs'), path = require('path'), { spawnSync } = require('child_process');
      const [requests, secret, text] = process.argv.slice(1);
      const away = path.join(requests, '.tmp-swap'), name = path.join(requests, 'x.json'), fifo = path.join(requests, '.tmp-fifo');
      const quiet = (work) => { try { work(); } catch {} };
      spawnSync('mkfifo', [fifo]);
      for (let i = 0; ; i++) {
        quiet(() => fs.unlinkSync(away));
        if (i % 4 === 0) quiet(() => fs.writeFileSync(away, text));
        if (i % 4 === 1) quiet(() => fs.symlinkSync(secret, away));
        if (i % 4 === 2) quiet(() => fs.linkSync(secret, away));
        if (i % 4 === 3) quiet(() => fs.linkSync(fifo, away));
        quiet(() => fs.renameSync(away, name));
      }`,
      requests,
      secret,
      requestText('x', 'no'),
    ]);
    const closed = once(attacker, 'close');
    await sleep(1500);
    // On a busy machine the server may have looked at nothing of it by then.
    await eventually(() => expect(codes()).toContain('forged_file'), 20_000);
    attacker.kill('SIGKILL');
    await closed;
    ask('a', 'allow');
    await answered('a');
    for (const name of ['.tmp-fifo', '.tmp-swap']) rmSync(join(requests, name), { force: true });
    await emptied();
    for (const { command } of asked) expect(['no', 'allow']).toContain(command);
    expect(readFileSync(secret, 'utf8')).toContain('secret');
    await eventually(() => expect(open()).toBeLessThanOrEqual(before));
  });

  it('10,000 files do not hang it, and a request among them is answered', async () => {
    for (let number = 0; number < 10_000; number += 1) writeFileSync(join(requests, `junk ${number}`), 'x');
    let longest = 0;
    // Processor time: the clock on the wall also counts what other processes of a busy machine take.
    const used = () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    };
    let last = used();
    const clock = setInterval(() => {
      const now = used();
      longest = Math.max(longest, now - last);
      last = now;
    }, 5);
    const { codes } = await serve();
    ask('a', 'allow');
    await answered('a');
    // Ten thousand files take a busy machine longer than `eventually` waits.
    for (let left = 400; left > 0 && readdirSync(requests).length > 0; left -= 1) await sleep(100);
    await emptied();
    clearInterval(clock);
    expect(codes()).toHaveLength(10_000);
    expect(longest).toBeLessThan(1_000);
  }, 60_000);
});

describe('whose files are requests', () => {
  it.runIf(isRoot)('is settled by their owner', async () => {
    const { asked, refused, codes } = await serve({}, { allowedUids: new Set([OWN_UID, NOBODY]) });
    for (const uid of [NOBODY, NOBODY - 1]) {
      const temporary = join(requests, `.tmp-${uid}`);
      writeFileSync(temporary, requestText(`${uid}`, 'allow'));
      chownSync(temporary, uid, uid);
      renameSync(temporary, join(requests, `${uid}.json`));
    }
    await answered(`${NOBODY}`);
    await emptied();
    expect(asked).toMatchObject([{ requestId: `${NOBODY}`, principal: `uid:${NOBODY}` }]);
    expect(codes()).toEqual(['forged_file']);
    expect(refused[0]).toMatchObject({ principal: `uid:${NOBODY - 1}` });
    expect(existsSync(answerPath(`${NOBODY - 1}`))).toBe(false);
  });

  it.runIf(isRoot)('lets a container of another user ask and read, and nothing more', async () => {
    chmodSync(room.path, 0o755);
    chownSync(requests, NOBODY, NOBODY);
    const { asked } = await serve({}, { allowedUids: new Set([OWN_UID, NOBODY]) });
    const shell = (script: string) =>
      spawnSync('runuser', ['-u', 'nobody', '--', 'sh', '-c', script], { cwd: '/', encoding: 'utf8' });
    const text = requestText('a', 'allow');
    shell(`printf '%s' '${text}' > ${requests}/.tmp-a && mv ${requests}/.tmp-a ${requests}/a.json`);
    await answered('a');
    expect(asked).toMatchObject([{ principal: `uid:${NOBODY}` }]);
    expect(JSON.parse(shell(`cat ${answerPath('a')}`).stdout)).toMatchObject({ decision: 'allow' });
    expect(shell(`echo x > ${answerPath('b')}`).status).not.toBe(0);
    expect(shell(`rm -f ${answerPath('a')}`).status).not.toBe(0);
  });

  it.runIf(isRoot)('and a folder that is exchanged for a link leads nowhere', async () => {
    const precious = join(room.path, 'precious');
    mkdirSync(precious);
    writeFileSync(join(precious, 'not a request'), 'x');
    const { codes } = await serve();
    renameSync(requests, `${requests}.old`);
    symlinkSync(precious, requests);
    await pause(150);
    expect(readdirSync(precious)).toEqual(['not a request']);
    expect(codes()).toEqual([]);
  });
});

describe('folders that cannot be used', () => {
  const refuses = (message: RegExp, more: Partial<FolderServerOptions> = {}) =>
    expect(serve({}, more)).rejects.toMatchObject({
      code: 'gate.unusable',
      message: expect.stringMatching(message),
    });

  it('because one is the other', () => refuses(/apart/, { responses: requests }));
  it('because one leads to the other', async () => {
    symlinkSync(requests, join(room.path, 'link'));
    await refuses(/apart/, { responses: join(room.path, 'link') });
  });
  it('because answers lie inside of requests', async () => {
    mkdirSync(join(requests, 'inside'));
    await refuses(/apart/, { responses: join(requests, 'inside') });
  });
  it('because requests lie inside of answers', async () => {
    mkdirSync(join(responses, 'inside'));
    await refuses(/apart/, { requests: join(responses, 'inside') });
  });
  it('because one is not there', () => refuses(/ENOENT/, { responses: join(room.path, 'no') }));
  it('because one is a file', async () => {
    writeFileSync(join(room.path, 'file'), '');
    await refuses(/ENOTDIR/, { requests: join(room.path, 'file') });
  });
  it.each([0o775, 0o757, 0o1777])('because others can write answers (%o)', async (mode) => {
    chmodSync(responses, mode);
    await refuses(/written by others/);
  });
  it('because others can exchange the folder of answers', async () => {
    const open = join(room.path, 'open');
    mkdirSync(join(open, 'answers'), { recursive: true });
    chmodSync(open, 0o777);
    await refuses(/others can write/, { responses: join(open, 'answers') });
  });
  it.runIf(isRoot)('because somebody else owns the folder of answers, or one above it', async () => {
    chownSync(responses, NOBODY, NOBODY);
    await refuses(/must be yours/);
    const theirs = join(room.path, 'theirs');
    mkdirSync(join(theirs, 'answers'), { recursive: true });
    chownSync(theirs, NOBODY, NOBODY);
    await refuses(/belongs to user 65534/, { responses: join(theirs, 'answers') });
  });
  it('because another server answers there', async () => {
    const first = await serve();
    await refuses(/another server/);
    await first.server.close();
    await serve();
  });
});
