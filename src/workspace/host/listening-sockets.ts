import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { orElse } from '../../base/or-else.ts';
import { visibleLine } from '../../base/visible-text.ts';

/** A socket that waits for connections. */
export interface ListeningSocket {
  readonly protocol: 'tcp' | 'unix';
  /** An IP address (`::` usually takes IPv4 too), or the path of a Unix socket (`@` before an abstract name). */
  readonly address: string;
  /** `undefined` for Unix sockets. */
  readonly port: number | undefined;
  /** The process that has it; of several the first. */
  readonly pid: number;
}

/** What a table of a network namespace says of a listening socket. */
type Listed = Omit<ListeningSocket, 'pid'>;

/**
 * The sockets on which the processes listen, each in its own network namespace or in that of this process. A process that has ended in
 * the meantime has none. Sockets that this process has, too, are left out: a child that has not executed its program yet still has
 * all of them.
 */
export function listeningSockets(pids: readonly number[]): readonly ListeningSocket[] {
  const tables = new Map<string, ReadonlyMap<string, Listed>>();
  const found = new Map<string, ListeningSocket>();
  let ownTable: ReadonlyMap<string, Listed> | undefined;
  const own = () => {
    ownTable ??= readTables('self');
    return ownTable;
  };
  let ownInodes: ReadonlySet<string> | undefined;
  const isInherited = (pid: number, inode: string) => {
    ownInodes ??= new Set(socketsOf(process.pid));
    return pid !== process.pid && ownInodes.has(inode);
  };
  for (const pid of [...pids].sort((one, other) => one - other)) {
    const namespace = whereLinkLeads(`/proc/${pid}/ns/net`);
    const inodes = socketsOf(pid);
    if (namespace === undefined || inodes.length === 0) continue;
    const table = tables.get(namespace) ?? readTables(pid);
    tables.set(namespace, table);
    for (const inode of inodes) {
      // Where the network is listed, TCP sockets are of this process's namespace.
      const listed = table.get(inode) ?? own().get(inode);
      if (listed !== undefined && !found.has(inode) && !isInherited(pid, inode))
        found.set(inode, { ...listed, pid });
    }
  }
  return [...found.values()].sort(
    (one, other) => (one.port ?? 0) - (other.port ?? 0) || (one.address < other.address ? -1 : 1),
  );
}

const whereLinkLeads = (path: string) => orElse(() => readlinkSync(path), undefined);

/** Whether somebody on this machine waits for connections at a port of the loopback interface. */
export function isServedHere(port: number): boolean {
  const tables = ['tcp', 'tcp6'].map((name) =>
    orElse(() => readFileSync(`/proc/self/net/${name}`, 'utf8'), undefined),
  );
  // If the tables cannot be read, assume that a server listens.
  return (
    tables.every((table) => table === undefined) ||
    tables.some((table = '') => listedTcp(table).some(([, listed]) => listed.port === port))
  );
}

/** The program that listens at a port of this machine, as far as this user can know it. */
export function listenerAt(port: number): { readonly pid: number; readonly name: string } | undefined {
  const inodes = new Set(
    ['tcp', 'tcp6']
      .flatMap((name) => listedTcp(orElse(() => readFileSync(`/proc/self/net/${name}`, 'utf8'), '')))
      .flatMap(([inode, listed]) => (listed.port === port ? [inode] : [])),
  );
  // It may live in another network namespace than its socket.
  const pid = orElse(() => readdirSync('/proc'), [])
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((candidate) => socketsOf(candidate).some((inode) => inodes.has(inode)));
  if (pid === undefined) return undefined;
  const name = orElse(() => readFileSync(`/proc/${pid}/comm`, 'utf8'), '');
  return { pid, name: visibleLine(name.trim(), 40) };
}

/** The inodes of a process's sockets. */
function socketsOf(pid: number): readonly string[] {
  return orElse(() => readdirSync(`/proc/${pid}/fd`), []).flatMap(
    (fd) => /^socket:\[(\d+)\]$/.exec(whereLinkLeads(`/proc/${pid}/fd/${fd}`) ?? '')?.[1] ?? [],
  );
}

function readTables(pid: number | 'self'): ReadonlyMap<string, Listed> {
  // No IPv6 here, or the process is gone.
  const read = (name: string) => orElse(() => readFileSync(`/proc/${pid}/net/${name}`, 'utf8'), '');
  return new Map([...listedTcp(read('tcp')), ...listedTcp(read('tcp6')), ...listedUnix(read('unix'))]);
}

const TCP_LISTEN = '0A';

/** The listening sockets of /proc/net/tcp or tcp6, by inode. Pure. */
export function listedTcp(table: string): readonly (readonly [string, Listed])[] {
  return rows(table).flatMap((columns) => {
    const [, local = '', , state, , , , , , inode] = columns;
    const [address = '', port = ''] = local.split(':');
    if (state !== TCP_LISTEN || inode === undefined) return [];
    return [[inode, { protocol: 'tcp', address: ipAddress(address), port: Number.parseInt(port, 16) }]];
  });
}

/** __SO_ACCEPTCON: the socket listens. */
const UNIX_LISTENS = 0x10000;
/**
 * The path at which the supervisor of a listed network binds the Unix sockets of commands (native/notify/unix_table.cc). The path by
 * which other commands reach such a socket is not in the kernel's table, so the socket is left out.
 */
const BY_SUPERVISOR = /^\/proc\/self\/fd\/\d+\/s$/;

/** The listening sockets of /proc/net/unix, by inode. Pure. */
export function listedUnix(table: string): readonly (readonly [string, Listed])[] {
  return rows(table).flatMap((columns) => {
    const [, , , flags = '', , , inode, ...path] = columns;
    const address = path.join(' ');
    const isUnnamed = inode === undefined || BY_SUPERVISOR.test(address);
    if ((Number.parseInt(flags, 16) & UNIX_LISTENS) === 0 || isUnnamed) return [];
    return [[inode, { protocol: 'unix', address, port: undefined }]];
  });
}

function rows(table: string): readonly (readonly string[])[] {
  return table
    .split('\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => line.trim().split(' ').filter(Boolean));
}

/** An address as the kernel prints it: words of four bytes, each in the order of the machine, which is little endian. */
function ipAddress(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [...Buffer.from(word, 'hex').reverse()]);
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, at) =>
    Buffer.from(bytes)
      .readUInt16BE(2 * at)
      .toString(16),
  );
  // Loaded at each start of a command it would take longer than all of this.
  const { SocketAddress } = process.getBuiltinModule('node:net');
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}
