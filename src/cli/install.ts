import { SandboxError } from '../errors/sandbox-error.ts';
import { currentDirectory } from '../host/exact-text.ts';
import { homeDirectory } from '../host/user-directories.ts';
import { HOOK_INSTALLERS } from '../integrations/agents.ts';
import { changedSettings, hooksAreOff } from '../integrations/install/hook-settings.ts';
import { changeSettingsFile } from '../integrations/install/settings-file.ts';
import { visibleText } from '../util/visible-text.ts';
import { addHookOptions, agentIn, type HookArguments, hookOptionsOf } from './hook/arguments.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { printError, printOut } from './shared/print.ts';

/** They are there and have no effect. */
const STATUS_OFF = 1;

const HELP_AFTER = `
Agents: ${Object.keys(HOOK_INSTALLERS).join(', ')}

Only the hooks of sandbox-run are added, changed or taken out; everything else in the file stays as it is. Doing it
again changes nothing. --mode, --policy, --profile, --backend, --autonomy and --timeout go into the hook
("sandbox-run hook --help").

Examples:
  sandbox-run install claude-code --user
  sandbox-run install claude-code --project --mode rewrite --dry-run
  sandbox-run install claude-code --user --uninstall

With --project keep the file out of version control: the hooks name the places of programs on this machine, and
where these are not there every command is blocked.

Exit status: 0 done, or nothing to do; 1 done, but these settings switch all hooks off ("disableAllHooks"), so
that nothing is decided about; 125 the settings are left as they were.`;

interface Options extends HookArguments {
  readonly user?: boolean;
  readonly project?: boolean;
  readonly dryRun?: boolean;
  readonly uninstall?: boolean;
}

/** `sandbox-run install AGENT`: adds the hooks to the settings of an agent, or takes them out. */
export async function install(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run install',
    "Adds hooks to an agent's settings, so that sandbox-run judges its commands.",
    HELP_AFTER,
  )
    .usage('[options] AGENT')
    .argument('<agent>', 'the agent whose settings are changed')
    .option('--user', 'for all projects of the user (default)')
    .option('--project', 'only for you, in the project in the current directory (its settings.local.json)')
    .option('--dry-run', 'show what would change; nothing is written')
    .option('--uninstall', 'remove the hooks');
  addHookOptions(program);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { user, project, dryRun = false, uninstall, ...hook } = parsed.opts<Options>();
  if (user === true && project === true)
    throw new SandboxError('usage.invalid', 'install takes one of --user and --project');
  const installer = await agentIn(HOOK_INSTALLERS, parsed.args[0] ?? '');
  const change = installer.changeOf(uninstall === true ? undefined : hookOptionsOf(hook));

  const place = currentDirectory();
  const scope = project === true ? 'project' : 'user';
  const path = installer.fileOf(scope, { home: homeDirectory(), project: place });
  const result = changeSettingsFile(path, (text) => changedText(text, change, path), {
    within: project === true ? place : undefined,
    dryRun,
  });
  const before = result.before ?? '';
  if (result.after === before) printOut(`${visibleText(result.path)} needs no change\n`);
  else if (dryRun)
    printOut(
      visibleText(`${result.path} would change:\n${describeChange(before, result.after)}`, { keep: '\n\t' }),
    );
  else
    printOut(
      `${visibleText(result.path)}: hooks ${uninstall === true ? 'taken out' : `installed (${hook.mode})`}${scope === 'project' && uninstall !== true ? '; they are for this machine only: do not commit this file' : ''}\n`,
    );
  if (uninstall === true || !hooksAreOff(result.after)) return 0;
  printError(
    `"disableAllHooks" is true in ${result.path}: all hooks are OFF and nothing is decided about; take it out`,
  );
  return STATUS_OFF;
}

/** A file that is not there is not made in order to take something out of it. */
function changedText(
  text: string | undefined,
  change: Parameters<typeof changedSettings>[1],
  path: string,
): string {
  return text === undefined && change.wanted.length === 0 ? '' : changedSettings(text, change, path);
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
