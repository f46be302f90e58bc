# SPDX-License-Identifier: Apache-2.0
"""What dpkg knows of the libraries that a program loads.

Contract: nothing is guessed: a library that no installed package owns is an error.
"""
import pathlib
import re
import subprocess
import typing


class Package(typing.NamedTuple):
    """An installed package of Debian."""
    name: str
    version: str
    architecture: str


def _output(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True).stdout


def installed(*names):
    """The packages of these names, as far as they are installed."""
    said = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n", *names], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout
    rows = (line.split("\t") for line in said.splitlines())
    return sorted({Package(*row[1:]) for row in rows if row[0] == "installed"})


def libraries(program):
    """The files that the loader maps for a program, by the names by which they are asked for; its own is among them."""
    found = {}
    for line in _output("ldd", program).splitlines():
        match = re.search(r"(?:(\S+) => )?(/\S+) \(0x", line)
        if match:
            found[match[1] or pathlib.Path(match[2]).name] = pathlib.Path(match[2])
    return found


def owner(path):
    """The package that has a file. Since /lib is /usr/lib, dpkg may know it by either name."""
    resolved = pathlib.Path(path).resolve()
    for name in (path, resolved, str(resolved).removeprefix("/usr")):
        said = subprocess.run(["dpkg-query", "-S", str(name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if said.returncode == 0:
            return said.stdout.partition(":")[0]
    raise RuntimeError(f"{path}: no installed package has it; build against Debian's libraries")
