import { readFileSync, readlinkSync } from 'node:fs';

/** Processes that ask, known by more than their number: that is given to others once they are gone. */
interface Askers {
  /** This process, as others can look for it; `undefined`: they could not. */
  self(): string | undefined;
  /** True only if it is certain: not for one of another machine or container. */
  isGone(asker: string): boolean;
}

/** The processes of this machine, or container: a process by its place, its number and when it began. */
export function processAskers(): Askers {
  let known: { readonly place: string; readonly began: string } | undefined;
  /** Looked at again until it is there; it does not change. */
  const own = () => {
    known ??= lookAtOwn();
    return known;
  };
  return {
    self() {
      const found = own();
      return found && [found.place, process.pid, found.began].join(' ');
    },
    isGone(asker) {
      const [place, pid = '', began] = asker.split(' ');
      return place === own()?.place && began !== beginningOf(pid);
    },
  };
}

function lookAtOwn(): { readonly place: string; readonly began: string } | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    // Numbers are those of a process namespace; /proc may be that of another one.
    const place = `${boot}/${readlinkSync('/proc/self/ns/pid')}`;
    if (readlinkSync('/proc/self') !== String(process.pid)) return undefined;
    const began = beginningOf('self');
    return began === undefined ? undefined : { place, began };
  } catch {
    return undefined;
  }
}

/** Clock ticks from the boot to the start of a process (proc_pid_stat(5)); `undefined`: it has ended. */
function beginningOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before may hold anything.
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Killed, and nobody has asked for its status yet.
    return state === 'Z' || state === 'X' ? undefined : fields[18];
  } catch {
    return undefined;
  }
}
