// Runs a command in a sandbox through `sandbox-run mcp`, as an agent does: with the client of the protocol's own SDK.
//   npm install sandbox-run @modelcontextprotocol/sdk && node mcp-client.mjs [COMMAND...]
// prints: Note: …
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const given = process.argv.slice(2);
const commands = given.length > 0 ? given : ['echo hello; uname -s', 'cat ~/.ssh/id_ed25519'];
// The workspace is the operator's choice: nothing that a model says can change it.
const workspace = mkdtempSync(join(tmpdir(), 'mcp-client-'));
// SANDBOX_RUN is for a program that is not in PATH.
const [program = 'sandbox-run', ...args] = process.env.SANDBOX_RUN?.split(' ') ?? [];

const client = new Client({ name: 'example', version: '1.0.0' }, { capabilities: { elicitation: {} } });

// What the policy asks is asked here. Without a terminal nobody says yes.
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  console.log(params.message);
  if (!process.stdin.isTTY) return { action: 'decline' };
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question('Run it? (yes/no) ');
  terminal.close();
  return answer === 'yes' ? { action: 'accept', content: { approve: true } } : { action: 'decline' };
});

try {
  await client.connect(
    new StdioClientTransport({
      command: program,
      args: [...args, 'mcp', '--quiet', '--workspace', workspace],
    }),
  );
  const { tools } = await client.listTools();
  console.log(`tools: ${tools.map(({ name }) => name).join(', ')}`);

  const onprogress = ({ message }) => console.log(`... ${message}`);
  for (const command of commands) {
    const explained = await client.callTool({ name: 'policy_explain', arguments: { command } });
    console.log(`\n${command}\npolicy: ${explained.structuredContent.verdict}`);
    const call = { name: 'shell', arguments: { command } };
    const result = await client.callTool(call, undefined, { onprogress });
    const { exitCode, stdout, stderr } = result.structuredContent ?? {};
    if (result.isError) console.log(result.content[0].text);
    else console.log(`exit code: ${exitCode}\nstdout: ${stdout}stderr: ${stderr}`);
  }
} catch (error) {
  const missing = `${program} cannot be started: npm install -g sandbox-run, or set SANDBOX_RUN to its path`;
  console.error(error.code === 'ENOENT' ? missing : error.message);
  process.exitCode = 1;
} finally {
  await client.close();
  rmSync(workspace, { recursive: true, force: true });
}
