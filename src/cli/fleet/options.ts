import { isAbsolute, resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { Label, type NatsSettings, QueueName } from '../../model/fleet.ts';

/** What {@link addConnectionOptions} reads. */
export interface ConnectionArguments {
  readonly queue?: string;
  readonly url: string;
  readonly creds?: string;
  readonly ca?: string;
  readonly replicas?: number;
}

export const DEFAULT_URL = 'nats://127.0.0.1:4222';

/** Adds the options that say which queue, and where. */
export function addConnectionOptions(program: Command): Command {
  return addServerOptions(
    program.option('--queue <name>', 'the name of the queue, which is made if it is not there'),
    DEFAULT_URL,
  );
}

/** The same for what looks at a queue that is there. */
export function addQueueOptions(program: Command): Command {
  return addServerOptions(program.option('--queue <name>', 'the name of the queue'), DEFAULT_URL);
}

/** Adds those that say where. */
export function addServerOptions(program: Command, url: string | undefined): Command {
  return program
    .option('--url <url>', 'the NATS server; several of a cluster with commas between', url)
    .option(
      '--creds <file>',
      'credentials or the seed of an nkey, which only you can read (default: $SANDBOX_RUN_NATS_CREDS)',
    )
    .option('--ca <file>', 'the certificates that sign that of the server, with tls://');
}

/** @throws {SandboxError} `usage.invalid` without a queue. */
export function queueOf({ queue }: ConnectionArguments): string {
  if (queue === undefined)
    throw new SandboxError('usage.invalid', 'name a queue: --queue NAME, such as --queue builds');
  const read = QueueName.safeParse(queue);
  if (read.success) return read.data;
  throw new SandboxError('usage.invalid', `--queue: ${read.error.issues[0]?.message}`);
}

/** The same as settings of a connection. */
export function settingsOf({ url, creds, ca }: ConnectionArguments): NatsSettings {
  const absolute = (path: string) => (isAbsolute(path) ? path : resolve(path));
  return {
    url,
    ...(creds === undefined ? {} : { credentials: absolute(creds) }),
    ...(ca === undefined ? {} : { ca: absolute(ca) }),
  };
}

/** `--label L`, repeatable. */
export function parseLabel(text: string, before: readonly string[] = []): readonly string[] {
  const read = Label.safeParse(text);
  if (!read.success) throw new InvalidArgumentError(`${read.error.issues[0]?.message}.`);
  return [...before, read.data];
}
