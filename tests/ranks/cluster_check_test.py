#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken cluster check`, and `--ranks numa`.

usage: cluster_check_test.py MPIRUN FORETOKEN MODELS (run by ctest)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MPIRUN, PROGRAM, MODELS = sys.argv[1:4]
PAIR = ["-m", f"{MODELS}/tales-9m-q8_0.gguf", "-md", f"{MODELS}/tales-1m-draft-q8_0.gguf", "-t", "1", "-n", "16", "--max-prompts", "2",
        "--repeats", "1"]


def run(*command, path=None):
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


def check(n, *arguments):
    done = run(MPIRUN, "-n", str(n), PROGRAM, "cluster", "check", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


class ClusterCheck(unittest.TestCase):
    def test_one_process_alone_is_told_how_to_start_several(self):
        done = run(PROGRAM, "cluster", "check")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("mpirun -n 2 foretoken cluster check", done.stderr)

    def test_it_does_nothing_else(self):
        done = run(PROGRAM, "cluster", "burn")
        self.assertEqual(done.returncode, 2)
        self.assertIn("give 'check'", done.stderr)

    def test_the_tables_have_each_rank_and_each_size(self):
        text = check(2)
        self.assertRegex(text, r"(?m)^ *rank  host")
        self.assertRegex(text, r"(?m)^ *0  \S+ .* GB/s +[0-9.]+ %$")
        self.assertRegex(text, r"(?m)^ *1  \S+ .* GB/s +[0-9.]+ %$")
        self.assertIn("gathers among 2 ranks", text)
        self.assertRegex(text, r"(?m)^ +1024 KiB +[0-9.]+ \([0-9.]+-[0-9.]+\) +[0-9.]+$")
        self.assertNotIn("tokens/s", text)

    def test_with_a_model_the_json_has_measured_and_computed_speeds(self):
        facts = json.loads(check(2, *PAIR, "--json"))
        self.assertEqual([rank["rank"] for rank in facts["ranks"]], [0, 1])
        for rank in facts["ranks"]:
            self.assertTrue(rank["host"] and rank["isa"] and rank["threads"] == 1 and rank["memory_gb_per_s"] > 0, rank)
        sizes = [gather["bytes"] for gather in facts["gathers"]]
        self.assertEqual(sizes, sorted(sizes))
        model = facts["model"]
        self.assertGreater(model["pass_gathers"], 0)
        self.assertGreater(model["pass_gather_bytes"], 0)
        speeds = model["tokens_per_second"]
        self.assertEqual([(speed["ranks"], speed["measured"]) for speed in speeds], [(1, False), (2, True)])
        for speed in speeds:
            self.assertGreater(speed["plain"], 0)
            self.assertGreaterEqual(speed["with_drafts"], speed["plain"])

    def test_without_a_drafter_it_tells_the_speed_of_plain_decoding(self):
        self.assertRegex(check(2, *PAIR, "--spec-type", "none"), r"(?m)^ +2 +[0-9.]+ .*measured$")

    def test_ten_thousand_tokens_a_second_are_written_out(self):
        fast = [*PAIR, "--spec-type", "none"]
        fast[1] = fast[3]  # the drafter as the target
        self.assertNotRegex(check(2, *fast), r"[0-9]e[+-]")


class NumaRanks(unittest.TestCase):
    GENERATE = ("generate", "-p", "Once", "-n", "4", "-q", *PAIR[:6])

    @classmethod
    def setUpClass(cls):
        made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(made.cleanup)
        cls.nodes, cls.programs = (pathlib.Path(made.name) / name for name in ("nodes", "programs"))
        for folder in (cls.nodes, cls.programs):
            folder.mkdir()

    def with_nodes(self, n, path):
        """As on a machine with so many NUMA nodes with processors, and one with memory alone."""
        for i in range(n + 1):
            (self.nodes / f"node{i}").mkdir(exist_ok=True)
            (self.nodes / f"node{i}/cpulist").write_text("0\n" if i < n else "\n", encoding="ascii")
        done = run("unshare", "--mount", "sh", "-c", f"mount --bind {self.nodes} /sys/devices/system/node && exec \"$@\"", "sh", PROGRAM,
                   *self.GENERATE, "--ranks", "numa", path=path)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest(done.stderr.strip())
        return done

    def test_one_node_is_one_process(self):
        done = self.with_nodes(1, os.environ["PATH"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("one NUMA node", done.stderr)

    def test_each_node_gets_a_rank_that_is_bound_to_it(self):
        mpirun = self.programs / "mpirun"
        mpirun.write_text('#!/bin/sh\nprintf "%s\\n" "$*"\n', encoding="ascii")
        mpirun.chmod(0o755)
        done = self.with_nodes(2, f"{self.programs}:{os.environ['PATH']}")
        command = f"-n 2 -map-by numa -bind-to numa {os.path.realpath(PROGRAM)} {' '.join(self.GENERATE)} --ranks mpi\n"
        self.assertEqual((done.returncode, done.stdout), (0, command))

    def test_a_machine_without_mpirun_is_told_what_to_install(self):
        tools = self.programs.parent / "tools"
        tools.mkdir()
        for name in ("sh", "mount", "unshare"):
            (tools / name).symlink_to(subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip())
        done = self.with_nodes(2, str(tools))
        self.assertEqual(done.returncode, 1)
        self.assertIn("install openmpi-bin or mpich", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
