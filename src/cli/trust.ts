import { resolve } from 'node:path';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { orElse } from '../base/or-else.ts';
import { visibleLine } from '../base/visible-text.ts';
import { loadAddon } from '../confine/native/load.ts';
import { presentRows, talkOn, withTerminal } from '../gate/index.ts';
import { type SandboxOptions, TRUST_RISKS } from '../model/index.ts';
import { type Project, resolvePolicy, trustedProjects, trustProject, untrustProject } from '../run/index.ts';
import { exactRealPath } from '../workspace/index.ts';
import { confinementHere } from './confined.ts';
import { caller, currentDirectory } from './shared/caller.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { jsonLine, printOut } from './shared/print.ts';

const HELP_AFTER = `
A file in the workspace, .sandbox-run.toml, can take away by itself and give nothing. What it asks for is shown
here, worst first, and holds for you in this workspace once you have said yes on this terminal. If the file
changes, that ends until you have looked again. /etc/sandbox-run/policy.toml, your own policy and options come
first: what they say of a key is never replaced.

Examples:
  sandbox-run trust
  sandbox-run trust --list
  sandbox-run untrust

Exit status: 0 it is trusted, or asks for nothing; 1 you said no; 125 there is no terminal, no such file, or anything else failed.`;

const STATUS_NO = 1;
/** A person who left must not find the question answered by whoever comes next. */
const PATIENCE_MS = 10 * 60_000;

interface TrustOptions extends Pick<SandboxOptions, 'workspace'> {
  readonly list?: boolean;
  readonly json?: boolean;
}

/** `sandbox-run trust`: lets a person trust the file of a workspace. */
export async function trust(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run trust',
    'Trusts what a project’s .sandbox-run.toml asks for.',
    HELP_AFTER,
  )
    .option('--list', 'list the workspaces whose file you trusted')
    .option('--json', 'with --list: one JSON object per line')
    .option('--workspace <dir>', 'the workspace (default: the current directory)');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { list = false, json = false, ...where } = parsed.opts<TrustOptions>();
  if (list) {
    printOut(listed(json));
    return 0;
  }
  if (json) throw new SandboxError('usage.invalid', 'trust: --json needs --list');
  const { isConfined } = confinementHere();
  if (isConfined)
    throw new SandboxError(
      'usage.invalid',
      'nothing is trusted from inside a sandbox: run sandbox-run trust on a terminal of your own',
    );
  const { project, workspace } = await resolvePolicy(where, caller());
  const shownWorkspace = visibleLine(workspace, 4096);
  if (project === undefined || project.widenings.length === 0) {
    if (project?.standing === 'trusted') printOut(`the file of ${shownWorkspace} is trusted already\n`);
    else
      printOut(`nothing to trust: no .sandbox-run.toml in ${shownWorkspace} asks for more than there is\n`);
    return 0;
  }
  if (project.standing === 'trusted') {
    printOut(`the file of ${shownWorkspace} is trusted already\n`);
    return 0;
  }
  if (!(await isWanted(project))) {
    printOut('nothing is trusted\n');
    return STATUS_NO;
  }
  trustProject(project);
  printOut(`trusted as it was shown: .sandbox-run.toml of ${shownWorkspace}\n`);
  return 0;
}

function listed(json: boolean): string {
  const projects = trustedProjects();
  if (json) return projects.map((project) => jsonLine(project)).join('');
  if (projects.length === 0) return 'nothing is trusted; sandbox-run trust in a workspace begins\n';
  return projects
    .map(({ workspace, sha256, at }) => `${at}  ${sha256.slice(0, 12)}  ${visibleLine(workspace, 4096)}\n`)
    .join('');
}

/** Asks on the controlling terminal, not on standard streams: an answer from a pipe does not count. */
async function isWanted(project: Project): Promise<boolean> {
  const end = performance.now() + PATIENCE_MS;
  const tryLock = orElse(() => loadAddon().tryLock, undefined);
  const talked = await withTerminal(
    (terminal) =>
      talkOn<boolean>(
        terminal,
        {
          opening: openingOf(project, terminal.columns),
          // Counted where it cannot have scrolled away.
          prompt: `Trust the file as shown (${countsOf(project)})? Type yes, or Enter for no: `,
          heard: (line) => {
            const word = line.trim().toLowerCase();
            if (word === 'yes') return { answer: true };
            if (word === '' || word === 'n' || word === 'no') return { answer: false };
            return { prompt: 'Please type yes or no: ' };
          },
          unheard: () => false,
          closing: (answer) => (answer ? 'trusted' : 'not trusted'),
        },
        { end, signal: undefined, onInterrupt: undefined },
      ),
    { tryLock, end },
  );
  if (talked.used) return talked.result;
  throw new SandboxError(
    'usage.invalid',
    'nothing is trusted without a person: run sandbox-run trust on a terminal, in the foreground',
  );
}

function openingOf({ workspace, widenings, sha256, before }: Project, columns: number): string {
  const shown = (text: string) => visibleLine(text, Number.MAX_SAFE_INTEGER);
  const rows = widenings.map(({ key, value, risk, opens }) => ({
    label: risk,
    text: shown(`${opens}: ${key} = ${JSON.stringify(value)}`),
  }));
  const heading = `${before === undefined ? '' : 'The file changed since you trusted it. '}.sandbox-run.toml in ${shown(workspace)} asks for, by risk:`;
  return `\n${heading}\n${presentRows(rows, { columns })}sha256 ${sha256}\n`;
}

/** `1 of high risk, 2 of low risk`. */
function countsOf({ widenings }: Project): string {
  return TRUST_RISKS.map((risk) => [risk, widenings.filter((one) => one.risk === risk).length] as const)
    .filter(([, count]) => count > 0)
    .map(([risk, count]) => `${count} of ${risk} risk`)
    .join(', ');
}

/** `sandbox-run untrust`: what the file of a workspace asks for does not hold any more. */
export async function untrust(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run untrust',
    'Ends the trust in a project’s .sandbox-run.toml.',
    `
Commands that run keep what they have.

Example:
  sandbox-run untrust

Exit status: 0; 125 if the workspace is not trusted or anything else failed.`,
  ).argument('[workspace]', 'the workspace (default: the current directory)');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const named = resolve(parsed.args[0] ?? currentDirectory());
  // A workspace that is gone is named as trust --list has it.
  const workspace = exactRealPath(named, 'the workspace') ?? named;
  if (!untrustProject(workspace))
    throw new SandboxError(
      'usage.invalid',
      `${visibleLine(workspace, 4096)} is not trusted (see sandbox-run trust --list)`,
    );
  printOut(`not trusted any more: ${visibleLine(workspace, 4096)}\n`);
  return 0;
}
