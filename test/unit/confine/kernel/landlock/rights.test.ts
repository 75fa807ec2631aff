import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  availableAt,
  FILE_RIGHTS,
  maskOf,
  NETWORK_RIGHTS,
  NEWEST_KNOWN_ABI,
  SCOPES,
  validOnFiles,
} from '../../../../../src/confine/kernel/landlock/rights.ts';

// Copied by hand from include/uapi/linux/landlock.h and Documentation/userspace-api/landlock.rst, not from our table.
const PUBLISHED = {
  ACCESS_FS: [
    ['EXECUTE', 0x1n, 1, 'any'],
    ['WRITE_FILE', 0x2n, 1, 'any'],
    ['READ_FILE', 0x4n, 1, 'any'],
    ['READ_DIR', 0x8n, 1, 'directory'],
    ['REMOVE_DIR', 0x10n, 1, 'directory'],
    ['REMOVE_FILE', 0x20n, 1, 'directory'],
    ['MAKE_CHAR', 0x40n, 1, 'directory'],
    ['MAKE_DIR', 0x80n, 1, 'directory'],
    ['MAKE_REG', 0x100n, 1, 'directory'],
    ['MAKE_SOCK', 0x200n, 1, 'directory'],
    ['MAKE_FIFO', 0x400n, 1, 'directory'],
    ['MAKE_BLOCK', 0x800n, 1, 'directory'],
    ['MAKE_SYM', 0x1000n, 1, 'directory'],
    ['REFER', 0x2000n, 2, 'directory'],
    ['TRUNCATE', 0x4000n, 3, 'any'],
    ['IOCTL_DEV', 0x8000n, 5, 'any'],
    ['RESOLVE_UNIX', 0x1_0000n, 9, 'any'],
  ],
  ACCESS_NET: [
    ['BIND_TCP', 0x1n, 4],
    ['CONNECT_TCP', 0x2n, 4],
    ['BIND_UDP', 0x4n, 10],
    ['CONNECT_SEND_UDP', 0x8n, 10],
  ],
  SCOPE: [
    ['ABSTRACT_UNIX_SOCKET', 0x1n, 6],
    ['SIGNAL', 0x2n, 6],
  ],
} as const;

describe('the tables of rights', () => {
  it('have the file rights of the kernel’s header, with bit, ABI and kind of object', () => {
    const ours = FILE_RIGHTS.map((row) => [row.name.toUpperCase(), row.bit, row.sinceAbi, row.validOn]);
    expect(ours).toEqual(PUBLISHED.ACCESS_FS);
  });

  it.each([
    ['network rights', NETWORK_RIGHTS, PUBLISHED.ACCESS_NET],
    ['scopes', SCOPES, PUBLISHED.SCOPE],
  ] as const)('have the %s of the kernel’s header', (_, table, published) => {
    expect(table.map((row) => [row.name.toUpperCase(), row.bit, row.sinceAbi])).toEqual(published);
  });

  it('agree with the header installed here, as far as it goes', () => {
    const header = '/usr/include/linux/landlock.h';
    const text = existsSync(header) ? readFileSync(header, 'utf8') : '';
    const tables = { ACCESS_FS: FILE_RIGHTS, ACCESS_NET: NETWORK_RIGHTS, SCOPE: SCOPES };
    for (const [, kind, name, shift] of text.matchAll(
      /#define LANDLOCK_(ACCESS_FS|ACCESS_NET|SCOPE)_(\w+)\s+\(1ULL << (\d+)\)/g,
    )) {
      const table: readonly { name: string; bit: bigint }[] = tables[kind as keyof typeof tables];
      const row = table.find((candidate) => candidate.name.toUpperCase() === name);
      if (row !== undefined) expect(row.bit, name).toBe(1n << BigInt(shift ?? ''));
    }
  });

  it('never take a right back in a later ABI', () => {
    for (const table of [FILE_RIGHTS, NETWORK_RIGHTS, SCOPES]) {
      const names = table.map((row) => row.name);
      for (let abi = 1; abi <= NEWEST_KNOWN_ABI; abi++) {
        const before = availableAt<string>(table, names, abi - 1);
        expect(availableAt<string>(table, names, abi)).toEqual(expect.arrayContaining([...before]));
      }
    }
  });
});

describe('availableAt', () => {
  const names = FILE_RIGHTS.map((row) => row.name);
  it.each([
    [0, 0n],
    [1, 0x1fffn],
    [2, 0x3fffn],
    [3, 0x7fffn],
    [4, 0x7fffn],
    [5, 0xffffn],
    [6, 0xffffn],
    [8, 0xffffn],
    [9, 0x1_ffffn],
    [11, 0x1_ffffn],
    [99, 0x1_ffffn],
  ])('gives at ABI %i the file rights of mask %#x', (abi, mask) => {
    expect(maskOf(FILE_RIGHTS, availableAt(FILE_RIGHTS, names, abi))).toBe(mask);
  });

  it.each([
    [3, 0n],
    [4, 0x3n],
    [9, 0x3n],
    [10, 0xfn],
  ])('gives at ABI %i the network rights of mask %#x', (abi, mask) => {
    const all = NETWORK_RIGHTS.map((row) => row.name);
    expect(maskOf(NETWORK_RIGHTS, availableAt(NETWORK_RIGHTS, all, abi))).toBe(mask);
  });

  it.each([
    [5, 0n],
    [6, 0x3n],
  ])('gives at ABI %i the scopes of mask %#x', (abi, mask) => {
    const all = SCOPES.map((row) => row.name);
    expect(maskOf(SCOPES, availableAt(SCOPES, all, abi))).toBe(mask);
  });

  it('gives nothing that was not wanted, in the order of the table', () => {
    expect(availableAt(FILE_RIGHTS, ['truncate', 'execute', 'refer'], 2)).toEqual(['execute', 'refer']);
    expect(availableAt(FILE_RIGHTS, [], 11)).toEqual([]);
  });
});

describe('validOnFiles', () => {
  it('leaves what the kernel takes on something else than a directory', () => {
    const names = FILE_RIGHTS.map((row) => row.name);
    expect(maskOf(FILE_RIGHTS, validOnFiles(names))).toBe(0x1_c007n);
    expect(validOnFiles(['read_dir', 'make_reg', 'refer'])).toEqual([]);
  });
});
