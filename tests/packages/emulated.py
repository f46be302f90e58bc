# SPDX-License-Identifier: Apache-2.0
"""The wheel and the packages of npm on processors that this machine is not, emulated by qemu-user.

Contract: `check(...)` installs them by pip and npm into bare folders and asks for the same text in three ways: the library in an emulated Python, the
command of the wheel, and the command of npm in an emulated Node. What an emulated program starts is not emulated, so FORETOKEN_PROGRAM names a script
that starts the packed program in the emulator. Each text has the ids of the build, was drafted in part, and was computed by the kernels that
the processor should get.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import typing

import bare_system

DRAFTED = ["--lookahead", "fixed", "--num-speculative-tokens", "3", "--repack-cache", "off"]  # whatever pays on this machine
LIBRARY = """
import json, foretoken
with foretoken.Engine(threads=1, repack_cache="off", lookahead="fixed", num_speculative_tokens=3) as engine:
    done = engine.generate("Once upon a time", max_new_tokens=40, temperature=0).result()
    print(json.dumps({"token_ids": list(done.tokens), "isa": engine.info()["isa"], "speculation": done.statistics}))
"""


class Machine(typing.NamedTuple):
    """name: in reports. emulator: the command that a program comes behind. isa: the kernels that it should get."""
    name: str
    emulator: typing.List[str]
    python: str
    node: str
    isa: str


def need(*tools):
    for tool in ("readelf", "patchelf", "dpkg-query", "node", "npm", *tools):
        if not shutil.which(tool):
            bare_system.skip(f"there is no {tool}")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        bare_system.skip("there is no pip")


def run(*command, **named):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=bare_system.SECONDS, check=False,
                          **named)
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def expected_ids(program):
    return bare_system.token_ids(run(program, *bare_system.REQUEST, *DRAFTED))


def install_wheel(wheel, folder):
    """This machine's pip, for the machine that the wheel names."""
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--only-binary=:all:",
        "--platform", wheel.name.removesuffix(".whl").rpartition("-")[2], "--target", folder, wheel)
    return folder / "foretoken/bin/foretoken"


def install_npm(machine, packages, folder, environment):
    """npm in the emulated Node, which takes the package of its processor."""
    folder.mkdir()
    npm = os.path.realpath(shutil.which("npm"))
    run(*machine.emulator, machine.node, npm, "install", "--offline", "--no-audit", "--no-fund", *packages, cwd=folder, env=environment)
    return next(folder.glob("node_modules/@foretoken/*/bin/foretoken"))


def in_emulator(machine, program, script):
    """A script that starts a program in the emulator."""
    script.write_text(f'#!/bin/sh\nexec {" ".join(machine.emulator)} {program} "$@"\n')
    script.chmod(0o755)
    return {"FORETOKEN_PROGRAM": str(script)}


def check_said(machine, way, said, expected):
    found = json.loads(said)
    assert found["token_ids"] == expected, (machine.name, way, found["token_ids"], expected)
    assert found["isa"] == machine.isa, (machine.name, way, found["isa"])
    assert found["speculation"]["accepted"] > 0, (machine.name, way, found["speculation"])
    print(f"{machine.name}: {way}: {found['isa']}, {len(expected)} ids, {found['speculation']['accepted']} drafts accepted", flush=True)


def check(machine, release, expected, folder):
    """release: the folder with the wheel and the packages of npm."""
    folder.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FORETOKEN_", "NODE_", "PYTHON"))}
    environment.update(HOME=str(folder), XDG_CACHE_HOME=str(folder), npm_config_cache=str(folder / "npm"), npm_config_update_notifier="false")
    site = folder / "site"
    program = install_wheel(next(release.glob("*.whl")), site)
    python = [*machine.emulator, machine.python]
    wheel = {**environment, "PYTHONPATH": str(site)}
    check_said(machine, "the wheel's library", run(*python, "-c", LIBRARY, cwd=folder, env=wheel), expected)
    wheel.update(in_emulator(machine, program, folder / "wheel_program"))
    check_said(machine, "the wheel's command", run(*python, "-m", "foretoken", *bare_system.REQUEST, *DRAFTED, cwd=folder, env=wheel), expected)
    bare = folder / "bare"
    program = install_npm(machine, sorted(release.glob("*.tgz")), bare, environment)
    environment.update(in_emulator(machine, program, folder / "npm_program"))
    launcher = bare / "node_modules/foretoken/src/launcher.js"
    check_said(machine, "npm's command", run(*machine.emulator, machine.node, launcher, *bare_system.REQUEST, *DRAFTED, cwd=bare, env=environment), expected)


def made(folder, *parts):
    return pathlib.Path(bare_system.made(folder, *parts)).resolve()
