#ifndef SANDBOX_RUN_BINDING_HOST_FUNCTIONS_H_
#define SANDBOX_RUN_BINDING_HOST_FUNCTIONS_H_

#include <napi.h>

namespace sandbox_run {

// System calls that Node does not offer and that have nothing to do with commands. Each throws an
// error with `errno`'s text where the call fails.

// makePipe(): [read end, write end], close-on-exec.
Napi::Value MakePipe(const Napi::CallbackInfo& info);

// tryLock(fd, shared): takes the lock of an open file (flock); false: another process has it. The
// lock belongs to the open file, so it ends with its last descriptor, however the process ends.
Napi::Value TryLock(const Napi::CallbackInfo& info);

// unlock(fd): gives that lock up.
Napi::Value Unlock(const Napi::CallbackInfo& info);

// removeLayerMarks(path): removes what the kernel noted on a file of a layer. The path is bytes.
Napi::Value RemoveLayerMarksOf(const Napi::CallbackInfo& info);

// renameVacant(from, to): renames unless there is something of that name, and says how the call
// failed; undefined: it did not. exchangeNames(one, other): each gets what the other one had, at
// once. The paths are bytes.
Napi::Value RenameVacant(const Napi::CallbackInfo& info);
Napi::Value ExchangeNames(const Napi::CallbackInfo& info);

// hasWriter(fd): whether anybody has the file open for writing, mapped included. It is open for
// reading only, and ours.
Napi::Value HasWriter(const Napi::CallbackInfo& info);

// measure(paths, budgetMs, done): what lies beneath some directories, callback(bytes, complete).
Napi::Value Measure(const Napi::CallbackInfo& info);

// emptyDirectory(path, done): removes what lies in it, callback(whether nothing is left).
Napi::Value EmptyDirectory(const Napi::CallbackInfo& info);

// walkTree(path, isLayer, most, done): what is beneath it, as in sys/tree_walk.h; callback({names,
// numbers}) or callback(undefined, failure). names: the paths, each ended by NUL; numbers,
// kPerEntry for each: mode, size, inode, links, seconds and nanoseconds of the last change of the
// content, the same of the last change of all, and 1: opaque, 2: attributes, 4: unreadable, 8: a
// whiteout.
Napi::Value WalkTreeOf(const Napi::CallbackInfo& info);

// findShut(path, named, most, done): what of it not everybody may read, as in sys/tree_walk.h; the
// callback as of walkTree().
Napi::Value FindShutOf(const Napi::CallbackInfo& info);

// copyContent(from, to, done): between descriptors, which stay open; callback(failure or
// undefined).
Napi::Value CopyContentOf(const Napi::CallbackInfo& info);

// peerCredentials(fd): {pid, uid, gid} of the process that connected a Unix socket, as the kernel
// noted them then (SO_PEERCRED, unix(7)).
Napi::Value PeerCredentials(const Napi::CallbackInfo& info);

// receiveCall(fd): the four descriptors that a client of a warm server sent (native/client), with
// close-on-exec; undefined: nothing has come yet; null: something else came, or nothing will.
Napi::Value ReceiveCall(const Napi::CallbackInfo& info);

// controlGroups(pid): the texts of sys/control_group.h for [that process, this one]; one character
// stands for one byte. If both are in the same group, these are the texts of /proc/PID/cgroup.
Napi::Value ControlGroups(const Napi::CallbackInfo& info);

// terminalSize(fd): [columns, rows]; undefined: it is no terminal, or none that knows.
Napi::Value TerminalSizeOf(const Napi::CallbackInfo& info);

// enterRawMode(fd), leaveRawMode(): as in sys/raw_terminal.h.
Napi::Value EnterRaw(const Napi::CallbackInfo& info);
Napi::Value LeaveRaw(const Napi::CallbackInfo& info);

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BINDING_HOST_FUNCTIONS_H_
