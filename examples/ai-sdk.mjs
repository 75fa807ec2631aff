// A tool of the AI SDK whose commands run in a sandbox. The model is a script, so that it runs without network:
// `npm run build`, then `node examples/ai-sdk.mjs`. With a real one: put it in the place of `model`.
// prints: assistant: …The notes are gone.…
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { createSandbox } from 'sandbox-run';
import { shellTool } from 'sandbox-run/ai';

const usage = { inputTokens: {}, outputTokens: {} };
/** @param {object} part @param {string} unified @returns {any} */
const step = (part, unified) => ({ content: [part], finishReason: { unified }, usage, warnings: [] });
/** @param {string} toolCallId @param {string} command */
const call = (toolCallId, command) =>
  step(
    { type: 'tool-call', toolCallId, toolName: 'shell', input: JSON.stringify({ command }) },
    'tool-calls',
  );
const model = new MockLanguageModelV3({
  doGenerate: [
    call('1', 'touch /etc/shadow'),
    call('2', 'echo hello > greeting.txt && cat greeting.txt'),
    // Nothing brings back what is of the user, so the policy asks.
    call('3', 'rm notes.txt'),
    step({ type: 'text', text: 'The notes are gone.' }, 'stop'),
  ],
});

const workspace = await mkdtemp(join(tmpdir(), 'example-'));
await writeFile(join(workspace, 'notes.txt'), 'of the user\n');
const sandbox = await createSandbox({ workspace });
// One tool for the whole conversation: it knows what it asked about.
const tools = { shell: shellTool(sandbox) };
/** @type {import('ai').ModelMessage[]} */
const messages = [{ role: 'user', content: 'Write a greeting, show it, remove it.' }];
let isOver = false;
while (!isOver) {
  const { content, response } = await generateText({ model, tools, messages, stopWhen: stepCountIs(9) });
  messages.push(...response.messages);
  const asked = content.filter((part) => part.type === 'tool-approval-request');
  for (const { approvalId, toolCall } of asked) {
    console.log('the policy asks about:', JSON.stringify(toolCall.input));
    // Here a person decides; `approved: false` is the other answer.
    messages.push({
      role: 'tool',
      content: [{ type: 'tool-approval-response', approvalId, approved: true }],
    });
  }
  isOver = asked.length === 0;
}
for (const { role, content } of messages) console.log(`${role}: ${JSON.stringify(content)}`);

await sandbox.close();
await rm(workspace, { recursive: true });
