import { dirname, resolve } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import { exitStatus } from '../run/launch/exit-status.ts';
import { messageForModel } from '../run/output/model-message.ts';
import type { Sandbox } from '../run/sandbox.ts';
import { visibleLine } from '../util/visible-text.ts';
import { withMessage } from './shell-action.ts';
import { DEFAULT_MODEL_OUTPUT, runForModel, timeWithin } from './shell-tool.ts';

const MIB = 1024 * 1024;

/** Names are long, messages about them are not. */
const QUOTED_CHARACTERS = 300;

/** A file that is none, such as a named pipe, keeps its reader waiting. */
const FILE_TIMEOUT = 30_000;

/** The `Sandbox` of the `bash-tool` package. */
export interface BashToolSandbox {
  /** A refused command has exit code 126, one that ran out of time 124, and the reason on `stderr`. */
  executeCommand(command: string): Promise<{ stdout: string; stderr: string; exitCode: number }>;
  /** The content, byte for byte; what is not UTF-8 becomes U+FFFD. Throws `SandboxError`. */
  readFile(path: string): Promise<string>;
  /** Writes files one after the other, with the directories that they need. Throws `SandboxError` at the first that fails. */
  writeFiles(
    files: readonly { readonly path: string; readonly content: string | Uint8Array }[],
  ): Promise<void>;
}

/** Options of `bashToolSandbox`. */
export interface BashToolSandboxOptions {
  /** Most bytes of a file that is read or written. Default: 1 MiB. */
  readonly maxFileBytes?: number;
  /** Most bytes of each output stream of a command. Default: 30,000. */
  readonly maxOutput?: number;
  /** Called with the result of each command, also those that read and write files. Not for the model. */
  readonly onResult?: (result: ExecutionResult) => void;
}

/**
 * A sandbox for `createBashTool({ sandbox, destination })` of `bash-tool`; as `destination` give `sandbox.workspace`. Files are
 * read and written by programs in the sandbox: what they may touch is up to the policy and the kernel, not to how a path looks.
 * @throws {SandboxError} from its methods: `file.unusable`, or the code of the refusal.
 */
export function bashToolSandbox(
  sandbox: Sandbox,
  { maxFileBytes = MIB, maxOutput = DEFAULT_MODEL_OUTPUT, onResult }: BashToolSandboxOptions = {},
): BashToolSandbox {
  // Absolute, so that it is no option and not "-".
  const at = (path: string) => resolve(sandbox.workspace, path);
  const timeout = timeWithin(FILE_TIMEOUT, sandbox.defaults.timeout) ?? FILE_TIMEOUT;

  async function runFor(
    what: string,
    argv: readonly [string, ...string[]],
    more: { readonly input?: Uint8Array; readonly maxOutput: number },
  ): Promise<ExecutionResult> {
    const result = await sandbox.run(argv, { encoding: 'bytes', timeout, ...more });
    onResult?.(result);
    if (result.status === 'exited' && result.exitCode === 0) return result;
    const stopped = messageForModel(result, sandbox.plan);
    if (result.error !== undefined && stopped !== undefined)
      throw new SandboxError(result.error.code, stopped);
    const said = Buffer.from(result.bytes?.stderr ?? []).toString();
    const why =
      result.status === 'timed-out' ? 'it took too long' : said || `exit status ${exitStatus(result)}`;
    throw unusable(what, why);
  }

  async function write(path: string, content: Uint8Array): Promise<void> {
    const what = `${path} cannot be written`;
    const directory = dirname(at(path));
    if (directory !== sandbox.workspace)
      await runFor(what, ['mkdir', '-p', '--', directory], { maxOutput: 4096 });
    await runFor(what, ['tee', '--', at(path)], { input: content, maxOutput: 4096 });
  }

  return {
    executeCommand: async (command) => {
      const { result, message } = await runForModel(sandbox, { command, maxOutput });
      onResult?.(result);
      return {
        stdout: result.stdout,
        stderr: withMessage(result.stderr, message),
        exitCode: exitStatus(result),
      };
    },
    readFile: async (path) => {
      checkPath(path);
      const what = `${path} cannot be read`;
      // One byte more tells a file that is too long; one without an end is not read to it.
      const argv = ['head', '-c', String(maxFileBytes + 1), '--', at(path)] as const;
      const { bytes } = await runFor(what, argv, { maxOutput: maxFileBytes + 1 });
      const content = bytes?.stdout ?? new Uint8Array();
      if (content.length > maxFileBytes) throw tooLarge(what, maxFileBytes);
      return Buffer.from(content).toString();
    },
    writeFiles: async (files) => {
      const ready = files.map(({ path, content }) => {
        checkPath(path);
        if (typeof content !== 'string' && !(content instanceof Uint8Array))
          throw unusable(`${path} cannot be written`, 'its content must be a string or bytes');
        const bytes = typeof content === 'string' ? Buffer.from(content) : content;
        if (bytes.length > maxFileBytes) throw tooLarge(`${path} cannot be written`, maxFileBytes);
        return { path, bytes };
      });
      for (const { path, bytes } of ready) await write(path, bytes);
    },
  };
}

function checkPath(path: string): void {
  if (typeof path === 'string' && path !== '' && !path.includes('\0')) return;
  throw new SandboxError('file.unusable', 'a path must be text that is not empty and has no NUL in it');
}

const unusable = (what: string, why: string) =>
  new SandboxError(
    'file.unusable',
    `${visibleLine(what, QUOTED_CHARACTERS)}: ${visibleLine(why, QUOTED_CHARACTERS)}`,
  );

const tooLarge = (what: string, most: number) =>
  unusable(what, `it has more than ${most} bytes (maxFileBytes); read or write a part of it by a command`);
