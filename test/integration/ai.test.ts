import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  asSchema,
  generateText,
  type ModelMessage,
  simulateReadableStream,
  stepCountIs,
  streamText,
  type ToolApprovalRequestOutput,
} from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { createBashTool } from 'bash-tool';
import { execaSync } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import { bashToolSandbox, shellTool } from '../../src/agents/index.ts';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { makeIntegration } from './support.ts';

const { place, sandbox: makeSandbox, unjudged } = makeIntegration();
const inWorkspace = (name: string) => join(place.workspace, name);
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await makeSandbox({ timeout: 20_000, autonomy: 'supervised' });
});

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};
let count = 0;
interface Said {
  readonly input: unknown;
  readonly id?: string;
  readonly toolName?: string;
}
const call = ({ input, id = `call_${++count}`, toolName = 'shell' }: Said) => ({
  content: [{ type: 'tool-call' as const, toolCallId: id, toolName, input: JSON.stringify(input) }],
  finishReason: { unified: 'tool-calls' as const, raw: undefined },
  usage,
  warnings: [],
});
const DONE = {
  content: [{ type: 'text' as const, text: 'done' }],
  finishReason: { unified: 'stop' as const, raw: undefined },
  usage,
  warnings: [],
};
/** A model that says what it is told to, one step after the other, and then that it is done. */
const modelThat = (...steps: readonly Said[]) =>
  new MockLanguageModelV3({ doGenerate: [...steps.map(call), DONE] as never });

/** What the model was sent last of its tools. */
const sentBack = (model: MockLanguageModelV3) =>
  (model.doGenerateCalls.at(-1)?.prompt ?? []).flatMap(({ role, content }) =>
    role === 'tool' ? content.flatMap((part) => (part.type === 'tool-result' ? [part.output] : [])) : [],
  );

const PROMPT = { prompt: 'go', stopWhen: stepCountIs(5) } as const;

describe('the shell tool of the AI SDK', () => {
  it('describes each of its fields, and has none that would grant anything', async () => {
    const { properties } = (await asSchema(shellTool(sandbox).inputSchema).jsonSchema) as {
      properties: Record<string, { description?: string }>;
    };
    expect(Object.keys(properties)).toEqual(['command', 'cwd', 'timeout']);
    for (const { description } of Object.values(properties)) expect(description).toMatch(/\w/);
  });

  it('runs commands, and gives the model text and the application a result', async () => {
    const model = modelThat({ input: { command: 'pwd; echo bad >&2; exit 3', cwd: 'sub' } });
    mkdirSync(inWorkspace('sub'));
    const { text, steps } = await generateText({ model, tools: { shell: shellTool(sandbox) }, ...PROMPT });
    expect(text).toBe('done');
    expect(steps[0]?.toolResults[0]?.output).toMatchObject({
      ...{ status: 'exited', exitCode: 3, stdout: `${inWorkspace('sub')}\n`, stderr: 'bad\n' },
    });
    expect(sentBack(model)).toEqual([
      { type: 'text', value: `${inWorkspace('sub')}\n[stderr]\nbad\n[exit status 3]` },
    ]);
  });

  it('tells the model why a command was refused', async () => {
    const model = modelThat({ input: { command: 'touch /etc/shadow' } });
    await generateText({ model, tools: { shell: shellTool(sandbox) }, ...PROMPT });
    expect(sentBack(model)).toMatchObject([
      { type: 'error-text', value: expect.stringMatching(/command\.denied(?:.|\n)*\/etc\/shadow/) },
    ]);
  });

  it('says once what commands may do: in the description, or with the first refusal', async () => {
    for (const [given, refusals] of [
      [{}, 0],
      [{ description: 'Runs a command.' }, 1],
    ] as const) {
      await using own = await createSandbox({ workspace: sandbox.workspace, policyFiles: false });
      const said = (command: string) => modelThat({ input: { command } });
      const shell = shellTool(own, given);
      expect(shell.description?.includes('Writable: ')).toBe(refusals === 0);
      const told: string[] = [];
      for (const model of ['sudo ls', 'cat ~/.ssh/id_rsa', 'touch /etc/x'].map(said)) {
        await generateText({ model, tools: { shell }, ...PROMPT });
        told.push(JSON.stringify(sentBack(model)));
      }
      expect(told.join().match(/Not run: /g)).toHaveLength(3);
      expect(told.join().match(/Allowed: /g) ?? []).toHaveLength(refusals);
    }
  });

  it('streams', async () => {
    const toolCall = call({ input: { command: 'echo streamed' } });
    interface Answer {
      readonly content: readonly { readonly type: string; readonly text?: string }[];
      readonly finishReason: object;
    }
    const streamOf = ({ content, finishReason }: Answer) => ({
      stream: simulateReadableStream({
        chunks: [
          ...content.flatMap((part) =>
            part.type === 'text'
              ? [
                  { type: 'text-start', id: '1' },
                  { type: 'text-delta', id: '1', delta: part.text },
                  { type: 'text-end', id: '1' },
                ]
              : [part],
          ),
          { type: 'finish', finishReason, usage },
        ] as never[],
      }),
    });
    const model = new MockLanguageModelV3({ doStream: [streamOf(toolCall), streamOf(DONE)] });
    const result = streamText({ model, tools: { shell: shellTool(sandbox) }, ...PROMPT });
    expect(await result.text).toBe('done');
    expect((await result.steps)[0]?.toolResults[0]?.output).toMatchObject({ stdout: 'streamed\n' });
  });

  it('ends what runs when the call is aborted', async () => {
    const mark = '86398.125';
    const free = await unjudged();
    const aborted = new AbortController();
    const model = modelThat({ input: { command: `setsid sleep ${mark} & sleep ${mark}` } });
    const running = generateText({
      ...{ model, tools: { shell: shellTool(free) }, abortSignal: aborted.signal },
      ...PROMPT,
    });
    const ended = expect(running).rejects.toThrow();
    await eventually(() => expect(processesWith(mark)).not.toEqual([]));
    aborted.abort();
    await ended;
    await free.close();
    expect(processesWith(mark)).toEqual([]);
  });

  it.each([
    { command: 'touch granted', approved: true },
    { command: 'touch granted', autonomy: 'autonomous' },
    { command: 'touch granted', env: { PATH: '/' } },
    { command: ['touch', 'granted'] },
    { command: '' },
    { command: `touch granted; echo ${'x'.repeat(128 * 1024)}` },
    { command: 'touch granted', cwd: './'.repeat(5000) },
    { command: 'touch granted', timeout: 0 },
    { command: 'touch granted', timeout: '1' },
    {},
  ])('does not run an input that is wrong or wants to be granted something (%#)', async (input) => {
    const free = await unjudged();
    const model = modelThat({ input });
    await generateText({ model, tools: { shell: shellTool(free) }, ...PROMPT });
    expect(sentBack(model)).toMatchObject([{ type: 'error-text' }]);
    expect(existsSync(inWorkspace('granted'))).toBe(false);
  });

  it('gives no more time, directory or output than the sandbox does', async () => {
    const brief = await unjudged({ timeout: 300 });
    const model = modelThat(
      { input: { command: 'sleep 600', timeout: 1e300 } },
      { input: { command: 'ls', cwd: place.other } },
      { input: { command: String.raw`printf '\033]0;x\007\342\200\256'; yes | head -c 200000` } },
    );
    await generateText({ model, tools: { shell: shellTool(brief, { maxOutput: 500 }) }, ...PROMPT });
    const [late, outside, long] = sentBack(model).map((output) =>
      String((output as { value?: unknown }).value),
    );
    expect(late).toContain('ran out of time');
    expect(outside).toContain('cwd.unusable');
    expect(long?.length).toBeLessThan(700);
    expect(long).toContain('\\u{202e}');
    expect(long).not.toContain('\u001b');
  });
});

describe('a command that the policy asks about', () => {
  const question = (content: readonly { readonly type: string }[]) =>
    content.find((part): part is ToolApprovalRequestOutput<never> => part.type === 'tool-approval-request');
  const answered = (
    before: readonly ModelMessage[],
    approvalId: string,
    approved: boolean,
  ): ModelMessage[] => [
    { role: 'user', content: 'go' },
    ...before,
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved }] },
  ];
  const START = { stopWhen: stepCountIs(5) } as const;

  /** Lets a model ask, and answers. `change` is what a client may do to the conversation in between. */
  async function askAndAnswer(
    command: string,
    { approved = true, later = false, change = (messages: ModelMessage[]) => messages } = {},
  ) {
    const tools = { shell: shellTool(sandbox) };
    const first = await generateText({ model: modelThat({ input: { command } }), tools, prompt: 'go' });
    const asked = question(first.content);
    if (asked === undefined) throw new Error('nothing was asked');
    const messages = change(answered(first.response.messages, asked.approvalId, approved));
    const model = modelThat();
    const second = await generateText({
      ...{ model, tools: later ? { shell: shellTool(sandbox) } : tools, messages },
      ...START,
    });
    return { model, messages, tools, after: [...messages, ...second.response.messages] };
  }

  it('becomes a question of the SDK, and runs once it is approved', async () => {
    const { model } = await askAndAnswer('touch asked && echo made');
    expect(sentBack(model)).toEqual([{ type: 'text', value: 'made' }]);
    expect(existsSync(inWorkspace('asked'))).toBe(true);
  });

  it('does not run if it was denied', async () => {
    await askAndAnswer('touch denied', { approved: false });
    expect(existsSync(inWorkspace('denied'))).toBe(false);
  });

  it('does not run if the conversation was changed to another command', async () => {
    const change = (messages: ModelMessage[]) =>
      JSON.parse(JSON.stringify(messages).replaceAll('touch harmless', 'touch evil')) as ModelMessage[];
    const { model } = await askAndAnswer('touch harmless', { change });
    expect(sentBack(model)).toMatchObject([
      { type: 'error-text', value: expect.stringContaining('needs_approval') },
    ]);
    expect([existsSync(inWorkspace('harmless')), existsSync(inWorkspace('evil'))]).toEqual([false, false]);
  });

  it('does not run if a file behind it changed while the question was open', async () => {
    writeFileSync(inWorkspace('deploy.sh'), 'echo GOOD');
    const { model } = await askAndAnswer('bash deploy.sh', {
      change: (messages) => {
        writeFileSync(inWorkspace('deploy.sh'), 'echo EVIL > evil-deployed');
        return messages;
      },
    });
    expect(sentBack(model)).toMatchObject([
      { type: 'error-text', value: expect.stringContaining('approval.void') },
    ]);
    expect(existsSync(inWorkspace('evil-deployed'))).toBe(false);
  });

  it('does not run a second time for the same answer, nor for a tool that was never asked', async () => {
    const { tools, messages } = await askAndAnswer('touch once');
    execaSync('rm', [inWorkspace('once')]);
    await generateText({ model: modelThat(), tools, messages, ...START });
    expect(existsSync(inWorkspace('once'))).toBe(false);
    await askAndAnswer('touch elsewhere', { later: true });
    expect(existsSync(inWorkspace('elsewhere'))).toBe(false);
  });

  it('is not approved by a model that uses the name of an approved call again', async () => {
    const { tools, after } = await askAndAnswer('touch named');
    const id = `call_${count}`;
    const again = { input: { command: 'touch reused' }, id };
    const messages: ModelMessage[] = [...after, { role: 'user', content: 'and' }];
    const { content } = await generateText({ model: modelThat(again), tools, messages });
    expect(question(content)).toMatchObject({ toolCall: { toolCallId: id } });
    expect([existsSync(inWorkspace('named')), existsSync(inWorkspace('reused'))]).toEqual([true, false]);
  });

  it('does not run without the question either', async () => {
    const { needsApproval, ...unasked } = shellTool(sandbox);
    expect(needsApproval).toBeDefined();
    const model = modelThat({ input: { command: 'touch unasked' } });
    await generateText({ model, tools: { shell: unasked as never }, ...PROMPT });
    expect(sentBack(model)).toMatchObject([{ value: expect.stringContaining('needs_approval') }]);
    expect(existsSync(inWorkspace('unasked'))).toBe(false);
  });
});

describe('the sandbox of bash-tool', () => {
  const toolsOf = async (on: Sandbox, files?: Record<string, string>) =>
    createBashTool({
      ...{ sandbox: bashToolSandbox(on), destination: on.workspace, promptOptions: { toolPrompt: '' } },
      ...(files === undefined ? {} : { files }),
    });

  it('serves the tools of createBashTool', async () => {
    const free = await unjudged();
    const { tools } = await toolsOf(free, { 'src/in.txt': 'uploaded\n' });
    const model = modelThat(
      { toolName: 'bash', input: { command: 'cat src/in.txt; exit 4' } },
      { toolName: 'writeFile', input: { path: 'a/b/-c', content: 'written 😀\n' } },
      { toolName: 'readFile', input: { path: 'a/b/-c' } },
    );
    await generateText({ model, tools, ...PROMPT });
    expect(sentBack(model)).toMatchObject([
      { value: { stdout: 'uploaded\n', exitCode: 4 } },
      { value: { success: true } },
      { value: { content: 'written 😀\n' } },
    ]);
    expect(readFileSync(inWorkspace('a/b/-c'), 'utf8')).toBe('written 😀\n');
  });

  it('finds out by itself which tools there are', async () => {
    await expect(
      createBashTool({ sandbox: bashToolSandbox(await unjudged()), destination: place.workspace }),
    ).resolves.toBeDefined();
  });

  it('says what became of commands that were refused or took too long', async () => {
    const brief = bashToolSandbox(await makeSandbox({ timeout: 300 }));
    expect(await brief.executeCommand('touch /etc/shadow')).toMatchObject({
      ...{ stdout: '', stderr: expect.stringContaining('command.denied'), exitCode: 126 },
    });
    expect(await brief.executeCommand('sleep 600')).toMatchObject({
      ...{ stderr: expect.stringContaining('Rule: timed-out'), exitCode: 124 },
    });
  });

  it('keeps bytes as they are', async () => {
    const files = bashToolSandbox(await unjudged());
    const content = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 256));
    await files.writeFiles([{ path: 'bytes', content }]);
    expect(readFileSync(inWorkspace('bytes')).equals(content)).toBe(true);
    const text = '\ufeff\u001b[31m\r\n\0 end without a line break';
    await files.writeFiles([{ path: 'text', content: text }]);
    expect(await files.readFile('text')).toBe(text);
    await files.writeFiles([{ path: 'text', content: '' }]);
    expect(await files.readFile('text')).toBe('');
  });

  // No policy judges here: what refuses is the kernel.
  it.each([
    ['by its name', () => join(place.other, 'secret')],
    ['by a way up', () => '../other/secret'],
    ['by a link to it', () => 'link-to-file'],
    ['by a link to its directory', () => 'link-to-directory/secret'],
    ['of the system', () => '/etc/shadow'],
    ['of another process', () => `/proc/${process.pid}/environ`],
  ])('reads and writes no file outside, %s', async (_, path) => {
    const files = bashToolSandbox(await unjudged());
    const secret = join(place.other, 'secret');
    writeFileSync(secret, 'the-secret-41');
    if (!existsSync(inWorkspace('link-to-file'))) {
      symlinkSync(secret, inWorkspace('link-to-file'));
      symlinkSync(place.other, inWorkspace('link-to-directory'));
    }
    await expect(files.readFile(path())).rejects.toMatchObject({ code: 'file.unusable' });
    await expect(files.writeFiles([{ path: path(), content: 'evil' }])).rejects.toMatchObject({
      code: 'file.unusable',
    });
    const beside = [join(place.other, 'new/evil'), 'link-to-directory/new/evil'];
    for (const path of beside)
      await expect(files.writeFiles([{ path, content: 'evil' }])).rejects.toMatchObject({
        code: 'file.unusable',
      });
    expect(readFileSync(secret, 'utf8')).toBe('the-secret-41');
    expect(existsSync(join(place.other, 'new'))).toBe(false);
  });

  // Landlock alone cannot take what is in a writable directory out of it.
  it.runIf(HOST.namespaces)(
    'writes nothing that trusted programs execute later (needs namespaces)',
    async () => {
      const repository = inWorkspace('repository');
      execaSync('git', ['init', '-q', repository]);
      const own = await unjudged({ workspace: repository });
      const files = bashToolSandbox(own);
      const config = readFileSync(join(repository, '.git/config'), 'utf8');
      const write = (path: string) => files.writeFiles([{ path, content: '[core]\n\tfsmonitor = evil\n' }]);
      await expect(write('.git/hooks/pre-commit')).rejects.toThrow();
      // It is a copy, of which only what names things is taken over.
      await write('.git/config');
      expect(readFileSync(join(repository, '.git/config'), 'utf8')).toBe(config);
      expect(existsSync(join(repository, '.git/hooks/pre-commit'))).toBe(false);
    },
  );

  it.each(['', 'a\0b', '../../etc/passwd\0.txt', 7, null])('refuses the path %j', async (path) => {
    const files = bashToolSandbox(await unjudged());
    await expect(files.readFile(path as never)).rejects.toMatchObject({ code: 'file.unusable' });
    await expect(files.writeFiles([{ path: path as never, content: '' }])).rejects.toMatchObject({
      code: 'file.unusable',
    });
  });

  it('takes no file that is too large, has no end, or is none', async () => {
    const files = bashToolSandbox(await unjudged({ timeout: 1000 }), { maxFileBytes: 1000 });
    writeFileSync(inWorkspace('just'), 'x'.repeat(1000));
    writeFileSync(inWorkspace('large'), 'x'.repeat(1001));
    execaSync('mkfifo', [inWorkspace('pipe')]);
    expect(await files.readFile('just')).toHaveLength(1000);
    for (const path of ['large', '/dev/zero', 'pipe', '.', 'missing', '-']) {
      await expect(files.readFile(path)).rejects.toMatchObject({
        code: 'file.unusable',
        message: expect.stringContaining('cannot be read'),
      });
    }
    const [good, bad] = ['good', 'bad'].map((path) => ({
      path,
      content: 'x'.repeat(path === 'bad' ? 1001 : 1),
    }));
    await expect(files.writeFiles([good, bad] as never)).rejects.toMatchObject({ code: 'file.unusable' });
    expect(existsSync(inWorkspace('good'))).toBe(false);
  });

  it.each([undefined, null, 7, {}])('takes no content that is none: %j', async (content) => {
    const files = [{ path: 'no-content', content: content as never }];
    await expect(bashToolSandbox(sandbox).writeFiles(files)).rejects.toMatchObject({
      code: 'file.unusable',
    });
    expect(existsSync(inWorkspace('no-content'))).toBe(false);
  });

  it('takes a path for nothing but a path', async () => {
    const files = bashToolSandbox(await unjudged());
    const names = ['--help', '$(touch injected)', "'; touch injected; '", 'a\nb', '-'];
    await files.writeFiles(names.map((path) => ({ path, content: path })));
    for (const path of names) expect(await files.readFile(path)).toBe(path);
    expect(existsSync(inWorkspace('injected'))).toBe(false);
    expect(lstatSync(inWorkspace('-')).isFile()).toBe(true);
  });

  it('writes what the policy asks about only with an answer', async () => {
    const files = bashToolSandbox(sandbox);
    await expect(files.writeFiles([{ path: 'quiet', content: '' }])).rejects.toMatchObject({
      code: 'command.needs_approval',
    });
    await expect(files.writeFiles([{ path: '/etc/shadow', content: '' }])).rejects.toMatchObject({
      code: 'command.denied',
    });
    const asking = await makeSandbox({
      autonomy: 'supervised',
      gate: { approver: { ask: async () => ({ approved: true, scope: 'once', by: 'the test' }) } },
    });
    await bashToolSandbox(asking).writeFiles([{ path: 'answered', content: 'yes' }]);
    expect(readFileSync(inWorkspace('answered'), 'utf8')).toBe('yes');
  });
});
