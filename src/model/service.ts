import { z } from 'zod';
import { count, maybe, text, time, type Value } from '../base/value.ts';

/** A socket that a process of a service listens on. */
const ServicePort = z.strictObject({
  protocol: z.enum(['tcp', 'unix']),
  address: text,
  port: maybe(count).describe('missing: it is a Unix socket'),
  published: maybe(z.array(text)).describe('where programs of the host connect to it; missing: nowhere'),
});

/** A row of `sandbox-run ps --json`. */
export const ServiceInfo = z
  .strictObject({
    name: text.describe('the name; of a background command of an agent its process ID'),
    workspace: text,
    command: text,
    state: z
      .enum(['starting', 'running', 'ready', 'waiting', 'stopping', 'ended', 'lost'])
      .describe(
        'waiting: it failed and will be started again; lost: its supervisor was killed, and the service with it',
      ),
    since: time.describe('when it was started last, or ended'),
    pid: maybe(count).describe('its first process; missing: none runs'),
    ports: z.array(ServicePort),
    restarts: count,
    session: maybe(text).describe(
      'the session of the agent that runs it in the background; missing: it is a service',
    ),
    end: maybe(text).describe('how it ended; missing: it has not'),
    supervisor: count.describe('the process ID of its supervisor'),
  })
  .describe('a service, or a background command of an agent');
export type ServiceInfo = Value<typeof ServiceInfo>;
