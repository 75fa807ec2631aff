import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import type { ChangeSet } from '../model/index.ts';
import { ChangeSets, visibleDiff } from '../run/index.ts';
import { currentDirectory } from './shared/caller.ts';
import {
  applyChanges,
  describeChanges,
  describeSet,
  describeSetByNames,
  discardChanges,
  doInItsWorkspace,
} from './shared/change-sets.ts';
import { createProgram, parseArguments, withSubcommands } from './shared/parse.ts';
import { jsonLine, jsonText, printError, printOut } from './shared/print.ts';

const HELP_AFTER = `
sandbox-run --preview runs a command on a layer over the workspace: what it changes is kept in the
state directory, and waits here. Apply puts each file in place by rename, and nothing where
something changed meanwhile; a crash in the middle is finished with the next command. What was
there before is kept for a week, so that undo brings it back.
On a terminal a preview asks what becomes of them; sandbox-run approvals has them in its queue and on its page.
Not applied: devices, FIFOs, sockets, set-ID bits, extended attributes; links that lead out of the
workspace only where they are named.

Examples:
  sandbox-run --preview -- npm install
  sandbox-run changes list
  sandbox-run changes apply
  sandbox-run changes diff 20261123-101500-4fd8a1 package.json
  sandbox-run changes apply 20261123-101500-4fd8a1
  sandbox-run changes apply 20261123-101500-4fd8a1 src docs/README.md
  sandbox-run changes undo 20261123-101500-4fd8a1

Exit status: 0; 1 if a part was not applied or not taken back; 125 if there are no changes of that
id, another process applies some, or anything else failed.`;

const ID = 'from the list; without it the only one that waits here';

/**
 * The only change set that waits in the current directory.
 * @throws {SandboxError} `changes.unknown` if none or several do, which are listed first.
 */
function theOnlyOne(verb: string): string {
  const waiting = new ChangeSets()
    .list(currentDirectory())
    .filter(({ state, left }) => state === 'waiting' || (state === 'applied' && left > 0));
  const [first, ...others] = waiting;
  if (first === undefined)
    throw new SandboxError(
      'changes.unknown',
      'no changes wait here; sandbox-run changes list --all shows other workspaces',
    );
  if (others.length === 0) return first.id;
  for (const set of waiting) printError(describeSet(set));
  throw new SandboxError(
    'changes.unknown',
    `${waiting.length} wait here; name one: sandbox-run changes ${verb} ${waiting.at(-1)?.id}`,
  );
}

/** `sandbox-run changes`: what previews changed. */
export async function changes(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run changes',
    'Shows what commands changed in previews, and applies it, takes it back or discards it.',
    HELP_AFTER,
  );
  command('list', 'lists change sets of the workspace, the oldest first')
    .option('--all', 'of all workspaces')
    .option('--json', 'one JSON object per line')
    .action((options: { readonly all?: boolean; readonly json?: boolean }) => does(() => list(options)));
  command('show', 'what was changed')
    .argument('[id]', ID)
    .option('--json', 'as JSON')
    .action((id: string | undefined, { json }: { readonly json?: boolean }) =>
      does(() => {
        const set = new ChangeSets().show(id ?? theOnlyOne('show'));
        return json === true ? jsonText(set) : describeChanges(set);
      }),
    );
  command('diff', 'the same as a unified diff')
    .argument('[id]', ID)
    .argument('[path]', 'only what is at or beneath it')
    .option('--raw', 'as it is, for git apply and other programs: a terminal may obey it')
    .action((id: string | undefined, path: string | undefined, { raw }: { readonly raw?: boolean }) =>
      does(() => {
        const diff = new ChangeSets().diff(id ?? theOnlyOne('diff'), path);
        return raw === true ? diff : visibleDiff(diff);
      }),
    );
  command('apply', 'puts it into the workspace')
    .argument('[id]', ID)
    .argument('[path...]', 'only what is at or beneath these')
    .action((id: string | undefined, paths: readonly string[]) =>
      does(() => applyChanges(id ?? theOnlyOne('apply'), paths)),
    );
  command('undo', 'takes back what was applied')
    .argument('<id>', 'from the list')
    .action((id: string) =>
      does(() => doInItsWorkspace(id, 'taken back', (sets, prepared) => sets.undo(prepared, id, true))),
    );
  command('discard', 'forgets it; what was applied stays')
    .argument('<id>', 'from the list')
    .argument('[path...]', 'only what is at or beneath these')
    .action((id: string, paths: readonly string[]) =>
      does(async () => `${await discardChanges(id, paths)}\n`),
    );
  return run(args);
}

const UNDO_HELP = `
What a command that may lose work changes in the workspace is applied when it has ended, and can be
taken back for a week; with [workspace] undo = "always" in the policy that of each command. So can
previews that were applied.
What changed since stays as it is, and is named. Not covered: sessions, commands in the background
or on a terminal of their own, and what is written outside of the workspace.

Examples:
  sandbox-run history
  sandbox-run undo
  sandbox-run undo --to 20261123-101500-4fd8a1
  sandbox-run redo

Exit status: 0; 1 if a part stays as it is; 125 if there is nothing to take back, or anything else failed.`;

/** `sandbox-run undo`: takes back what came last. */
export async function undo(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run undo',
    'Takes back what a command changed in the workspace: the last one, or the one that is named.',
    UNDO_HELP,
  )
    .argument('[id]', 'from sandbox-run history')
    .option('--to <id>', 'take back this one and all that came after it');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { to } = parsed.opts<{ readonly to?: string }>();
  const sets = historyHere().filter(({ state }) => state === 'applied');
  const [id] = parsed.args;
  if (id !== undefined && to !== undefined)
    throw new SandboxError('usage.invalid', 'undo takes an id or --to with one, and not both');
  const from = to === undefined ? undefined : sets.findIndex((set) => set.id === to);
  if (from === -1) throw nothingTo('take back', to);
  // The last one first: each finds what it left.
  const wanted = id ?? sets.at(-1)?.id;
  const ids =
    from === undefined
      ? [wanted]
      : sets
          .slice(from)
          .map((set) => set.id)
          .reverse();
  const status = await each(ids, 'take back', (one) =>
    doInItsWorkspace(one, 'taken back', (all, prepared) => all.undo(prepared, one)),
  );
  // The failed change set stays the last one, so the next `undo` would fail too.
  if (status !== 0 && id === undefined && to === undefined && sets.length > 1)
    printError('earlier ones are taken back by their id: sandbox-run history');
  return status;
}

/** `sandbox-run redo`: applies again what was taken back. */
export async function redo(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run redo',
    'Applies again what was taken back: what was taken back last, or what is named. After other changes, and of a preview that was rejected, it has to be named.',
    UNDO_HELP,
  ).argument('[id]', 'from sandbox-run history');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const all = new ChangeSets();
  sayDamaged(all);
  const [id = all.lastTakenBack(currentDirectory())] = parsed.args;
  const status = await each([id], 'apply again', (one) =>
    doInItsWorkspace(one, 'applied', (sets, prepared) => sets.redo(prepared, one)),
  );
  // By now it is none of those that were taken back.
  if (status !== 0 && id !== undefined && new ChangeSets().show(id, 0).left > 0)
    printError(`the rest can be applied later: sandbox-run redo ${id}`);
  return status;
}

/** So many changes of each command are named in the history, and listed in its JSON. */
const NAMED = 3;
const LISTED = 100;

/** `sandbox-run history`: what commands changed in this workspace. */
export async function history(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run history',
    'Lists what commands changed in the workspace and can be taken back, the oldest first.',
    UNDO_HELP,
  ).option('--json', 'one JSON object per line');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const { json } = parsed.opts<{ readonly json?: boolean }>();
  const all = new ChangeSets();
  const sets = historyHere().map(({ id }) => all.show(id, json === true ? LISTED : NAMED));
  if (json === true) printOut(sets.map(jsonLine).join(''));
  else
    printOut(
      sets.length === 0
        ? 'nothing can be taken back here: only what commands changed that may lose work, ran with --preview or with workspace.undo = "always"\n'
        : sets.map((set) => `${describeSetByNames(set)}\n`).join(''),
    );
  return 0;
}

/** What came into the current directory, in the order in which it did: a preview may have waited. */
function historyHere(): readonly ChangeSet[] {
  const sets = new ChangeSets();
  sayDamaged(sets);
  const cameAt = ({ appliedAt, at }: ChangeSet) => appliedAt ?? at;
  return sets
    .list(currentDirectory())
    .filter(({ state }) => state !== 'waiting')
    .toSorted((one, other) => cameAt(one) - cameAt(other));
}

/** The other change sets can still be used. */
function sayDamaged(sets: ChangeSets): void {
  for (const why of sets.damaged()) printError(`warning: ${why}`);
}

function nothingTo(what: string, id?: string): SandboxError {
  const which = id === undefined ? '' : ` as ${JSON.stringify(id)}`;
  return new SandboxError(
    'changes.unknown',
    `there is nothing to ${what}${which} in this workspace; see sandbox-run history`,
  );
}

/** Does it one after the other, and stops where a part stays as it is: what came before may need it. */
async function each(
  ids: readonly (string | undefined)[],
  what: string,
  work: (id: string) => Promise<number>,
): Promise<number> {
  for (const id of ids) {
    if (id === undefined) throw nothingTo(what);
    const { command } = new ChangeSets().show(id, 0);
    printError(`${id}: ${visibleLine(command, 200)}`);
    const status = await work(id);
    if (status !== 0) return status;
  }
  return 0;
}

function list({ all, json }: { readonly all?: boolean; readonly json?: boolean }): string {
  const store = new ChangeSets();
  sayDamaged(store);
  const sets = store.list(all === true ? undefined : currentDirectory());
  if (json === true) return sets.map(jsonLine).join('');
  if (sets.length === 0)
    return all === true
      ? 'no changes wait, and none were applied lately\n'
      : 'no changes wait here, and none were applied lately\nsandbox-run changes list --all shows other workspaces\n';
  return sets
    .map((set) => `${describeSet(set)}${all === true ? `  ${visibleLine(set.workspace, 4096)}` : ''}\n`)
    .join('');
}
