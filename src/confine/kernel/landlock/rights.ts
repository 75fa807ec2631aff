/**
 * THE table of Landlock access rights and scopes: name, bit in its mask, first ABI version that knows it.
 * Source: include/uapi/linux/landlock.h; ABI by kernel: 1 5.13, 2 5.19, 3 6.2, 4 6.7, 5 6.10, 6 6.12, 7 6.15,
 * 8 7.0, 9 7.1, 10 7.2, 11 7.3.
 */
interface FileRight {
  readonly name: string;
  readonly bit: bigint;
  readonly sinceAbi: number;
  /** `any`: valid on files and directories; `directory`: EINVAL in a rule on anything else. */
  readonly validOn: 'any' | 'directory';
}

const fileRight = <const Name extends string>(
  name: Name,
  bit: number,
  sinceAbi: number,
  validOn: FileRight['validOn'],
) => ({ name, bit: 1n << BigInt(bit), sinceAbi, validOn });

export const FILE_RIGHTS = [
  fileRight('execute', 0, 1, 'any'),
  fileRight('write_file', 1, 1, 'any'),
  fileRight('read_file', 2, 1, 'any'),
  fileRight('read_dir', 3, 1, 'directory'),
  fileRight('remove_dir', 4, 1, 'directory'),
  fileRight('remove_file', 5, 1, 'directory'),
  fileRight('make_char', 6, 1, 'directory'),
  fileRight('make_dir', 7, 1, 'directory'),
  fileRight('make_reg', 8, 1, 'directory'),
  fileRight('make_sock', 9, 1, 'directory'),
  fileRight('make_fifo', 10, 1, 'directory'),
  fileRight('make_block', 11, 1, 'directory'),
  fileRight('make_sym', 12, 1, 'directory'),
  fileRight('refer', 13, 2, 'directory'),
  fileRight('truncate', 14, 3, 'any'),
  fileRight('ioctl_dev', 15, 5, 'any'),
  fileRight('resolve_unix', 16, 9, 'any'),
] as const satisfies readonly FileRight[];

/** A Landlock file-system access right by its kernel name, in lower case. */
export type FileRightName = (typeof FILE_RIGHTS)[number]['name'];

interface MaskBit {
  readonly name: string;
  readonly bit: bigint;
  readonly sinceAbi: number;
}

export const NETWORK_RIGHTS = [
  { name: 'bind_tcp', bit: 1n << 0n, sinceAbi: 4 },
  { name: 'connect_tcp', bit: 1n << 1n, sinceAbi: 4 },
  { name: 'bind_udp', bit: 1n << 2n, sinceAbi: 10 },
  { name: 'connect_send_udp', bit: 1n << 3n, sinceAbi: 10 },
] as const satisfies readonly MaskBit[];

export const SCOPES = [
  { name: 'abstract_unix_socket', bit: 1n << 0n, sinceAbi: 6 },
  { name: 'signal', bit: 1n << 1n, sinceAbi: 6 },
] as const satisfies readonly MaskBit[];

/** The newest ABI that this table describes. A newer kernel is used as if it had this one. */
export const NEWEST_KNOWN_ABI = 11;

/** The names in `wanted` that exist at `abi` (0: none do), in table order. */
export function availableAt<Name extends string>(
  table: readonly { readonly name: Name; readonly sinceAbi: number }[],
  wanted: readonly Name[],
  abi: number,
): readonly Name[] {
  return table.filter((row) => row.sinceAbi <= abi && wanted.includes(row.name)).map((row) => row.name);
}

/** The kernel mask of names. */
export function maskOf<Name extends string>(
  table: readonly { readonly name: Name; readonly bit: bigint }[],
  names: readonly Name[],
): bigint {
  return table.reduce((mask, row) => (names.includes(row.name) ? mask | row.bit : mask), 0n);
}

/** Those of the file rights that a rule on a non-directory may carry. */
export function validOnFiles(names: readonly FileRightName[]): readonly FileRightName[] {
  return FILE_RIGHTS.filter((row) => row.validOn === 'any' && names.includes(row.name)).map(
    (row) => row.name,
  );
}
