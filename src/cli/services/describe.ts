import { assertNever } from '../../base/assert-never.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { ExecutionResult, ServiceInfo } from '../../model/index.ts';
import { type JobPort, portsInWords, type ServiceEnd } from '../../run/index.ts';

const LONGEST_COMMAND = 60;
const HEADINGS = ['NAME', 'STATE', 'SINCE', 'PORTS', 'PID', 'RESTARTS', 'WORKSPACE'];

/** How a service ended, in a few words. */
export function endInWords({ why, result, problem }: ServiceEnd): string {
  const how = result === undefined ? (problem ?? 'it was not started') : resultInWords(result);
  switch (why) {
    case 'by-itself':
      return how;
    case 'stopped':
      return 'stopped';
    case 'lifetime':
      return 'stopped after the time of --for';
    case 'too-many-failures':
      return `${how}, too many times in a row`;
    default:
      return assertNever(why);
  }
}

function resultInWords(result: ExecutionResult): string {
  switch (result.status) {
    case 'exited':
      return `exited with ${result.exitCode}`;
    case 'signaled':
      return `ended by ${result.signal}`;
    case 'timed-out':
      return 'ended by --timeout';
    case 'canceled':
      return 'stopped';
    case 'limit-exceeded':
    case 'denied':
    case 'setup-failed':
      return result.error.message;
    default:
      return assertNever(result);
  }
}

/** The table of `ps`. */
export function tableOf(services: readonly ServiceInfo[], now: number): string {
  if (services.length === 0) return 'no services run; sandbox-run up NAME -- COMMAND starts one\n';
  const rows = services.map((one) => [
    one.name,
    stateInWords(one),
    agoInWords(now - one.since),
    portsInWords(one.ports) || '-',
    one.pid === undefined ? '-' : String(one.pid),
    String(one.restarts),
    visibleLine(one.workspace, 4096),
  ]);
  const all = [HEADINGS, ...rows];
  const widths = HEADINGS.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function stateInWords({ state, session, command, end }: ServiceInfo): string {
  // The name of an agent's command is only a process ID, so the command takes the place of the state.
  if (session !== undefined) return `agent’s: ${visibleLine(command, LONGEST_COMMAND)}`;
  return end === undefined ? state : `${state}: ${visibleLine(end, LONGEST_COMMAND)}`;
}

/** The fields of a socket that `ps` shows. */
export const shownPort = ({ protocol, address, port, published }: JobPort) => ({
  ...{ protocol, address, port, published },
});

/** A duration in milliseconds as text: `3 min`. */
function agoInWords(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
