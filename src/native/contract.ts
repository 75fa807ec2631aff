/**
 * What the addon takes and gives: masks, paths, bytes. It knows no policy. Mirrors native/binding/.
 * Paths may begin with `slot:` (the private directory of one command), `shm:` (its directory on shared memory) or `cache:`
 * (what the commands of a workspace share).
 */

/** Why a step failed: its stable name, the errno, the path it was about (may be empty). */
export interface NativeFailure {
  readonly stage: string;
  readonly errno: number;
  readonly path: string;
}

// Paths of the host, in both directions, are texts as `textOfPath` (src/util/path-text.ts) makes them: their bytes need not be
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

/** What all commands of one sandbox have in common. */
export interface NativeConfinementSpec {
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
  /** Private directories, such as `slot:home`: what a command makes in them is told (`made`), except names that begin with a dot. */
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
    /** What goes before the content of the source, if the file is there and the source does not say `unless`, in any case. */
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
  /** What a command leaves behind is looked for with it. Several confinements may share one. */
  readonly index?: NativeIndex | undefined;
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
  /** A set-uid program does the confining; then there are neither Landlock rules nor namespaces. `undefined`: none. */
  readonly setUidLauncher?: NativeSetUidLauncher | undefined;
  /** What commands may connect to, by way of a supervisor, on which `filter` relies. `undefined`: nothing is listed. */
  readonly network?: NativeNetworkSpec | undefined;
  /** By what process trees are held together; without Landlock it is always `subreaper`. */
  readonly processTree: 'signal-scope' | 'subreaper';
  /**
   * One process of a command at a time may ask to halt others as they exit (PTRACE_O_TRACEEXIT), and all others are
   * refused, which `filter` then need not do. Not with a `setUidLauncher`.
   */
  readonly exitTracing: boolean;
  /** Set-group-ID modes of existing objects are asked about, and given to directories alone: only with `network` or `observed`. */
  readonly groupModes: boolean;
  /**
   * Which calls are looked at, each with those before it, to tell what was denied: none; those that write, create, remove,
   * execute, connect and signal; what is read, and whether something is there, too; the same, and what was not denied is told
   * as well. Not with a `setUidLauncher`.
   */
  readonly observed: 'nothing' | 'changes' | 'everything' | 'uses';
}

/**
 * A program that gains privileges to confine what it starts. It is started without what would keep it from that
 * (no_new_privs, seccomp, Landlock, resource limits, dropped capabilities), and never gets to see the command: what it
 * starts is `sandbox-run-begin`, which takes the command from descriptor 3, reports on 4, and applies limits and filter.
 */
export interface NativeSetUidLauncher {
  /** Absolute. */
  readonly program: string;
  /**
   * Options that are the same for every command; the program follows. They have it read its settings from
   * `/proc/self/fd/6`, and pass on descriptors 3, 4 and 5.
   */
  readonly arguments: readonly string[];
  /** Lines of settings, each ended by a line feed. */
  readonly settings: string;
  /** Further ones, for as long as a path is there. It is looked at before each command. */
  readonly conditional: readonly { readonly path: string; readonly settings: string }[];
  /** Followed by the private directory of the command; '': nothing. */
  readonly slotSetting: string;
  /** Unless what the command leaves behind is to be kept. */
  readonly foregroundSettings: string;
  /** Followed by the longest time that the command may take, with some to spare, as hh:mm:ss; '': none. */
  readonly deadlineOption: string;
  /** `NAME=value`, each ended by NUL: of the launcher, not of the command. */
  readonly env: string;
  /**
   * `/` is made read-only for it, in a mount namespace of its own, but for what is at these canonical paths and beneath
   * them. `undefined`: `/` is left as it is. Either way no command begins that could change what is in `/`.
   */
  readonly keptOpen: readonly string[] | undefined;
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
  /** What stands for names of which somebody is asked; missing: nobody is asked about a connection. */
  readonly placeholders?: NativeAddressRange;
  /** Rows, also those that are added, may say what connections have to be. */
  readonly looksInside: boolean;
  /** Sockets of the host, by canonical path. */
  readonly sockets: readonly { readonly path: string; readonly named: string; readonly rule: string }[];
}

/** A connection that a command asked for, or several alike. */
export interface NativeConnection {
  /** Of the first one. */
  readonly pid: number;
  /** As the process calls itself. */
  readonly program: string;
  /** 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
  /** Of a unix socket, and then address and port say nothing; `@NAME`: an abstract one. */
  readonly path?: string;
  readonly udp: boolean;
  readonly allowed: boolean;
  /** '': none speaks of it. */
  readonly rule: string;
  /** What the command was told; 0: connected, or on its way. */
  readonly errno: number;
  /** When the first one was asked for, in milliseconds since the epoch. */
  readonly firstMs: number;
  readonly count: number;
  /** The host that it asked for, where that was looked for; '': none. */
  readonly name: string;
  /** In a few words, what was sent instead of a name; '': nothing is wrong. */
  readonly flaw: string;
}

/** Each kind of connection once, 256 of them at most, and how many others there were. */
interface NativeConnections {
  readonly told: readonly NativeConnection[];
  readonly untold: number;
}

/** What the sandbox kept a command from, or several alike. */
export interface NativeDenial {
  readonly operation: 'read' | 'write' | 'create' | 'remove' | 'execute' | 'connect' | 'signal';
  /**
   * What held: no rule of Landlock grants it; the mount is read-only; a mount point cannot be moved; the view does not have
   * it; it is another user’s, and root has no capabilities; the network namespace leads nowhere; signals end at the domain.
   * `nothing`: it was not denied (`observed: uses`).
   */
  readonly control: 'rights' | 'mount' | 'pinned' | 'view' | 'privileges' | 'network' | 'scope' | 'nothing';
  /** As the program named it. */
  readonly asked: string;
  /** What that leads to; of a connection HOST:PORT, with /udp if it is one; of a signal the process. */
  readonly path: string;
  /** What is not in the view: by what it would be found there, with the links outside that lead to it. Otherwise the path. */
  readonly named: string;
  /** Of the first one. */
  readonly pid: number;
  /** As the process calls itself. */
  readonly program: string;
  /** Milliseconds since the epoch. */
  readonly firstMs: number;
  readonly count: number;
}

/** An entry with one of the names of the index, as it was made. */
interface NativeMaking {
  /** Absolute, as the command sees it. */
  readonly path: string;
  /** As the process calls itself. */
  readonly program: string;
}

/** Each kind of denial once, 64 of them at most (20,000 of uses), and how many others there were. */
interface NativeDenials {
  readonly told: readonly NativeDenial[];
  readonly untold: number;
  /** Calls and denials that could not be looked at for want of descriptors or memory. */
  readonly unseen: number;
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

/** What is looked for in a workspace; names are those of entries, not paths. */
export interface NativeIndexSpec {
  /** A canonical directory. */
  readonly root: string;
  /** An entry with such a name is noted in every directory that is looked at. */
  readonly names: readonly string[];
  /** So is one whose name ends so. */
  readonly suffixes: readonly string[];
  /** Names of directories of which everything beneath is noted. */
  readonly wholes?: readonly string[];
  /** Symbolic links are noted whatever their names are, except those of packages. */
  readonly links?: boolean;
  /** Besides, in directories of git: those that are named `.git`, lie beneath one, or contain `HEAD`. */
  readonly gitNames: readonly string[];
  /** Of the first walk. */
  readonly maxDirectories: number;
  /** Further canonical directories, none in another one, and of how many directories of them all the first walk is. */
  readonly beside?: { readonly roots: readonly string[]; readonly maxDirectories: number } | undefined;
}

/** Something noted. `path` is absolute. */
interface NativeIndexEntry {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'link' | 'other';
}

/** What the first walk found. */
export interface NativeIndexed {
  readonly entries: readonly NativeIndexEntry[];
  /** That were looked at. */
  readonly directories: number;
  /** That were read, and not only looked at, since the index was made or saved. */
  readonly read: number;
  /** There were more than `maxDirectories`: nothing is known of the others, now and later. */
  readonly spent: boolean;
  /** The same of those beside. */
  readonly spentBeside: boolean;
  readonly unreadable: readonly string[];
}

/** An entry of the index that came, went or became another one. */
export interface NativeChangedEntry extends NativeIndexEntry {
  readonly change: 'appeared' | 'changed' | 'vanished';
  /**
   * Before the command (or the turn) began, while another one ran (or what an earlier turn left in the background): it
   * may be theirs, or the user's own.
   */
  readonly earlier?: true;
}

/** What commands left behind since the last look; a change is told once, at the first look. */
interface NativeLeftBehind {
  readonly entries: readonly NativeChangedEntry[];
  /** There is more than one look enters (200,000 new directories) or tells (10,000 entries): the rest comes next time. */
  readonly spent: boolean;
  /** Could not be looked at, this time first. */
  readonly unreadable: readonly string[];
}

/** A private copy that is not what it was. */
export interface NativeChangedCopy {
  /** As in the specification. */
  readonly source: string;
  /** When the command began, or what was told of it last. */
  readonly before: Buffer;
  /** `undefined`: it is gone, too large, no regular file, or could not be read. */
  readonly after: Buffer | undefined;
}

/** What a command did to what is looked after for it; absent: nothing. */
/** Something in the writable half of a layer; `path` is relative to that. */
export interface NativeCopiedEntry {
  readonly path: string;
  readonly kind: 'file' | 'link' | 'directory' | 'gone';
  /** Permissions. */
  readonly mode: number;
  /** Of a file; what a link says. */
  readonly content: Buffer;
}

/** What a command changed of a directory over which its slot has a layer. */
export interface NativeChangedDirectory {
  readonly source: string;
  /** Whether what earlier commands left (`lower`) lay between. */
  readonly isOverKept: boolean;
  /** When it was seen what the source holds, in milliseconds since 1970. */
  readonly lookedMs: number;
  /** False: some of it is too large, too much or of another kind, and not among the entries. */
  readonly isComplete: boolean;
  readonly entries: readonly NativeCopiedEntry[];
}

export interface NativeEffects {
  readonly leftBehind?: NativeLeftBehind;
  readonly copies?: readonly NativeChangedCopy[];
  /** What changed since it was told last. */
  readonly changedDirectories?: readonly NativeChangedDirectory[];
  /** In `toldDirectories`, such as `slot:home/NAME`; the first few. */
  readonly made?: readonly string[];
  /** Where the network is listed. */
  readonly connections?: NativeConnections;
  /** Where calls are looked at. */
  readonly denials?: NativeDenials;
  /** The last 1,000, each path once. */
  readonly makings?: readonly NativeMaking[];
}

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
  /** It is told whether something that the command started was ended with it (`leftRunning`), which takes a look at /proc. */
  readonly tellsLeftRunning?: boolean;
  /**
   * A pseudo-terminal of this size (from 1 to 65535 each) takes the place of all three descriptors. Its output is standard
   * output; `stdio[0]` says what is typed: nothing, `input`, or what comes from a pipe without another reader, which is
   * made non-blocking.
   */
  readonly pty?: { readonly cols: number; readonly rows: number };
  /** Of `outputLimit`, so many bytes are the first of a stream and the others its last. Default: {@link defaultHead}. */
  readonly headBytes?: number;
  /** Standard error goes where standard output goes. */
  readonly combined?: boolean;
  /** Descriptors (-1: none) that everything captured of stdout and stderr is written to; they are duplicated. */
  readonly spill?: readonly [number, number];
  /** Bytes written to each of them at most. */
  readonly spillLimit?: number;
  /** In place of the confinement's; 0: none. */
  readonly idleTimeoutMs?: number;
  /** A bash that lives on: its standard input becomes the channel of `NativeAddon.turn`. */
  readonly shell?: boolean;
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
  /** Of block devices. Not from a group: those of the command and of the children that it waited for. */
  readonly readBytes?: number;
  readonly writtenBytes?: number;
}

/** What lies beneath a directory. */
export interface NativeTree {
  /** Paths relative to it, any bytes, each ended by NUL. */
  readonly names: Buffer;
  /**
   * Nine for each: mode, size, inode, links, seconds and nanoseconds of the last change of the content, the same of the last
   * change of anything, and marks: 1 opaque, 2 has attributes of its own, 4 could not be looked into, 8 a whiteout,
   * 16 a copy of what was beneath.
   */
  readonly numbers: Float64Array;
}

/** Opaque: what is known of a workspace, owned by the addon. */
export interface NativeIndex {
  readonly nativeIndex: never;
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
type NativeEvent =
  | NativeChunk
  | NativeGap
  | NativeExit
  | NativeNameAsked
  | NativeConnectionAsked
  | NativeHostAsked
  | NativeTurnEnd
  | NativeOutcome;

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

/** Where the network is listed: the command asks for a name, by a message of DNS. To be answered by `answerName`. */
export interface NativeNameAsked {
  readonly kind: 'name-asked';
  readonly query: number;
  readonly message?: Buffer;
}

/**
 * The same: the command wants to connect to what no rule speaks of, where somebody is asked about that. The connection waits
 * until it is answered by `answerConnection`.
 */
export interface NativeConnectionAsked {
  readonly kind: 'connection-asked';
  readonly question: number;
  readonly connection: NativeConnection;
}

/** A connection to a port asks for a host. To be answered by `answerHost`. */
export interface NativeHostAsked {
  readonly kind: 'host-asked';
  readonly question: number;
  readonly host: string;
  readonly port: number;
}

/** How a turn of a shell ended. There is none for a turn whose shell ended: the end of the command is its end. */
export interface NativeTurnEnd extends NativeCapture, NativeEffects {
  readonly kind: 'turn-ended';
  readonly turn: number;
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly interrupted: boolean;
  /** The shell wrote what is no report; it is being ended. */
  readonly broken: boolean;
  readonly durationMs: number;
  /** What the shell says of itself: see native/process/shell_driver.cc. NUL between the fields. */
  readonly state?: Buffer;
}

/** How a command ended: its last event. */
export interface NativeOutcome extends NativeCapture, NativeEffects {
  readonly kind: 'ended';
  /** It did not start, or how it ended is not known (stage `wait`). */
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
  /**
   * Looks at nothing yet. `saved`: bytes of `saveIndex`. They say nothing of what changed since, and are passed over if they are
   * damaged, of another specification, addon or boot, or of a clock that was set back.
   */
  createIndex(spec: NativeIndexSpec, saved?: Buffer): NativeIndex;
  /** Further absolute paths to look at with each look, there or not; before the first command. */
  watchPaths(index: NativeIndex, paths: readonly string[]): void;
  /**
   * The first walk, on a thread; again, of an index that no command has: what is there now, for which directories that did
   * not change are not read. If something could not be read then, only a new index says what a first walk would. A command whose confinement has an index that was not read reads it first, and does not
   * start if that fails.
   */
  readIndex(
    index: NativeIndex,
    done: (indexed: NativeIndexed | undefined, failure: NativeFailure | undefined) => void,
  ): void;
  /** What is known now, for a later process; empty where not everything could be looked at. On a thread. */
  saveIndex(index: NativeIndex, done: (saved: Buffer) => void): void;
  /** Gives back what it watches with, which the user has few of. Nothing is to run with it any more. */
  closeIndex(index: NativeIndex): void;
  createConfinement(spec: NativeConfinementSpec): NativeConfinement;
  /**
   * Makes the kernel objects now instead of with the first command, and starts a throw-away child that does all that a
   * command's does before it executes a program; that once per process for each set of kernel interfaces.
   */
  prepare(confinement: NativeConfinement, done: (failure: NativeFailure | undefined) => void): void;
  /** Gives up what no command uses any more. `done`: on a thread, as the kernel takes milliseconds for it; others follow. */
  closeConfinement(confinement: NativeConfinement, done?: () => void): void;
  /**
   * Returns the id for the functions below. Throws an error with `failure` if no thread can be made. To be called through
   * `launchCommand`, which names the arguments.
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
  /** Gives the command's terminal another size, which its processes are told by SIGWINCH. */
  resize(id: number, cols: number, rows: number): boolean;
  /** Begins to report output, first of all what was kept so far, or ends that; the rest is kept as always. */
  stream(id: number, on: boolean): boolean;
  /** `undefined` if the command has ended. */
  outputSoFar(id: number): NativeCapture | undefined;
  /** The callback gets the processes of the command's tree that are alive, or none if it ends meanwhile. */
  treeOf(id: number, done: (pids: readonly number[]) => void): boolean;
  /**
   * Has a shell run a text, after those that it was given before. `assignments`: `NAME='value' `, each, in force for the
   * text alone. False: the shell has ended.
   */
  turn(
    id: number,
    turn: number,
    text: string,
    assignments: string,
    timeoutMs: number,
    streamOutput: boolean,
  ): boolean;
  /** Interrupts a turn, and ends what does not heed it. */
  interruptTurn(id: number, turn: number): boolean;
  /** Answers a question about a name, by a message of DNS. False: the command has ended. */
  answerName(id: number, query: number, message: Uint8Array): boolean;
  /**
   * Answers a connection: the 16 bytes that it is to be connected to, and what it has to be (''; anything); or `undefined`, and
   * the errno that the command gets, 0 for the usual one. False: the command has ended.
   */
  answerConnection(
    id: number,
    question: number,
    address: Uint8Array | undefined,
    errno: number,
    inside: NativeAddressRow['inside'],
  ): boolean;
  /** Answers whether a connection may be for a host. `rule`: what decided; '': nothing. False: the command has ended. */
  answerHost(id: number, question: number, allowed: boolean, rule: string): boolean;
  /** Further addresses that commands of the confinement may connect to, for so long. */
  allowAddresses(confinement: NativeConfinement, rows: readonly NativeAddressRow[], lifetimeMs: number): void;
  /** What is said of a connection to 16 bytes; `undefined`: nothing is listed. */
  judgeAddress(
    confinement: NativeConfinement,
    address: Uint8Array,
    port: number,
    udp: boolean,
  ): { readonly allowed: boolean; readonly rule: string } | undefined;
  /** Ends every command at once and removes their private directories; blocks until that is done. */
  endAll(): void;
  /** [read end, write end], both close-on-exec. */
  makePipe(): readonly [number, number];
  /**
   * Takes the lock of an open file (flock(2)), exclusive unless it is to be shared; false: another process has it. It ends with
   * the last descriptor of the open file, however the process ends. Throws for anything but a lock that is taken.
   */
  tryLock(fd: number, shared?: boolean): boolean;
  /** Gives that lock up. */
  unlock(fd: number): void;
  /**
   * Whether any process has a file open for writing, or mapped. Throws for a descriptor that is not for reading only, a file
   * that belongs to somebody else, and a file system that cannot tell.
   */
  hasWriter(fd: number): boolean;
  /** Renames unless there is something of that name; returns why not (EEXIST; EINVAL: the file system cannot do this). */
  renameVacant(from: Buffer, to: Buffer): NativeFailure | undefined;
  /** Each of two names gets what the other one had, at once; the same. */
  exchangeNames(one: Buffer, other: Buffer): NativeFailure | undefined;
  /** Removes what the kernel noted on a file of a layer; no link is followed at the end of the path. */
  removeLayerMarks(path: Buffer): void;
  /**
   * Adds up what lies beneath directories, on a thread: blocks, and something for each entry. No link is followed and no other
   * file system entered. `complete`: false where the time was not enough, and there is more.
   */
  measure(paths: readonly string[], budgetMs: number, done: (bytes: number, complete: boolean) => void): void;
  /** Removes what lies in a directory, on a thread, in the same way. */
  emptyDirectory(path: string, done: (isEmpty: boolean) => void): void;
  /**
   * Everything beneath a directory, on a thread: each directory before what is in it, names in the order of their bytes. No
   * link is followed and no other file system entered. `isLayer`: the upper directory of an overlay, whose marks are read and
   * whose shut directories are made readable. A failure (E2BIG): there is more than `most`.
   */
  walkTree(
    path: string,
    isLayer: boolean,
    most: number,
    done: (walked: NativeTree | undefined, failure: NativeFailure | undefined) => void,
  ): void;
  /**
   * Copies what one file holds to another, empty one, on a thread, with its times: shares blocks where the file system can, and leaves holes
   * holes. The descriptors have to stay open meanwhile.
   */
  copyContent(from: number, to: number, done: (failure: NativeFailure | undefined) => void): void;
  /** Who connected a Unix socket, as the kernel noted it then (SO_PEERCRED). Throws for anything but a Unix socket. */
  peerCredentials(fd: number): { readonly pid: number; readonly uid: number; readonly gid: number };
  /**
   * The descriptors that a client of a warm server has sent, which the caller owns from now on: its request, and its streams 0
   * to 2. `undefined`: nothing has come yet; `null`: it was no call, or it is gone.
   */
  receiveCall(fd: number): readonly [number, number, number, number] | undefined | null;
  /** [columns, rows] of a terminal; `undefined`: it is none, or does not know. */
  terminalSize(fd: number): readonly [number, number] | undefined;
  /**
   * Puts this process's terminal into raw mode: every byte passes as it is, in both directions (Node's raw mode still adds
   * to line feeds). It is put back by `leaveRawMode`, and if this process crashes. False: `fd` is no terminal, or this
   * process is in its background.
   */
  enterRawMode(fd: number): boolean;
  leaveRawMode(): void;
}
