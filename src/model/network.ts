import { z } from 'zod';
import { count, text, type Value } from '../base/value.ts';
import { ApprovalAnswer } from './approval.ts';

/** A connection or a name that a command asked for where the network is listed, or several alike. */
export const Connection = z.strictObject({
  verdict: z.enum(['allowed', 'refused']),
  protocol: z
    .enum(['tcp', 'udp', 'unix', 'name'])
    .describe(
      'unix: a socket of this machine; name: it was only looked up, and refused, or allowed and known to nobody',
    ),
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

/** A port of a command that programs of this machine can connect to (`network.publish`). */
export const PublishedPort = z.strictObject({
  addresses: z
    .array(text)
    .describe('where they connect: usually 127.0.0.1 and ::1, as far as this machine has them'),
  port: count.describe('at these addresses; 0: at the socket'),
  socket: text.optional().describe('the Unix socket that they connect to; missing: there is a port'),
  inner: count.describe('where the server listens in the sandbox'),
  relayed: z
    .boolean()
    .describe(
      'false: the command has the network of the host (network.mode = "open") and the port is the same, so that nothing stands between: its server decides itself where it listens',
    ),
});
export type PublishedPort = Value<typeof PublishedPort>;
