import { SandboxError } from '../../errors/sandbox-error.ts';
import type { TurnResult } from '../../model/execution-result.ts';
import type { OutputChunk } from '../../model/output.ts';
import { neutralize } from '../../run/output/neutralize.ts';
import type { Sandbox } from '../../run/sandbox.ts';
import type { ShellSession } from '../../run/session/session-options.ts';
import type { Call, Client } from './client.ts';
import type { ParamsOf, ResultOf } from './method-table.ts';
import { createOutputEncoder, type OutputForm } from './output-data.ts';
import { wireResult } from './wire.ts';

/** The shells of one connection. */
export interface Shells {
  open(params: ParamsOf<'session.open'>): Promise<ResultOf<'session.open'>>;
  /** `begin`: when there is room for its result. */
  run(
    params: ParamsOf<'session.run'>,
    call: Call,
    begin: (run: () => Promise<TurnResult>) => Promise<TurnResult>,
  ): Promise<ResultOf<'session.run'>>;
  /** @throws {SandboxError} `protocol.unknown_id`: this connection has none of that name. */
  find(id: string): ShellSession;
  close(id: string): Promise<void>;
  closeAll(): Promise<void>;
}

/** What they are made with. */
export interface ShellParts {
  readonly sandbox: Sandbox;
  readonly client: Client;
  readonly most: number;
  readonly newId: () => string;
}

/** @see Shells */
export function createShells({ sandbox, client, most, newId }: ShellParts): Shells {
  const shells = new Map<string, ShellSession>();
  let opening = 0;

  function find(id: string): ShellSession {
    const found = shells.get(id);
    if (found !== undefined) return found;
    throw new SandboxError(
      'protocol.unknown_id',
      'this connection has no such session; it was closed, or belongs to another',
    );
  }

  async function close(id: string): Promise<void> {
    const shell = find(id);
    shells.delete(id);
    await shell.close();
  }

  return {
    open: async ({ cwd, env, restore }) => {
      if (shells.size + opening >= most)
        throw new SandboxError('protocol.busy', `${most} sessions are open already; close one of them`);
      opening += 1;
      try {
        const shell = await sandbox.session({
          ...(cwd === undefined ? {} : { cwd }),
          ...(env === undefined ? {} : { env }),
          ...(restore === undefined ? {} : { restore }),
        });
        // Nobody is there to have it.
        if (client.gone.aborted) await shell.close();
        const session = newId();
        shells.set(session, shell);
        return { session, cwd: shell.cwd, warnings: shell.warnings };
      } finally {
        opening -= 1;
      }
    },
    run: async (params, call, begin) => {
      const { session, command, env, approved, taints, timeout, stream, encoding, escapes } = params;
      const form: OutputForm = { encoding: encoding ?? 'utf8', escapes: escapes ?? 'neutralize' };
      const sender = stream === true ? streamTo(client, session, call, form) : undefined;
      const shell = find(session);
      const result = await begin(() =>
        shell.run(command, {
          signal: call.signal,
          ...(env === undefined ? {} : { env }),
          ...(approved === undefined ? {} : { approved }),
          ...(taints === undefined ? {} : { taints }),
          ...(timeout === undefined ? {} : { timeout }),
          ...(sender === undefined ? {} : { onOutput: sender.send }),
        }),
      );
      await sender?.end();
      const show = (text: string) => {
        if (sender !== undefined) return '';
        return form.escapes === 'neutralize' ? neutralize(text) : text;
      };
      const { cwdAfter, restarted } = result;
      const sent = wireResult(result, sandbox.plan);
      return { ...sent, cwdAfter, restarted, stdout: show(result.stdout), stderr: show(result.stderr) };
    },
    find,
    close,
    closeAll: async () => {
      await Promise.all([...shells.keys()].map(close));
    },
  };
}

function streamTo(client: Client, session: string, call: Call, form: OutputForm) {
  const encoders = { stdout: createOutputEncoder(form), stderr: createOutputEncoder(form) };
  const say = async (stream: OutputChunk['stream'], data: string) => {
    if (data === '') return;
    await client.notify('output', { session, request: call.id, stream, data, encoding: form.encoding });
  };
  return {
    send: ({ stream, bytes }: OutputChunk) => say(stream, encoders[stream].write(bytes)),
    end: async () => {
      await say('stdout', encoders.stdout.end());
      await say('stderr', encoders.stderr.end());
    },
  };
}
