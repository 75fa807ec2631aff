import { closeSync, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NativeAddon } from '../../../../src/confine/native/contract.ts';
import { loadAddon } from '../../../../src/confine/native/load.ts';

// Checked by the compiler to be complete: a function that is missing here or in the contract is a type error.
const FUNCTIONS: Readonly<Record<keyof NativeAddon, true>> = {
  probe: true,
  publish: true,
  unpublish: true,
  allowAddresses: true,
  answerConnection: true,
  answerHost: true,
  answerName: true,
  judgeAddress: true,
  signalScope: true,
  cgroupParent: true,
  processListErrno: true,
  createIndex: true,
  watchPaths: true,
  closeIndex: true,
  readIndex: true,
  saveIndex: true,
  createConfinement: true,
  prepare: true,
  closeConfinement: true,
  launch: true,
  signal: true,
  cancel: true,
  acknowledge: true,
  resize: true,
  stream: true,
  outputSoFar: true,
  treeOf: true,
  turn: true,
  interruptTurn: true,
  endAll: true,
  makePipe: true,
  tryLock: true,
  unlock: true,
  measure: true,
  findShut: true,
  walkTree: true,
  copyContent: true,
  hasWriter: true,
  renameVacant: true,
  exchangeNames: true,
  removeLayerMarks: true,
  emptyDirectory: true,
  peerCredentials: true,
  terminalSize: true,
  enterRawMode: true,
  leaveRawMode: true,
  receiveCall: true,
  controlGroups: true,
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

  it('locks a file for one opener at a time', () => {
    const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-contract-test-'));
    const [one, other] = [openSync(join(directory, 'lock'), 'w'), openSync(join(directory, 'lock'), 'w')];
    try {
      expect([addon.tryLock(one), addon.tryLock(one), addon.tryLock(other)]).toEqual([true, true, false]);
      addon.unlock(one);
      expect(addon.tryLock(other)).toBe(true);
      closeSync(other);
      expect(addon.tryLock(one)).toBe(true);
      expect(() => addon.tryLock(1 << 20)).toThrow('flock: Bad file descriptor');
      expect(() => addon.unlock(1 << 20)).toThrow('flock: Bad file descriptor');
    } finally {
      closeSync(one);
      rmSync(directory, { recursive: true });
    }
  });

  it('knows who connected a Unix socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-contract-test-'));
    const server = createServer();
    try {
      await new Promise<void>((done) => server.listen(join(directory, 'socket'), done));
      const accepted = new Promise<Socket>((done) => server.once('connection', done));
      const client = createConnection(join(directory, 'socket'));
      const socket = await accepted;
      const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle;
      expect(addon.peerCredentials(fd)).toEqual({
        pid: process.pid,
        uid: process.getuid?.(),
        gid: process.getgid?.(),
      });
      expect(() => addon.peerCredentials(1 << 20)).toThrow('SO_PEERCRED: Bad file descriptor');
      client.destroy();
      socket.destroy();
    } finally {
      server.close();
      rmSync(directory, { recursive: true });
    }
  });
});
