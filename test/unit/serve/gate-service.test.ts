import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type {
  ApprovalAnswer,
  ApprovalRequest,
  Approver,
  AuditRecord,
  PolicyFile,
} from '../../../src/model/index.ts';
import type { GateServer } from '../../../src/serve/gate/gate-service.ts';
import { startGateService } from '../../../src/serve/gate/gate-service.ts';
import { OF_THIS_PROCESS } from '../../../src/workspace/index.ts';
import { eventually } from '../../support/eventually.ts';
import { connectTo, OWN_UID, requestText } from './support.ts';

let room: string;
let services: GateServer[];
let records: AuditRecord[];
const before = process.env.XDG_STATE_HOME;

beforeEach(() => {
  room = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-service-test-')));
  mkdirSync(join(room, 'work'), { mode: 0o755 });
  process.env.XDG_STATE_HOME = join(room, 'state');
  services = [];
  records = [];
});
afterEach(async () => {
  for (const service of services) await service.close();
  expect(existsSync(join(room, 'gate.sock'))).toBe(false);
  process.env.XDG_STATE_HOME = before;
  rmSync(room, { recursive: true, force: true });
});

/** Somebody who answers when a test says so. */
function person() {
  const asked: ApprovalRequest[] = [];
  const times: number[] = [];
  const withdrawn: string[] = [];
  let say: (answer: ApprovalAnswer) => void = () => {};
  const approver: Approver = {
    ask: (request, { timeoutMs, signal }) => {
      asked.push(request);
      times.push(timeoutMs);
      return new Promise((done) => {
        say = done;
        signal?.addEventListener('abort', () => {
          withdrawn.push(String(request.command));
          done({ approved: false, reason: 'failed', by: 'test', detail: 'withdrawn' });
        });
      });
    },
  };
  return { asked, times, withdrawn, approver, say: (answer: ApprovalAnswer) => say(answer) };
}

async function start(approver: Approver, policy: PolicyFile = {}) {
  const socket = join(room, 'gate.sock');
  const audit = {
    append: async (record: AuditRecord) => {
      records.push(record);
    },
  };
  services.push(
    await startGateService({
      sandbox: { workspace: join(room, 'work'), policyFiles: false, policy, gate: { approver, audit } },
      around: OF_THIS_PROCESS,
      socket,
      allowedUids: [],
      onProblem: () => {},
    }),
  );
  return { socket };
}

const YES: ApprovalAnswer = { approved: true, scope: 'once', by: 'test' };

describe('a gate with somebody to ask', () => {
  it.each<[string, ApprovalAnswer, string]>([
    ['approved', YES, 'allow'],
    ['denied', { approved: false, reason: 'denied', by: 'test' }, 'deny'],
    ['expired', { approved: false, reason: 'expired', by: 'test' }, 'deny'],
  ])('passes on what was %s', async (_, answer, decision) => {
    const { approver, asked, times, say } = person();
    const { socket } = await start(approver);
    const client = await connectTo(socket);
    client.send(`${requestText('a', 'git push', { session: 's' })}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    expect(asked[0]).toMatchObject({
      command: 'git push',
      cwd: join(room, 'work'),
      principal: `uid:${OWN_UID}`,
      session: 's',
      confinement: [expect.stringMatching(/somewhere else/)],
    });
    expect(times).toEqual([300_000]);
    expect(client.lines).toEqual([]);
    say(answer);
    await eventually(() => expect(client.answers()).toMatchObject([{ request_id: 'a', decision }]));
    expect(records).toMatchObject([{ type: 'decision', approval: answer, session: 's' }]);
    client.socket.destroy();
  });

  it('withdraws the question of a client that went away', async () => {
    const { approver, asked, withdrawn } = person();
    const { socket } = await start(approver);
    const client = await connectTo(socket);
    client.send(`${requestText('a', 'git push')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    client.socket.destroy();
    await eventually(() => expect(withdrawn).toEqual(['git push']));
    await eventually(() => expect(records).toHaveLength(1));
    expect(records[0]).not.toMatchObject({ outcome: 'allow' });
  });

  it('denies what is asked when it ends', async () => {
    const { approver, asked } = person();
    const { socket } = await start(approver);
    const client = await connectTo(socket);
    client.send(`${requestText('a', 'git push')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    await services.pop()?.close();
    await client.closed;
    expect(client.answers()).toMatchObject([{ request_id: 'a', decision: 'deny' }]);
  });

  it('has refused messages on record, and not each one of very many', async () => {
    const { socket } = await start(person().approver);
    for (let number = 0; number < 30; number += 1) {
      const client = await connectTo(socket);
      client.send('garbage\n');
      client.socket.end();
      await client.closed;
    }
    await services.pop()?.close();
    expect(records).toHaveLength(21);
    expect(records[0]).toMatchObject({ type: 'event', code: 'gate_message_refused' });
    expect(records[20]).toMatchObject({ details: { count: 10 } });
  });

  it('counts actions in the store of everybody', async () => {
    const { socket } = await start(person().approver, { security: { max_actions_per_hour: 3 } });
    const client = await connectTo(socket);
    for (let number = 0; number < 5; number += 1) client.send(`${requestText(`${number}`, 'ls')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(5));
    expect(client.answers().filter(({ decision }) => decision === 'allow')).toHaveLength(3);
    client.socket.destroy();
  });
});
