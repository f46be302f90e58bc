# SPDX-License-Identifier: Apache-2.0
"""Installed packages of Debian, asked of dpkg."""
import subprocess
import typing


class Package(typing.NamedTuple):
    """An installed package of Debian."""
    name: str
    version: str
    architecture: str


def installed(*names):
    """The packages of these names, as far as they are installed."""
    said = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n", *names], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout
    rows = (line.split("\t") for line in said.splitlines())
    return sorted({Package(*row[1:]) for row in rows if row[0] == "installed"})
