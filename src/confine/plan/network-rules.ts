import { z } from 'zod';
import { count, text, type Value } from '../../base/value.ts';
import { VERIFY } from '../../base/words.ts';

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
  asks: z.boolean().optional().describe('commands that may use it are asked about'),
  rule,
});
export type UnixRow = Value<typeof UnixRow>;

/** The hosts and ports that a command may reach. A row that denies is stronger than all that allow. */
export const NetworkRules = z.strictObject({
  addresses: z.array(AddressRow),
  names: z.array(NameRow),
  apart: z
    .array(AddressRange)
    .describe('ranges (such as private networks) that only a row that lies inside the same range can allow'),
  placeholders: AddressRange.optional().describe(
    'addresses that unlisted names resolve to, so that a connection can be asked about; missing: unlisted names are refused without a question',
  ),
  verify: z
    .enum(VERIFY)
    .describe('whether connections to names at the usual ports have to name a host that is allowed'),
  looksInside: z
    .boolean()
    .describe('true if a row has `inside`, so that the content of connections is checked'),
  sockets: z.array(UnixRow).optional().describe('missing: none'),
});
export type NetworkRules = Value<typeof NetworkRules>;
