#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of packaging/ for Homebrew, vcpkg, Conan and Nix against what they repeat: the version and the options of CMakeLists.txt and the packages
of packages.txt; so does the table of docs/library.md. Their syntax is checked by ruby and nix-instantiate where these are installed.

usage: recipes_test.py CMAKE
"""
import ast
import fnmatch
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPES = ROOT / "packaging"
FORMULA, PORT, CONAN, NIX = (RECIPES / name for name in ("homebrew/foretoken.rb", "vcpkg/foretoken", "conan/conanfile.py", "nix/package.nix"))
# A package of Debian, and its names in Homebrew, vcpkg, Conan and Nix.
NAMES = {
    "libboost-dev": (["boost"], ["boost-asio", "boost-beast"], ["boost"], ["boost"]),
    "libcli11-dev": (["cli11"], ["cli11"], ["cli11"], ["cli11"]),
    "libedit-dev": (["libedit"], ["libedit"], ["editline"], ["libedit"]),
    "libexpected-dev": (["tl-expected"], ["tl-expected"], ["tl-expected"], ["tl-expected"]),
    "libfmt-dev": (["fmt"], ["fmt"], ["fmt"], ["fmt"]),
    "libpcre2-dev": (["pcre2"], ["pcre2"], ["pcre2"], ["pcre2"]),
    "libutf8proc-dev": (["utf8proc"], ["utf8proc"], ["utf8proc"], ["utf8proc"]),
    "libxxhash-dev": (["xxhash"], ["xxhash"], ["xxhash"], ["xxHash"]),
    "libyaml-cpp-dev": (["yaml-cpp"], ["yaml-cpp"], ["yaml-cpp"], ["yaml-cpp"]),
    "rapidjson-dev": (["rapidjson"], ["rapidjson"], ["rapidjson"], ["rapidjson"]),
    "prometheus-cpp-dev": (["prometheus-cpp"], ["prometheus-cpp"], ["prometheus-cpp"], ["prometheus-cpp"]),
}
TOOLS = {"g++", "cmake", "ninja-build", "pkg-config"}


def port():
    return json.loads((PORT / "vcpkg.json").read_text())


def assigned(name):
    """What a module-level or class-level name of the Conan recipe is."""
    for node in ast.walk(ast.parse(CONAN.read_text())):
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def dependencies():
    """Of each recipe, without tools."""
    formula = set(re.findall(r'depends_on "([^"]+)"', FORMULA.read_text())) - {"cmake", "ninja", "pkgconf"}
    parts = port()["dependencies"] + [one for feature in port()["features"].values() for one in feature["dependencies"]]
    vcpkg = {part if isinstance(part, str) else part["name"] for part in parts if isinstance(part, str) or not part.get("host")} - {"foretoken"}
    conan = {name.split("/")[0] for group in ("LIBRARY", "PROGRAM", "SERVER") for name in assigned(group)}
    lists = re.search(r"\n  buildInputs = (.*?);", NIX.read_text(), re.S).group(1)
    nix = {name for listed in re.findall(r"\[([^\]]*)\]", lists) for name in listed.split()}
    return formula, vcpkg, conan, nix


class Recipes(unittest.TestCase):
    def setUp(self):
        self.cmake = (ROOT / "CMakeLists.txt").read_text()
        rows = (line.split() for line in (ROOT / "packages.txt").read_text().splitlines() if line and not line.startswith("#"))
        self.packages = {row[0] for row in rows if row[1] == "build"} - TOOLS

    def test_dependencies_are_those_of_packages_txt(self):
        self.assertEqual(self.packages, set(NAMES), "the table of names in this test")
        for column, found in enumerate(dependencies()):
            self.assertEqual(found, {name for names in NAMES.values() for name in names[column]})

    def test_nix_asks_for_what_it_uses(self):
        asked = re.search(r"\n\{(.*?)\}:", NIX.read_text(), re.S).group(1)
        self.assertLessEqual(dependencies()[3], set(re.findall(r"[\w-]+", asked)))

    def test_the_manual_names_them(self):
        text = (ROOT / "docs/library.md").read_text()
        table = text[text.index("| part | option | packages |"):].split("\n\n")[0]
        required = table[:table.index("`FORETOKEN_MPI`")]
        self.assertEqual(set(re.findall(r"`([a-z][\w+-]*-dev)`", required)), self.packages)

    def test_versions_are_that_of_the_project(self):
        version = re.search(r"project\(foretoken VERSION ([\d.]+)", self.cmake).group(1)
        self.assertEqual(re.search(r'^  version "(.*)"$', FORMULA.read_text(), re.M).group(1), version)
        self.assertEqual(port()["version"], version)
        self.assertEqual(assigned("version"), version)
        self.assertEqual(re.search(r'^  version = "(.*)";$', NIX.read_text(), re.M).group(1), version)

    def test_options_are_those_of_the_project(self):
        declared = "".join(path.read_text() for path in (ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")))
        for path in (FORMULA, PORT / "portfile.cmake", CONAN, NIX):
            named = set(re.findall(r"(?:-D|\b)(FORETOKEN_[A-Z]+)\b", path.read_text()))
            self.assertGreater(len(named), 4, path)
            for option in named:
                self.assertRegex(declared, rf"(option|set)\({option}\b", path)

    def test_conan_takes_along_what_is_built(self):
        with tempfile.TemporaryDirectory(prefix="foretoken_recipes_") as name:
            tree = pathlib.Path(name) / "tree"
            listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
            for path in listed.splitlines():
                if any(fnmatch.fnmatch(path, pattern) for pattern in assigned("TREE")) and (ROOT / path).is_file():
                    (tree / path).parent.mkdir(parents=True, exist_ok=True)
                    (tree / path).symlink_to(ROOT / path)
            done = subprocess.run([CMAKE, "-S", tree, "-B", tree / "build", "-DFORETOKEN_TESTS=OFF", "-DFORETOKEN_EXAMPLES=OFF", "-DFORETOKEN_TRAIN=OFF",
                                   "-DFORETOKEN_MPI=OFF"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in (ROOT / "cmake/install.cmake").read_text().splitlines():
                for path in re.findall(r"\b(?:FILES|DIRECTORY) ((?:[\w.]+/)+[\w.]*|[A-Z]+\.md)", line):
                    self.assertTrue((tree / path).exists(), path)

    def check_syntax(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f"there is no {command[0]}")
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_ruby_reads_the_formula(self):
        self.check_syntax("ruby", "-wc", FORMULA)

    def test_nix_reads_its_recipe(self):
        self.check_syntax("nix-instantiate", "--parse", NIX)

    def test_cmake_reads_the_port(self):
        portfile = (PORT / "portfile.cmake").read_text()
        called = set(re.findall(r"(?m)^\s*(vcpkg_\w+)\(", portfile))
        with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
            script.write("cmake_policy(VERSION 3.25)\nset(CURRENT_PACKAGES_DIR /nonexistent)\n")
            script.write("".join(f"function({name})\nendfunction()\n" for name in called) + portfile)
            script.flush()
            self.check_syntax(CMAKE, "-P", script.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
