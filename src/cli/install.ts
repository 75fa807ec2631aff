import { Option } from 'commander';
import {
  AGENTS,
  changeSettingsFile,
  type FileChange,
  type InstallWay,
  neededAfterIn,
} from '../agents/index.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleText } from '../base/visible-text.ts';
import { homeDirectory } from '../workspace/index.ts';
import { addHookOptions, agentOf, type HookArguments, hookOptionsOf } from './hook/arguments.ts';
import { caller, currentDirectory } from './shared/caller.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { printError, printOut } from './shared/print.ts';

/** They are there and have no effect. */
const STATUS_OFF = 1;

const HELP_AFTER = `
Agents: ${Object.keys(AGENTS).join(', ')}

Only what is of sandbox-run is added, changed or taken out; everything else in the files stays as it is. Doing it
again changes nothing. --mode, --policy, --profile, --backend, --autonomy and --timeout go into the hook
("sandbox-run hook --help"). What the agent does goes to the audit trail ("sandbox-run audit tail"; --no-audit). Commands run in the sandbox (--mode rewrite) unless you say --mode decide.

--mcp (codex) gives the agent the tools of "sandbox-run mcp" in place of its own shell tool.

Examples:
  sandbox-run install claude-code
  sandbox-run install codex --mcp
  sandbox-run install gemini-cli --project --dry-run
  sandbox-run install opencode --uninstall

With --project keep the files out of version control: they name the places of programs on this machine, and
where these are not there every command is blocked.

Exit status: 0 done, or nothing to do; 1 done, but another setting of the agent switches it off, so that nothing
is decided about; 125 the settings are left as they were.`;

interface Options extends HookArguments {
  readonly user?: boolean;
  readonly project?: boolean;
  readonly mcp?: boolean;
  readonly dryRun?: boolean;
  readonly uninstall?: boolean;
}

/** `sandbox-run install AGENT`: puts this program into the settings of an agent, or takes it out. */
export async function install(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run install',
    "Changes an agent's settings, so that sandbox-run judges and runs its commands.",
    HELP_AFTER,
  )
    .usage('[options] AGENT')
    .argument('<agent>', 'the agent whose settings are changed')
    .option('--user', 'for all projects of the user (default)')
    .option('--project', 'only for you, in the project in the current directory')
    .addOption(
      new Option('--mcp', "as an MCP server in place of the agent's own shell tool, not by hooks").conflicts(
        'mode',
      ),
    )
    .option('--dry-run', 'show what would change; nothing is written')
    .option('--uninstall', 'remove what was installed');
  addHookOptions(program).option(
    '--no-audit',
    'leave no audit trail of what the agent does, unless the policy has one',
  );
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { user, project, mcp = false, dryRun = false, uninstall = false, ...hook } = parsed.opts<Options>();
  if (user === true && project === true)
    throw new SandboxError('usage.invalid', 'install takes one of --user and --project');
  const name = parsed.args[0] ?? '';
  const { installer } = await agentOf(name, hook.mode);
  const chosen = mcp ? installer.mcp : installer.hooks;
  if (chosen === undefined) throw new SandboxError('usage.invalid', `${name} takes no --mcp, only its hooks`);

  const place = currentDirectory();
  const scope = project === true ? 'project' : 'user';
  const places = { home: homeDirectory(), project: place, env: process.env };
  const given = hookOptionsOf(hook);
  const options = uninstall
    ? undefined
    : { ...given, ...(await neededAfterIn(place, { ...given, around: caller() })) };
  const ways = [installer.hooks, installer.mcp].filter((way) => way !== undefined);
  // What is not wanted any more goes first, and nothing is written if one of the files cannot be changed.
  const changes = ways
    .toSorted((one, two) => Number(one === chosen) - Number(two === chosen))
    .flatMap((way) =>
      way
        .filesOf(scope, places, way === chosen ? options : undefined)
        .map((file) => ({ file, way, isChosen: way === chosen })),
    );
  const within = scope === 'project' ? place : undefined;
  for (const { file } of changes) changeSettingsFile(file.path, file.change, { within, dryRun: true });
  let status = 0;
  let unchanged = 0;
  for (const { file, way, isChosen } of changes) {
    const done = changeSettingsFile(file.path, file.change, { within, dryRun });
    const isWanted = isChosen && !uninstall;
    if (done.after === done.before) unchanged += 1;
    else
      say(done, { way, dryRun, isWanted, mode: mcp ? undefined : hook.mode, isProject: scope === 'project' });
    if (isWanted && isOff(file, done.after, done.path)) status = STATUS_OFF;
  }
  if (unchanged === changes.length)
    printOut(`${visibleText(changes.find(({ isChosen }) => isChosen)?.file.path ?? '')} needs no change\n`);
  if (!uninstall && !dryRun && chosen.next !== undefined) printOut(`${chosen.next}\n`);
  return status;
}

interface Said {
  readonly way: InstallWay;
  readonly dryRun: boolean;
  readonly isWanted: boolean;
  readonly mode: string | undefined;
  readonly isProject: boolean;
}

/** One line, or the change, for one file. */
function say(
  { before = '', after = '', path }: ReturnType<typeof changeSettingsFile>,
  { way, dryRun, isWanted, mode, isProject }: Said,
): void {
  const where = visibleText(path);
  if (dryRun)
    printOut(visibleText(`${path} would change:\n${describeChange(before, after)}`, { keep: '\n\t' }));
  else if (!isWanted) printOut(`${where}: ${way.what} taken out\n`);
  else {
    const local = isProject ? '; it is for this machine only: do not commit this file' : '';
    printOut(`${where}: ${way.what} installed${mode === undefined ? '' : ` (${mode})`}${local}\n`);
  }
}

/** Says that another setting in a file keeps all of it from having any effect. */
function isOff({ switchedOff }: FileChange, text: string | undefined, path: string): boolean {
  const why = text === undefined ? undefined : switchedOff?.(text);
  if (why === undefined) return false;
  printError(`${why} in ${path}: all hooks are OFF and nothing is decided about; take it out`);
  return true;
}

/** The lines that a change takes away and adds, as a diff shows them: all between what is the same before and after. */
function describeChange(before: string, after: string): string {
  const [old, now] = [lines(before), lines(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (
    end < old.length - start &&
    end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  )
    end += 1;
  const part = (list: readonly string[], mark: string) =>
    list.slice(start, list.length - end).map((line) => `${mark}${line}\n`);
  return [`@@ line ${start + 1} @@\n`, ...part(old, '-'), ...part(now, '+')].join('');
}

function lines(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
