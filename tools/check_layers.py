#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the arrows between the modules: every #include of src/, include/, apps/, bench/, tests/ and
examples/ against the DEPS of the foretoken_module() calls and the rules below, and the map in src/README.md against
the DEPS. Prints file:line for each violation; exit code 1.

usage: check_layers.py [ROOT]
"""
import pathlib
import re
import sys

# What a module must never see, though its DEPS would let it, and why.
DENIED = {
    "verify": ({"model", "kv", "kernels", "draft", "formats", "text"}, "verify is pure functions on numbers"),
    "draft": ({"verify", "engine", "text"}, "features arrive through Observe; vocabularies as plain lists"),
    "model": ({"round", "draft", "verify", "sampling", "text", "engine"}, "a network is not told of speculation"),
    "kv": ({"model", "text"}, "the cache knows shapes, not networks"),
    "formats": ({"model", "text"}, "a file yields tensors and metadata"),
    "sampling": ({"model", "kv", "draft", "verify", "text"}, "sampling never knows who calls it"),
    "calls": ({"model", "kv", "draft", "verify", "text", "kernels"}, "calls of tools are texts, nothing else"),
    "grammar": ({"model", "kv", "draft", "verify", "text", "kernels"}, "grammars are texts and automata, nothing else"),
    "loader": ({"verify", "engine"}, "files are loaded before there are requests"),
    "draft_length": ({"model", "kv", "draft", "verify", "text", "kernels"}, "lengths are chosen from counts and times alone"),
    "async": ({"engine", "model", "kv", "draft", "verify", "text", "grammar", "sampling", "formats", "kernels", "config",
               "calibrate", "trace", "loader", "draft_length", "round", "tensor", "base"}, "it uses the engine through include/foretoken/"),
    "capi": ({"engine", "model", "kv", "draft", "verify", "text", "grammar", "sampling", "formats", "kernels", "config", "calibrate", "trace",
              "loader", "draft_length", "round", "tensor", "async", "components"}, "it uses the library through include/foretoken/"),
    "convert": ({"draft", "verify", "sampling", "engine"}, "files are converted without an engine"),
}
# Public headers of things that run models: the modules that implement them and those above may include them.
# The other public headers hold data and rules that any module may know.
RUNNING_HEADERS = {"engine.h", "scorer.h", "speculative_decoder.h", "speculative_pipeline.h", "draft_session.h",
                   "built_in_drafters.h", "verification.h", "async_engine.h", "event_stream.h", "ranks.h"}
RUNNING_MODULES = {"loader", "engine", "async", "components", "capi", "lab"}
# Third-party headers, by prefix, and the files that may name them (regular expressions of paths).
LIBRARIES = {
    "tl/": r"include/foretoken/result\.h",
    "fmt/": r".*\.cpp",
    "pcre2.h": r"src/text/tokenizer/split/pretokenize\.cpp",
    "xxhash.h": r"src/base/hash\.cpp",
    "rapidjson/": r"src/base/json/json_reader\.cpp|examples/vectors\.cpp",
    "utf8proc.h": r"src/text/tokenizer/unicode\.cpp",
    "mpi.h": r"src/comm/mpi_ranks\.cpp",
    "histedit.h": r"apps/cli/chat/line_editor\.cpp",
    "CLI/": r"apps/settings/flag_set\.cpp",
    "yaml-cpp/": r"src/formats/settings_file\.cpp",
    "boost/asio/": r"apps/server/net/(http|connection|work_gate)\.(h|cpp)",
    "boost/beast/": r"apps/server/net/(request_reader|reply_head)\.cpp",
    "prometheus/": r"apps/server/metrics\.cpp",
    "torch/": r"apps/train/.*|tests/attack/train_attack\.cpp",
    "sentencepiece_processor.h": r"apps/train/text/vocabulary\.cpp",
    "sentencepiece_trainer.h": r"apps/train/text/vocabulary\.cpp",
    "benchmark/": r"bench/micro/.*",
    "fuzzer/": r"tests/fuzz/.*",
    "gtest/": r".*_test(ing)?\.cpp|.*(_testing|_suite|/test_\w+)\.h",
    "gmock/": r".*_test\.cpp",
    "valgrind/": r"src/base/growth_testing\.h",
    "immintrin.h": r"src/kernels/(avx2|avxvnni|avx512|amx)/.*|src/base/machine/thread_pool\.cpp",  # there for _mm_pause
    "arm_neon.h": r"src/kernels/neon/.*",
    "cpuid.h": r"src/kernels/.*|src/base/windows/cpus\.cpp",
    **{name: r"src/base/windows/.*" for name in ("windows.h", "io.h", "ntsecapi.h", "psapi.h", "winsock2.h", "ws2tcpip.h")},
    "sys/auxv.h": r"src/kernels/dispatch\.cpp",
}
# System headers beside the standard C++ ones.
SYSTEM = {"unistd.h", "fcntl.h", "malloc.h", "poll.h", "sched.h", "pthread.h", "termios.h", "signal.h",
          "sys/mman.h", "sys/stat.h", "sys/statvfs.h", "sys/types.h", "sys/resource.h", "sys/ioctl.h", "sys/syscall.h",
          "sys/file.h", "sys/uio.h", "sys/wait.h", "sys/time.h", "sys/socket.h", "sys/random.h", "stdlib.h", "stddef.h", "stdint.h", "stdio.h", "string.h", "time.h", "dlfcn.h", "arpa/inet.h", "netinet/tcp.h", "asm/prctl.h", "linux/futex.h", "linux/perf_event.h"}
# Kernels for an instruction set: an inline function of another header, compiled with its flags, could be
# the copy that the linker keeps for everyone. What they share is in kernels/generic, which is compiled once
# for each of them and has internal linkage (check_isa_symbols.sh holds that). It sees as little as they do,
# and no instruction set.
ISA_FOLDERS = ("avx2", "avxvnni", "avx512", "amx", "neon")
ISA_EXTENDS = {"avxvnni": "avx2", "avx512": "avx2", "amx": "avx512"}  # a processor with the one has the other
ISA_HEADERS = {"kernels/kernels.h", "kernels.h", "kernels/parts.h", "tensor/block_layout.h"}
ISA_INTRINSICS = {"immintrin.h", "arm_neon.h"}
ISA_SYSTEM = {"cstddef", "cstdint"}
# Rooms of src/ that a program sees beside the public headers and the other programs. The trainer reads and writes model
# files, and its tests run them.
OPEN_APPS = {"cli": {"lab"}, "train": {"base", "tensor", "kernels", "formats", "text", "kv", "model"}}
# Headers of src/ that every program may include: small parts that programs share with the library, and that users of the
# library never include, so they are not installed.
PROGRAM_HEADERS = {"base/comma_list.h", "base/files/text_file.h", "base/json/json.h", "base/json/json_reader.h", "base/machine/memory_limit.h", "base/machine/program_path.h", "base/machine/standard_streams.h", "base/sha256.h", "calls/call_format.h", "calls/control_tokens.h", "calls/thought.h", "calls/tool_use.h",
                   "config/nearest_name.h", "draft/methods.h", "loader/ranks/cluster.h"}
# What folders of bench/, tests/ and examples/ see besides include/ and themselves: rooms of src/, other folders of
# tests/, programs of apps/. A folder that is not here sees no more than that.
OUTSIDE = {
    "bench/copies": {"base", "kernels", "formats", "kv", "model", "text", "loader"},
    "bench/draft_length": {"base", "draft_length"},
    "bench/micro": {"base", "tensor", "kernels", "formats", "kv", "model", "sampling", "draft", "text"},
    "tests/attack": {"base", "fixtures", "train"},
    "tests/cli": {"fixtures"},
    "tests/compare": {"base", "formats", "text"},
    "tests/counts": {"base", "tensor", "kernels"},
    "tests/fixtures": {"base", "tensor", "formats"},
    "tests/fuzz": {"attack", "base", "calls", "formats", "text", "grammar", "server"},
    "tests/lossless": {"formats", "kernels", "grammar", "fixtures", "oracle"},
    "tests/memory": {"fixtures"},
    "tests/ranks": {"base", "comm", "tensor", "kernels", "formats", "kv", "model", "loader", "fixtures"},
    "tests/vectors": {"base"},
    "tests/oracle": {"base", "tensor", "kernels", "formats", "kv", "model", "fixtures"},
}
# Folders of tests/ that unit tests beside the code may use where their module is above the one that is named.
FOR_UNIT_TESTS = {"fixtures": "formats", "oracle": "model"}
OUTSIDE_TOPS = ("bench", "tests", "examples")
VAGUE_FOLDERS = {"utils", "util", "common", "misc", "helpers"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def read_modules(root):
    """Names in layer order, and {module: direct dependencies, test libraries included under '+tests'}."""
    text = (root / "CMakeLists.txt").read_text()
    order = re.search(r'set\(FORETOKEN_MODULES\s+"([^"]*)"', text).group(1).split(";")
    deps, test_deps = {}, {}
    keywords = {"SOURCES", "DEPS", "LIBS", "PUBLIC_LIBS", "TESTS", "GROWTH_TESTS", "TEST_LIBS"}
    for path in sorted((root / "src").glob("*/CMakeLists.txt")):
        cmake = re.sub(r"#.*", "", path.read_text())
        for name, body in re.findall(r"foretoken_module\(\s*(\w+)([^)]*)\)", cmake):
            deps.setdefault(name, set()), test_deps.setdefault(name, set())
            keyword = None
            for word in body.split():
                if word in keywords:
                    keyword = word
                elif keyword == "DEPS":
                    deps[name].add(word)
                elif keyword == "TEST_LIBS" and word.startswith("foretoken_"):
                    test_deps[name].add(word.removeprefix("foretoken_"))
        for name in re.findall(r"add_library\(\s*foretoken_(\w+)\s+INTERFACE", cmake):
            deps.setdefault(name, set()), test_deps.setdefault(name, set())
            for libs in re.findall(rf"target_link_libraries\(\s*foretoken_{name}\s+INTERFACE([^)]*)\)", cmake):
                deps[name] |= {w.removeprefix("foretoken_") for w in libs.split() if w.startswith("foretoken_")}
    return order, deps, test_deps


def reachable(deps, module, seen=None):
    seen = set() if seen is None else seen
    for dep in deps.get(module, ()):
        if dep not in seen:
            seen.add(dep)
            reachable(deps, dep, seen)
    return seen


class Checker:
    def __init__(self, root):
        self.root = root
        self.order, self.deps, self.test_deps = read_modules(root)
        self.errors = []

    def fail(self, where, why):
        self.errors.append(f"{where}: {why}")

    def check_modules(self):
        for module, deps in self.deps.items():
            where = f"src/{module}/CMakeLists.txt:1"
            if module not in self.order:
                self.fail(where, f"module {module} is not in FORETOKEN_MODULES")
                continue
            for dep in sorted(deps):
                if dep not in self.order:
                    self.fail(where, f"DEPS names {dep}, which is not a module")
                elif self.order.index(dep) >= self.order.index(module):
                    self.fail(where, f"{module} depends on {dep}, which stands after it in FORETOKEN_MODULES")
            for dep in sorted(self.test_deps[module] - set(FOR_UNIT_TESTS)):
                if dep not in self.order or self.order.index(dep) >= self.order.index(module):
                    self.fail(where, f"TEST_LIBS names {dep}, which is not below {module}")
            if module in reachable(self.deps, module):
                self.fail(where, f"{module} is part of a cycle of DEPS")

    def check_map(self):
        """The last column of the table in src/README.md names the DEPS of each module."""
        path = self.root / "src/README.md"
        if not path.exists():
            return
        rows = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.fullmatch(r"\| `(\w+)/` \|.*\|([^|]*)\|", line)
            if match:
                rows[match.group(1)] = number, match.group(2).strip()
        for module in self.order:
            deps = ", ".join(d for d in reversed(self.order) if d in self.deps.get(module, ()))
            number, seen = rows.get(module, (1, None))
            if seen != (deps or "`include/` only"):
                self.fail(f"src/README.md:{number}", f"the row of {module} must end with '{deps or '`include/` only'}'")

    def check_file(self, path):
        relative = path.relative_to(self.root).as_posix()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            why = self.why_not(relative, match.group(2), match.group(1) == '"')
            if why:
                self.fail(f"{relative}:{number}", f'includes {match.group(2)}: {why}')

    def why_not(self, file, include, quoted):
        """Reason why `file` must not include `include`, or None."""
        parts = file.split("/")
        if len(parts) > 3 and parts[1] == "kernels" and parts[2] in (*ISA_FOLDERS, "generic"):
            why = self.why_not_isa(parts[2], include, quoted)
            if why:
                return why
        for prefix, allowed in LIBRARIES.items():
            if include.startswith(prefix) if prefix.endswith("/") else include == prefix:
                return None if re.fullmatch(allowed, file) else f"only {allowed} may (a library stays in one place)"
        if not quoted:
            standard = "/" not in include and "." not in include
            return None if standard or include in SYSTEM else "a library that tools/check_layers.py does not know"
        return self.why_not_ours(parts, file, include)

    def why_not_isa(self, folder, include, quoted):
        seen = ISA_HEADERS | ISA_SYSTEM | (set() if folder == "generic" else ISA_INTRINSICS)
        base = ISA_EXTENDS.get(folder, folder)
        own = include.startswith((f"kernels/{folder}/", f"kernels/{base}/", "kernels/generic/"))
        if own or (quoted and "/" not in include) or include in seen:
            return None
        return f"the folder of an instruction set sees only itself, kernels/generic, {', '.join(sorted(seen))}"

    def why_not_ours(self, parts, file, include):
        top = include.split("/")[0]
        if top in ("foretoken", "foretoken.h"):
            if not (self.root / "include" / include).exists():
                return "no such file"
            below = parts[0] == "src" and parts[1] not in RUNNING_MODULES
            if below and include.split("/")[-1] in RUNNING_HEADERS:
                return "only the engine and what stands above it know this header"
            return None
        is_test = file.endswith("_test.cpp")
        if parts[0] == "include":
            return "a public header sees only std and foretoken/"
        if parts[0] in OUTSIDE_TOPS:
            return self.why_not_outside("/".join(parts[:2]), include)
        if parts[0] == "apps":
            if (self.root / "apps" / include).exists():
                return None
            if (top in OPEN_APPS.get(parts[1], ()) or include in PROGRAM_HEADERS) and (self.root / "src" / include).exists():
                return None
            if is_test and top == "fixtures" and (self.root / "tests" / include).exists():
                return None
            if is_test and include == "base/growth_testing.h":  # it sees std and gtest alone
                return None
            return "the programs see include/foretoken/, apps/ and PROGRAM_HEADERS of tools/check_layers.py only"
        if is_test and parts[0] == "src" and top in FOR_UNIT_TESTS and (self.root / "tests" / include).exists():
            needed = FOR_UNIT_TESTS[top]
            below = {parts[1]} | reachable(self.deps, parts[1])
            return None if needed in below else f"tests/{top} needs {needed}, which is not below {parts[1]}"
        if not (self.root / "src" / include).exists():
            return "no such file below src/ (paths begin with the module)"
        return self.why_not_module(parts[1], top, is_test)

    def why_not_outside(self, folder, include):
        """The same for a file of bench/, tests/ or examples/, by the folder that it lies in."""
        top = include.split("/")[0]
        if not any((self.root / where / include).exists() for where in ("src", "apps", "tests", "bench")):
            return "no such file below src/, apps/, tests/ or bench/"
        if folder in (f"tests/{top}", f"bench/{top}") or top in OUTSIDE.get(folder, ()):
            return None
        seen = ", ".join(sorted(OUTSIDE.get(folder, ()))) or "nothing more"
        return f"besides include/ {folder} sees {seen} (OUTSIDE in tools/check_layers.py)"

    def why_not_module(self, module, other, is_test):
        if other == module:
            return None
        denied, reason = DENIED.get(module, ((), ""))
        if other in denied and not is_test:
            return f"{module} never sees {other}: {reason}"
        if other not in self.order:
            return f"{other} is not a module"
        return None if other in reachable(self.deps, module) else f"{other} is not among the DEPS of {module}"

    def run(self):
        self.check_modules()
        self.check_map()
        for top in ("src", "include", "apps", *OUTSIDE_TOPS):
            for path in sorted((self.root / top).rglob("*")):
                if path.is_dir() and path.name in VAGUE_FOLDERS:
                    self.fail(path.relative_to(self.root).as_posix(), "name the thing: no folder utils, common or misc")
                if path.is_file() and path.suffix in (".h", ".cpp"):
                    self.check_file(path)
        return self.errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    errors = Checker(root.resolve()).run()
    for error in errors:
        print(error)
    print(f"layers: {len(errors)} violations" if errors else "layers: every arrow points down")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
