import { closeSync, constants as fileConstants, fstatSync, openSync, statSync } from 'node:fs';
import { orElse } from '../../base/or-else.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { Approver, GateOptions } from '../../model/index.ts';
import { askedByTicket, gateOfTicket } from '../../run/index.ts';
import { caller } from './caller.ts';
import { printError } from './print.ts';
import type { SignalForwarding } from './signals.ts';

/** Who is asked, and what is said of it. */
interface AskedHere {
  /** True: no message says where a question waits. */
  readonly quiet: boolean;
  /** The answer that a hook got; no one else is asked, because the user has answered already. */
  readonly ticket?: string | undefined;
  /** That the hook has asked the plug-ins of the policy. */
  readonly asked?: string | undefined;
  /** The command is a model's, and so may be the terminal: some agents give it one to type on. Nobody is asked there. */
  readonly forModel?: boolean | undefined;
  /** What the command writes is shown when it has ended. */
  readonly isCaptured?: boolean | undefined;
}

/** Who is asked from here. */
export function gateOf({ asked, ...who }: AskedHere, signals: SignalForwarding): GateOptions {
  const gate = answeringGate(who, signals);
  return asked === undefined ? gate : { ...gate, pluginsAsked: askedByTicket(asked) };
}

function answeringGate(
  { quiet, ticket, forModel, isCaptured = false }: Omit<AskedHere, 'asked'>,
  signals: SignalForwarding,
): GateOptions {
  if (ticket !== undefined) return gateOfTicket(ticket);
  let approver: Approver | undefined;
  const { stdio } = caller();
  const isOutOfReach = () => (isCaptured ? stdio.slice(0, 1) : stdio).every(isNoWayToTerminal);
  const terminal: Approver = {
    ask: async (request, options) => {
      approver ??= await terminalApprover(() => signals.raise('SIGINT'), isOutOfReach);
      return approver.ask(request, options);
    },
  };
  return {
    ...(!forModel && hasTerminal() ? { terminal } : {}),
    ...(quiet ? {} : { onQueued: sayQueued }),
  };
}

/** Says where a question waits. */
export function sayQueued(id: string): void {
  printError(`waits for an answer: sandbox-run approvals show ${id}, approve ${id} or deny ${id}`);
}

/** Whether this process has a controlling terminal at all. */
export function hasTerminal(): boolean {
  const { O_RDONLY, O_NOCTTY } = fileConstants;
  const opened = orElse(() => openSync('/dev/tty', O_RDONLY | O_NOCTTY), undefined);
  if (opened !== undefined) closeSync(opened);
  return opened !== undefined;
}

/** Files and /dev/null. What is written to a pipe another program may show on the terminal. */
function isNoWayToTerminal(fd: number): boolean {
  return orElse(() => {
    const [opened, nothing] = [fstatSync(fd), statSync('/dev/null')];
    return opened.isFile() || (opened.isCharacterDevice() && opened.rdev === nothing.rdev);
  }, false);
}

/** Asks on the controlling terminal of this process. `isOutOfReach`: whether what runs cannot write there. */
export async function terminalApprover(
  onInterrupt: () => void,
  isOutOfReach?: () => boolean,
): Promise<Approver> {
  const [{ createTerminalApprover }, { ruleWriter }] = await Promise.all([
    import('../../run/stateful-parts.ts'),
    import('./rule-writer.ts'),
  ]);
  // Without the addon two processes may ask on one terminal at the same time.
  const tryLock = orElse(() => loadAddon().tryLock, undefined);
  return createTerminalApprover({ tryLock, onInterrupt, isOutOfReach, rules: ruleWriter() });
}
