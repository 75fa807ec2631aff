import { expect, it, vi } from 'vitest';
import { patienceWith, patiently } from '../../../../src/gate/nats/patience.ts';

const connected = (info: object | undefined) => ({ info }) as Parameters<typeof patienceWith>[0];

it('a server that stands alone without JetStream is tried for a moment only, one that may have it for an election', () => {
  expect(patienceWith(connected({ jetstream: true }))).toBe(30_000);
  expect(patienceWith(connected({ cluster: 'one' }))).toBe(30_000);
  for (const info of [{}, { jetstream: false }, undefined]) expect(patienceWith(connected(info))).toBe(3_000);
});

it('what may pass is tried again until the time is over, and what the server refuses is not', async () => {
  let at = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => at);
  try {
    let tries = 0;
    const fails = (name: string) => () => {
      tries += 1;
      at += 1_000;
      return Promise.reject(Object.assign(new Error(name), { name }));
    };
    await expect(patiently(fails('TimeoutError'), 2_500)).rejects.toThrow('TimeoutError');
    expect(tries).toBe(3);
    tries = 0;
    for (const name of ['AuthorizationError', 'PermissionViolationError', 'Error'])
      await expect(patiently(fails(name), 2_500)).rejects.toThrow(name);
    expect(tries).toBe(3);
  } finally {
    clock.mockRestore();
  }
});
