import { join, resolve } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { AfterLook, HookAnswer, HookEvent, HookOptions } from '../hooks/hook-adapter.ts';
import { type Fields, HookInput, isFields } from '../hooks/hook-input.ts';
import { HOOK_DEADLINE_SECONDS, hookWords } from '../install/hook-command.ts';
import type { Agent } from './agent.ts';

const INPUT = new HookInput("sandbox-run's plug-in of opencode");

/** Tools that hand text to a shell. */
const SHELL_TOOLS = ['bash', 'shell'];
/** Tools that show content of files, and which field of their input says which. Without it: the project. */
const READING_TOOLS: Readonly<Record<string, string>> = { read: 'filePath', grep: 'path' };
/** Tools of opencode that show neither files nor what others wrote. Every other one is of a server, or looks at the web. */
const LOCAL_TOOLS = [
  'edit',
  'write',
  'patch',
  'apply_patch',
  'glob',
  'list',
  'lsp',
  'task',
  'skill',
  'question',
];
const UNSEEN_TOOLS = [
  ...SHELL_TOOLS,
  ...LOCAL_TOOLS,
  'todowrite',
  'todoread',
  'invalid',
  'plan_enter',
  'plan_exit',
];

/**
 * opencode: a plug-in, which is a module that opencode loads. It hands each call to `sandbox-run hook opencode` and throws
 * unless it is answered with another command in time; what a plug-in throws is what the call ends with. opencode has no way
 * for a plug-in to ask.
 */
export const opencode: Agent = {
  hooks: {
    agent: 'opencode',
    modes: ['rewrite'],
    projectOf: () => undefined,
    isAfter: (input) => isFields(input) && input.event === 'after',
    decode,
    example: (command, { session, cwd }) => ({
      ...{ event: 'before', session, call: 'example', tool: 'bash' },
      ...{ directory: cwd, args: { command, description: 'An example' } },
    }),
    encode,
  },
  installer: {
    hooks: {
      what: 'plug-in',
      filesOf: (scope, { home, project, env }, options) => {
        const directory =
          scope === 'project'
            ? join(project, '.opencode')
            : env.OPENCODE_CONFIG_DIR || join(env.XDG_CONFIG_HOME || join(home, '.config'), 'opencode');
        const path = join(directory, 'plugin/sandbox-run.js');
        return [{ path, change: (text) => changedPlugin(text, options, path) }];
      },
      next: 'opencode loads it when it starts; one that is running has to be started again',
    },
  },
};

function decode(given: unknown): HookEvent {
  const input = INPUT.all(given);
  const event = INPUT.text(input, 'event');
  if (event === 'start')
    return { kind: 'session-start', session: INPUT.text(input, 'session'), agentGoesOn: false };
  if (event !== 'before' && event !== 'after') return { kind: 'other' };
  const session = INPUT.text(input, 'session');
  const tool = INPUT.text(input, 'tool');
  const project = INPUT.directory(input, 'directory');
  const args = INPUT.fields(input, 'args');
  if (event === 'after') {
    const saw = whatWasSeen(tool, args);
    return saw === undefined ? { kind: 'other' } : { kind: 'after-look', session, tool, cwd: project, saw };
  }
  if (!SHELL_TOOLS.includes(tool)) return { kind: 'other' };
  const directory = INPUT.optional(args, 'workdir', 'string');
  return {
    ...{ kind: 'before-command', session, tool, call: INPUT.optional(input, 'call', 'string') },
    cwd: project === undefined || directory === undefined ? project : resolve(project, directory),
    command: INPUT.shellText(args),
    timeoutMs: INPUT.duration(args, 'timeout'),
    ...{ isBackground: false, canAsk: false },
    withCommand: (command) => ({ ...args, command }),
  };
}

function whatWasSeen(tool: string, args: Fields): AfterLook['saw'] | undefined {
  const field = Object.hasOwn(READING_TOOLS, tool) ? READING_TOOLS[tool] : undefined;
  if (field !== undefined) return { paths: [INPUT.optional(args, field, 'string') ?? '.'] };
  return UNSEEN_TOOLS.includes(tool) ? undefined : 'outside';
}

function encode(answer: HookAnswer): string {
  return `${JSON.stringify(answerOf(answer))}\n`;
}

function answerOf(answer: HookAnswer): Fields {
  switch (answer.verdict) {
    case 'none':
      return { decision: 'none' };
    case 'tell':
    case 'inform':
      return { decision: 'none', text: answer.text };
    case 'stop':
      return { decision: 'stop', reason: answer.reason };
    case 'allow':
      return { decision: 'allow', args: answer.input };
    case 'ask':
    case 'deny':
      return { decision: 'deny', reason: answer.reason };
  }
}

const FIRST_LINE =
  '// The plug-in of sandbox-run, made by "sandbox-run install opencode"; --uninstall takes it away.';

/** @throws {SandboxError} `usage.invalid` for a file of that name that is not ours. */
function changedPlugin(
  text: string | undefined,
  options: HookOptions | undefined,
  path: string,
): string | undefined {
  if (text !== undefined && !text.startsWith(`${FIRST_LINE}\n`))
    throw new SandboxError(
      'usage.invalid',
      `${path} is left as it is: it is not of sandbox-run; move it away`,
    );
  return options === undefined ? undefined : pluginText(hookWords('opencode', options));
}

/** The module. Whatever is not an answer with another command is a failure of the call, and never a yes. */
function pluginText(hook: readonly string[]): string {
  const [program, ...words] = hook;
  return `${FIRST_LINE}
import { spawn } from 'node:child_process';

const PROGRAM = ${JSON.stringify(program)};
const WORDS = ${JSON.stringify(words)};
const DEADLINE_MS = ${HOOK_DEADLINE_SECONDS * 1000};
const SHELL_TOOLS = ${JSON.stringify(SHELL_TOOLS)};
const UNSEEN_TOOLS = ${JSON.stringify(UNSEEN_TOOLS)};

/** The answer to one event. Rejects if there is none in time. */
const answerTo = (event) =>
  new Promise((resolve, reject) => {
    const failed = (why) => reject(new Error(\`Not run: the hook of sandbox-run failed (\${why})\`));
    const child = spawn(PROGRAM, WORDS, { cwd: event.directory, stdio: ['pipe', 'pipe', 'ignore'] });
    const late = setTimeout(() => child.kill('SIGKILL'), DEADLINE_MS);
    const chunks = [];
    child.on('error', (error) => failed(error.message));
    child.stdin.on('error', () => {});
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.on('close', (status, signal) => {
      clearTimeout(late);
      if (status !== 0) return failed(signal ?? \`status \${status}\`);
      try {
        resolve(JSON.parse(Buffer.concat(chunks).toString()));
      } catch {
        failed('no answer');
      }
    });
    child.stdin.end(JSON.stringify(event));
  });

// What the model of each session is told: asked for once, and in the instructions of each of its requests.
const told = new Map();
const introductionFor = (session, directory) => {
  if (!told.has(session))
    told.set(session, answerTo({ event: 'start', session, directory }).then(({ text }) => text, () => undefined));
  return told.get(session);
};

// What opencode loads: each function that the file exports.
export const SandboxRun = async ({ client, directory }) => ({
  'experimental.chat.system.transform': async ({ sessionID }, { system }) => {
    if (sessionID === undefined) return;
    const text = await introductionFor(sessionID, directory);
    if (typeof text === 'string') system.push(text);
  },
  'tool.execute.before': async ({ tool, sessionID, callID }, output) => {
    if (!SHELL_TOOLS.includes(tool)) return;
    const event = { event: 'before', session: sessionID, call: callID, tool, directory, args: output.args };
    const { decision, args, reason } = await answerTo(event);
    if (decision !== 'allow' || typeof args?.command !== 'string')
      throw new Error(reason || 'Not run: sandbox-run did not allow it');
    Object.assign(output.args, args);
  },
  'tool.execute.after': async ({ tool, sessionID, callID, args }) => {
    if (UNSEEN_TOOLS.includes(tool)) return;
    const event = { event: 'after', session: sessionID, call: callID, tool, directory, args: args ?? {} };
    const { decision, reason } = await answerTo(event).catch((error) => ({ decision: 'stop', reason: error.message }));
    if (decision !== 'stop') return;
    await client.session.abort({ path: { id: sessionID } });
    throw new Error(reason);
  },
});
`;
}
