import { z } from 'zod';
import { count, text, type Value } from './value.ts';

const verdict = z.enum(['allow', 'deny']);
const port = z.number().int().min(1).max(65_535);

/** From the first to the last, both included. */
export const PortRange = z.strictObject({ first: port, last: port });
export type PortRange = Value<typeof PortRange>;

const rule = text.describe('the entry of the policy, as it was written');

/** Addresses that a rule speaks of, at a range of ports. */
export const AddressRow = z.strictObject({
  ...PortRange.shape,
  bytes: z.array(count).describe('16; an IPv4 address is one of ::ffff:0:0/96'),
  bits: count.describe('how many of them count'),
  verdict,
  rule,
});
export type AddressRow = Value<typeof AddressRow>;

/** Names that a rule speaks of. */
export const NameRow = z.strictObject({
  name: text.describe(
    'in small letters, in ASCII, without a dot at the end; empty: every name lies beneath it',
  ),
  beneath: z.boolean().describe('the names beneath it, and not itself'),
  ports: z.array(PortRange),
  verdict,
  rule,
});
export type NameRow = Value<typeof NameRow>;

/** What of the network a command may reach. A row that denies is stronger than all that allow. */
export const NetworkRules = z.strictObject({
  addresses: z.array(AddressRow),
  names: z.array(NameRow),
});
export type NetworkRules = Value<typeof NetworkRules>;
