import { caller } from './caller.ts';

/** What signals are handed on to. */
interface SignalTarget {
  /** False: there is no process that the signal could reach. */
  kill(signal: NodeJS.Signals): boolean;
}

/** The terminal of this process, while a command has one of its own behind it. */
interface TerminalLink {
  /** Its size changed. */
  resize(): void;
  /** This process is about to be stopped. */
  suspend(): void;
  /** This process was stopped, or was put into the foreground. */
  resume(): void;
  /** This process is to end, and the command with it, whatever it thinks of the signal. */
  end(signal: NodeJS.Signals): void;
}

/** Signals by which others ask a process to end. */
export const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** SIGUSR1: left to Node, it would open a debugger on a port of this machine. */
const FORWARDED = [...ENDING, 'SIGQUIT', 'SIGWINCH', 'SIGCONT', 'SIGUSR1', 'SIGTSTP'] as const;
/** Time for a handler of SIGTSTP to run before the group is stopped for good. */
const STOP_DELAY_MS = 30;

/** Handles signals of the caller, which have their default actions again when it is disposed of. */
export function onSignals(
  signals: readonly NodeJS.Signals[],
  handle: (signal: NodeJS.Signals) => void,
): Disposable {
  return caller().onSignals(signals, handle);
}

/** Runs work that goes on until one of the signals that end a process comes; its own signal is aborted then. */
export async function untilEnded<T>(work: (over: AbortController) => Promise<T>): Promise<T> {
  const over = new AbortController();
  using _ = onSignals(ENDING, () => over.abort());
  return await work(over);
}

/** Settles when it is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/**
 * Catches signals from now on, so that none of them ends this process between the making of private directories
 * and their removal. They are handed on to the command's process group, which is in a session of its own and gets
 * none from the terminal.
 */
export class SignalForwarding implements Disposable {
  private command: SignalTarget | undefined;
  private link: TerminalLink | undefined;
  private unheard: NodeJS.Signals | undefined;
  private readonly caller = caller();
  private readonly handled = onSignals(FORWARDED, (signal) => this.raise(signal));

  /**
   * The first signal that wanted to end us and reached no process: there was no command yet, which is then not to be
   * started, or one that waited for an answer, which is then canceled.
   */
  get early(): NodeJS.Signals | undefined {
    return this.unheard;
  }

  /** From now on signals go to this command, and those that concern a terminal to `terminal`. */
  to(command: SignalTarget, terminal?: TerminalLink): void {
    this.command = command;
    this.link = terminal;
  }

  /** A signal has come, or it is as if it had. */
  raise(signal: NodeJS.Signals): void {
    switch (signal) {
      case 'SIGWINCH':
        if (this.link === undefined) this.command?.kill(signal);
        else this.link.resize();
        return;
      case 'SIGCONT':
        this.command?.kill(signal);
        this.link?.resume();
        return;
      case 'SIGUSR1':
        this.command?.kill(signal);
        return;
      case 'SIGTSTP':
        this.command?.kill(signal);
        // The kernel ignores the default action of SIGTSTP in a group whose session has no job control: stop it
        // ourselves, and then whoever called, so that the shell above sees a stopped job.
        setTimeout(() => {
          this.command?.kill('SIGSTOP');
          this.link?.suspend();
          this.caller.stop();
        }, STOP_DELAY_MS);
        return;
      default:
        if (this.command?.kill(signal) !== true) this.unheard ??= signal;
        else if (signal === 'SIGTERM' || signal === 'SIGHUP') this.link?.end(signal);
    }
  }

  [Symbol.dispose](): void {
    this.handled[Symbol.dispose]();
  }
}
