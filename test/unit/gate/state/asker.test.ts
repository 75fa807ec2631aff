import { describe, expect, it } from 'vitest';
import { processAskers } from '../../../../src/gate/state/approval-store.ts';

describe('who asks', () => {
  const askers = processAskers();
  const self = askers.self() ?? '';
  const [place = '', pid = '', began = ''] = self.split(' ');

  it('is this process, which is there', () => {
    expect(pid).toBe(String(process.pid));
    expect(askers.isGone(self)).toBe(false);
    expect(processAskers().isGone(self)).toBe(false);
  });

  it('is not another one that has its number', () => {
    expect(askers.isGone(`${place} ${pid} ${Number(began) - 1}`)).toBe(true);
    expect(askers.isGone(`${place} ${pid} `)).toBe(true);
  });

  it('is not known to be gone where it is of another machine, boot or container', () => {
    expect(askers.isGone(`elsewhere/pid:[1] ${pid} 1`)).toBe(false);
    expect(askers.isGone('')).toBe(false);
  });
});
