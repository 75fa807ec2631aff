/**
 * What the addon takes and gives: masks, paths, bytes. It knows no policy. Mirrors native/binding/.
 *
 * Guests of the addon (what looks after a workspace, asks about the network, drives a shell) say what is theirs where they are,
 * by `declare module` of this one: functions of `NativeAddon`, `NativeEvents`, `NativeEffects`, and what they want of a confinement.
 *
 * Paths may begin with `slot:` (the private directory of one command), `shm:` (its directory on shared memory) or `cache:`
 * (what the commands of a workspace share).
 */

/** Why a step failed: its stable name, the errno, the path it was about (may be empty). */
export interface NativeFailure {
  readonly stage: string;
  readonly errno: number;
  readonly path: string;
}

// Paths of the host, in both directions, are texts as `textOfPath` (src/base/path-text.ts) makes them: their bytes need not be
// UTF-8. Where a text only explains, such a byte is U+FFFD.

/** One Landlock rule. */
interface NativePathRule {
  readonly path: string;
  readonly directoryAccess: bigint;
  readonly fileAccess: bigint;
  readonly required: boolean;
  /** The path names an object of the view, not of the host. */
  readonly inView: boolean;
}

/** One step that builds the mount namespace, in order. */
export interface NativeViewStep {
  /**
   * bind-link: a symbolic link that is mounted over an existing file, where rename and unlink meet EBUSY. emptied: an empty file
   * or directory, as what is there, mounted over it, read-only. between: a directory in which nothing can be written, apart from what
   * other steps put into it.
   */
  readonly kind:
    | 'bind'
    | 'bind-link'
    | 'devpts'
    | 'symlink'
    | 'between'
    | 'masked-file'
    | 'emptied'
    | 'layer';
  /**
   * bind, layer: host path; symlink, bind-link: its content; emptied: a directory, for where one is there; else empty.
   */
  readonly source: string;
  /** bind-link, emptied: also its path on the host; where nothing is there, the step is left out unless it is required. */
  readonly target: string;
  readonly readOnly: boolean;
  readonly allowDevices: boolean;
  readonly required: boolean;
  /** Looked at before each command: the view is made anew if it came, went or is another one. */
  readonly watched: boolean;
  /**
   * bind: a path of the view as the steps before made it, left out where the host has nothing. emptied: what is there is looked
   * for in the view, where a layer may have put or removed it.
   */
  readonly fromView: boolean;
  /** emptied: a file has no permissions (0000). */
  readonly refused: boolean;
  /**
   * layer: what lies over `source` (overlayfs with userxattr, Linux 5.11): the topmost of `lower` first. If `upper` and `work`
   * begin with `slot:`, the layer lasts for one command, `lower` need not be there and counts only as long as nothing in `source`
   * changed after its own time of change, and the layer is left out where `source` cannot have one.
   */
  readonly layer?: { readonly lower: readonly string[]; readonly upper: string; readonly work: string };
}

/** What guests of the addon want of a confinement, beside what is planned. */
// biome-ignore lint/suspicious/noEmptyInterface: guests declare what is theirs
export interface NativeGuests {}

/** What all commands of one sandbox have in common. */
export interface NativeConfinementSpec extends NativeGuests {
  readonly landlock: { readonly handledFs: bigint; readonly handledNet: bigint; readonly scoped: bigint };
  readonly rules: readonly NativePathRule[];
  /** struct sock_filter[]; empty: no filter. */
  readonly filter: Uint8Array;
  readonly namespaces:
    | {
        readonly user: boolean;
        readonly network: boolean;
        readonly ipc: boolean;
        readonly view: readonly NativeViewStep[];
      }
    | undefined;
  readonly limits: readonly { readonly resource: number; readonly value: bigint }[];
  readonly treeLimits: NativeTreeLimits;
  /** -1: the launcher's. */
  readonly umask: number;
  readonly temporaryParent: string;
  readonly memoryParent: string;
  readonly slotDirectories: readonly string[];
  /** Private directories, such as `slot:home`: entries that a command makes in them are reported (`made`), except names that begin with a dot. */
  readonly toldDirectories: readonly string[];
  readonly seedFiles: readonly { readonly path: string; readonly content: string }[];
  /**
   * Private copies of files of the host, for each command anew: `source` is a canonical path, `path` one like
   * `slot:git/0/config` in one of the slot's directories, with a directory of its own. A source that is not there has no
   * copy; one that is no regular file or too large is a failure of the launch, stage `copy`.
   */
  readonly copies: readonly {
    readonly source: string;
    readonly path: string;
    /** A file whose content is put before the source's, if it exists and the source does not contain `unless` (case is ignored). */
    readonly preface?: { readonly file: string; readonly unless: string } | undefined;
  }[];
  /**
   * What commands of one workspace share: `directory` is that of `cache:`; a process that holds the lock of the file `lock` keeps
   * commands waiting, and they keep it, shared, while they run. `links` of the slot lead there.
   */
  readonly cache?:
    | {
        readonly directory: string;
        readonly lock: string;
        readonly links: readonly { readonly path: string; readonly content: string }[];
      }
    | undefined;
  /**
   * The commands of both share namespaces, except for the view, which it has to want in the same way, and the directories of
   * their session. Default: new ones.
   */
  readonly machineOf?: NativeConfinement | undefined;
  /**
   * Commands are of one session of an agent: what they have at `slot:tmp` and `shm:` is shared and stays until the last
   * confinement of the machine is closed. Default: each command has its own, emptied after it.
   */
  readonly sharesDirectories?: boolean | undefined;
  /** Variables that name a directory of the slot, for hosts without a view. */
  readonly slotVariables: readonly { readonly name: string; readonly path: string }[];
  /** What commands may connect to, by way of a supervisor, on which `filter` relies. `undefined`: nothing is listed. */
  readonly network?: NativeNetworkSpec | undefined;
  /** By what process trees are held together; without Landlock it is always `subreaper`. */
  readonly processTree: 'signal-scope' | 'subreaper';
  /**
   * One process of a command at a time may ask to halt others as they exit (PTRACE_O_TRACEEXIT), and all others are
   * refused, which `filter` then need not do. Not where a set-uid program confines.
   */
  readonly exitTracing: boolean;
  /** Set-group-ID modes of existing objects are asked about, and given to directories alone: only with `network` or `observed`. */
  readonly groupModes: boolean;
  /** A supervisor gets calls that change a process by its number, and makes them for the command's own processes: only with `network` or `observed`. */
  readonly ownProcesses: boolean;
  /** Socket families that a supervisor refuses and reports, so that `filter` need not refuse them: only with `observed`. */
  readonly refusedSockets: { readonly inet: boolean; readonly unix: boolean };
  /**
   * Which calls are looked at, each with those before it, to tell what was denied: none; those that write, create, remove,
   * execute, connect and signal; what is read, and whether something is there, too; the same, and what was not denied is told
   * as well. Not where a set-uid program confines.
   */
  readonly observed: 'nothing' | 'changes' | 'everything' | 'uses';
}

/** Addresses: `bytes` are 16, an IPv4 address is one of ::ffff:0:0/96; `bits` of them count. */
interface NativeAddressRange {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** Addresses that a rule speaks of, at the ports from `first` to `last`. One that does not allow is stronger than all that do. */
export interface NativeAddressRow extends NativeAddressRange {
  readonly first: number;
  readonly last: number;
  /** It speaks of UDP, and not of TCP. */
  readonly udp: boolean;
  readonly allows: boolean;
  /** What a connection has to be, naming a host that may be reached; '': anything. */
  readonly inside: 'tls' | 'http' | '';
  /** What is told of it. */
  readonly rule: string;
}

/** What of the network commands may connect to. */
interface NativeNetworkSpec {
  readonly addresses: readonly NativeAddressRow[];
  /** Ranges of which only rows that lie in them allow something. */
  readonly apart: readonly NativeAddressRange[];
  /** Addresses that stand for names about which a person is asked; missing: nobody is asked about connections. */
  readonly placeholders?: NativeAddressRange;
  /** Whether rows, now or later, may demand a protocol (`inside`), so that connections are inspected. */
  readonly looksInside: boolean;
  /** Sockets of the host, by canonical path. */
  readonly sockets: readonly { readonly path: string; readonly named: string; readonly rule: string }[];
}

/** Limits of one command with everything that it starts; 0: none. */
interface NativeTreeLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly cpuMs: number;
  readonly tmpBytes: number;
  readonly idleTimeoutMs: number;
  /** Where control groups are made; '': nowhere. */
  readonly cgroupParent: string;
  readonly cgroupClone: boolean;
}

/** What a command did to what is looked after for it, each by a guest of the addon; absent: nothing. */
// biome-ignore lint/suspicious/noEmptyInterface: guests declare what is theirs
export interface NativeEffects {}

/** Values for {@link NativeCommand.stdio} other than a descriptor number. */
export const STDIO_NULL = -1;
export const STDIO_CAPTURE = -2;

/** One command. */
export interface NativeCommand {
  readonly program: string;
  readonly argv: readonly string[];
  /** NAME=value, each ended by NUL: one block, because making it anew for each command takes longer than a launch. */
  readonly env: Uint8Array;
  readonly cwd: string;
  readonly stdio: readonly [number, number, number];
  readonly input?: Uint8Array | undefined;
  readonly streamOutput: boolean;
  /** Bytes kept of each stream, its head and directly after it its tail. */
  readonly outputLimit: number;
  readonly timeoutMs: number;
  readonly killGraceMs: number;
  /** What is seldom asked for; `undefined`: nothing of it, which is faster. */
  readonly extras: NativeLaunchExtras | undefined;
}

/** What a plain run does without. */
export interface NativeLaunchExtras {
  /** What the command leaves behind is kept when it ends, until nothing of it is left or it is canceled. */
  readonly background?: boolean;
  /** Report in `leftRunning` whether a process that the command started was ended with it. Costs a scan of /proc. */
  readonly tellsLeftRunning?: boolean;
  /**
   * A pseudo-terminal of this size (from 1 to 65535 each) takes the place of all three descriptors. Its output is standard
   * output; `stdio[0]` says what is typed: nothing, `input`, or what comes from a pipe without another reader, which is
   * made non-blocking.
   */
  readonly pty?: { readonly cols: number; readonly rows: number };
  /** How many of the `outputLimit` bytes are the first of a stream; the others are its last. Default: {@link defaultHead}. */
  readonly headBytes?: number;
  /** Standard error goes where standard output goes. */
  readonly combined?: boolean;
  /** Descriptors (-1: none) that everything captured of stdout and stderr is written to; they are duplicated. */
  readonly spill?: readonly [number, number];
  /** Bytes written to each of them at most. */
  readonly spillLimit?: number;
  /** In place of the confinement's; 0: none. */
  readonly idleTimeoutMs?: number;
  /** A seccomp program (`struct sock_filter[]`) beside that of the confinement. */
  readonly addedFilter?: Uint8Array;
}

/** What became of a spill file. */
interface NativeSpilled {
  readonly written: number;
  /** Why it ends before the output; 0: because of the limit, or it does not. */
  readonly errno: number;
  readonly isWhole: boolean;
}

/** The name of an output stream. */
type NativeStream = 'stdout' | 'stderr';

/** What is kept of the output of a command or a turn, and how many bytes there were. Absent: nothing. */
export interface NativeCapture {
  readonly stdout?: Buffer | undefined;
  readonly stderr?: Buffer | undefined;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

/** The limit for which a command was ended. `value` and `used` in bytes, a count or milliseconds. */
export interface NativeLimit {
  readonly name: 'memory' | 'processes' | 'cpu' | 'tmp' | 'idle';
  readonly by: 'cgroup' | 'sampling' | 'clock';
  readonly value: number;
  readonly used?: number;
}

/** What a command and everything that it started used; what is unknown is missing. */
interface NativeUsage {
  readonly by: 'cgroup' | 'sampling';
  readonly peakMemoryBytes?: number;
  readonly peakProcesses?: number;
  readonly userCpuUs?: number;
  readonly systemCpuUs?: number;
  /** Bytes read from block devices. Without a control group, only by the command and the children that it waited for. */
  readonly readBytes?: number;
  readonly writtenBytes?: number;
}

/** Opaque: kernel objects of one sandbox, owned by the addon. */
export interface NativeConfinement {
  readonly nativeConfinement: never;
}

/**
 * What the addon tells of a command, in the order in which it happens; native/binding/events.cc makes them. An object costs
 * 0.7 µs more than its values as arguments for a chunk, 1.9 µs for an outcome, once per command. So what is seldom there is
 * an optional property, and absent.
 */
export type NativeEvent = NativeEvents[keyof NativeEvents];

/** By kind. Guests declare theirs. */
export interface NativeEvents {
  readonly chunk: NativeChunk;
  readonly gap: NativeGap;
  readonly exited: NativeExit;
  readonly ended: NativeOutcome;
}

/** Streamed output. The command is held back while too much of it is not acknowledged. */
interface NativeChunk {
  readonly kind: 'chunk';
  readonly stream: NativeStream;
  /** At least one. */
  readonly bytes: Buffer;
}

/** Streaming began late, and bytes of the stream before its next chunk are not kept any more. */
interface NativeGap {
  readonly kind: 'gap';
  readonly stream: NativeStream;
  readonly missing: number;
}

/** A command in the background has ended, and what it left behind has not. */
export interface NativeExit {
  readonly kind: 'exited';
  readonly exitCode: number;
  /** 0: it exited. */
  readonly signal: number;
  /** From the start of the launch. */
  readonly durationMs: number;
}

/** How a command ended: its last event. */
export interface NativeOutcome extends NativeCapture, NativeEffects {
  readonly kind: 'ended';
  /** Why the command did not start, or, with stage `wait`, why its exit status is unknown. */
  readonly failure?: NativeFailure;
  readonly exitCode: number;
  /** 0: it exited. */
  readonly signal: number;
  readonly timedOut: boolean;
  readonly canceled: boolean;
  /** Every process that it started is provably gone. */
  readonly treeEnded: boolean;
  readonly durationMs: number;
  readonly userCpuMs: number;
  readonly systemCpuMs: number;
  readonly maxRssKib: number;
  /** This process's own largest resident set when the command was launched. */
  readonly launcherMaxRssKib: number;
  /** By what the tree was held together; absent: the signal scope. */
  readonly processTree?: 'subreaper';
  /** The command ended by itself, but what it left behind kept its output open until it was ended. */
  readonly outputHeld?: true;
  /** Something that the command had started ran when it ended by itself, and was ended with it. */
  readonly leftRunning?: true;
  readonly spilled?: readonly [NativeSpilled | undefined, NativeSpilled | undefined];
  /** There was too little memory: how many bytes of what is kept are the first of each stream. */
  readonly headBytes?: readonly [number, number];
  readonly limit?: NativeLimit;
  readonly usage?: NativeUsage;
}

/** Receives what a command does. An error that it throws is lost. */
export type NativeEventHandler = (event: NativeEvent) => void;

/** The functions that the addon exports. */
export interface NativeAddon {
  /** Landlock's ABI version, its errata bits and whether seccomp can return errors; negative values are -errno. */
  probe(): { readonly landlockAbi: number; readonly landlockErrata: number; readonly seccompErrno: number };
  /**
   * Whether a whole process tree can be ended through a signal scope. Tried once, about 0.2 ms; a failure: there was too
   * little of something to try it.
   */
  signalScope(): boolean | NativeFailure;
  /** Where control groups for commands can be made, or why nowhere. Tries it. */
  cgroupParent(): { readonly path: string; readonly cloneInto: boolean } | NativeFailure;
  /** Why what runs cannot be looked at in /proc, or 0; ESRCH: it is that of another process namespace. */
  processListErrno(): number;
  createConfinement(spec: NativeConfinementSpec): NativeConfinement;
  /**
   * Makes the kernel objects now instead of with the first command, and starts a throw-away child that does all that a
   * command's does before it executes a program; that once per process for each set of kernel interfaces.
   */
  prepare(confinement: NativeConfinement, done: (failure: NativeFailure | undefined) => void): void;
  /** Gives up what no command uses any more. `done`: on a thread, as the kernel takes milliseconds for it; others follow. */
  closeConfinement(confinement: NativeConfinement, done?: () => void): void;
  /**
   * Returns the id for the functions below. Throws an error with `failure` if no thread can be made. To be called by
   * `Running`, which names the arguments.
   */
  launch(
    confinement: NativeConfinement,
    onEvent: NativeEventHandler,
    program: string,
    argv: readonly string[],
    env: Uint8Array,
    cwd: string,
    stdin: number,
    stdout: number,
    stderr: number,
    outputLimit: number,
    timeoutMs: number,
    killGraceMs: number,
    streamOutput: boolean,
    input: Uint8Array | undefined,
    extras: NativeLaunchExtras | undefined,
  ): number;
  /** These return false if the command has ended. */
  signal(id: number, signal: number): boolean;
  cancel(id: number, now: boolean): boolean;
  acknowledge(id: number, bytes: number): boolean;
  /** Changes the size of the command's terminal; its processes get SIGWINCH. */
  resize(id: number, cols: number, rows: number): boolean;
  /** Begins to report output, first of all what was kept so far, or ends that; the rest is kept as always. */
  stream(id: number, on: boolean): boolean;
  /** `undefined` if the command has ended. */
  outputSoFar(id: number): NativeCapture | undefined;
  /** The callback gets the processes of the command's tree that are alive, or none if it ends meanwhile. */
  treeOf(id: number, done: (pids: readonly number[]) => void): boolean;
  /** Ends every command at once and removes their private directories; blocks until that is done. */
  endAll(): void;
  /** [read end, write end], both close-on-exec. */
  makePipe(): readonly [number, number];
}
