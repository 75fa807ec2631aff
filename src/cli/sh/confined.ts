import { isUtf8 } from 'node:buffer';
import { realpathSync } from 'node:fs';
import { isatty } from 'node:tty';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Command, SandboxOptions } from '../../model/index.ts';
import {
  endedBy,
  exitStatus,
  failureForModel,
  loadOperatorLayers,
  type Sandbox,
  workspaceNamed,
} from '../../run/index.ts';
import { homeDirectory } from '../../workspace/index.ts';
import { ownStreams, printRemarks, runForwarding } from '../run/pass-through.ts';
import { gateOf } from '../shared/ask-here.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { printError, printNote } from '../shared/print.ts';
import { describeBackend } from '../shared/show-plan.ts';
import type { SignalForwarding } from '../shared/signals.ts';
import type { Wanted } from './arguments.ts';
import type { ShellSettings } from './settings.ts';

export const SHELL = '/bin/bash';
const WITHOUT_FILES = ['--noprofile', '--norc'] as const;
/** The kernel's limit for one argument (MAX_ARG_STRLEN, 32 pages), with its NUL: what is longer cannot be given to bash as text. */
const LONGEST_TEXT = 128 * 1024 - 1;
/** In these words a script asks bash where it was read from, and only a bash that reads the file knows. */
const ASKS_FOR_ITS_FILE = /BASH_SOURCE|BASH_ARGV/;

/** A script: its text, to be judged and run from the same bytes; a file that only bash itself can run; or none. */
type Script =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file' }
  | { readonly kind: 'none'; readonly reason: string; readonly status: 126 | 127 };

/** What the arguments and the environment of a `sandbox-sh` ask for. */
interface Confined {
  readonly wanted: Wanted | readonly [string, ...string[]];
  readonly settings: ShellSettings;
}

/** The options of the sandbox that it runs in. @throws {SandboxError} `usage.invalid`: nothing says which workspace. */
export async function sandboxFor({ settings }: Confined, signals: SignalForwarding): Promise<SandboxOptions> {
  await requireWorkspace(settings);
  return { ...settings.sandbox, gate: gateOf(settings, signals) };
}

/** Says what failed, and gives the exit status. */
export function statusOf(error: SandboxError): number {
  const remedy = error.code.startsWith('workspace.') ? ' (here: SANDBOX_SH_WORKSPACE=DIR)' : '';
  // A model reads it, and what is said of a policy may repeat what a file of the workspace says.
  const isQuoted = error.code.startsWith('policy.');
  printError(isQuoted ? failureForModel('nothing was run', error.message) : `${error.message}${remedy}`);
  return error.exitStatus;
}

/** Runs it in its sandbox, and returns the exit status. */
export async function runIn(
  sandbox: Sandbox,
  { wanted, settings }: Confined,
  signals: SignalForwarding,
): Promise<number> {
  checkPlaces(sandbox, settings);
  const weaker = settings.quiet ? undefined : describeBackend(sandbox.plan, () => isatty(caller().stdio[2]));
  if (weaker !== undefined) printError(weaker);
  // Signals are delivered between turns of the event loop.
  await new Promise(setImmediate);
  const early = signals.early;
  if (early !== undefined) return endedBy(early);
  if (!('kind' in wanted)) return await runCommand(sandbox, { command: wanted, settings, signals });
  if (isInteractive(wanted)) {
    const { runInteractively } = await import('./interactive.ts');
    return await runInteractively(sandbox, wanted, settings.quiet);
  }
  const found = await commandOf(sandbox, wanted);
  return typeof found === 'number' ? found : await runCommand(sandbox, { ...found, settings, signals });
}

/** A model picks the current directory: it says nothing of where commands may write. */
async function requireWorkspace({ sandbox, policy }: ShellSettings): Promise<void> {
  if (sandbox.workspace !== undefined) return;
  if (workspaceNamed(await loadOperatorLayers(homeDirectory(), policy, true)) === undefined)
    throw new SandboxError(
      'usage.invalid',
      'no workspace is set: set SANDBOX_SH_WORKSPACE=DIR, or security.workspace_dir in a policy file',
    );
}

function isInteractive({ source, interactive }: Wanted): boolean {
  return (
    source.from === 'input' &&
    (interactive || caller().stdio.filter((fd, at) => at !== 1 && isatty(fd)).length === 2)
  );
}

/** What a program that starts a shell takes for granted has to hold, or nothing runs. */
function checkPlaces({ workspace }: Sandbox, { policy }: ShellSettings): void {
  const cwd = currentDirectory();
  if (!isBeneath(cwd, workspace))
    throw new SandboxError(
      'cwd.unusable',
      `the current directory ${cwd} is not in the workspace ${workspace}; start in it or set SANDBOX_SH_WORKSPACE`,
    );
  if (policy !== undefined && isBeneath(realpathSync(policy), workspace))
    throw new SandboxError(
      'policy.untrusted',
      `SANDBOX_SH_POLICY names ${policy}, which commands of this workspace may have written; put it elsewhere`,
    );
}

interface Found {
  readonly command: Command;
  /** What is repeated to a model if it is refused. */
  readonly said?: string;
}

/** The command for the sandbox, or the exit status if there is none. */
async function commandOf(sandbox: Sandbox, wanted: Wanted): Promise<Found | number> {
  const { source, args } = wanted;
  switch (source.from) {
    case 'string':
      return { command: commandFor(source.text, wanted), said: source.text };
    case 'input': {
      const text = await readInput();
      // Like bash, exits with 0 for empty input.
      return text === '' ? 0 : { command: commandFor(text, wanted), said: text };
    }
    case 'file': {
      const script = await readScript(sandbox, source.path);
      if (script.kind === 'none') {
        printNote(`sandbox-sh: ${visibleLine(`${source.path}: ${script.reason}`, 300)}\n`);
        return script.status;
      }
      if (script.kind === 'text') return { command: commandFor(script.text, wanted), said: source.path };
      // What its text would be judged as is not what it would do: it is a program like others.
      return { command: [SHELL, ...WITHOUT_FILES, ...wanted.options, '--', source.path, ...args] };
    }
  }
}

/**
 * The text itself where that says everything; with options or arguments a bash that gets them, and the text of which is
 * judged in the same way.
 */
export function commandFor(text: string, { options, name, args }: Wanted): Command {
  if (options.length === 0 && name === undefined && args.length === 0) return text;
  return [SHELL, ...WITHOUT_FILES, ...options, '-c', '--', text, name ?? SHELL, ...args];
}

interface ToRun extends Found {
  readonly settings: ShellSettings;
  readonly signals: SignalForwarding;
}

async function runCommand(sandbox: Sandbox, { command, said, settings, signals }: ToRun): Promise<number> {
  const { gone } = caller();
  const options = {
    ...{ cwd: currentDirectory(), ...ownStreams(sandbox) },
    ...(gone === undefined ? {} : { signal: gone }),
  };
  const result = await runForwarding(sandbox, command, options, signals);
  // The reader of our output is gone: end like a command that wrote there itself.
  if (result === undefined) return endedBy('SIGPIPE');
  const unheard = signals.early;
  if (result.status === 'canceled' && unheard !== undefined) return endedBy(unheard);
  printRemarks(result, { said: said ?? result.argv, plan: sandbox.plan, quiet: settings.quiet });
  return exitStatus(result);
}

/**
 * All of standard input as a text.
 * @throws {SandboxError} `usage.invalid` if it is none, or too long for one.
 */
async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > LONGEST_TEXT)
      throw new SandboxError(
        'usage.invalid',
        `the script on standard input is longer than ${LONGEST_TEXT} bytes; put it into a file and run that`,
      );
  }
  const text = textOf(Buffer.concat(chunks));
  if (text === undefined)
    throw new SandboxError('usage.invalid', 'the script on standard input is not UTF-8 text');
  return text;
}

/**
 * Reads a script in the sandbox, as a command of it: this process may read more than commands may, and would show it in
 * error messages.
 */
async function readScript(sandbox: Sandbox, path: string): Promise<Script> {
  if (/^\/(?:dev\/(?:fd|stdin)|proc\/[^/]*\/fd)(?:\/|$)/.test(path))
    return {
      kind: 'none',
      status: 126,
      reason:
        'descriptors are not passed on; put the script into a file, or on standard input without a name',
    };
  const result = await sandbox.run(['/bin/cat', '--', path], {
    cwd: currentDirectory(),
    env: { LC_ALL: 'C' },
    encoding: 'bytes',
    maxOutput: { head: LONGEST_TEXT, tail: 0 },
  });
  const { bytes, error, truncated } = result;
  if (error !== undefined) return { kind: 'none', reason: error.message, status: 126 };
  if (truncated.stdout > 0) return { kind: 'file' };
  if (result.status !== 'exited' || result.exitCode !== 0 || bytes === undefined) {
    const said = Buffer.from(bytes?.stderr ?? [])
      .toString()
      .trim();
    const reason = /[^:]+$/.exec(said)?.[0]?.trim() ?? 'it cannot be read';
    return { kind: 'none', reason, status: reason === 'No such file or directory' ? 127 : 126 };
  }
  const content = Buffer.from(bytes.stdout);
  // Where bash looks, too.
  const line = content.indexOf(0x0a);
  if (content.subarray(0, line < 0 ? undefined : line).includes(0))
    return { kind: 'none', reason: 'cannot execute binary file', status: 126 };
  const text = textOf(content);
  return text === undefined || ASKS_FOR_ITS_FILE.test(text) ? { kind: 'file' } : { kind: 'text', text };
}

/** `undefined`: it is no text. */
function textOf(bytes: Buffer): string | undefined {
  return isUtf8(bytes) && !bytes.includes(0) ? bytes.toString() : undefined;
}
