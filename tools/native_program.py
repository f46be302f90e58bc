# SPDX-License-Identifier: Apache-2.0
"""Makes a built program run on other machines: with its libraries beside it, but for those of the C library, and their licences.

Contract: `carried(program, folders)` gives the files by their names in a package: bin/foretoken, lib/..., licenses/.... The program finds lib/ from
its own place. Nothing of the program is changed on disk. It reads files for the machine of the program, which need not be this one. Errors: Problem.
Needs readelf and strip (binutils, those of the program's machine), patchelf, and dpkg, which knows whose a library is.
"""
import pathlib
import re
import shutil
import subprocess
import tempfile

# By the machine in the header of a program: its name in npm's packages, and Debian's name for its files.
MACHINES = {"Advanced Micro Devices X86-64": ("x64", "x86_64-linux-gnu"), "AArch64": ("arm64", "aarch64-linux-gnu")}
# What a system's own C library must give.
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libutil)\.so\.\d+$")
DOCUMENTS = pathlib.Path("/usr/share/doc")


class Problem(Exception):
    """What is wrong, why, and what to do."""


def run(*command):
    if shutil.which(command[0]) is None:
        raise Problem(f"program {command[0]}: it is not here; install it (packages binutils, patchelf, dpkg)")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Problem(f"{' '.join(map(str, command))}: it failed: {done.stderr.strip()}; see its arguments")
    return done.stdout


def machine(program):
    """(name in npm's packages, Debian's name) of the machine that a program is for."""
    header = run("readelf", "-h", str(program))
    name = re.search(r"Machine:\s+(.*)", header).group(1).strip()
    if name not in MACHINES:
        raise Problem(f"program {program}: it is for {name}; give one for {' or '.join(MACHINES)}")
    return MACHINES[name]


def needed(file):
    """The names of the libraries that a file is linked to, without the system's."""
    return [name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", str(file))) if not OF_THE_SYSTEM.match(name)]


def places(triple, folders):
    return [*folders, *(pathlib.Path(top) / triple for top in ("/usr/lib", "/lib")), pathlib.Path("/usr") / triple / "lib"]


def libraries(program, folders):
    """The files of all libraries that a program needs, and that these need, by name."""
    searched = places(machine(program)[1], folders)
    found, waiting = {}, [program]
    while waiting:
        for name in needed(waiting.pop()):
            if name in found:
                continue
            path = next((folder / name for folder in searched if (folder / name).exists()), None)
            if path is None:
                raise Problem(f"library {name}: it is in none of {', '.join(map(str, searched))}; name its folder with --libraries")
            found[name] = path.resolve()
            waiting.append(found[name])
    return dict(sorted(found.items()))


def licences(paths, triple):
    """The files with the licences of libraries, by the Debian packages that these are from."""
    said = run("dpkg-query", "--search", *(f"*/{triple}/*{path.name}" for path in paths))
    packages = {line.rpartition("/")[2]: re.split("[:,]", line)[0] for line in said.splitlines()}
    found = {packages[path.name]: DOCUMENTS / packages[path.name] / "copyright" for path in paths}
    for package, file in found.items():
        if not file.exists():
            raise Problem(f"licence of {package}: there is no {file}; install that package with its documents")
    return dict(sorted(found.items()))


def moved(file, triple, rpath, folder):
    """The bytes of a file without symbols, and with the place of its libraries."""
    copy = pathlib.Path(folder) / file.name
    shutil.copyfile(file, copy)
    run(f"{triple}-strip", "--strip-unneeded", str(copy))
    run("patchelf", "--force-rpath", "--set-rpath", rpath, str(copy))
    return copy.read_bytes()


def carried(program, folders=()):
    triple = machine(program)[1]
    found = libraries(program, folders)
    with tempfile.TemporaryDirectory() as folder:
        files = {"bin/foretoken": moved(program, triple, "$ORIGIN/../lib", folder)}
        files.update((f"lib/{name}", moved(path, triple, "$ORIGIN", folder)) for name, path in found.items())
    files.update((f"licenses/{package}", file.read_bytes()) for package, file in licences(found.values(), triple).items())
    return files


def interpreter(program):
    """The path of the system's loader that the program asks for."""
    return re.search(r"program interpreter: (.*)\]", run("readelf", "-l", str(program))).group(1)


def least_glibc(program, folders=()):
    """The oldest version of glibc that has all that the program and its libraries need, "2.34"."""
    versions = {tuple(map(int, version.split("."))) for file in (program, *libraries(program, folders).values())
                for version in re.findall(r"Name: GLIBC_([\d.]+)", run("readelf", "--version-info", str(file)))}
    return ".".join(map(str, max(versions)))
