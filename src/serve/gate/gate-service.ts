import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { ambiguousUid } from '../../confine/probe.ts';
import type { AuditRecord, AuditSink, SandboxOptions } from '../../model/index.ts';
import { assemble, resolvePolicy } from '../../run/index.ts';
import type { Surroundings } from '../../workspace/index.ts';
import { listenForClients } from '../core/listener.ts';
import type { Offer, Refusal } from '../core/offer.ts';
import type { Peer } from '../core/peer.ts';
import { type ConnectionLimits, GATE_LIMITS } from '../protocol/limits.ts';
import { LONGEST_REASON } from '../protocol/results.ts';
import { createAnswerer, createGateDecider, type GateDecide, type OnAnswer } from './gate-decider.ts';

/** Beyond what people and the reviewer may take: for the store, the disk and the judge. */
const MARGIN_MS = 15_000;

/** A server that is ready. */
export interface GateServer {
  /** Denies what is pending, answers that, and takes away what it made. */
  close(): Promise<void>;
}

/** What a gate server is made from. */
interface GateServiceOptions {
  /** Whose policy decides. */
  readonly sandbox: SandboxOptions;
  /** Where the call comes from. */
  readonly around: Surroundings;
  readonly socket: string;
  /** Besides the user of this process. */
  readonly allowedUids: readonly number[];
  readonly onAnswer?: OnAnswer;
  readonly onRefusal?: (refused: RefusedMessage, count: number) => void;
  readonly onProblem: (message: string) => void;
}

/**
 * Starts a gate.
 * @throws {SandboxError} as `createChecker`; `gate.unusable`; `addon.unavailable`.
 */
export async function startGateService(options: GateServiceOptions): Promise<GateServer> {
  const addon = loadAddon();
  const allowedUids = new Set([...options.allowedUids, process.geteuid?.() ?? -1]);
  refuseAmbiguous(allowedUids);
  const resolved = await resolvePolicy(options.sandbox, options.around);
  const { policy } = resolved;
  const assembly = await assemble(resolved, undefined, options.sandbox, { guards: true, records: 'always' });
  const { record } = assembly.stateful;
  const onProblem = (problem: string | undefined) => {
    if (problem !== undefined) options.onProblem(problem);
  };
  const audit = record && { append: async (entry: AuditRecord) => onProblem(await record(entry)) };
  const decide = createGateDecider(assembly, onProblem);
  const timeoutMs = policy.approval.timeoutMs + policy.approval.reviewerTimeoutMs + MARGIN_MS;
  const answer = createAnswerer({ decide, timeoutMs, onAnswer: options.onAnswer });
  const { report, flush } = createRefusalReport({ audit, onRefusal: options.onRefusal });

  const offer = gateOffer({ answer, report, onProblem: options.onProblem });
  const close = async () => {
    await flush();
    await assembly.close();
  };
  try {
    const own = process.geteuid?.();
    const listener = await listenForClients(offer, {
      ...{ path: options.socket, name: 'the gate', sharedDirectory: true, addon },
      admits: ({ uid }) => allowedUids.has(uid),
      // Where others may ask everybody can connect; otherwise the mode keeps them out.
      forOthers: [...allowedUids].some((uid) => uid !== own),
    });
    return {
      close: async () => {
        await listener.close('the gate server is stopping');
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function refuseAmbiguous(uids: ReadonlySet<number>): void {
  const ambiguous = ambiguousUid();
  if (ambiguous === undefined || !uids.has(ambiguous)) return;
  throw new SandboxError(
    'gate.unusable',
    `user ${ambiguous} may not ask here: in this user namespace everybody who has no place in it looks like that; start the gate outside of it`,
  );
}

/** What a gate answers with. */
interface GateParts {
  readonly answer: GateDecide;
  readonly report: ReportRefusal;
  readonly onProblem: (message: string) => void;
  readonly limits?: Partial<ConnectionLimits>;
}

const principalOf = (peer: Peer | undefined) => (peer === undefined ? 'unknown' : `uid:${peer.uid}`);

/** The methods of a gate. The kernel's peer credentials say who asks. */
export function gateOffer({ answer, report, onProblem, limits }: GateParts): Offer {
  return {
    limits: { ...GATE_LIMITS, ...limits },
    strangers: true,
    notifications: [],
    open: ({ peer }) => {
      const principal = principalOf(peer);
      return {
        handlers: {
          'gate.check': async ({ command, session, tool }, { id, signal }) => {
            const requestId = String(id);
            const { decision, reason } = await answer({
              ...{ requestId, command, session, tool, principal, signal },
            });
            return { decision, ...(reason === undefined ? {} : { reason: reason.slice(0, LONGEST_REASON) }) };
          },
        },
        begin: () => ({ approvals: 'nobody' }),
        close: async () => {},
      };
    },
    onProblem,
    onRefused: ({ code, peer, message, requestId }) => {
      return report({ code, principal: principalOf(peer), message, requestId });
    },
  };
}

/** A message that was refused. */
export interface RefusedMessage extends Omit<Refusal, 'peer'> {
  readonly principal: string;
}

/** Puts a refusal on record. Never rejects: refused is refused. */
type ReportRefusal = (refused: RefusedMessage) => Promise<void>;

const WINDOW_MS = 60_000;
/** Of one kind and principal in a minute; further ones become one record with their number. */
const SINGLE_RECORDS = 20;

/** Where refusals are put on record. */
interface RefusalReportOptions {
  readonly audit: AuditSink | undefined;
  /** Told what is put on record, for a log; `count` of them. */
  readonly onRefusal?: ((refused: RefusedMessage, count: number) => void) | undefined;
  readonly singleRecords?: number;
  readonly windowMs?: number;
}

/** The report, and its end, which records what was only counted so far. */
interface RefusalReport {
  readonly report: ReportRefusal;
  readonly flush: () => Promise<void>;
}

interface Window {
  seen: number;
  last: RefusedMessage;
  readonly timer: NodeJS.Timeout;
}

/**
 * Puts refused messages on record, each as an event `gate_message_refused`. Anybody who can connect can be refused as
 * often as it likes, and must not fill the disk with that: beyond some in a minute they are counted.
 */
export function createRefusalReport(options: RefusalReportOptions): RefusalReport {
  const { audit, onRefusal, singleRecords = SINGLE_RECORDS, windowMs = WINDOW_MS } = options;
  const windows = new Map<string, Window>();

  async function record(refused: RefusedMessage, count: number): Promise<void> {
    onRefusal?.(refused, count);
    const { code, principal, message, requestId } = refused;
    try {
      await audit?.append({
        type: 'event',
        code: 'gate_message_refused',
        principal,
        session: undefined,
        message,
        details: {
          refusal: code,
          transport: 'socket',
          count,
          ...(requestId === undefined ? {} : { request_id: requestId }),
        },
      });
    } catch {
      // Nothing is allowed because of it; decisions that cannot be recorded are refused where they are made.
    }
  }

  async function end(key: string): Promise<void> {
    const window = windows.get(key);
    if (window === undefined) return;
    windows.delete(key);
    clearTimeout(window.timer);
    const further = window.seen - singleRecords;
    if (further > 0) await record({ ...window.last, requestId: undefined }, further);
  }

  return {
    report: async (refused) => {
      const key = `${refused.code} ${refused.principal}`;
      let window = windows.get(key);
      if (window === undefined) {
        const timer = setTimeout(() => void end(key), windowMs);
        timer.unref();
        window = { seen: 0, last: refused, timer };
        windows.set(key, window);
      }
      window.seen += 1;
      window.last = refused;
      if (window.seen <= singleRecords) await record(refused, 1);
    },
    flush: async () => {
      await Promise.all([...windows.keys()].map(end));
    },
  };
}
