import { describe, expect, it } from 'vitest';
import { deferred } from '../../../src/base/deferred.ts';
import { pendingCommand, type RunningCommand } from '../../../src/run/launch/pending-command.ts';

describe('a command that starts later', () => {
  it.each([
    ['cancel()', (command: RunningCommand) => command.cancel()],
    ['kill()', (command: RunningCommand) => void command.kill('SIGINT')],
  ])('is ended by %s just after it was launched, too, when nobody had heard of that yet', async (_, end) => {
    const { promise, resolve } = deferred<RunningCommand>();
    const canceled = new Error('canceled');
    const ended = deferred<never>();
    const pending = pendingCommand(promise, () => {});
    resolve({ result: ended.promise, kill: () => true, cancel: () => ended.reject(canceled) });
    end(pending);
    await expect(pending.result).rejects.toBe(canceled);
  });
});
