/** A port of the sandbox that programs of this machine can connect to. */
export interface Publication {
  /** Where they connect; 0: any port that is free. */
  readonly port: number;
  /** If the port is taken, the next free one above it. */
  readonly orFree: boolean;
  /** Where the server listens in the sandbox. */
  readonly inner: number;
  /** Where it can be reached; `undefined`: at 127.0.0.1 and ::1. */
  readonly address: string | undefined;
  /** The path of a Unix socket that programs connect to in place of a port, which is 0 then. */
  readonly socket?: string;
}

/** How a {@link Publication} is written. */
export const PUBLICATION_FORMS =
  'must be [ADDRESS:]PORT[:INNER], such as 3000, 8080:80, 3000? (or the next free port), 0:3000 (any free port), or SOCKET:INNER with the path of a Unix socket to make; PORT is 1024 or higher';

const HIGHEST_PORT = 65535;
const LOWEST_OUTER_PORT = 1024;

/** Bytes that fit into the address of a socket, with the NUL at their end (unix(7)). */
const LONGEST_SOCKET = 107;

/** Reads `[ADDRESS:]PORT[:INNER]` or `SOCKET:INNER`; `undefined`: it is neither. */
export function readPublication(text: string): Publication | undefined {
  const bySocket = /^((?:~?\/)[^\0]*[^\0/]):(\d{1,5})$/.exec(text);
  if (bySocket !== null) {
    const [, socket = '', within] = bySocket;
    const inner = Number(within);
    if (inner < 1 || inner > HIGHEST_PORT || Buffer.byteLength(socket) > LONGEST_SOCKET) return undefined;
    return { port: 0, orFree: false, inner, address: undefined, socket };
  }
  const match = /^(?:(\[[^\]]+\]|\d+\.[\d.]+):)?(\d{1,5})(\?)?(?::(\d{1,5}))?$/.exec(text);
  if (match === null) return undefined;
  const [, given, outer, mark, within = outer] = match;
  const address = given?.replace(/^\[(.*)\]$/, '$1');
  if (address !== undefined && !isAddress(address, given?.startsWith('[') === true ? 6 : 4)) return undefined;
  const [port, inner] = [Number(outer), Number(within)];
  const isOuter = port === 0 ? mark === undefined : port >= LOWEST_OUTER_PORT && port <= HIGHEST_PORT;
  if (!isOuter || inner < 1 || inner > HIGHEST_PORT) return undefined;
  return { port, orFree: mark !== undefined, inner, address };
}

const V4_PART = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const V4 = new RegExp(`^${V4_PART}(?:\\.${V4_PART}){3}$`);

const isAddress = (text: string, family: number) =>
  family === 4 ? V4.test(text) : URL.canParse(`http://[${text}]/`);

/** A publication as text, for {@link readPublication}. */
export function publicationText({
  port,
  orFree = false,
  inner,
  address,
  socket,
}: {
  readonly port?: number | undefined;
  readonly orFree?: boolean | undefined;
  readonly inner?: number | undefined;
  readonly address?: string | undefined;
  readonly socket?: string | undefined;
}): string {
  if (socket !== undefined) return `${socket}:${inner}`;
  const place = address === undefined ? '' : `${address.includes(':') ? `[${address}]` : address}:`;
  return `${place}${port}${orFree ? '?' : ''}${inner === undefined || inner === port ? '' : `:${inner}`}`;
}

/** Whether an address is one of the loopback interface, which other machines cannot reach; none stands for these. */
export const isLoopback = (address: string | undefined): boolean =>
  address === undefined || address === '::1' || address.startsWith('127.');
