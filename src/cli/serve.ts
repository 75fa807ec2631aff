import { fstatSync } from 'node:fs';
import { resolve } from 'node:path';
import { deferred } from '../base/deferred.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { loadAddon } from '../confine/native/load.ts';
import {
  Connection,
  createService,
  isOurs,
  listenForClients,
  refuseReachable,
  type Service,
  serveSchema,
} from '../serve/index.ts';
import { caller } from './shared/caller.ts';
import {
  addSandboxOptions,
  parseSeconds,
  type SandboxArguments,
  sandboxOptionsOf,
} from './shared/options.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { jsonText, printError, printOut } from './shared/print.ts';
import { describeConfinement } from './shared/show-plan.ts';
import { aborted, untilEnded } from './shared/signals.ts';

const HELP_AFTER = `
A client sends one JSON-RPC 2.0 message per line and gets one per line. The first is
  {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
and then, for example,
  {"jsonrpc":"2.0","id":2,"method":"run","params":{"command":"make test","timeout":60000}}
--schema prints every method and message as JSON Schema.

Clients are programs of the user who started the server, and are trusted as that user is: what
they say about approvals is what the user says. Never pass on such a field from a model. Each
client has its own commands and sessions, which end when it disconnects. All of them run under
the policy of the command line; no client can change it.

Examples:
  sandbox-run serve --stdio --workspace ~/project
  sandbox-run serve --socket "$XDG_RUNTIME_DIR/sandbox.sock" --profile offline-build
  sandbox-run serve --schema | jq '."$defs" | keys'

Exit status: 0 ended by a signal, by the end of its input, or unused; 125 it could not be started.`;

interface ServeArguments extends SandboxArguments {
  readonly socket?: string;
  readonly stdio?: boolean;
  readonly schema?: boolean;
  readonly unusedTimeout: number;
}

/** `sandbox-run serve`: commands for programs in any language. */
export async function serve(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run serve',
    'Runs and judges commands for other programs: JSON-RPC 2.0, one message per line.',
    HELP_AFTER,
  )
    .usage('--stdio | --socket PATH [options]\n       sandbox-run serve --schema')
    .option(
      '--stdio',
      'one client, on standard input and output; when its input ends, answers what it was asked and ends',
    )
    .option(
      '--socket <path>',
      'clients of this user on a Unix socket, in a directory that only you can write',
    )
    .option('--schema', 'print the protocol as JSON Schema')
    .option(
      '--unused-timeout <seconds>',
      'with --socket: end when no client was connected for this time; 0: never (default: 0)',
      parseSeconds,
      0,
    );
  addSandboxOptions(program);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const options = parsed.opts<ServeArguments>();
  const { socket, stdio = false, schema = false } = options;
  if ([socket !== undefined, stdio, schema].filter(Boolean).length !== 1)
    throw new SandboxError(
      'usage.invalid',
      'name one of --stdio, --socket PATH and --schema (see sandbox-run serve --help)',
    );
  if (socket === '')
    throw new SandboxError('usage.invalid', 'serve: --socket needs the path of a socket, not an empty one');
  if (schema) {
    printOut(jsonText(serveSchema()));
    return 0;
  }
  // From the first moment on: a signal during the start is not lost either.
  return untilEnded(async ({ signal }) => {
    const service = await createService({
      sandbox: sandboxOptionsOf(options),
      around: caller(),
      onProblem: printError,
      describe: describeConfinement,
    });
    try {
      if (socket === undefined) await serveStdio(service, signal);
      else await serveSocket(service, resolve(socket), options.unusedTimeout, signal);
    } finally {
      await service.close();
    }
    return 0;
  });
}

/** How often to check whether the process that started the server is alive. */
const LOOK_MS = 250;
const STOPPING = 'the server is stopping';

async function serveStdio({ offer }: Service, signal: AbortSignal): Promise<void> {
  const { stdin: input, stdout: output } = process;
  const how = { handshakeMs: 0, admit: () => true, answersAll: true };
  const connection = new Connection(offer, { input, output, ...how });
  using orphaned = watchParent();
  await Promise.race([connection.ended, aborted(signal), orphaned.promise]);
  await connection.end(STOPPING);
}

/**
 * Settles when the program at the other end of our pipes has died: the end of its input alone does not say so. Where output
 * goes to a file there is none.
 */
function watchParent(): Disposable & { readonly promise: Promise<void> } {
  const { promise, resolve: tell } = deferred<void>();
  const output = fstatSync(1);
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid !== parent && (output.isFIFO() || output.isSocket())) tell();
  }, LOOK_MS).unref();
  return { promise, [Symbol.dispose]: () => clearInterval(timer) };
}

async function serveSocket(
  { offer, sandbox }: Service,
  path: string,
  unusedTimeout: number,
  signal: AbortSignal,
): Promise<void> {
  const listener = await listenForClients(offer, {
    ...{ path, name: 'serve', sharedDirectory: false, admits: isOurs, addon: loadAddon(), unusedTimeout },
    check: (real) => refuseReachable(real, sandbox.plan),
  });
  try {
    printOut(`serve is ready: ${listener.path}\n`);
    await Promise.race([listener.ended, aborted(signal)]);
  } finally {
    await listener.close(STOPPING);
  }
}
