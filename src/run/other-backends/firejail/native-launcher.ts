// Types of the addon for commands that a set-uid program starts.

declare module '../../../confine/native/contract.ts' {
  interface NativeConfinementSpec {
    /** A set-uid program does the confining; then there are neither Landlock rules nor namespaces. `undefined`: none. */
    readonly setUidLauncher?: NativeSetUidLauncher | undefined;
  }
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
  /** More settings, each used only while a path exists, which is checked before each command. */
  readonly conditional: readonly { readonly path: string; readonly settings: string }[];
  /** A setting that the command's private directory completes; '': none. */
  readonly slotSetting: string;
  /** Settings for a command whose background processes end with it. */
  readonly foregroundSettings: string;
  /** An option that the command's longest time completes, with some to spare, as hh:mm:ss; '': none. */
  readonly deadlineOption: string;
  /** Environment of the launcher, not of the command: `NAME=value`, each ended by NUL. */
  readonly env: string;
  /**
   * `/` is made read-only for it, in a mount namespace of its own, but for what is at these canonical paths and beneath
   * them. `undefined`: `/` is left as it is. Either way no command begins that could change what is in `/`.
   */
  readonly keptOpen: readonly string[] | undefined;
}
