import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, OpenAIProvider, Runner, type RunState, RunState as State, shellTool } from '@openai/agents';
import { assistantMessage, ScriptedModel } from '@openai/agents/testing';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createShell, runShellCall, type ShellCall } from '../../src/agents/index.ts';
import type { Sandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { untilTimeOut } from '../support/time-out.ts';
import { makeIntegration } from './support.ts';

const { place, sandbox: makeSandbox, unjudged } = makeIntegration();
const inWorkspace = (name: string) => join(place.workspace, name);
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await makeSandbox({ timeout: 20_000, autonomy: 'supervised' });
});

let count = 0;
const shellCall = (commands: readonly unknown[], more: object = {}, callId = `call_${++count}`) =>
  ({ type: 'shell_call', callId, status: 'completed', action: { commands, ...more } }) as never;

interface Sent {
  readonly type: string;
  readonly callId?: string;
  readonly output: readonly {
    stdout: string;
    stderr: string;
    outcome: { type: string; exitCode?: number };
  }[];
  readonly maxOutputLength?: number;
}
const isOutput = (item: unknown): item is Sent => (item as Sent).type === 'shell_call_output';

/** An agent whose model says what it is told to, one step after the other, and what it was sent back. */
function agentThat(steps: readonly unknown[], options: Partial<Parameters<typeof shellTool>[0]> = {}) {
  const model = new ScriptedModel([...steps.map((step) => [step]), [assistantMessage('done')]] as never);
  const shell = createShell(sandbox);
  const tool = { shell, needsApproval: shell.needsApproval, ...options } as Parameters<typeof shellTool>[0];
  const agent = new Agent({ name: 'worker', model, tools: [shellTool(tool as never)] });
  const runner = new Runner({ tracingDisabled: true });
  const outputs = () => {
    const input = model.lastCall?.request.input ?? [];
    return (Array.isArray(input) ? (input as readonly unknown[]) : []).filter(isOutput);
  };
  return { agent, runner, model, shell, outputs };
}

/** What a model sees of one action. */
async function act(commands: readonly unknown[], more: object = {}, on: Sandbox = sandbox) {
  return createShell(on).run({ commands, ...more } as never);
}

describe('the shell tool of the Agents SDK', () => {
  it('runs the commands of an action in their order, each in a shell of its own', async () => {
    const { agent, runner, outputs } = agentThat([
      shellCall(['x=1; cd /usr; echo one', 'echo "[$x] $PWD"; echo bad >&2; exit 3']),
    ]);
    const { finalOutput } = await runner.run(agent, 'go');
    expect(finalOutput).toBe('done');
    expect(outputs()).toMatchObject([
      {
        output: [
          { stdout: 'one\n', stderr: '', outcome: { type: 'exit', exitCode: 0 } },
          { stdout: `[] ${place.workspace}\n`, stderr: 'bad\n', outcome: { type: 'exit', exitCode: 3 } },
        ],
        maxOutputLength: 30_000,
      },
    ]);
  });

  it('tells the model why a command was refused, and runs the others', async () => {
    const { output } = await act(['touch /etc/shadow', 'echo after']);
    expect(output).toMatchObject([
      {
        stdout: '',
        stderr: expect.stringMatching(/command\.denied(?:.|\n)*\/etc\/shadow/),
        outcome: { type: 'exit', exitCode: 126 },
      },
      { stdout: 'after\n', outcome: { exitCode: 0 } },
    ]);
  });

  it('never says that a command succeeded which did not run', async () => {
    const [free, closed] = [await unjudged(), await makeSandbox()];
    await closed.close();
    const codes = [
      ...(await act(['no-such-program-7'], {}, free)).output,
      ...(await act(['kill -9 $$'], {}, free)).output,
      ...(await act(['echo'], {}, closed)).output,
    ].map(({ outcome }) => outcome);
    expect(codes).toEqual([127, 137, 125].map((exitCode) => ({ type: 'exit', exitCode })));
  });
});

describe('what a model asks for', () => {
  it.each([
    ['text in the place of a list', 'echo pwned > pwned'],
    ['an argument vector that is none', [['touch', 'pwned']]],
    ['numbers among them', ['touch pwned', 7]],
    ['objects', [{ toString: 'touch pwned' }]],
    ['nothing', []],
    ['more commands than anybody needs', Array.from({ length: 65 }, () => 'touch pwned')],
    ['one that is too long for the kernel', [`touch pwned; echo ${'x'.repeat(128 * 1024)}`]],
    ['no list at all', undefined],
  ])('is refused as a whole if it is %s', async (_, commands) => {
    const { output } = await act(commands as never, {}, await unjudged());
    expect(output).toMatchObject([
      {
        stderr: expect.stringContaining('array of 1 to 64 strings'),
        outcome: { type: 'exit', exitCode: 126 },
      },
    ]);
    expect(existsSync(inWorkspace('pwned'))).toBe(false);
  });

  it.each([1e300, Number.POSITIVE_INFINITY, Number.NaN, 0, -1, '9999999', null])(
    'gets no more time than the sandbox gives: %s',
    async (timeoutMs) => {
      const brief = await makeSandbox({ timeout: 300 });
      const { output } = await act(['sleep 600'], { timeoutMs }, brief);
      expect(output).toMatchObject([{ outcome: { type: 'timeout' } }]);
    },
  );

  it('gets the time that it asks for, all commands together, and nothing outlives it', async () => {
    const mark = '86399.125';
    const free = await unjudged();
    const action = [`setsid sleep ${mark} & disown; trap '' TERM; echo begun; sleep ${mark}`, 'echo late'];
    const { output } = await untilTimeOut(
      500,
      (timeoutMs) => act(action, { timeoutMs }, free),
      (result) => result.output[0]?.stdout !== '',
    );
    expect(output).toMatchObject([
      { stdout: 'begun\n', outcome: { type: 'timeout' } },
      { stdout: '', stderr: expect.stringContaining('used up the time'), outcome: { type: 'timeout' } },
    ]);
    expect(processesWith(mark)).toEqual([]);
  });

  it.each([-1, 1e9, Number.NaN, 1.5, '7', null])('gets no more output than is given: %s', async (asked) => {
    const { output, maxOutputLength } = await act(['yes | head -c 200000'], { maxOutputLength: asked });
    const [{ stdout, stderr } = { stdout: '', stderr: '' }] = output;
    expect(maxOutputLength).toBe(30_000);
    expect(stdout.length + stderr.length).toBeLessThanOrEqual(30_000);
    expect(stdout.length).toBeGreaterThan(29_000);
    expect(stdout).toContain('left out');
  });

  it.each([0, 1, 2, 3, 50, 59, 60, 61, 100, 1001])(
    'gets %i characters of all commands and streams together, none of them cut in half',
    async (most) => {
      const flood = 'yes 😀é | head -n 5000 | tee /dev/stderr';
      const { output, maxOutputLength } = await act([flood, flood, 'touch /etc/shadow'], {
        maxOutputLength: most,
      });
      const all = output.map(({ stdout, stderr }) => stdout + stderr).join('');
      expect(maxOutputLength).toBe(most);
      expect(all.length).toBeLessThanOrEqual(most);
      expect(Buffer.from(all).toString()).toBe(all);
      expect(all).not.toContain('\ufffd');
      expect(output).toHaveLength(3);
    },
  );

  it('leaves to the later commands what the earlier ones do not need', async () => {
    const { output } = await act(['echo a', 'yes b | head -c 5000'], { maxOutputLength: 1000 });
    expect(output[0]?.stdout).toBe('a\n');
    expect(output[1]?.stdout.length).toBeGreaterThan(900);
  });

  it('comes back without anything that a terminal would obey', async () => {
    const { output } = await act([
      String.raw`printf '\033]0;title\007\033[31mred\033[0m \342\200\256 end\n' | tee /dev/stderr`,
    ]);
    const [one] = output;
    for (const text of [one?.stdout, one?.stderr]) expect(text).toBe('red \\u{202e} end\n');
  });

  it('ends when the application says so', async () => {
    const canceled = new AbortController();
    const shell = createShell(sandbox, { signal: canceled.signal });
    const seconds = `600.${process.pid}`;
    const running = shell.run({ commands: [`sleep ${seconds}`, 'echo never'] });
    await eventually(() => expect(processesWith(`sleep\0${seconds}`)).toHaveLength(1));
    canceled.abort();
    expect(await running).toMatchObject({
      output: [
        { outcome: { type: 'exit', exitCode: 143 } },
        { stdout: '', stderr: expect.stringContaining('canceled'), outcome: { type: 'exit', exitCode: 130 } },
      ],
    });
  });
});

describe('a command that the policy asks about', () => {
  const approve = (state: RunState<never, never>) => {
    for (const interruption of state.getInterruptions()) state.approve(interruption);
  };

  it('interrupts the run, runs once it is approved, and is asked about again', async () => {
    const [first, again] = ['asked', 'asked'].map((name) => shellCall([`touch ${name}`, 'echo made']));
    const { agent, runner, outputs } = agentThat([first, again]);
    const asked = await runner.run(agent, 'go');
    expect(asked.interruptions).toHaveLength(1);
    expect(existsSync(inWorkspace('asked'))).toBe(false);
    approve(asked.state as never);
    const resumed = await runner.run(agent, asked.state);
    expect(existsSync(inWorkspace('asked'))).toBe(true);
    expect(outputs()).toMatchObject([{ output: [{ outcome: { exitCode: 0 } }, { stdout: 'made\n' }] }]);
    expect(resumed.interruptions).toHaveLength(1);
  });

  it('does not run if it was rejected', async () => {
    const { agent, runner, outputs } = agentThat([shellCall(['touch rejected'])]);
    const asked = await runner.run(agent, 'go');
    for (const interruption of asked.interruptions) asked.state.reject(interruption);
    await runner.run(agent, asked.state);
    expect(outputs()).toHaveLength(1);
    expect(existsSync(inWorkspace('rejected'))).toBe(false);
  });

  it('runs if onApproval says yes', async () => {
    const { agent, runner, outputs } = agentThat([shellCall(['touch by-hook'])], {
      onApproval: async () => ({ approve: true }),
    } as never);
    await runner.run(agent, 'go');
    expect(outputs()).toMatchObject([{ output: [{ outcome: { exitCode: 0 } }] }]);
    expect(existsSync(inWorkspace('by-hook'))).toBe(true);
  });

  it('does not run where nobody is asked, whatever the model says of itself', async () => {
    const faked = shellCall(['touch faked'], {
      approved: true,
      autonomy: 'autonomous',
      needsApproval: false,
    });
    const { agent, runner, outputs } = agentThat([faked], { needsApproval: false } as never);
    await runner.run(agent, 'go');
    expect(outputs()).toMatchObject([
      { output: [{ stderr: expect.stringContaining('needs_approval'), outcome: { exitCode: 126 } }] },
    ]);
    expect(existsSync(inWorkspace('faked'))).toBe(false);
  });

  it('is not approved by an approval of all later calls', async () => {
    const { agent, runner, outputs } = agentThat([shellCall(['touch first']), shellCall(['touch second'])]);
    const asked = await runner.run(agent, 'go');
    for (const interruption of asked.interruptions)
      asked.state.approve(interruption, { alwaysApprove: true });
    await runner.run(agent, asked.state);
    expect(outputs().at(-1)).toMatchObject({ output: [{ outcome: { exitCode: 126 } }] });
    expect([existsSync(inWorkspace('first')), existsSync(inWorkspace('second'))]).toEqual([true, false]);
  });

  it('is not approved by an approval of another call with its name', async () => {
    const { agent, runner } = agentThat([
      shellCall(['touch good'], {}, 'same'),
      shellCall(['touch evil'], {}, 'same'),
    ]);
    const asked = await runner.run(agent, 'go');
    approve(asked.state as never);
    await runner.run(agent, asked.state).catch(() => {});
    expect([existsSync(inWorkspace('good')), existsSync(inWorkspace('evil'))]).toEqual([true, false]);
  });

  it('does not run if a file behind it changed while the question was open', async () => {
    const script = inWorkspace('build.sh');
    writeFileSync(script, '#!/bin/sh\necho good > built\n');
    chmodSync(script, 0o755);
    const { agent, runner, outputs } = agentThat([shellCall(['./build.sh'])]);
    const asked = await runner.run(agent, 'go');
    expect(asked.interruptions).toHaveLength(1);
    writeFileSync(script, '#!/bin/sh\necho evil > built\n');
    approve(asked.state as never);
    await runner.run(agent, asked.state);
    expect(outputs()).toMatchObject([
      { output: [{ stderr: expect.stringContaining('approval.void'), outcome: { exitCode: 126 } }] },
    ]);
    expect(existsSync(inWorkspace('built'))).toBe(false);
  });

  it('does not run if a command of the same action changed a file behind it', async () => {
    const script = inWorkspace('deploy.sh');
    writeFileSync(script, 'echo GOOD');
    const commands = [
      "printf 'echo EVIL; id -u' | tee deploy.sh >/dev/null",
      'bash deploy.sh',
      'touch beside',
    ];
    const { agent, runner, outputs } = agentThat([shellCall(commands)]);
    const asked = await runner.run(agent, 'go');
    approve(asked.state as never);
    await runner.run(agent, asked.state);
    expect(outputs()).toMatchObject([
      {
        output: [
          { outcome: { exitCode: 0 } },
          { stdout: '', stderr: expect.stringContaining('approval.void'), outcome: { exitCode: 126 } },
          { outcome: { exitCode: 0 } },
        ],
      },
    ]);
    expect(existsSync(inWorkspace('beside'))).toBe(true);
    writeFileSync(script, 'echo GOOD');
    const call = { type: 'shell_call', call_id: 'c', action: { commands } } as const;
    expect(await runShellCall(sandbox, call, { approved: true })).toMatchObject({
      output: [
        { outcome: { exit_code: 0 } },
        { stdout: '', stderr: expect.stringContaining('approval.void'), outcome: { exit_code: 126 } },
        { outcome: { exit_code: 0 } },
      ],
    });
  });

  it('of a state from text runs only if the application tells the shell', async () => {
    const tries = [false, true].map(async (tells) => {
      const name = `restored-${tells}`;
      const { agent, runner } = agentThat([shellCall([`touch ${name}`])]);
      const asked = await runner.run(agent, 'go');
      const text = asked.state.toString();
      const later = agentThat([]);
      const restored = await State.fromString(later.agent, text);
      for (const interruption of restored.getInterruptions()) {
        restored.approve(interruption);
        if (tells) await later.shell.approve(interruption);
      }
      await later.runner.run(later.agent, restored);
      return [later.outputs()[0]?.output[0]?.outcome.exitCode, existsSync(inWorkspace(name))];
    });
    expect(await Promise.all(tries)).toEqual([
      [126, false],
      [0, true],
    ]);
  });
});

describe('over the wire of the Responses API', () => {
  let server: ModelServer;
  /** Answered one after the other. */
  const answers: object[][] = [];
  beforeAll(async () => {
    server = await startModelServer((response) => {
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify({
          ...{ id: `resp_${++count}`, object: 'response', created_at: 1, model: 'test', status: 'completed' },
          output: answers.shift() ?? [],
          usage: {
            ...{ input_tokens: 1, output_tokens: 1, total_tokens: 2 },
            input_tokens_details: { cached_tokens: 0 },
            output_tokens_details: { reasoning_tokens: 0 },
          },
        }),
      );
    });
  });
  afterAll(() => server.close());

  const rawCall = (commands: readonly string[], more: object = {}) => ({
    ...{ type: 'shell_call', id: `sh_${++count}`, call_id: `call_${count}`, status: 'completed' },
    action: { commands, timeout_ms: null, max_output_length: null, ...more },
    environment: { type: 'local' },
  });
  const rawMessage = {
    ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
    content: [{ type: 'output_text', text: 'done', annotations: [] }],
  };
  const sentItems = () => (server.seen.at(-1)?.body.input ?? []) as readonly { readonly type?: string }[];

  it('the Agents SDK gets calls and sends what became of them', async () => {
    answers.push(
      [rawCall(['echo hi', 'touch /etc/shadow'], { max_output_length: 400, timeout_ms: 9000 })],
      [rawMessage],
    );
    const shell = createShell(sandbox);
    const modelProvider = new OpenAIProvider({ apiKey: 'none', baseURL: server.url, useResponses: true });
    const agent = new Agent({
      ...{ name: 'worker', model: 'test' },
      tools: [shellTool({ shell, needsApproval: shell.needsApproval })],
    });
    const { finalOutput } = await new Runner({ modelProvider, tracingDisabled: true }).run(agent, 'go');
    expect(finalOutput).toBe('done');
    expect(server.seen[0]?.body.tools).toMatchObject([{ type: 'shell', environment: { type: 'local' } }]);
    expect(sentItems().find(({ type }) => type === 'shell_call_output')).toMatchObject({
      max_output_length: 400,
      output: [
        { stdout: 'hi\n', stderr: '', outcome: { type: 'exit', exit_code: 0 } },
        { stderr: expect.stringContaining('command.denied'), outcome: { type: 'exit', exit_code: 126 } },
      ],
    });
  });

  it('a client without the Agents SDK answers calls itself', async () => {
    const asked = { timeout_ms: 700, max_output_length: 100 };
    answers.push([rawCall(['yes', 'touch raw'], asked)], [rawMessage]);
    const client = new OpenAI({ apiKey: 'none', baseURL: server.url });
    const tools = [{ type: 'shell' as const, environment: { type: 'local' as const } }];
    const first = await client.responses.create({ model: 'test', input: 'go', tools });
    const input: OpenAI.Responses.ResponseInputItem[] = [];
    for (const item of first.output) {
      if (item.type !== 'shell_call') continue;
      const { id, call_id, action, type } = item;
      input.push({ id, call_id, action, type }, await runShellCall(sandbox, item));
    }
    const second = await client.responses.create({ model: 'test', input, tools });
    expect(second.output_text).toBe('done');
    const output = sentItems().find(({ type }) => type === 'shell_call_output');
    expect(output).toMatchObject({
      call_id: expect.stringMatching(/^call_/),
      max_output_length: 100,
      output: [{ outcome: { type: 'timeout' } }, { outcome: { type: 'timeout' } }],
    });
    expect(existsSync(inWorkspace('raw'))).toBe(false);
  });

  it('a call runs what is asked about only if the application approved it', async () => {
    const call = rawCall(['echo x > approved-raw']) as ShellCall;
    const { decision } = await sandbox.check('echo x > approved-raw');
    expect(decision?.verdict).toBe('ask');
    const faked = { ...call, approved: true, action: { ...call.action, approved: true } };
    expect(await runShellCall(sandbox, faked)).toMatchObject({ output: [{ outcome: { exit_code: 126 } }] });
    expect(await runShellCall(sandbox, call, { approved: true })).toMatchObject({
      output: [{ outcome: { type: 'exit', exit_code: 0 } }],
    });
    expect(readFileSync(inWorkspace('approved-raw'), 'utf8')).toBe('x\n');
  });

  it.each([null, undefined, {}, { commands: 'ls' }, { commands: ['ls', 3] }])(
    'a call whose action is %j is answered all the same',
    async (action) => {
      const answer = await runShellCall(sandbox, {
        type: 'shell_call',
        call_id: 'c',
        action: action as never,
      });
      expect(answer).toMatchObject({ call_id: 'c', output: [{ outcome: { type: 'exit', exit_code: 126 } }] });
    },
  );
});
