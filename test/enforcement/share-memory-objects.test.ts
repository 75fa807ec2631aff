import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { TIERS } from '../support/tiers.ts';

const objects = compile(
  'memory-objects',
  `
  #include <mqueue.h>
  #include <sys/ipc.h>
  #include <sys/msg.h>
  #include <sys/sem.h>
  #include <sys/shm.h>
  int main(int argc, char **argv) {
    int make = argc > 2 ? IPC_CREAT | 0600 : 0600, id;
    key_t key = strtol(argv[1], 0, 10);
    char queue[64];
    sprintf(queue, "/enforcement-%d", key);
    char *at;
    TRY("shared-memory", (id = shmget(key, 4096, make)) < 0 ? -1 : (at = shmat(id, 0, 0)) == (void *)-1 ? -1 : (at[0] = 1, 0));
    TRY("shared-memory-control", shmctl(id, IPC_STAT, &(struct shmid_ds){0}));
    TRY("semaphore", semget(key, 1, make));
    TRY("message-queue", (id = msgget(key, make)) < 0 ? -1 : msgsnd(id, &(struct { long type; char text[1]; }){1, "x"}, 1, IPC_NOWAIT));
    TRY("posix-queue", mq_open(queue, O_RDWR | (argc > 2 ? O_CREAT : 0), 0600, 0));
    if (argc > 3) {
      shmctl(shmget(key, 0, 0), IPC_RMID, 0);
      semctl(semget(key, 0, 0), 0, IPC_RMID);
      msgctl(msgget(key, 0), IPC_RMID, 0);
      mq_unlink(queue);
    }
    return 0;
  }`,
);

describe('using shared memory, semaphores and queues of the user', () => {
  const arena = makeArena();
  const key = String(0x5b0000 + (process.pid & 0xffff));
  afterAll(() => {
    execFileSync(objects, [key, 'make', 'remove']);
  });

  it('works without a sandbox', async () => {
    expect(worked(await unconfined([objects, key, 'make']))).toHaveLength(5);
    expect(worked(await unconfined([objects, key]))).toHaveLength(5);
  });

  describe.each(TIERS)('$name', (tier) => {
    it('fails, or the report says that it does not', async () => {
      await unconfined([objects, key, 'make']);
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [objects, key]);
      const named = sandbox.plan.report.controls.some(
        (control) => /System V|IPC/i.test(control.reason) && control.state !== 'enforced',
      );
      if (!named) expect(worked(trace)).toEqual([]);
    });
  });

  describe.each(TIERS.filter((tier) => tier.view))('$name', (tier) => {
    it('leaves objects of its own', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [objects, key, 'make']);
      // POSIX queues are files to Landlock.
      expect(worked(trace)).toEqual(expect.arrayContaining(['shared-memory', 'semaphore', 'message-queue']));
    });
  });
});
