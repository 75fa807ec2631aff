import { z } from 'zod';
import { ApprovalAnswer } from './approval.ts';
import { count, text, type Value } from './value.ts';
import { VERIFY } from './words.ts';

const verdict = z.enum(['allow', 'deny']);
const port = z.number().int().min(1).max(65_535);

/** From the first to the last, both included. */
export const PortRange = z.strictObject({ first: port, last: port });
export type PortRange = Value<typeof PortRange>;

const rule = text.describe('the entry of the policy, as it was written');

const AddressRange = z.strictObject({
  bytes: z.array(count).describe('16; an IPv4 address is one of ::ffff:0:0/96'),
  bits: count.describe('how many of their bits count'),
});

/** What every row says of connections that it fits. */
const verdictOfRule = {
  protocol: z.enum(['tcp', 'udp']).describe('a row speaks of one of them'),
  verdict,
  inside: z
    .enum(['tls', 'http'])
    .optional()
    .describe('what a connection has to be, naming a host that may be reached; missing: anything'),
  rule,
};

/** Addresses that a rule speaks of, at a range of ports. */
export const AddressRow = z.strictObject({
  ...PortRange.shape,
  ...AddressRange.shape,
  ...verdictOfRule,
});
export type AddressRow = Value<typeof AddressRow>;

/** Names that a rule speaks of. */
export const NameRow = z.strictObject({
  name: text.describe(
    'in small letters, in ASCII, without a dot at the end; empty: every name lies beneath it',
  ),
  beneath: z.boolean().describe('the names beneath it, and not itself'),
  ports: z.array(PortRange),
  ...verdictOfRule,
});
export type NameRow = Value<typeof NameRow>;

/** A socket of the host, by its path, that commands may connect to. */
export const UnixRow = z.strictObject({
  path: text.describe('canonical'),
  named: text.describe('as programs name it'),
  object: text.describe('device and inode: another socket at the same path is another one'),
  rule,
});
export type UnixRow = Value<typeof UnixRow>;

/** What of the network a command may reach. A row that denies is stronger than all that allow. */
export const NetworkRules = z.strictObject({
  addresses: z.array(AddressRow),
  names: z.array(NameRow),
  apart: z.array(AddressRange).describe('ranges of which only rows that lie in them allow something'),
  placeholders: AddressRange.optional().describe(
    'addresses that names which are not listed have until somebody is asked about a connection; missing: nobody is asked',
  ),
  verify: z
    .enum(VERIFY)
    .describe('whether connections to names at the usual ports have to name a host that is allowed'),
  looksInside: z.boolean().describe('some connections have to be of a kind'),
  sockets: z.array(UnixRow).optional().describe('missing: none'),
});
export type NetworkRules = Value<typeof NetworkRules>;

/** A connection or a name that a command asked for where the network is listed, or several alike. */
export const Connection = z.strictObject({
  verdict: z.enum(['allowed', 'refused']),
  protocol: z
    .enum(['tcp', 'udp', 'unix', 'name'])
    .describe('unix: a socket of this machine; name: it was only looked up'),
  host: text.describe(
    'the name that led there, or the address; of unix the path as the command named it, or @NAME of an abstract socket',
  ),
  address: text.optional().describe('missing: a name that leads nowhere, or a socket of this machine'),
  port: count.optional(),
  program: text
    .optional()
    .describe('as the process called itself; missing: it is not known who looked a name up'),
  pid: count.optional(),
  askedFor: text
    .optional()
    .describe(
      'with network.verify, or an entry with /tls or /http: the host that the connection itself asked for, by the server name of TLS or the Host header; missing: it was not looked for, or there is none',
    ),
  flaw: text.optional().describe('of a connection that is refused: what it sent instead, in a few words'),
  rule: text.optional().describe('the entry of the policy that decided; missing: none speaks of it'),
  approval: ApprovalAnswer.optional().describe('what came of asking; missing: nobody was asked'),
  error: text.optional().describe('what the command was told, such as ECONNREFUSED'),
  entry: text
    .optional()
    .describe('what in network.allow of a policy, or of unix in network.unix, would let it through'),
  at: text.describe('ISO 8601; when it was first asked for'),
  count,
});
export type Connection = Value<typeof Connection>;
