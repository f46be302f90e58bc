# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder write with --json: the figures, the machine, and the command that measured them."""
import json
import os
import platform
import sys


def machine():
    """The processor's name and the number of CPUs this process may use."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), name)
    except OSError:
        pass
    return {"cpu": name, "cpus": len(os.sched_getaffinity(0))}


def write(path, figures):
    """Writes the figures as one JSON object. Paths in the command lose their folders: they say nothing to others."""
    script = os.path.basename(sys.argv[0])
    command = " ".join([script, *(os.path.basename(word) if "/" in word else word for word in sys.argv[1:])])
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": machine(), "command": command, **figures}, file, indent=1)
        file.write("\n")
