// Functions of the addon about terminals and about the peers of sockets.

declare module '../confine/native/contract.ts' {
  interface NativeAddon {
    /** The process that connected a Unix socket, as the kernel noted it then (SO_PEERCRED). Throws for anything but a Unix socket. */
    peerCredentials(fd: number): { readonly pid: number; readonly uid: number; readonly gid: number };
    /**
     * The descriptors that a client of a warm server has sent, which the caller owns from now on: its request, and its streams 0
     * to 2. `undefined`: nothing has come yet; `null`: it was no call, or it is gone.
     */
    receiveCall(fd: number): readonly [number, number, number, number] | undefined | null;
    /**
     * The restrictions that commands would inherit from the control group of another process, and from that of this one. Each is text
     * of several lines to be compared (native/sys/control_group.h); one character stands for one byte. Throws if that process is gone.
     */
    controlGroups(pid: number): readonly [theirs: string, ours: string];
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
}

export {};
