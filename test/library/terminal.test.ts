import { describe, expect, it } from 'vitest';
import { makePlaceWithSandbox } from './support.ts';

const { sandbox } = await makePlaceWithSandbox();
const pty = { cols: 90, rows: 33 };

describe('run on a terminal', () => {
  it('x', async () => {
    const result = await sandbox.run('tty; stty size; stty -a; test -t 0 -a -t 1 -a -t 2 && echo three; ps -o pid,ppid,pgid,sid,tty,stat,args; cat; echo $TERM; ls -la $(tty); echo direct > /dev/tty; echo d2 > $(tty)', { pty, input: 'typed\n' });
    console.log(result.stdout, result.stderr, result.status, result.error);
  });
});
