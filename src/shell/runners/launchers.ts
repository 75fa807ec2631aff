import type { Word } from '../../model/command-line.ts';
import { prefixOf } from '../words.ts';
import { type OptionTable, optionValue, readOptions } from './options.ts';
import { type Call, NOTHING, type Runner, type Runs, refused, runWords } from './runner.ts';

/** Programs of the form `name [options] [operands] command…`. */
export interface Launcher {
  readonly options: OptionTable;
  /** Operands before the command. */
  readonly operands?: number;
  /** Options whose value is the directory of the command. */
  readonly directory?: readonly string[];
  /** Options may also stand behind the operands. */
  readonly optionsBehind?: boolean;
  /** Options that make the program run nothing. */
  readonly inert?: readonly string[];
}

const HELP = { help: 'flag', version: 'flag' } as const;
const SIGNALS = {
  'block-signal': 'optional',
  'default-signal': 'optional',
  'ignore-signal': 'optional',
} as const;

export const LAUNCHERS: Readonly<Record<string, Launcher>> = {
  nohup: { options: { long: HELP } },
  timeout: {
    options: {
      flags: 'v',
      values: 'ks',
      long: {
        ...HELP,
        foreground: 'flag',
        'preserve-status': 'flag',
        verbose: 'flag',
        'kill-after': 'value',
        signal: 'value',
      },
    },
    operands: 1,
  },
  time: {
    options: {
      flags: 'apqvV',
      values: 'fo',
      long: {
        ...HELP,
        append: 'flag',
        portability: 'flag',
        quiet: 'flag',
        verbose: 'flag',
        format: 'value',
        output: 'value',
      },
    },
  },
  nice: { options: { values: 'n', long: { ...HELP, adjustment: 'value' }, shape: /^--?[0-9]+$/ } },
  ionice: {
    options: {
      flags: 'thV',
      values: 'cnpPu',
      long: {
        ...HELP,
        class: 'value',
        classdata: 'value',
        ignore: 'flag',
        pid: 'value',
        pgid: 'value',
        uid: 'value',
      },
    },
    inert: ['p', 'P', 'u', 'pid', 'pgid', 'uid'],
  },
  stdbuf: { options: { values: 'ioe', long: { ...HELP, input: 'value', output: 'value', error: 'value' } } },
  setsid: { options: { flags: 'cfwhV', long: { ...HELP, ctty: 'flag', fork: 'flag', wait: 'flag' } } },
  setarch: {
    options: {
      flags: 'vRFZLXBIST3hVp',
      long: {
        ...HELP,
        '32bit': 'flag',
        'addr-no-randomize': 'flag',
        'uname-2.6': 'flag',
        verbose: 'flag',
        list: 'flag',
      },
    },
    operands: 1,
    optionsBehind: true,
  },
  taskset: {
    options: { flags: 'achV', long: { ...HELP, 'all-tasks': 'flag', 'cpu-list': 'flag' } },
    operands: 1,
  },
  chrt: {
    options: {
      flags: 'bdfiormahVvR',
      values: 'TPD',
      long: {
        ...HELP,
        batch: 'flag',
        deadline: 'flag',
        fifo: 'flag',
        idle: 'flag',
        other: 'flag',
        rr: 'flag',
        max: 'flag',
      },
    },
    operands: 1,
  },
  chroot: {
    options: { long: { ...HELP, groups: 'value', userspec: 'value', 'skip-chdir': 'flag' } },
    operands: 1,
  },
  unshare: {
    options: {
      flags: 'fcrhV',
      attached: 'muinpUCT',
      values: 'RwSG',
      long: {
        ...HELP,
        mount: 'optional',
        uts: 'optional',
        ipc: 'optional',
        net: 'optional',
        pid: 'optional',
        user: 'optional',
        cgroup: 'optional',
        time: 'optional',
        fork: 'flag',
        'kill-child': 'optional',
        'mount-proc': 'optional',
        'map-user': 'value',
        'map-group': 'value',
        'map-root-user': 'flag',
        'map-current-user': 'flag',
        'map-auto': 'flag',
        'map-users': 'value',
        'map-groups': 'value',
        propagation: 'value',
        setgroups: 'value',
        'keep-caps': 'flag',
        root: 'value',
        wd: 'value',
        setuid: 'value',
        setgid: 'value',
        monotonic: 'value',
        boottime: 'value',
      },
    },
    directory: ['w', 'wd'],
  },
  nsenter: {
    options: {
      flags: 'aerFZhV',
      attached: 'muinpUCTrw',
      values: 'tSGW',
      long: {
        ...HELP,
        all: 'flag',
        target: 'value',
        mount: 'optional',
        uts: 'optional',
        ipc: 'optional',
        net: 'optional',
        pid: 'optional',
        user: 'optional',
        cgroup: 'optional',
        time: 'optional',
        setuid: 'value',
        setgid: 'value',
        root: 'optional',
        wd: 'optional',
        'preserve-credentials': 'flag',
        'no-fork': 'flag',
        env: 'flag',
        wdns: 'value',
        'follow-context': 'flag',
      },
    },
  },
  prlimit: {
    options: {
      flags: 'hV',
      attached: 'cdefilmnqrstuvxy',
      long: {
        ...HELP,
        core: 'optional',
        data: 'optional',
        nice: 'optional',
        fsize: 'optional',
        nofile: 'optional',
        nproc: 'optional',
        as: 'optional',
        cpu: 'optional',
        stack: 'optional',
        rss: 'optional',
        memlock: 'optional',
        verbose: 'flag',
        noheadings: 'flag',
        raw: 'flag',
      },
    },
  },
  strace: {
    options: {
      flags: 'cCdfhiknqrtTvVwxyYzZD',
      values: 'abeEIoOpPsSuUX',
      long: {
        ...HELP,
        'follow-forks': 'flag',
        output: 'value',
        trace: 'value',
        'seccomp-bpf': 'flag',
        'summary-only': 'flag',
        'string-limit': 'value',
        attach: 'value',
        env: 'value',
        user: 'value',
      },
    },
    inert: ['p', 'attach'],
  },
  ltrace: { options: { flags: 'bcCfhiLrStTV', values: 'aADeFlnopsuwx' } },
  catchsegv: { options: {} },
  caffeinate: { options: { flags: 'disum', values: 'tw' } },
  'dbus-run-session': { options: { long: { ...HELP, 'config-file': 'value', 'dbus-daemon': 'value' } } },
  'xvfb-run': {
    options: {
      flags: 'alh',
      values: 'efnpsw',
      long: {
        ...HELP,
        'auto-servernum': 'flag',
        'server-args': 'value',
        'server-num': 'value',
        'error-file': 'value',
      },
    },
  },
  cgexec: { options: { values: 'g', long: { sticky: 'flag' } } },
  fakeroot: {
    options: {
      flags: 'uhv',
      values: 'lsifb',
      long: { ...HELP, lib: 'value', faked: 'value', 'unknown-is-real': 'flag' },
    },
  },
  'systemd-run': {
    options: {
      flags: 'dPqrGtS',
      values: 'HMpuE',
      long: {
        ...HELP,
        user: 'flag',
        system: 'flag',
        scope: 'flag',
        wait: 'flag',
        pipe: 'flag',
        pty: 'flag',
        quiet: 'flag',
        collect: 'flag',
        'same-dir': 'flag',
        unit: 'value',
        property: 'value',
        slice: 'value',
        setenv: 'value',
        'working-directory': 'value',
        uid: 'value',
        gid: 'value',
        description: 'value',
      },
    },
    directory: ['working-directory'],
  },
  'systemd-inhibit': {
    options: { long: { ...HELP, what: 'value', who: 'value', why: 'value', mode: 'value', list: 'flag' } },
  },
  pkexec: {
    options: { long: { ...HELP, user: 'value', 'disable-internal-agent': 'flag', 'keep-cwd': 'flag' } },
  },
  gosu: { options: {}, operands: 1 },
  'su-exec': { options: {}, operands: 1 },
  setpriv: {
    options: {
      flags: 'dhV',
      long: {
        ...HELP,
        'no-new-privs': 'flag',
        'clear-groups': 'flag',
        reuid: 'value',
        regid: 'value',
        'init-groups': 'flag',
        'inh-caps': 'value',
        'bounding-set': 'value',
        'keep-groups': 'flag',
        'reset-env': 'flag',
        ruid: 'value',
        rgid: 'value',
        euid: 'value',
        egid: 'value',
        groups: 'value',
      },
    },
  },
  valgrind: { options: { shape: /^-(?:[vqdh]|-[a-z-]+(?:=.*)?)$/ } },
  numactl: {
    options: {
      flags: 'aslHm',
      values: 'iNCpS',
      long: {
        ...HELP,
        interleave: 'value',
        membind: 'value',
        cpunodebind: 'value',
        physcpubind: 'value',
        localalloc: 'flag',
      },
    },
  },
  proxychains: { options: { flags: 'q', values: 'f' } },
  proxychains4: { options: { flags: 'q', values: 'f' } },
  torsocks: { options: {} },
  rlwrap: { options: { flags: 'acimnrvN', values: 'bCDfHlOpPsSz' } },
  faketime: { options: { flags: 'fm', long: HELP }, operands: 1 },
  eatmydata: { options: {} },
  ccache: { options: {} },
  sccache: { options: {} },
  distcc: { options: {} },
};

const PLAIN_ASSIGNMENT = /^(?:[A-Za-z_][A-Za-z0-9_]*=|-$)/;

/** env has options, then assignments, then the command; `-S` splits a text into words. */
export const env: Runner = (call) => {
  const read = readOptions(call.words.slice(1), {
    flags: 'i0v',
    values: 'uCS',
    long: {
      ...HELP,
      ...SIGNALS,
      'ignore-environment': 'flag',
      null: 'flag',
      debug: 'flag',
      unset: 'value',
      chdir: 'value',
      'split-string': 'value',
      'list-signal-handling': 'flag',
    },
  });
  if (!read.ok) return refused(`env: ${read.message}`, read.word);
  if (optionValue(read.options, 'S', 'split-string') !== undefined) {
    return refused('env -S splits a text by rules of its own: write the words out.', call.words[0]);
  }
  // A lone dash means -i, and assignments may follow.
  const isAssignment = (word: Word) => /^[^=]*=/.test(prefixOf(word)) || word.value === '-';
  const first = read.rest.findIndex((word) => !isAssignment(word));
  const odd = read.rest
    .slice(0, first === -1 ? undefined : first)
    .find((word) => !PLAIN_ASSIGNMENT.test(prefixOf(word)));
  // Among others: BASH_FUNC_ls%% gives bash a function.
  if (odd !== undefined) return refused(`env: ${odd.source} is not a plain variable.`, odd);
  const directory = optionValue(read.options, 'C', 'chdir');
  return first === -1
    ? NOTHING
    : runWords(read.rest.slice(first), directory === undefined ? {} : { directory });
};

/** Runs what stands behind options and operands. */
export function launch(launcher: Launcher, call: Call): Runs {
  const read = readOptions(call.words.slice(1), launcher.options);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (read.options.some((option) => launcher.inert?.includes(option.name))) return NOTHING;
  const operands = read.rest.slice(0, launcher.operands ?? 0);
  const dynamic = operands.find((word) => word.value === undefined);
  if (dynamic !== undefined) {
    return refused(
      `${call.name}: ${dynamic.source} must be written out, or it is not clear what runs.`,
      dynamic,
    );
  }
  const behind = readOptions(
    read.rest.slice(operands.length),
    launcher.optionsBehind ? launcher.options : {},
  );
  if (!behind.ok) return refused(`${call.name}: ${behind.message}`, behind.word);
  const directory = optionValue(read.options, ...(launcher.directory ?? []));
  return runWords(behind.rest, directory === undefined ? {} : { directory });
}
