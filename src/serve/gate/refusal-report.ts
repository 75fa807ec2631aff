import type { AuditSink } from '../../model/audit-record.ts';
import type { Refusal } from '../core/offer.ts';

/** A message that was refused. */
export interface RefusedMessage extends Omit<Refusal, 'peer'> {
  readonly principal: string;
}

/** Puts a refusal on record. Never rejects: refused is refused. */
export type ReportRefusal = (refused: RefusedMessage) => Promise<void>;

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
