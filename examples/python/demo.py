# prints: removed: exited
"""Shows what the client can do: python3 demo.py [WORKSPACE]; with SANDBOX_RUN_SOCKET over that socket."""

import os
import shlex
import sys
import tempfile

from sandbox_run import SandboxRun


APPROVED = {"rm -r notes"}


def approve(question):
    """A real program shows its user all of the question. This one knows beforehand what it lets pass."""
    print("asked about:", question["command"])
    return question["command"] in APPROVED


def show(box):
    result = box.run("echo hello from $PWD", timeout=10)
    print(result["status"], result["exitCode"], result["stdout"].strip())

    outside = box.run(["touch", "/etc/shadow"])
    print("outside:", outside["status"], outside.get("error", {}).get("code"))

    process = box.spawn("while read -r line; do echo \"got $line\"; done")
    process.write("one\ntwo\n", close=True)
    print("".join(text for _, text in process).splitlines())
    print(process.result["status"])

    with box.session() as shell:
        shell.run("mkdir notes && cd notes && for n in 1 2; do echo draft > $n.txt; done")
        print(shell.run("echo hi from ${PWD##*/}")["stdout"].strip())

    refused = box.check("sudo reboot")
    print(refused["verdict"], "-", refused["messageForModel"].splitlines()[0])

    # What commands made themselves they may remove. What somebody else wrote, nothing brings back: the policy asks.
    workspace = box.run("pwd")["stdout"].strip()
    with open(os.path.join(workspace, "notes", "mine.txt"), "w", encoding="utf-8") as file:
        file.write("draft\n")
    print("removed:", box.run("rm -r notes")["status"])


if __name__ == "__main__":
    path = os.environ.get("SANDBOX_RUN_SOCKET")
    if path is not None:
        with SandboxRun.connect(path, approve=approve) as box:
            show(box)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            workspace = sys.argv[1] if len(sys.argv) > 1 else temporary
            program = shlex.split(os.environ.get("SANDBOX_RUN", "sandbox-run"))
            with SandboxRun.start("--workspace", workspace, program=program, approve=approve) as box:
                show(box)
