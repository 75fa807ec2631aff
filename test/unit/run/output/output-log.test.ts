import { describe, expect, it } from 'vitest';
import { OutputLog } from '../../../../src/run/output/output-log.ts';

const bytes = (text: string) => Buffer.from(text);

describe('the log of a job', () => {
  it('is read where the last part ended, or from anywhere that is kept', () => {
    const log = new OutputLog();
    log.write(bytes('one\n'));
    expect(log.read(undefined, 100)).toEqual({ output: 'one\n', next: 4, leftOut: 0, more: false });
    log.write(bytes('two\n'));
    expect(log.read(undefined, 2)).toEqual({ output: 'tw', next: 6, leftOut: 0, more: true });
    expect(log.read(undefined, 100)).toEqual({ output: 'o\n', next: 8, leftOut: 0, more: false });
    expect(log.read(undefined, 100)).toEqual({ output: '', next: 8, leftOut: 0, more: false });
    expect(log.read(0, 100).output).toBe('one\ntwo\n');
    expect(log.read(1_000_000, 100)).toEqual({ output: '', next: 8, leftOut: 0, more: false });
  });

  it('keeps the end of what is long, and counts what is gone', () => {
    const log = new OutputLog(10);
    for (let i = 0; i < 1000; i += 1) log.write(bytes(`${i % 10}`));
    const { output, next, leftOut, more } = log.read(undefined, 100);
    expect(output.length).toBeGreaterThanOrEqual(10);
    expect(output.length).toBeLessThanOrEqual(20);
    expect(output.endsWith('0123456789')).toBe(true);
    expect({ next, more }).toEqual({ next: 1000, more: false });
    expect(leftOut + output.length).toBe(1000);
  });

  it('cuts no character in two, wherever a piece or a part ends', () => {
    const log = new OutputLog(10);
    const whole = bytes('😀'.repeat(100));
    for (let at = 0; at < whole.length; at += 3) log.write(whole.subarray(at, at + 3));
    log.end();
    let text = '';
    for (let part = log.read(0, 3); part.output !== ''; part = log.read(undefined, 3)) text += part.output;
    expect(text).toMatch(/^(😀)+$/u);
  });

  it('has nothing that a terminal would obey, also where a sequence comes in pieces', () => {
    const log = new OutputLog();
    for (const piece of ['a\u001b', '[31', 'mred\u001b]0;ti', 'tle\u0007\u202e\n', '10%\r20%\r\n'])
      log.write(bytes(piece));
    log.end();
    expect(log.read(0, 100).output).toBe('ared\\u{202e}\n10%\n20%\n');
  });
});
