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

/** Signals that end a process unless it handles them. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
/** Time for a handler of SIGTSTP to run before the group is stopped for good. */
const STOP_DELAY_MS = 30;

/** What is done with the signals that reach this process. */
export interface SignalForwarding {
  /**
   * The first signal that wanted to end us and reached no process: there was no command yet, which is then not to be
   * started, or one that waited for an answer, which is then canceled.
   */
  readonly early: () => NodeJS.Signals | undefined;
  /** As if this signal had come. */
  raise(signal: NodeJS.Signals): void;
  /** From now on signals go to this command, and those that concern a terminal to `terminal`. */
  to(command: SignalTarget, terminal?: TerminalLink): void;
  /** Leaves signals to their default actions again. */
  stop(): void;
}

/**
 * Catches signals from now on, so that none of them ends this process between the making of private directories
 * and their removal. They are handed on to the command's process group, which is in a session of its own and gets
 * none from the terminal.
 */
export function forwardSignals(): SignalForwarding {
  let command: SignalTarget | undefined;
  let link: TerminalLink | undefined;
  let early: NodeJS.Signals | undefined;
  const handlers = new Map<NodeJS.Signals, () => void>();
  handlers.set('SIGWINCH', () => (link === undefined ? command?.kill('SIGWINCH') : link.resize()));
  handlers.set('SIGCONT', () => {
    command?.kill('SIGCONT');
    link?.resume();
  });
  // Left to Node, it would open a debugger on a port of this machine.
  handlers.set('SIGUSR1', () => command?.kill('SIGUSR1'));
  for (const signal of ENDING) {
    handlers.set(signal, () => {
      if (command?.kill(signal) !== true) early ??= signal;
      else if (signal === 'SIGTERM' || signal === 'SIGHUP') link?.end(signal);
    });
  }
  handlers.set('SIGTSTP', () => {
    command?.kill('SIGTSTP');
    // The kernel ignores the default action of SIGTSTP in a group whose session has no job control: stop it
    // ourselves, and then this process, so that the shell above sees a stopped job.
    setTimeout(() => {
      command?.kill('SIGSTOP');
      link?.suspend();
      process.kill(process.pid, 'SIGSTOP');
    }, STOP_DELAY_MS);
  });
  for (const [signal, handler] of handlers) process.on(signal, handler);
  return {
    early: () => early,
    raise: (signal) => handlers.get(signal)?.(),
    to: (running, terminal) => {
      command = running;
      link = terminal;
    },
    stop: () => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
    },
  };
}
