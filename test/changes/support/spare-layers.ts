import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ExecutionResult, Sandbox } from '../../../src/index.ts';
import { stateDirectory } from '../../../src/run/index.ts';
import { eventually } from '../../support/eventually.ts';

/** Layers that wait for a command, or have one that runs: each is an open change set without a description. */
export function openLayers(): readonly string[] {
  const root = join(stateDirectory(), 'changes');
  const ids = existsSync(root) ? readdirSync(root).filter((name) => name !== 'lock') : [];
  return ids.filter((id) => existsSync(join(root, id, 'upper')) && !existsSync(join(root, id, 'set.json')));
}

/**
 * Runs a command that changes something, and waits until the layer of the next one is there (`spare`). Its own has a description
 * by then.
 */
export async function runUntilSpare(
  sandbox: Sandbox,
  command: string,
): Promise<{ readonly result: ExecutionResult; readonly spare: string }> {
  const result = await sandbox.run(command);
  expect(result.changes).toMatchObject({ state: 'applied' });
  await eventually(() => expect(openLayers()).toHaveLength(1));
  return { result, spare: openLayers()[0] ?? '' };
}
