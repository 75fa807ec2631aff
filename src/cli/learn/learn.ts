import { lstatSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { isatty } from 'node:tty';
import { isDeepStrictEqual } from 'node:util';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Command, Denial, ExecutionResult, PolicyFile, SandboxOptions } from '../../model/index.ts';
import {
  describeDenial,
  exitStatus,
  openSandbox,
  type Places,
  requireLooking,
  resolvePolicy,
  whyNotProposed,
} from '../../run/index.ts';
import { atPlaceOf, readRegular, replaceAt, type WriteOptions } from '../../workspace/index.ts';
import { commandOf } from '../run/options.ts';
import { ownStreams, runForwarding, runOnTerminal } from '../run/pass-through.ts';
import { gateOf } from '../shared/ask-here.ts';
import { caller, currentDirectory } from '../shared/caller.ts';
import { addSandboxOptions, type SandboxArguments, sandboxOptionsOf } from '../shared/options.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printError, printOut } from '../shared/print.ts';
import { SignalForwarding } from '../shared/signals.ts';
import { askedFor, inFull, merged, type Proposal, policyText, proposalOf, readProposal } from './proposal.ts';

const HELP_AFTER = `
The command runs in the sandbox. Its text is not judged, because it is you who typed it. What it was denied
becomes a policy: the least one under which it runs. Where it fails for what it was denied, you are asked for
one hole after the other, and it runs again with those that you allow.

With --unconfined it runs once and may read and write nearly everything that you can, so use it for commands
that you trust. With --output FILE that is there already, the policy in it is added to.

Examples:
  sandbox-run learn --output policy.toml -- npm test
  sandbox-run learn --yes -- make
  sandbox-run learn --unconfined --output policy.toml -- cargo build
  sandbox-run learn --session --output policy.toml
  sandbox-run policy diff policy.toml

Exit status: that of the command, of its last run.`;

interface LearnOptions extends Omit<SandboxArguments, 'session'> {
  readonly output?: string;
  readonly unconfined?: boolean;
  readonly session?: boolean;
  readonly yes?: boolean;
  readonly shell?: string;
}

const SHELL: Command = ['bash', '-i'];
/** A command is run again at most so often: each time at least one more hole was opened. */
const MOST_RUNS = 30;

/** `sandbox-run learn`: runs a command and proposes the least policy that would let it run. */
export async function learn(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run learn',
    'Runs a command and proposes the least policy that would let it run.',
    HELP_AFTER,
  )
    .usage("[options] [--] COMMAND [ARG...]\n       sandbox-run learn [options] -c 'SHELL STRING'")
    .argument('[command...]', 'the program and its arguments, unchanged')
    .passThroughOptions();
  addSandboxOptions(program, { agentSession: false })
    .option('-c, --shell <string>', 'run a shell string under bash')
    .option('--output <file>', 'the policy file to write or to add to (default: standard output)')
    .option('--session', 'learn from a shell that you work in: bash on this terminal')
    .option('--unconfined', 'let the command do nearly everything that you can, once')
    .option('--yes', 'allow every hole for the next run, without asking');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { session, ...options } = parsed.opts<LearnOptions>();
  const command: Command = session === true ? SHELL : commandOf(options.shell, parsed.args);
  using signals = new SignalForwarding();
  const given = await givenPolicy(sandboxOptionsOf(options));
  const { workspace, home, policy, entries } = await resolvePolicy(given, caller());
  const places: Places = { home, workspace, secret: policy.filesystem.secret, env: caller().env };
  const commandsWrite = [
    ...[currentDirectory(), workspace, ...(given.writable ?? [])],
    ...policy.filesystem.rules.flatMap(({ access, path }) => (access === 'write' ? [path] : [])),
  ];
  const output =
    options.output === undefined ? undefined : await lookAtOutput(options.output, commandsWrite, home);
  const learned =
    options.unconfined === true
      ? await learnUnconfined(command, given, signals)
      : await learnContained(command, given, signals, {
          places,
          yes: options.yes === true,
          once: session === true,
        });
  const proposal = proposalOf(inWords(command), learned.needed, learned.result, {
    places,
    asked: askedFor(entries, (path) => resolve(workspace, inFull(path, home))),
  });
  write(proposal, output, places);
  // A program that stops at a directory which is too broad to be opened never comes to what it wants in it.
  if (!learned.result.ok && proposal.leftOut.size > 0 && options.unconfined !== true)
    printError(
      'learn: it failed, and not all that it was denied may be proposed; --unconfined learns from a run that you trust',
    );
  return exitStatus(learned.result);
}

/** What is to be proposed, and how the command ended. */
interface Learned {
  readonly needed: readonly Denial[];
  readonly result: ExecutionResult;
}

const inWords = (command: Command) =>
  typeof command === 'string' ? command : command.map(readableWord).join(' ');

/** The options, with the policy file as its content: a person has typed the command, so its text is not judged. */
async function givenPolicy({ policy, ...options }: SandboxOptions): Promise<SandboxOptions> {
  const content: PolicyFile = typeof policy === 'string' ? await parsedFile(policy) : {};
  return { ...options, policy: { ...content, unsafe: { ...content.unsafe, unjudged_commands: true } } };
}

async function parsedFile(path: string): Promise<PolicyFile> {
  const { validateFile } = await import('../../run/resolve/policy-layers.ts');
  await validateFile(path, false);
  const { parse } = await import('smol-toml');
  return parse(readFileSync(path, 'utf8')) as PolicyFile;
}

/** Larger ones are no policies that learning wrote. */
const MOST_BYTES = 1024 ** 2;

/** The file that the policy goes to, and what it says so far. */
interface Output {
  readonly file: string;
  readonly options: WriteOptions;
  readonly before: Proposal | undefined;
  readonly mode: number;
}

/**
 * Looks at the file that a policy is to be added to, before anything runs.
 * @throws {SandboxError} `file.unusable` where it must not be written: through a link that a command could have made, or over
 * what learning would not write again.
 */
async function lookAtOutput(file: string, commandsWrite: readonly string[], home: string): Promise<Output> {
  const options = { commandsWrite };
  const left = (why: string) => new SandboxError('file.unusable', `${file} is left as it is: ${why}`);
  const found = atPlaceOf(file, options, ({ at }) => {
    const info = lstatSync(at, { throwIfNoEntry: false });
    const content = readRegular(at, MOST_BYTES);
    if (info !== undefined && content === undefined) throw left('it is no file, or too large for a policy');
    return { mode: (info?.mode ?? 0o644) & 0o777, text: content?.toString() };
  });
  if (found === undefined) throw left('its directory is not there; make it first');
  const { mode, text } = found;
  if (text === undefined) return { file, options, before: undefined, mode };
  const [{ parsePolicy }, { parse }] = await Promise.all([
    import('../../policy/load.ts'),
    import('smol-toml'),
  ]);
  await parsePolicy(text, file);
  const parsed = parse(text);
  const before = readProposal(text, parsed, home);
  // A path in the home may stand there with or without `~/`.
  const inWhole = (content: string): unknown =>
    JSON.parse(JSON.stringify(parse(content)), (_, value) =>
      typeof value === 'string' ? inFull(value, home) : value,
    );
  if (!isDeepStrictEqual(inWhole(policyText(before, home)), inWhole(text)))
    throw left('it says more than learn writes; name another file, and put both together by hand');
  return { file, options, before, mode };
}

/** Names are asked about by the network that lists nothing, so that it is known which hosts are meant. */
function learning(options: SandboxOptions, gate: SandboxOptions['gate']): SandboxOptions {
  const isOpen = (options.policy as PolicyFile).network?.mode === 'open';
  return { ...options, explain: 'always', ...(isOpen ? {} : { unlisted: 'ask' }), ...(gate && { gate }) };
}

const YES = {
  approver: { ask: async () => ({ approved: true, scope: 'once', by: 'learn' }) as const },
};

/** A shell that a person works in has a terminal of its own. */
const isShell = (command: Command) => command === SHELL && isatty(0);

async function runOnce(
  command: Command,
  options: SandboxOptions,
  signals: SignalForwarding,
): Promise<ExecutionResult> {
  await using sandbox = await openSandbox(options, caller());
  requireLooking(sandbox.plan);
  const how = { ...ownStreams(sandbox), approved: true };
  const result = isShell(command)
    ? (await runOnTerminal(sandbox, command, { approved: true }, signals)).result
    : await runForwarding(sandbox, command, how, signals);
  if (result === undefined) throw new SandboxError('output.lost', 'the reader of the output is gone');
  if (result.status === 'setup-failed' || result.status === 'denied')
    throw new SandboxError(result.error.code, result.error.message);
  return result;
}

async function learnContained(
  command: Command,
  given: SandboxOptions,
  signals: SignalForwarding,
  { places, yes, once }: { readonly places: Places; readonly yes: boolean; readonly once: boolean },
): Promise<Learned> {
  const gate = yes ? YES : gateOf({ quiet: false }, signals);
  const holes = {
    readable: [...(given.readable ?? [])],
    writable: [...(given.writable ?? [])],
    net: [...(given.net ?? [])],
  };
  const opened: Denial[] = [];
  const refused = new Set<string>();
  for (let runs = 1; ; runs++) {
    const net = holes.net.length === 0 ? {} : { net: holes.net };
    const result = await runOnce(command, { ...learning(given, gate), ...holes, ...net }, signals);
    const denials = result.denials ?? [];
    if (once) return { needed: denials, result };
    if (result.ok) return { needed: opened, result };
    const isOpen = (one: Denial) => opened.some((before) => holeOf(before) === holeOf(one));
    const wanted = byLikelihood(
      denials.filter((one) => isHole(one, places) && !isOpen(one) && !refused.has(holeOf(one))),
    );
    const next = runs < MOST_RUNS ? await firstAllowed(wanted, { yes, refused }) : undefined;
    if (next === undefined) {
      const inVain = denials
        .filter((one) => one.allow !== undefined && isOpen(one))
        .map(({ allow: _, ...one }) => ({ ...one, notProposed: IN_VAIN }));
      // What was not tried is proposed, too: it is what is known.
      return { needed: [...opened, ...denials.filter((one) => !isOpen(one)), ...inVain], result };
    }
    opened.push(next);
    const value = String(next.allow?.value);
    if (next.allow?.key === 'filesystem.read') holes.readable.push(value);
    if (next.allow?.key === 'filesystem.write') holes.writable.push(value);
    if (next.allow?.key === 'network.allow') holes.net.push(value);
    printError(`learn: once more, with ${visibleLine(holeOf(next), 300)}`);
  }
}

const IN_VAIN =
  'it is listed and was denied again: a directory that the name passes (dir/../file) has to be listed, too';

/** What is read in vain early on programs do without: what was denied last is likely why a command failed. */
function byLikelihood(denials: readonly Denial[]): readonly Denial[] {
  const reads = denials.filter(({ operation }) => operation === 'read');
  return [...denials.filter(({ operation }) => operation !== 'read'), ...reads.toReversed()];
}

const holeOf = ({ allow }: Denial) => `${allow?.key} = ${JSON.stringify(allow?.value)}`;

function isHole({ allow }: Denial, places: Places): boolean {
  // What is not there cannot be listed: no run makes it first.
  if (allow === undefined || allow.absent !== undefined) return false;
  if (allow.key === 'network.allow') return true;
  return (
    allow.key.startsWith('filesystem.') &&
    whyNotProposed(String(allow.value), places, allow.key) === undefined
  );
}

/** One hole at a time; `undefined`: no further one is allowed. */
async function firstAllowed(
  wanted: readonly Denial[],
  { yes, refused }: { readonly yes: boolean; readonly refused: Set<string> },
): Promise<Denial | undefined> {
  for (const one of wanted) {
    if (yes) return one;
    if (!isatty(0) || !isatty(2)) return undefined;
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    // Whoever ends the input allows nothing more.
    const ended = new Promise<undefined>((done) => terminal.once('close', () => done(undefined)));
    const asked = terminal.question(
      `learn: ${describeDenial(one)} was denied. Allow ${visibleLine(holeOf(one), 300)} in the next run? [y/N] `,
    );
    const answer = await Promise.race([asked.catch(() => undefined), ended]);
    terminal.close();
    if (answer === undefined) return undefined;
    if (/^y(?:es)?$/i.test(answer.trim())) return one;
    refused.add(holeOf(one));
  }
  return undefined;
}

async function learnUnconfined(
  command: Command,
  given: SandboxOptions,
  signals: SignalForwarding,
): Promise<Learned> {
  printError(
    `learn: UNCONFINED: ${visibleLine(inWords(command), 300)} may read and write nearly everything that you can, and reach every host`,
  );
  const { policy, ...options } = learning(given, YES);
  const open: PolicyFile = {
    ...(policy as PolicyFile),
    filesystem: { write: ['/'], tmp: 'host' },
  };
  const result = await runOnce(
    command,
    { ...options, policyFiles: false, policy: open, shadow: policy as PolicyFile },
    signals,
  );
  return { needed: result.wouldDeny ?? [], result };
}

/** Prints the policy, or puts a new file with it in the place of the output. */
function write(proposal: Proposal, output: Output | undefined, places: Places): void {
  if (output === undefined) {
    printOut(policyText(proposal, places.home));
    return;
  }
  const { file, options, before, mode } = output;
  const whole = before === undefined ? proposal : merged(before, proposal, places);
  const isWritten = atPlaceOf(file, options, (place) =>
    replaceAt(place, policyText(whole, places.home), { mode }),
  );
  if (isWritten !== true)
    throw new SandboxError('file.unusable', `${file} cannot be made: its directory is gone`);
  printError(
    `learn: the policy is in ${file}; sandbox-run policy diff ${readableWord(file)} shows what it changes`,
  );
}
