import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { failureForModel, introductionForModel } from '../../run/index.ts';
import { afterCommand, afterLook } from './after-event.ts';
import { beforeCommand, openChecker } from './before-command.ts';
import type { HookAdapter, HookAnswer, HookCall, HookEvent } from './hook-adapter.ts';
import { sessionMemory, sessionNameOf } from './session-memory.ts';

/** Larger than any call of a tool; more of it would only take memory. */
export const MAX_INPUT_BYTES = 8 * 1024 * 1024;

/**
 * What an agent's hook is answered: text for standard output, the same for the same input and state. Whatever fails before a
 * command is a no, and where something was seen that cannot be remembered the agent must stop.
 * `onEvent` may return a text for the agent's user, which is shown only if the event is the end of a session.
 * @throws {SandboxError} `usage.invalid` for the input of an agent that would not understand the answer.
 */
export async function answerHook(
  adapter: HookAdapter,
  input: Uint8Array | Error,
  options: HookCall,
  onEvent: (event: HookEvent) => string | undefined = () => undefined,
): Promise<string> {
  let parsed: unknown;
  try {
    if (input instanceof Error) throw input;
    if (input.length > MAX_INPUT_BYTES)
      throw new Error(`the hook's input is larger than ${MAX_INPUT_BYTES} bytes`);
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(input));
  } catch (error) {
    return adapter.encode(refused(errorMessage(error)));
  }
  const sender = adapter.sentBy?.(parsed);
  if (sender !== undefined)
    throw new SandboxError(
      'usage.invalid',
      `these are the hooks of ${sender}, which would not understand the answer; run "sandbox-run install ${sender}"`,
    );
  try {
    const event = adapter.decode(parsed);
    const answer = await answerTo(adapter, event, options, adapter.projectOf(options.around.env));
    const text = onEvent(event);
    const isEnd = event.kind === 'session-end' && text !== undefined;
    return adapter.encode(isEnd ? { verdict: 'inform', text } : answer);
  } catch (error) {
    const why = errorMessage(error);
    // Settings that say what we are told of have nobody wait for it: then only a failure is heard.
    if (adapter.isAfter(parsed) && options.after !== undefined) throw error;
    return adapter.encode(adapter.isAfter(parsed) ? stopped(why) : refused(why));
  }
}

async function answerTo(
  adapter: HookAdapter,
  event: HookEvent,
  options: HookCall,
  project: string | undefined,
): Promise<HookAnswer> {
  if (event.kind === 'other' || event.kind === 'session-end') return { verdict: 'none' };
  if (event.kind === 'session-start') return await sessionStart(options, project);
  const remember = options.sessionMemory ?? sessionMemory;
  const memory = remember(sessionNameOf(adapter.agent, event.session));
  try {
    switch (event.kind) {
      case 'before-command':
        return await beforeCommand(event, options, memory, project);
      case 'after-command':
        return await afterCommand(event, options, memory, project);
      case 'after-look':
        return await afterLook(event, options, memory, project);
    }
  } finally {
    await memory.close();
  }
}

/** Tells the model what its commands may do, or that none will run, if that is known already. */
async function sessionStart(options: HookCall, project: string | undefined): Promise<HookAnswer> {
  try {
    // Tried, as it is said only once: what a model is told is what it will meet.
    const checker = await openChecker(options, project, {}, options.mode === 'rewrite' ? 'tried' : 'none');
    const { plan, workspace, policy, unenforceable } = checker;
    await checker.close();
    if (unenforceable !== undefined) throw new Error(unenforceable);
    return {
      verdict: 'tell',
      text: introductionForModel({ plan, workspace, timeoutMs: policy.limits.timeoutMs }),
    };
  } catch (error) {
    const text = failureForModel('sandbox-run will refuse every shell command', errorMessage(error));
    return { verdict: 'tell', text };
  }
}

const refused = (why: string): HookAnswer => ({
  verdict: 'deny',
  reason: failureForModel('Not run: sandbox-run could not decide about it', why),
});

const stopped = (why: string): HookAnswer => ({
  verdict: 'stop',
  reason: failureForModel(
    'sandbox-run could not remember what this session has seen, so it must not go on',
    why,
  ),
});
