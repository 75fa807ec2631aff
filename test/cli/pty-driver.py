"""Runs a program on a terminal of its own and talks to it.

Standard input: JSON {"argv": [...], "cwd": "...", "env": {...}, "size": [rows, columns], "steps": [step, ...]}, a step
being {"expect": REGEX}, {"send": TEXT}, {"resize": [rows, columns]}, {"create": PATH}: an empty file, {"pause": SECONDS}, {"cook": true}: what a process that ends
does to the terminal, or {"insist": TEXT, "until": REGEX}:
typed again and again, every 0.1 or "every" seconds, until that comes.
Standard output: JSON {"output": TEXT, "failed": STEP or null, "status": wait status or null}.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

# A machine that does other things is slow; what comes sooner is not waited for.
STEP_TIMEOUT = 25


def set_size(fd, size):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[0], size[1], 0, 0))


def main():
    spec = json.load(sys.stdin)
    pid, terminal = pty.fork()
    if pid == 0:
        set_size(0, spec.get("size", [24, 80]))
        os.chdir(spec["cwd"])
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])

    output = b""
    position = 0

    def read(timeout):
        nonlocal output
        ready, _, _ = select.select([terminal], [], [], timeout)
        if not ready:
            return True
        try:
            data = os.read(terminal, 65536)
        except OSError:
            return False
        output += data
        return data != b""

    failed = None
    for step in spec["steps"]:
        if "send" in step:
            os.write(terminal, step["send"].encode())
        elif "resize" in step:
            set_size(terminal, step["resize"])
        elif "create" in step:
            open(step["create"], "w").close()
        elif "cook" in step:
            mode = termios.tcgetattr(terminal)
            mode[3] |= termios.ICANON | termios.ECHO | termios.ISIG
            termios.tcsetattr(terminal, termios.TCSANOW, mode)
        elif "pause" in step:
            end = time.monotonic() + step["pause"]
            while time.monotonic() < end and read(0.02):
                pass
        else:
            pattern = re.compile(step["until" if "insist" in step else "expect"].encode())
            end = time.monotonic() + STEP_TIMEOUT
            typed = float("-inf")
            while True:
                found = pattern.search(output, position)
                if found:
                    position = found.end()
                    break
                if "insist" in step and time.monotonic() >= typed + step.get("every", 0.1):
                    typed = time.monotonic()
                    os.write(terminal, step["insist"].encode())
                if time.monotonic() > end or not read(0.1):
                    found = pattern.search(output, position)
                    if found:
                        position = found.end()
                    break
            if not found:
                failed = step
                break

    status = None
    end = time.monotonic() + STEP_TIMEOUT
    while failed is None and time.monotonic() < end:
        read(0.02)
        ended, value = os.waitpid(pid, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(value)
            break
    if status is None:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    while read(0) and select.select([terminal], [], [], 0.05)[0]:
        pass
    json.dump({"output": output.decode("utf-8", "replace"), "failed": failed, "status": status}, sys.stdout)


main()
