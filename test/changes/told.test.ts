import { lstatSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/confine/native/index.ts';
import type { ExecutionResult } from '../../src/model/index.ts';
import { ChangeStore, changeLine, messageForModel, stateDirectory } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// What a result says of changes is what became of them.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

async function workspaceOf(options: { readonly undo?: 'always' }) {
  const root = arena.freshCorner();
  const beside = arena.freshCorner();
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, readable: [beside], ...options });
  const said = (result: ExecutionResult) => messageForModel(result, sandbox.plan);
  /** Runs a command in the middle of which somebody writes files of these names. */
  const inConflict = async (command: string, names: readonly string[], preview = false) => {
    const hold = makeHold(beside);
    const started = sandbox.start(
      `${command}; echo ready; ${hold.words}`,
      preview ? { effect: 'preview' } : {},
    );
    for await (const line of started.outputText()) if (line.text.includes('ready')) break;
    for (const name of names) writeFileSync(join(root, name), 'mine');
    hold.letGo();
    return await started.result;
  };
  return { root, sandbox, said, inConflict, changes: await sandbox.changes() };
}

describe_('of a command whose changes are all in conflict (needs namespaces)', () => {
  it('with undo: a model is told that nothing of them is there, and of no preview', async () => {
    const { said, inConflict } = await workspaceOf({ undo: 'always' });
    const result = await inConflict('echo theirs > f', ['f']);
    expect(result.changes).toMatchObject({ state: 'waiting', effect: 'undoable', notApplied: 1 });
    expect(said(result)).toBe(
      `Sandbox: nothing of what it changed (1 changed) can be applied as it is; the user has it as ${result.changes?.id}.\nNext: later commands do not see it; look at what is there now before you do it again.`,
    );
  });

  it('only by the time they are applied: the same', async () => {
    const { root, sandbox, said, changes } = await workspaceOf({ undo: 'always' });
    const busy = await new ChangeStore(loadAddon(), stateDirectory()).waitForLock();
    const running = sandbox.run('echo theirs > f');
    await eventually(async () => expect(await changes.list()).toHaveLength(1));
    writeFileSync(join(root, 'f'), 'mine');
    busy[Symbol.dispose]();
    const result = await running;
    expect(result.changes).toMatchObject({ state: 'waiting', notApplied: 1 });
    expect(said(result)).toMatch(/^Sandbox: nothing of what it changed \(1 created\) can be applied/);
  });

  it('in a preview: a model is not told that the user can apply them', async () => {
    const { said, inConflict } = await workspaceOf({});
    const result = await inConflict('echo theirs > f', ['f'], true);
    expect(said(result)).toMatch(/^Sandbox: this was a preview; nothing of what it changed .* as it is;/);
  });

  it('in part, in a preview: how many', async () => {
    const { said, inConflict } = await workspaceOf({});
    const result = await inConflict('echo theirs > f; echo > g', ['f'], true);
    expect(said(result)).toMatch(
      /^Sandbox: this was a preview; its changes wait as \S+ \(1 created, 1 changed\), of which 1 cannot be applied as it is\.\nNext: /,
    );
  });

  it('very many: the first ones are named, and how many more there are', async () => {
    const { inConflict } = await workspaceOf({ undo: 'always' });
    const names = Array.from({ length: 30 }, (_, at) => `f${at}`);
    const { warnings } = await inConflict('for f in $(seq 0 29); do echo theirs > f$f; done', names);
    expect(warnings).toHaveLength(11);
    expect(warnings.at(-1)).toMatch(/^20 more .*: sandbox-run changes show \S+$/);
  });
});

describe_('of a link that leads out, with undo (needs namespaces)', () => {
  it('that it is in the workspace; and redo brings it again', async () => {
    const { root, sandbox, changes } = await workspaceOf({ undo: 'always' });
    const result = await sandbox.run(`ln -s ${arena.secret} out`);
    expect(result).toMatchObject({ warnings: [], changes: { notApplied: 0, changes: [{ applied: true }] } });
    const id = result.changes?.id ?? '';
    const { changes: shown } = await changes.show(id);
    expect(shown.map(changeLine)).toEqual([expect.not.stringContaining('not applied')]);
    expect(await changes.undo(id)).toMatchObject({ state: 'undone', notDone: [] });
    expect(await changes.apply(id)).toMatchObject({ state: 'applied', notDone: [] });
    expect(lstatSync(join(root, 'out')).isSymbolicLink()).toBe(true);
  });
});
