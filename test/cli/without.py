"""without.py landlock|restrict-self|seccomp|namespaces ERRNO|nothing PROGRAM [ARG ...]: runs a program on a kernel that answers so.

A seccomp filter makes the system calls concerned fail with the errno, or succeed without doing anything.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {
    "x86_64": {"landlock": range(444, 447), "restrict-self": [446], "seccomp": [317], "namespaces": [272, 308]},
    "aarch64": {"landlock": range(444, 447), "restrict-self": [446], "seccomp": [277], "namespaces": [97, 268]},
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ERRNO, ALLOW = 0x50000, 0x7FFF0000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22

what, name, *argv = sys.argv[1:]
numbers = list(CALLS[platform.machine()][what])
program = [(LOAD, 0, 0, 0)]
for at, number in enumerate(numbers):
    program.append((EQUAL, len(numbers) - at, 0, number))
program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | (0 if name == "nothing" else getattr(errno, name)))]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
if libc.prctl(PR_SET_SECCOMP, 2, filter_, 0, 0) != 0:
    sys.exit("the filter cannot be installed")
os.execvp(argv[0], argv)
