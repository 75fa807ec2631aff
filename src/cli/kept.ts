import { shownPath } from '../base/path-text.ts';
import { visibleLine, visibleText } from '../base/visible-text.ts';
import { stateDirectory } from '../run/index.ts';
import { Kept, type KeptItem } from '../workspace/index.ts';
import { withSubcommands } from './shared/parse.ts';
import { jsonLine } from './shared/print.ts';

const HELP_AFTER = `
A command may leave something in the workspace that git, an editor or an agent would run later without
asking: hooks, settings, keys of a git configuration. It is moved away when the command ends, and kept here.
Look at it before you put it back: restore makes it run.

Examples:
  sandbox-run kept list
  sandbox-run kept show 20261123-101500-4fd8a1
  sandbox-run kept restore 20261123-101500-4fd8a1

Exit status: 0; 125 if nothing is kept under an id, something is in its place, or anything else failed.`;

/** `sandbox-run kept`: what was taken away from where it would have been obeyed. */
export async function kept(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run kept',
    'Shows files and settings that commands left behind and sandbox-run set aside, and puts them back.',
    HELP_AFTER,
  );
  command('list', 'lists everything, the oldest first')
    .option('--json', 'one JSON object per line')
    .action(({ json }: { readonly json?: boolean }) => does(() => list(json === true)));
  const ofOne = (name: string, description: string, act: (id: string) => string) =>
    command(name, description)
      .argument('<id>', 'from the list')
      .action((id: string) => does(() => act(id)));
  ofOne('show', 'what it is', show);
  ofOne('restore', 'puts it back where it was', (id) => {
    const { path } = new Kept(stateDirectory()).restore(id);
    return `${visibleLine(shownPath(path), 4096)} is back\n`;
  });
  ofOne('forget', 'removes it', (id) => {
    const { movedTo } = new Kept(stateDirectory()).forget(id);
    return movedTo === undefined
      ? `${id} is gone\n`
      : `${id} is forgotten; ${visibleLine(shownPath(movedTo), 4096)} stays\n`;
  });
  return run(args);
}

function list(json: boolean): string {
  const items = new Kept(stateDirectory()).list();
  if (json) return items.map((item) => jsonLine(plain(item))).join('');
  if (items.length === 0) return 'nothing is kept\n';
  return items
    .map((item) => {
      const what = item.settings === undefined ? '' : `${settingsOf(item).join(', ')} in `;
      return `${item.id}  ${visibleLine(`${what}${shownPath(item.path)} (${item.reason})`, 500)}\n`;
    })
    .join('');
}

function show(id: string): string {
  const store = new Kept(stateDirectory());
  const item = store.find(id);
  const content = item.settings === undefined ? store.contentOf(id) : undefined;
  return [
    `${visibleLine(shownPath(item.path), 4096)}`,
    `  ${visibleLine(item.reason, 500)}`,
    `  since ${new Date(item.at).toISOString()}, of the workspace ${visibleLine(item.workspace, 4096)}`,
    ...settingsOf(item).map((setting) => `  ${visibleLine(setting, 2000)}`),
    ...(content === undefined ? [] : ['', visibleText(content)]),
    '',
  ].join('\n');
}

function settingsOf({ settings = [] }: KeptItem): readonly string[] {
  return settings.map(([key, value]) =>
    Buffer.from(value === null ? key : `${key}=${value}`, 'latin1').toString('utf8'),
  );
}

function plain(item: KeptItem) {
  const { path, movedTo, settings } = item;
  return {
    ...{ ...item, path: shownPath(path) },
    ...(movedTo === undefined ? {} : { movedTo: shownPath(movedTo) }),
    ...(settings === undefined ? {} : { settings: settingsOf(item) }),
  };
}
