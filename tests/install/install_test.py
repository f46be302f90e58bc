#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` leaves behind, used as others use it, in another folder than it was installed to.

Run by ctest (tests/install/CMakeLists.txt has the arguments); the build must be complete.
"""
import argparse
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

parser = argparse.ArgumentParser()
for name in ("sources", "build", "writer", "cmake", "generator", "pkg-config", "compiler", "c-compiler", "flags", "mpiexec", "stripped"):
    parser.add_argument("--" + name, required=True)
ARGUMENTS, REST = parser.parse_known_args()

SECONDS = 900  # a wait that only ends a hang: a machine may be busy
GENERATE_C = pathlib.Path(ARGUMENTS.sources) / "examples/c/generate.c"
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
FOLDER = tempfile.TemporaryDirectory()
STAGE, PREFIX, FIXTURES = (pathlib.Path(FOLDER.name) / name for name in ("stage", "moved/prefix", "fixtures"))
MODELS = PREFIX / "share/foretoken/models"
# What each of the examples prints, besides texts.
EXAMPLES = {
    "clients": r"\w+",
    "own_drafter": r"\[temperature 0: [1-9]\d* of \d+ drafts accepted\]",
    "own_drafter_test": r"last-time: (\d+) of \1 drafts, \d+ passes for 59\nwhere nothing repeats: \d+ of \d+ drafts\n$",
    "own_loop": r"\[\d+ tokens in \d+ rounds\]",
    "own_states": r"\[acceptance 0\.\d+, \d+ passes\]",
    "own_target": r"\[\d+ passes, acceptance 0\.\d+, estimate [1-9][\d.]*\]",
    "own_text": r"\[[1-9]\d* of \d+ drafts accepted\]",
    "own_verifier": r": [1-9]\d* of \d+ drafts accepted\]",
    "pipeline": r"^[1-9]\d* of \d+ drafts accepted\n",
    "ranks": r"\w+",
    "settings": r"num_speculative_tokens: 65 is not in \[0, 64\].*\n(.*\n)*num_speculative_tokens: 5\n(.*\n)*"
                r"num_speculative_tokens_mixed_batch: 1\n(.*\n)*target-probability, fixed: .* with 3 drafts\n"
                r"sample-match, fixed: .* with 5 drafts\n$",
    "stepwise": r"kept \d+ of \d+, so:.*\n(.*\n)*.*\d+ rounds, acceptance 0\.\d+, estimate",
    "ten_lines": r"[1-9]\d* tokens\n$",
    "two_texts": r"girl named Lily(.*\n)*.*dog named Max",
    "vectors": r"^(\d{3}) of \1 rounds\n$",
    "verify_logits": r"residual: accepts token 0 with 1\n(.*\n)*target-probability: accepts token 0 with 0\.4",
}
ENVIRONMENT = {key: value for key, value in os.environ.items()
               if not key.startswith(("FORETOKEN_", "PKG_CONFIG", "CMAKE_")) and key != "DESTDIR"}
ENVIRONMENT["FORETOKEN_THREADS"] = "1"  # other tests run meanwhile
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", *shlex.split(ARGUMENTS.flags)]


def call(*command, environment=None, text=None):
    return subprocess.run([str(part) for part in command], input=text, env={**ENVIRONMENT, **(environment or {})},
                          capture_output=True, text=True, timeout=SECONDS, check=False)


def done(*command, **keywords):
    """Standard output of a command that must succeed."""
    result = call(*command, **keywords)
    if result.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def without(*packages):
    """Flags of CMake that make packages missing."""
    return [f"-DCMAKE_DISABLE_FIND_PACKAGE_{package}=ON" for package in packages]


def itself(folder):
    """Finds this very folder, which may have a short name such as /foretoken, and no other that ends so."""
    return r"(?<![\w}.-])" + re.escape(folder) + r"(?![\w.-])"


def pkg_config(*arguments, package="foretoken"):
    folder = next(PREFIX.rglob("foretoken.pc")).parent
    return done(ARGUMENTS.pkg_config, *arguments, package, environment={"PKG_CONFIG_PATH": str(folder)}).strip()


def program(*arguments):
    return call(PREFIX / "bin/foretoken", *arguments)


def chains(folder, headers):
    """The headers in groups, each of them a translation unit that tells as much as one for each header: a header includes, itself or through
    others, those that come before it, and so it finds nothing there that it would not find alone."""
    direct = {header: re.findall(r'(?m)^#include "([^"]+)"', (folder / header).read_text()) for header in headers}

    @functools.cache
    def included(header):
        return frozenset(direct.get(header, ())).union(*map(included, direct.get(header, ())))

    groups = []
    for header in sorted(headers, key=lambda header: (len(included(header)), header)):
        group = max((group for group in groups if group[-1] in included(header)), key=len, default=None)
        if group:
            group.append(header)
        else:
            groups.append([header])
    return groups


def setUpModule():
    done(ARGUMENTS.cmake, "--install", ARGUMENTS.build, "--prefix", STAGE)
    PREFIX.parent.mkdir()
    STAGE.rename(PREFIX)
    FIXTURES.mkdir()
    done(ARGUMENTS.writer, FIXTURES)


class Library(unittest.TestCase):
    def check_tokens(self, consumer):
        models = (FIXTURES / "target.gguf", FIXTURES / "draft.gguf")
        printed = [int(token) for token in done(consumer, *models).split()]
        answer = program("generate", "-m", models[0], "-md", models[1], "-p", "Once upon a time", "--temp", "1", "-s", "0",
                         "--json")
        self.assertEqual(printed, json.loads(answer.stdout)["token_ids"])
        self.assertTrue(printed)

    def test_a_program_finds_it_by_find_package(self):
        build = pathlib.Path(FOLDER.name) / "consumer"
        done(ARGUMENTS.cmake, "-S", CONSUMER, "-B", build, "-G", ARGUMENTS.generator, f"-DCMAKE_PREFIX_PATH={PREFIX}",
             f"-DCMAKE_CXX_COMPILER={ARGUMENTS.compiler}", f"-DCMAKE_CXX_FLAGS={ARGUMENTS.flags} -Wall -Wextra -Werror",
             f"-DCMAKE_C_COMPILER={ARGUMENTS.c_compiler}", f"-DCMAKE_C_FLAGS={ARGUMENTS.flags} -std=c99 -pedantic -Wall -Wextra -Werror",
             f"-DGENERATE_C={GENERATE_C}")
        done(ARGUMENTS.cmake, "--build", build)
        self.check_tokens(build / "consumer")
        self.check_text(build / "generate_c")

    def test_the_c_interface_alone_needs_no_other_package(self):
        build = pathlib.Path(FOLDER.name) / "shared"
        configure = (ARGUMENTS.cmake, "-S", CONSUMER, "-G", ARGUMENTS.generator, f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DGENERATE_C={GENERATE_C}",
                     f"-DCMAKE_CXX_COMPILER={ARGUMENTS.compiler}", f"-DCMAKE_C_COMPILER={ARGUMENTS.c_compiler}", f"-DCMAKE_C_FLAGS={ARGUMENTS.flags}",
                     *without("fmt", "PkgConfig", "Threads", "tl-expected"))
        done(*configure, "-B", build, "-DPARTS=COMPONENTS;shared")
        done(ARGUMENTS.cmake, "--build", build)
        self.check_text(build / "generate_c")
        for parts in ("COMPONENTS;engine", "COMPONENTS;nothing"):
            self.assertNotEqual(call(*configure, "-B", build.with_name("refused"), f"-DPARTS={parts}").returncode, 0, parts)

    def test_another_project_takes_in_the_library_alone(self):
        build = pathlib.Path(FOLDER.name) / "taken_in"
        done(ARGUMENTS.cmake, "-S", CONSUMER, "-B", build, "-G", ARGUMENTS.generator, f"--graphviz={build}/linked.dot",
             f"-DSOURCES={ARGUMENTS.sources}", "-DFORETOKEN_MPI=OFF",
             f"-DCMAKE_CXX_COMPILER={ARGUMENTS.compiler}", f"-DCMAKE_C_COMPILER={ARGUMENTS.c_compiler}",
             *without("Boost", "CLI11", "GTest", "MPI", "Torch", "prometheus-cpp"))
        linked = (build / "linked.dot").read_text()
        self.assertRegex(linked, r'"consumer\b')
        self.assertRegex(linked, r'"foretoken_engine\b')
        self.assertNotRegex(linked.lower(), r"foretoken_(cli|server|mpi)\b|_tests\b|example_|boost|prometheus")

    def test_a_program_without_the_server_needs_neither_boost_nor_prometheus(self):
        build = pathlib.Path(FOLDER.name) / "no_server"
        configure = (ARGUMENTS.cmake, "-S", ARGUMENTS.sources, "-G", ARGUMENTS.generator, "-DFORETOKEN_TRAIN=OFF", "-DFORETOKEN_MPI=OFF",
                     f"-DCMAKE_CXX_COMPILER={ARGUMENTS.compiler}", f"-DCMAKE_C_COMPILER={ARGUMENTS.c_compiler}", *without("Boost", "prometheus-cpp"))
        done(*configure, "-B", build, "-DFORETOKEN_SERVER=OFF", f"--graphviz={build}/linked.dot")
        linked = (build / "linked.dot").read_text()
        self.assertRegex(linked, r'"foretoken_cli\b')
        self.assertNotRegex(linked.lower(), r"foretoken_(server|page)\b|boost|prometheus")
        refused = call(*configure, "-B", build.with_name("needs_server"))
        self.assertNotEqual(refused.returncode, 0)
        self.assertRegex(refused.stderr, r"foretoken serve needs Boost 1\.74 and\s+prometheus-cpp(.|\n)*-DFORETOKEN_SERVER=OFF")

    def check_text(self, generate, environment=None):
        models = (FIXTURES / "target.gguf", FIXTURES / "draft.gguf")
        answer = program("generate", "-m", models[0], "-md", models[1], "-p", "Once upon a time", "--temp", "0", "-n", "64", "--json")
        printed = done(generate, *models, "Once upon a time", environment=environment)
        text, _, drafts = printed.rpartition("\n[")
        self.assertEqual(text, json.loads(answer.stdout)["text"])
        self.assertRegex(drafts, r"^\d+ of \d+ drafts accepted\]\n$")

    def test_a_program_in_c_finds_the_shared_library_by_pkg_config(self):
        generate = pathlib.Path(FOLDER.name) / "generate"
        done(ARGUMENTS.c_compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", *shlex.split(ARGUMENTS.flags), GENERATE_C, "-o", generate,
             *shlex.split(pkg_config("--cflags", "--libs", package="foretoken-c")))
        self.check_text(generate, {"LD_LIBRARY_PATH": str(next(PREFIX.rglob("libforetoken.so.1")).parent)})

    def test_the_examples_build_against_it_and_do_what_they_say(self):
        sources, build = pathlib.Path(ARGUMENTS.sources), pathlib.Path(FOLDER.name) / "examples"
        models = [sources / "models" / name for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf")]
        # One parsing of the headers for all of them: the build in the tree, without it, sees what an example forgets to include.
        done(ARGUMENTS.cmake, "-S", sources / "examples", "-B", build, "-G", ARGUMENTS.generator,
             f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DCMAKE_CXX_COMPILER={ARGUMENTS.compiler}",
             f"-DCMAKE_PROJECT_foretoken_examples_INCLUDE={pathlib.Path(__file__).resolve().parent / 'precompiled.cmake'}",
             f"-DCMAKE_CXX_FLAGS={ARGUMENTS.flags} -Wall -Wextra -Werror")
        done(ARGUMENTS.cmake, "--build", build)
        self.assertEqual(sorted(EXAMPLES), sorted(path.stem for path in (sources / "examples").glob("*.cpp")))
        vectors = [pathlib.Path(pkg_config("--variable=datadir")) / "vectors/verification.jsonl"]
        for name, printed in EXAMPLES.items():
            with self.subTest(name):
                self.assertRegex(done(build / f"example_{name}", *(vectors if name == "vectors" else models)), printed)

    def test_its_data_are_where_the_packages_say(self):
        data = pathlib.Path(pkg_config("--variable=datadir")).resolve()
        self.assertEqual(data, PREFIX.resolve() / "share/foretoken")
        self.assertEqual(len((data / "vectors/verification.jsonl").read_text().splitlines()),
                         len((pathlib.Path(ARGUMENTS.sources) / "tests/vectors/verification.jsonl").read_text().splitlines()))
        kit = done(sys.executable, "-B", "-m", "speculation_kit", "vectors", "--function", f"{data}/kit/examples/greedy.py:answer",
                   environment={"PYTHONPATH": str(data / "kit")})
        self.assertIn("12 of 126 rounds are right, 0 wrong", kit)
        self.assertIn("speculative_config", json.loads((data / "speculation.schema.json").read_text())["description"])

    def test_a_program_finds_it_by_pkg_config(self):
        source, made = CONSUMER / "main.cpp", pathlib.Path(FOLDER.name) / "main.o"
        done(ARGUMENTS.compiler, *FLAGS, *shlex.split(pkg_config("--cflags")), "-c", source, "-o", made)
        for how in (("--libs",), ("--static", "--libs")):
            consumer = made.with_name("consumer" + how[0])
            done(ARGUMENTS.compiler, *FLAGS, made, "-o", consumer, *shlex.split(pkg_config(*how)))
            self.check_tokens(consumer)

    def test_the_public_headers_are_all_there_is_and_each_compiles_alone(self):
        include = pathlib.Path(ARGUMENTS.sources) / "include"
        headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h"))
        installed = sorted(path.relative_to(PREFIX / "include").as_posix() for path in PREFIX.rglob("*.h"))
        self.assertEqual(installed, headers)
        groups = chains(PREFIX / "include", installed)
        self.assertEqual(sorted(sum(groups, [])), installed)
        for headers in groups:
            done(ARGUMENTS.compiler, *FLAGS, "-I", PREFIX / "include", "-fsyntax-only", "-x", "c++", "-",
                 text="".join(f'#include "{header}"\n' for header in headers))

    def test_no_text_names_the_folders_it_came_from(self):
        texts = [path for path in PREFIX.rglob("*") if path.suffix in (".pc", ".cmake", ".h")]
        self.assertGreaterEqual(len(texts), 4)
        for path in texts:
            for folder in (ARGUMENTS.sources, ARGUMENTS.build, str(STAGE)):
                self.assertNotRegex(path.read_text(), itself(folder), path)

    def test_no_part_of_it_needs_libtorch(self):
        for path in PREFIX.rglob("foretokenTargets*.cmake"):
            self.assertNotRegex(path.read_text().lower(), "torch|sentencepiece|c10")
        self.assertNotIn("torch", pkg_config("--static", "--libs"))

    def test_the_versions_agree(self):
        version = pkg_config("--modversion")
        self.assertEqual(program("--version").stdout, f"foretoken {version}\n")
        self.assertIn(f'"{version}"', next(PREFIX.rglob("foretokenConfigVersion.cmake")).read_text())


class Program(unittest.TestCase):
    FLAGS = ("generate", "-p", "Once upon", "-n", "8", "--json")

    def test_it_finds_the_models_that_were_installed_with_it(self):
        shutil.rmtree(MODELS, ignore_errors=True)
        shutil.copytree(FIXTURES / "models", MODELS)
        self.addCleanup(shutil.rmtree, MODELS)
        answer = json.loads(program(*self.FLAGS).stdout)
        self.assertEqual(pathlib.Path(answer["model"]["path"]).parent, MODELS)
        self.assertEqual(pathlib.Path(answer["draft_model"]["path"]).parent, MODELS)
        self.assertTrue(answer["token_ids"])

    def test_manual_pages_and_completions_lie_where_man_and_shells_look(self):
        share = PREFIX / "share"
        verbs = re.findall(r"(?m)^  ([a-z-]+)  +[a-z]", program().stdout)
        self.assertIn("generate", verbs)
        pages = {path.name for path in (share / "man/man1").iterdir()}
        self.assertEqual(pages, {"foretoken.1", *(f"foretoken-{verb}.1" for verb in verbs)})
        for shell, path in (("bash", "bash-completion/completions/foretoken"), ("zsh", "zsh/site-functions/_foretoken"),
                            ("fish", "fish/vendor_completions.d/foretoken.fish")):
            self.assertEqual((share / path).read_text(), program("completion", shell).stdout)

    def test_without_them_it_never_takes_those_of_the_sources(self):
        shutil.rmtree(MODELS, ignore_errors=True)
        result = program(*self.FLAGS)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(str(MODELS), result.stderr)
        self.assertNotRegex(result.stderr, itself(ARGUMENTS.sources))


class Files(unittest.TestCase):
    def test_a_release_has_no_symbols(self):
        for path in (PREFIX / "bin/foretoken", *PREFIX.rglob("libforetoken*.so*")):
            self.assertEqual(".symtab" not in done("readelf", "-SW", path), ARGUMENTS.stripped == "yes", path)

    def test_the_documents_come_with_it(self):
        folder = PREFIX / "share/doc/foretoken"
        links = re.findall(r"\]\(((?:docs|examples)/[^)#]*)", (folder / "README.md").read_text())
        self.assertGreater(len(links), 10)
        for link in links:
            self.assertTrue((folder / link).exists(), link)


class Ranks(unittest.TestCase):
    """MPI is loaded by processes that compute one network together, and by nothing else."""
    FLAGS = ("generate", "-m", FIXTURES / "target.gguf", "-md", FIXTURES / "draft.gguf", "-p", "Once upon", "-n", "8", "--temp", "0", "--json")
    STARTED = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}

    def plug_in(self, name, *flags):
        """A folder with an empty library."""
        folder = pathlib.Path(FOLDER.name) / name
        folder.mkdir(exist_ok=True)
        done(ARGUMENTS.c_compiler, "-shared", "-x", "c", "/dev/null", "-Wl,-soname," + name, "-o", folder / name, *flags)
        return folder

    def check_refused(self, program, environment, why):
        result = call(program, *self.FLAGS, environment={**self.STARTED, **environment})
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, "^foretoken: ranks: " + why)
        self.assertEqual(call(program, *self.FLAGS, environment=environment).returncode, 0)  # one process has no use for it

    def test_neither_the_program_nor_the_library_nor_their_users_need_mpi(self):
        for path in (PREFIX / "bin/foretoken", *PREFIX.rglob("libforetoken.so.1")):
            self.assertNotRegex(done("ldd", path), "libmpi|libopen-|libpmi")
        for path in (path for path in PREFIX.rglob("*") if path.suffix in (".pc", ".cmake")):
            self.assertNotRegex(path.read_text().lower(), r"(?<![a-z])(lib|open)?mpi(ch)?(?![a-z])", path)

    def test_without_the_plug_in_an_error_says_what_to_install(self):
        program = pathlib.Path(FOLDER.name) / "alone/foretoken"
        program.parent.mkdir()
        shutil.copy(PREFIX / "bin/foretoken", program)
        self.check_refused(program, {}, r"MPI cannot be loaded: libforetoken_mpi\.so: .*; build foretoken where libopenmpi-dev or libmpich-dev is")

    def test_without_mpi_an_error_says_what_to_install(self):
        absent = self.plug_in("libmpi_absent.so")
        plug_in = self.plug_in("libforetoken_mpi.so", "-Wl,--no-as-needed", f"-L{absent}", "-lmpi_absent")
        self.check_refused(PREFIX / "bin/foretoken", {"LD_LIBRARY_PATH": str(plug_in)},
                           r"MPI cannot be loaded: libmpi_absent\.so: .*; install the MPI that foretoken was built with, openmpi-bin or mpich\n")

    def test_the_plug_in_of_another_build_is_refused(self):
        self.check_refused(PREFIX / "bin/foretoken", {"LD_LIBRARY_PATH": str(self.plug_in("libforetoken_mpi.so"))},
                           r"libforetoken_mpi\.so is not of this foretoken \(0\.1\.0\): .*; install both from one\n")

    @unittest.skipIf("-fsanitize" in ARGUMENTS.flags, "MPI itself is not instrumented")
    def test_two_ranks_say_what_one_process_says(self):
        if not list(PREFIX.rglob("libforetoken_mpi.so")):
            self.skipTest("a build without MPI")
        ranks = done(ARGUMENTS.mpiexec, "-n", "2", PREFIX / "bin/foretoken", *self.FLAGS, environment=self.AS_ROOT)
        self.assertEqual(json.loads(ranks)["token_ids"], json.loads(program(*self.FLAGS).stdout)["token_ids"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + REST)
