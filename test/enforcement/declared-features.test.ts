import { expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';

/**
 * The other files run the tiers that the host offers. So that nothing is left out unnoticed, a test machine declares
 * what it has: SANDBOX_RUN_EXPECT_ABI=7, SANDBOX_RUN_EXPECT_NAMESPACES=1 (or 0).
 */
const abi = process.env.SANDBOX_RUN_EXPECT_ABI;
const namespaces = process.env.SANDBOX_RUN_EXPECT_NAMESPACES;

it(`this host has Landlock ${HOST.landlockAbi}, ${HOST.namespaces ? 'namespaces' : 'no namespaces'}, ${HOST.root ? 'root' : 'an ordinary user'}`, () => {
  expect(HOST.landlockAbi).toBeGreaterThan(0);
});

it.runIf(abi !== undefined)(`the declared Landlock ABI ${abi} is there`, () => {
  expect(HOST.landlockAbi).toBeGreaterThanOrEqual(Number(abi));
  if (Number(abi) >= 6) expect(HOST.signalScope).toBe(true);
});

it.runIf(namespaces !== undefined)(`the declared namespaces are as declared: ${namespaces}`, () => {
  expect(HOST.namespaces).toBe(namespaces !== '0');
});
