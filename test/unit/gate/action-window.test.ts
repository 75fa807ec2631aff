import { describe, expect, it } from 'vitest';
import { createActionWindow } from '../../../src/gate/action-window.ts';

describe('the window of actions', () => {
  it('forgets what is older than an hour, action by action', () => {
    let now = 0;
    const window = createActionWindow(() => now);
    expect(window.record(2)).toBe(true);
    now = 1_000;
    expect(window.record(2)).toBe(true);
    expect(window.record(2)).toBe(false);
    expect(window.used()).toBe(2);
    now = 3_600_000;
    expect(window.used()).toBe(1);
    expect(window.record(2)).toBe(true);
    now = 3_601_000;
    expect(window.used()).toBe(1);
  });

  it('records nothing where nothing is allowed', () => {
    const window = createActionWindow(() => 0);
    expect(window.record(0)).toBe(false);
    expect(window.used()).toBe(0);
  });
});
