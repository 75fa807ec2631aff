import { PassThrough, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { limitMessages } from '../../../src/agents/mcp/server.ts';

function limited(longest: number, output: Writable = new PassThrough()) {
  let left = 0;
  const messages = limitMessages({
    longest,
    output,
    onTooLong: () => {
      left += 1;
    },
  });
  const lines: string[] = [];
  messages.on('data', (line: Buffer) => lines.push(line.toString('utf8')));
  return { messages, lines, left: () => left };
}
const settled = () => new Promise((done) => setImmediate(done));

describe('messages of a client', () => {
  it.each([1, 2, 5, 1000])(
    'are whole lines, in pieces of %i bytes; too long ones are left out, once',
    async (size) => {
      const { messages, lines, left } = limited(5);
      const all = Buffer.from('12345\n123456\n\nabc\nxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nend\nrest');
      for (let at = 0; at < all.length; at += size) messages.write(all.subarray(at, at + size));
      await settled();
      expect(lines).toEqual(['12345\n', '\n', 'abc\n', 'end\n']);
      expect(left()).toBe(2);
    },
  );

  it('wait while too much that was answered is not read', async () => {
    let read = () => {};
    const slow = new Writable({
      write: (_chunk, _encoding, done) => {
        read = done;
      },
    });
    slow.write(Buffer.alloc(9 * 1024 * 1024));
    const { messages, lines } = limited(5, slow);
    messages.write('1\n');
    messages.write('2\n');
    await settled();
    expect(lines).toEqual(['1\n']);
    read();
    await settled();
    await settled();
    expect(lines).toEqual(['1\n', '2\n']);
  });
});
