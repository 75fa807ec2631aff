// One process of gate-load.mjs. Takes its task as JSON, says what became of it as JSON.
import { createSandbox } from '../dist/index.js';

const { mode, index, count, limit } = JSON.parse(process.argv[2]);
const said = { ran: 0, refused: 0, unapproved: 0, asked: 0 };

const approver = {
  ask: async () => {
    said.asked++;
    return said.asked % 2 === 0
      ? { approved: false, reason: 'denied', by: 'load' }
      : { approved: true, scope: 'once', by: 'load' };
  },
};

const commandOf = (number) => {
  if (mode === 'mark') return `echo mark-${index}-${number} >> ran`;
  if (number % 10 === 5) return ['cat', '/etc/shadow'];
  if (number % 10 === 0) return `mkdir -p made-${index}-${number}`;
  return ['true'];
};

async function decide(sandbox, number) {
  const { status, error } = await sandbox.run(commandOf(number));
  if (status === 'exited') said.ran++;
  else if (number % 10 === 0 && status === 'denied') said.unapproved++;
  else if (error?.code === 'command.denied') said.refused++;
}

const sandbox = await createSandbox({
  workspace: process.cwd(),
  autonomy: mode === 'mark' ? 'autonomous' : 'supervised',
  policy: { audit: { enabled: true }, security: { max_actions_per_hour: limit } },
  gate: { approver },
});
process.stdout.write('begun\n');
let next = 0;
// A few at a time, as an agent with parallel tools does.
await Promise.all(
  Array.from({ length: 4 }, async () => {
    while (next < count) await decide(sandbox, next++);
  }),
);
await sandbox.close();
process.stdout.write(JSON.stringify(said));
