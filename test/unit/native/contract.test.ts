import { closeSync, fstatSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { NativeAddon } from '../../../src/native/contract.ts';
import { loadAddon } from '../../../src/native/load.ts';

// Checked by the compiler to be complete: a function that is missing here or in the contract is a type error.
const FUNCTIONS: Readonly<Record<keyof NativeAddon, true>> = {
  probe: true,
  signalScope: true,
  createConfinement: true,
  prepare: true,
  closeConfinement: true,
  launch: true,
  signal: true,
  cancel: true,
  acknowledge: true,
  endAll: true,
  makePipe: true,
};
const addon = loadAddon();

describe('the addon', () => {
  it('exports exactly the functions of the contract', () => {
    expect(Object.keys(addon).sort()).toEqual(Object.keys(FUNCTIONS).sort());
    for (const value of Object.values(addon)) expect(value).toBeTypeOf('function');
  });

  it('is loaded once', () => {
    expect(loadAddon()).toBe(addon);
  });

  it('probes the kernel in whole numbers', () => {
    const probed = addon.probe();
    expect(Object.keys(probed).sort()).toEqual(['landlockAbi', 'landlockErrata', 'seccompErrno']);
    for (const value of Object.values(probed)) expect(Number.isInteger(value)).toBe(true);
    expect(addon.signalScope()).toBe(probed.landlockAbi >= 6);
  });

  it('knows no command that was not launched', () => {
    expect([addon.signal(1 << 30, 15), addon.cancel(1 << 30, true), addon.acknowledge(1 << 30, 1)]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it('makes pipes', () => {
    const ends = addon.makePipe();
    for (const end of ends) {
      expect(fstatSync(end).isFIFO()).toBe(true);
      closeSync(end);
    }
  });
});
