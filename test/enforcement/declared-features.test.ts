import { expect, it } from 'vitest';
import { HOST, TIERS } from '../support/tiers.ts';

/**
 * The other files run the tiers that the host offers. So that nothing is left out unnoticed, a test machine declares
 * what it has: SANDBOX_RUN_EXPECT_ABI=7 (0: no Landlock), SANDBOX_RUN_EXPECT_NAMESPACES=1 (or 0), and
 * SANDBOX_RUN_EXPECT_BACKEND=landlock, the backend that has to be chosen.
 */
const abi = process.env.SANDBOX_RUN_EXPECT_ABI;
const namespaces = process.env.SANDBOX_RUN_EXPECT_NAMESPACES;
const backend = process.env.SANDBOX_RUN_EXPECT_BACKEND;

it(`this host has the backend ${HOST.backend}, Landlock ${HOST.landlockAbi}, ${HOST.namespaces ? 'namespaces' : 'no namespaces'}, ${HOST.root ? 'root' : 'an ordinary user'}`, () => {
  // One without Landlock and namespaces has nothing that the attacks of this directory could be held by.
  expect(TIERS).not.toEqual([]);
});

it.runIf(backend !== undefined)(`the declared backend ${backend} is chosen`, () => {
  expect(HOST.backend).toBe(backend);
});

it.runIf(abi !== undefined)(`the declared Landlock ABI ${abi} is there`, () => {
  expect(HOST.landlockAbi).toBeGreaterThanOrEqual(Number(abi));
  if (Number(abi) >= 6) expect(HOST.signalScope).toBe(true);
});

it.runIf(namespaces !== undefined)(`the declared namespaces are as declared: ${namespaces}`, () => {
  expect(HOST.namespaces).toBe(namespaces !== '0');
});
