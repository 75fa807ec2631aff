// An agent of the OpenAI Agents SDK whose shell is a sandbox. The model is a script, so that it runs without network:
// `npm run build`, then `node examples/openai.mjs`. With a real one: leave out `model`, set OPENAI_API_KEY.
// prints: The notes are gone.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, Runner, shellTool } from '@openai/agents';
import { assistantMessage, ScriptedModel } from '@openai/agents/testing';
import { createSandbox } from 'sandbox-run';
import { createShell } from 'sandbox-run/openai';

/**
 * @param {string} callId
 * @param {string[]} commands
 * @returns {import('@openai/agents').protocol.ShellCallItem}
 */
const shellCall = (callId, commands) => ({ type: 'shell_call', callId, action: { commands } });
const model = new ScriptedModel([
  [shellCall('1', ['ls /usr', 'touch /etc/shadow'])],
  [shellCall('2', ['echo hello > greeting.txt', 'cat greeting.txt'])],
  // Nothing brings back what is of the user, so the policy asks.
  [shellCall('3', ['rm notes.txt'])],
  [assistantMessage('The notes are gone.')],
]);

const workspace = await mkdtemp(join(tmpdir(), 'example-'));
await writeFile(join(workspace, 'notes.txt'), 'of the user\n');
const sandbox = await createSandbox({ workspace });
const shell = createShell(sandbox, { maxOutput: 10_000 });
const agent = new Agent({
  name: 'worker',
  model,
  tools: [shellTool({ shell, needsApproval: shell.needsApproval })],
});
// Nothing is sent to anybody.
const runner = new Runner({ tracingDisabled: true });

let result = await runner.run(agent, 'Write a greeting, show it, remove it.');
while (result.interruptions.length > 0) {
  for (const interruption of result.interruptions) {
    console.log('the policy asks about:', JSON.stringify(interruption.rawItem));
    // Here a person decides: result.state.reject(interruption) is the other answer.
    result.state.approve(interruption);
  }
  result = await runner.run(agent, result.state);
}
for (const { rawItem } of result.newItems) console.log(JSON.stringify(rawItem));
console.log(result.finalOutput);

await sandbox.close();
await rm(workspace, { recursive: true });
