import { type ChildProcess, spawn } from 'node:child_process';
import { isAbsolute } from 'node:path';
import { orElse } from '../../base/or-else.ts';
import type { Reviewer, ReviewerSettings } from '../../model/index.ts';
import { exactText, reviewOf, subjectOf, TOO_LONG, unclear } from './exchange.ts';

type CommandSettings = Extract<ReviewerSettings, { readonly kind: 'command' }>;
type Environment = Readonly<Record<string, string | undefined>>;

const MAX_OUTPUT_BYTES = 64 * 1024;
/** Passed on of the launcher's environment; keys of its own a reviewer keeps in files of its own. */
const PASSED = ['HOME', 'LANG', 'LC_ALL', 'TZ'];
const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin';

type Outcome = { readonly output: Buffer } | { readonly problem: string };

/**
 * Asks a program of the operator: it is started without a shell, reads one JSON object, `{"command", "understood",
 * "reach", "taints"}`, and writes `{"flagged", "reason"}`. It runs unconfined, as the operator's own.
 */
export function commandReviewer(settings: CommandSettings, env: Environment, timeoutMs: number): Reviewer {
  const ask = programAsker(env, timeoutMs);
  return {
    async review(request) {
      const subject = subjectOf(request);
      if (subject === undefined) return TOO_LONG;
      const [program] = settings.argv;
      if (!isAbsolute(program)) return unclear(`${program} is not an absolute path, so it is not started`);
      const outcome = await ask(settings.argv, subject);
      return 'problem' in outcome ? unclear(`the reviewer ${outcome.problem}`) : reviewOf(outcome.answer);
    },
  };
}

/** What a program of the operator answers, or why it gave no answer: the rest of a sentence that begins with the program. */
type Answered = { readonly answer: string } | { readonly problem: string };

/** Makes what asks programs of the operator: each is started, reads one JSON value, and has the time to answer in UTF-8. */
export function programAsker(env: Environment, timeoutMs: number) {
  return async (argv: readonly [string, ...string[]], question: unknown): Promise<Answered> => {
    const outcome = await outputOf(argv, question, passedOn(env), timeoutMs);
    if ('problem' in outcome) return outcome;
    const answer = orElse(() => exactText(outcome.output), undefined);
    return answer === undefined ? { problem: 'wrote what is not UTF-8' } : { answer };
  };
}

function passedOn(env: Environment): NodeJS.ProcessEnv {
  const passed = PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
  return { PATH: SEARCH_PATH, ...Object.fromEntries(passed) };
}

/** All that it wrote, if it exits with 0 in time. Whatever it started ends with it. */
function outputOf(
  [program, ...args]: readonly [string, ...string[]],
  question: unknown,
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<Outcome> {
  return new Promise((settle) => {
    // Where the process has no descriptors left it has no streams, whatever its type says, and its error is yet to come.
    const child: ChildProcess = spawn(program, args, {
      ...{ cwd: '/', env, stdio: ['pipe', 'pipe', 'ignore'], detached: true },
    });
    const { stdin, stdout } = child;
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (outcome: Outcome) => {
      clearTimeout(timer);
      endGroup(child);
      // What was handed on to others keeps them open, and us waiting.
      stdout?.destroy();
      stdin?.destroy();
      settle(outcome);
    };
    const timer = setTimeout(() => end({ problem: 'did not answer in time' }), timeoutMs);
    child.on('error', (error: NodeJS.ErrnoException) => {
      end({ problem: `cannot be started (${error.code ?? 'unknown'})` });
    });
    stdout?.on('data', (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length > MAX_OUTPUT_BYTES) end({ problem: 'wrote too much' });
    });
    child.on('exit', (code, signal) => {
      // What it wrote may still be on its way; descendants that hold the pipe must not keep it open.
      endGroup(child);
      if (code !== 0) end({ problem: signal === null ? `exited with ${code}` : `ended by ${signal}` });
    });
    child.on('close', (code) => {
      if (code === 0) end({ output: Buffer.concat(chunks) });
    });
    // It need not read its input to the end: EPIPE.
    stdin?.on('error', () => {});
    stdin?.end(`${JSON.stringify(question)}\n`);
  });
}

/** It leads a process group of its own. */
function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}
