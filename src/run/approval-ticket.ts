import { createHash, randomBytes } from 'node:crypto';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import type {
  ApprovalAnswer,
  ApprovalRequest,
  ApprovalStore,
  AskedPlugIns,
  GateOptions,
} from '../model/index.ts';
import { lazyState, stateDirectory } from './state.ts';

/** A ticket on a command line: the id of the stored approval, and the `once` value of the request. */
const TICKET = /^([0-9a-f]{16,64})\.([0-9a-f]{16,64})$/;
const ASKED_TICKET = /^[0-9a-f]{16,64}$/;

/** Something for `CheckedCommand.once` that cannot be guessed. */
export const newOnce = (): string => randomBytes(16).toString('hex');

/**
 * Stores an approval for one request, good for one run of it. The caller makes sure that the command is started only after
 * a person has approved it. Returns the ticket that the run shows.
 */
export async function issueTicket(
  request: ApprovalRequest,
  once: string,
  by: string,
  lifetimeMs: number,
): Promise<string> {
  return `${await store(request, by, lifetimeMs)}.${once}`;
}

/** Returns the id of what was stored, for one use. */
async function store(request: ApprovalRequest, by: string, lifetimeMs: number): Promise<string> {
  const state = lazyState(stateDirectory());
  try {
    const { approvals } = await state();
    const id = await approvals.post(request, Date.now() + lifetimeMs, { forLater: true });
    await approvals.answer(id, { approved: true, scope: 'once', by });
    return id;
  } finally {
    await state.close();
  }
}

/**
 * Stores that the plug-ins of the policy were asked about a command and had no objection, so that the run of it does not ask
 * them again. It approves nothing. `request`: what the command would be asked about with. Returns the ticket that the run
 * shows, which is good once, and only for what they were told.
 */
export function issueAskedTicket(
  request: ApprovalRequest,
  asked: AskedPlugIns,
  lifetimeMs: number,
): Promise<string> {
  const { principal, session } = asked;
  return store({ ...request, principal, session, fingerprint: fingerprintOf(asked) }, 'plug-ins', lifetimeMs);
}

/** Never equal to the fingerprint of an approval, which is made of other fields. */
const fingerprintOf = ({ tool, command, cwd, plugins }: AskedPlugIns) =>
  createHash('sha256')
    .update(JSON.stringify(['plug-ins were asked', tool, command, cwd, plugins]))
    .digest('hex');

/**
 * Whether the plug-ins were asked before, as a ticket says. What belongs to another command, or is used or expired, says no.
 * @throws {SandboxError} `usage.invalid` for what is no ticket.
 */
export function askedByTicket(ticket: string): (asked: AskedPlugIns) => Promise<boolean> {
  if (!ASKED_TICKET.test(ticket))
    throw new SandboxError('usage.invalid', '--asked takes what a hook of sandbox-run has written there');
  let found: { readonly of: string; readonly isGood: Promise<boolean> } | undefined;
  return (asked) => {
    const fingerprint = fingerprintOf(asked);
    // Each plug-in wants to know, and the ticket is used by the first.
    found ??= { of: fingerprint, isGood: takeAsked(ticket, fingerprint, asked) };
    return found.of === fingerprint ? found.isGood : Promise.resolve(false);
  };
}

async function takeAsked(
  id: string,
  fingerprint: string,
  { principal, session }: AskedPlugIns,
): Promise<boolean> {
  const state = lazyState(stateDirectory());
  try {
    const { approvals } = await state();
    const request = (await approvals.find(id))?.request;
    if (request?.fingerprint !== fingerprint) return false;
    if (request.principal !== principal || request.session !== session) return false;
    return (await approvals.take(id))?.approved === true;
  } finally {
    await state.close();
  }
}

/**
 * What a run with a ticket asks: only the store.
 * @throws {SandboxError} `usage.invalid` for what is no ticket.
 */
export function gateOfTicket(ticket: string): GateOptions {
  const [, id, once] = TICKET.exec(ticket) ?? [];
  if (id === undefined || once === undefined)
    throw new SandboxError('usage.invalid', '--approval takes what a hook of sandbox-run has written there');
  return {
    once,
    approver: {
      ask: async (request) => {
        // The ticket approves the command, not its connections.
        if (request.connection !== undefined)
          return { approved: false, reason: 'nobody', by: 'approval ticket' };
        const state = lazyState(stateDirectory());
        try {
          return await answerByTicket((await state()).approvals, id, request);
        } finally {
          await state.close();
        }
      },
    },
  };
}

const refused = (detail: string): ApprovalAnswer => ({
  approved: false,
  reason: 'failed',
  by: 'approval ticket',
  detail,
});

/**
 * Answers with what was approved beforehand: for exactly the request that the ticket was made for, once, and before it
 * expires. Where anything differs the ticket stays as it is, for the command that it belongs to.
 */
async function answerByTicket(
  approvals: ApprovalStore,
  id: string,
  request: ApprovalRequest,
): Promise<ApprovalAnswer> {
  const found = await approvals.find(id);
  if (found === undefined || found.request.principal !== request.principal)
    return refused('there is no such approval');
  const { fingerprint, overwrites, session } = found.request;
  const isSame = fingerprint === request.fingerprint && overwrites === request.overwrites;
  if (!isSame || session !== request.session)
    return refused(
      'what was approved is not what would run: another command, or something behind it has changed',
    );
  return (await approvals.take(id)) ?? refused('nobody has approved it');
}
