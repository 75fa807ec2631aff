#!/usr/bin/env python3
"""A plug-in of sandbox-run by command, in Python: it refuses commands that name a production system.

In the policy of the user or the machine:

    [[hooks.plugins]]
    command = ["/usr/bin/python3", "/etc/sandbox-run/hooks/no_production.py"]

It is started for each command that nothing else refuses, reads one JSON object and writes one. Anything else that it
writes, an exit status other than 0 and silence refuse the command.
"""

import json
import re
import sys


def before_tool_use(tool_name, tool_input):
    if re.search(r"\b(prod|production)\b", tool_input["command"], re.IGNORECASE):
        return {"decision": "deny", "reason": f"{tool_name} must not touch production: ask the team on call"}
    return {}


question = json.load(sys.stdin)
json.dump(before_tool_use(question["tool_name"], question["tool_input"]), sys.stdout)
