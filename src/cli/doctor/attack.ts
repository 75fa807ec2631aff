import { constants } from 'node:os';
import { type AttackParts, attackHost } from '../../attack/attack-host.ts';
import type { BackendId } from '../../model/backend.ts';
import { EXIT_STATUS } from '../../run/launch/exit-status.ts';
import { jsonText, printOut } from '../shared/print.ts';
import { startProgress } from '../shared/progress.ts';
import { paintFor } from '../shared/style.ts';
import { attackTable } from './attack-table.ts';
import { examineHost } from './examine.ts';

/** What `sandbox-run doctor --attack` is asked for. */
interface DoctorAttackOptions extends Pick<AttackParts, 'prepare' | 'attacks'> {
  readonly sandbox: {
    readonly profile?: string;
    readonly policy?: string;
    readonly backend?: BackendId | 'auto';
  };
  readonly json: boolean;
  /** Default: standard output. */
  readonly print?: (text: string) => void;
}

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * Attacks the sandbox that a command would get here, and prints what held. Returns the exit status.
 * @throws {SandboxError} for what is wrong with the options, and if the attacks themselves cannot be prepared.
 */
export async function doctorAttack(options: DoctorAttackOptions): Promise<number> {
  const { sandbox, json, print = printOut, ...internal } = options;
  const ending = new AbortController();
  let ended: (typeof ENDING)[number] | undefined;
  const handlers = ENDING.map((signal) => {
    const handler = () => {
      ended ??= signal;
      ending.abort();
    };
    process.on(signal, handler);
    return () => process.off(signal, handler);
  });
  const progress = startProgress();
  progress.show('attacking: making the sandbox');
  try {
    const report = await attackHost({
      ...internal,
      sandbox,
      examine: examineHost,
      signal: ending.signal,
      onProgress: (done, of, control) => progress.show(`attacking, ${done} of ${of} commands: ${control}`),
    });
    progress.clear();
    print(json ? jsonText(report) : attackTable(report, paintFor(1)));
    return report.ok ? 0 : 1;
  } catch (error) {
    progress.clear();
    if (ended === undefined) throw error;
    return EXIT_STATUS.signal + constants.signals[ended];
  } finally {
    for (const remove of handlers) remove();
  }
}
