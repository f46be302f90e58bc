# SPDX-License-Identifier: Apache-2.0
"""Makes a built program or library run on other machines: with its libraries beside it, but for those of the system, and their licences.

Contract: `carried(files)` gives the files by their names in a package, and each finds its libraries from its own place. Nothing is changed on disk.
The machine of a program need not be this one: `root` is the folder of the Debian system whose libraries it is linked to, and programs of binutils are
those of its machine. A library that no package of that system owns is an error. Errors: Problem. Needs readelf and strip (binutils), patchelf and dpkg.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path("/")
# By the machine in the header of a program: its name in npm's packages, its name for Linux, and Debian's for its files.
MACHINES = {"Advanced Micro Devices X86-64": ("x64", "x86_64", "x86_64-linux-gnu"), "AArch64": ("arm64", "aarch64", "aarch64-linux-gnu")}
# What a system's own C library must give.
C_LIBRARY = re.compile(r"(ld-linux.*|libc|libm|libpthread|libdl|librt|libresolv|libutil)\.so\.\d+$")
# These and the C++ library, of which a process that other libraries share must have one.
C_AND_CXX_LIBRARY = re.compile(C_LIBRARY.pattern + r"|(libstdc\+\+|libgcc_s)\.so\.\d+$")
NONE = re.compile(r"(?!)")
PLUGIN = "libforetoken_mpi.so"  # loaded where ranks are asked for; MPI itself is never carried


class Problem(Exception):
    """What is wrong, why, and what to do."""


def run(*command):
    if shutil.which(command[0]) is None:
        raise Problem(f"program {command[0]}: it is not here; install it (packages binutils, patchelf, dpkg)")
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Problem(f"{' '.join(map(str, command))}: it failed: {done.stderr.strip()}; see its arguments")
    return done.stdout


def _machine(program):
    header = run("readelf", "-h", program)
    name = re.search(r"Machine:\s+(.*)", header).group(1).strip()
    if name not in MACHINES:
        raise Problem(f"program {program}: it is for {name}; give one for {' or '.join(MACHINES)}")
    return MACHINES[name]


def npm_name(program):
    """What npm's packages call the machine of a program, "x64"."""
    return _machine(program)[0]


def linux_name(program):
    """What Linux calls it, "x86_64"."""
    return _machine(program)[1]


def triple(program):
    """What Debian calls it in names of folders and tools, "x86_64-linux-gnu"."""
    return _machine(program)[2]


def needed(file, system):
    """The names of the libraries that a file is linked to, without those that `system` matches."""
    return [name for name in re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", file)) if not system.match(name)]


def libraries(files, system, root=HERE):
    """The files of all libraries that programs need, and that these need, by name."""
    folders = [root / top / triple(files[0]) for top in ("usr/lib", "lib")]
    found, waiting = {}, list(files)
    while waiting:
        for name in needed(waiting.pop(), system):
            if name in found:
                continue
            path = next((folder / name for folder in folders if (folder / name).exists()), None)
            if path is None:
                raise Problem(f"library {name}: it is in none of {', '.join(map(str, folders))}; build against Debian's libraries, or name --root")
            found[name] = path.resolve()
            waiting.append(found[name])
    return dict(sorted(found.items()))


def owner(path, root=HERE):
    """The package that has a library. Since /lib is /usr/lib, dpkg may know it by either name."""
    inside = "/" + str(path.relative_to(root))
    for name in (inside, inside.removeprefix("/usr")):
        said = subprocess.run(["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False)
        if said.returncode == 0:
            return said.stdout.partition(":")[0]
    raise Problem(f"library {path}: no installed package has it; build against Debian's libraries")


def licences(paths, root=HERE):
    """The files with the licences of libraries, by the Debian packages that these are from."""
    found = {package: root / "usr/share/doc" / package / "copyright" for package in {owner(path, root) for path in paths}}
    for package, file in found.items():
        if not file.exists():
            raise Problem(f"licence of {package}: there is no {file}; install that package with its documents")
    return dict(sorted(found.items()))


def stripped(file, folder):
    """A copy without symbols."""
    copy = pathlib.Path(folder) / file.name
    shutil.copyfile(file, copy)
    run(f"{triple(file)}-strip", "--strip-unneeded", copy)
    return copy


def moved(file, place, lib, folder):
    """The bytes of a file without symbols that lies at `place` of a package and has its libraries in the folder `lib` there."""
    copy = stripped(file, folder)
    below = os.path.relpath(lib, os.path.dirname(place))
    run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN" if below == "." else f"$ORIGIN/{below}", copy)
    return copy.read_bytes()


def plugin(program):
    """The plug-in of MPI that a program finds, in a list; it may lack one."""
    places = (program.parent / PLUGIN, program.parent.parent / "lib" / PLUGIN)
    return [path for path in places if path.is_file()][:1]


def carried(files, system=C_LIBRARY, root=HERE, lib="lib", licence_folder="licenses"):
    """files: {place in the package: a program or library}, of one machine. Their libraries, and the plug-in of those that find one, come into `lib`."""
    found = libraries(list(files.values()), system, root)
    plugins = [path for file in files.values() for path in plugin(file)][:1]
    placed = {**files, **{f"{lib}/{name}": path for name, path in found.items()}, **{f"{lib}/{path.name}": path for path in plugins}}
    with tempfile.TemporaryDirectory() as folder:
        ready = {place: moved(file, place, lib, folder) for place, file in placed.items()}
    ready.update((f"{licence_folder}/{package}", file.read_bytes()) for package, file in licences(found.values(), root).items())
    return ready


def interpreter(program):
    """The path of the system's loader that the program asks for."""
    return re.search(r"program interpreter: (.*)\]", run("readelf", "-l", program)).group(1)


def least_glibc(files, system=C_LIBRARY, root=HERE):
    """The oldest version of glibc that has all that programs and their libraries need, (2, 34)."""
    return max(tuple(map(int, version.split("."))) for file in (*files, *libraries(files, system, root).values())
               for version in re.findall(r"Name: GLIBC_([\d.]+)", run("readelf", "--version-info", file)))
