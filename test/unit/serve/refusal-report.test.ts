import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../../src/model/index.ts';
import type { RefusedMessage } from '../../../src/serve/gate/gate-service.ts';
import { createRefusalReport } from '../../../src/serve/gate/gate-service.ts';
import { eventually } from '../../support/eventually.ts';

const refused = (principal = 'uid:1', code: RefusedMessage['code'] = 'malformed'): RefusedMessage => ({
  code,

  principal,
  message: 'it is malformed',
  requestId: 'a',
});

function fakeAudit(fails = false) {
  const records: AuditRecord[] = [];
  const audit = {
    append: async (record: AuditRecord) => {
      if (fails) throw new Error('the disk is full');
      records.push(record);
    },
  };
  return { records, audit };
}

describe('the report of refused messages', () => {
  it('is an event', async () => {
    const { records, audit } = fakeAudit();
    await createRefusalReport({ audit }).report(refused());
    expect(records).toEqual([
      {
        type: 'event',
        code: 'gate_message_refused',
        principal: 'uid:1',
        session: undefined,
        message: 'it is malformed',
        details: { refusal: 'malformed', transport: 'socket', count: 1, request_id: 'a' },
      },
    ]);
  });

  it('counts what comes too often, of one kind and principal', async () => {
    const { records, audit } = fakeAudit();
    const { report, flush } = createRefusalReport({ audit, singleRecords: 3 });
    for (let number = 0; number < 100; number += 1) await report(refused());
    await report(refused('uid:2'));
    await report(refused('uid:1', 'too_long'));
    expect(records).toHaveLength(5);
    await flush();
    expect(records).toHaveLength(6);
    expect(records[5]).toMatchObject({ principal: 'uid:1', details: { refusal: 'malformed', count: 97 } });
  });

  it('records the count when the time is over, and then each one again', async () => {
    const { records, audit } = fakeAudit();
    const { report, flush } = createRefusalReport({ audit, singleRecords: 1, windowMs: 30 });
    await report(refused());
    await report(refused());
    await eventually(() => expect(records).toHaveLength(2));
    await report(refused());
    expect(records).toHaveLength(3);
    await flush();
  });

  it('does not fail where it cannot be recorded, and still tells the log', async () => {
    const log: unknown[] = [];
    const { report } = createRefusalReport({
      audit: fakeAudit(true).audit,
      onRefusal: ({ code }, count) => log.push([code, count]),
    });
    await report(refused());
    expect(log).toEqual([['malformed', 1]]);
  });
});
