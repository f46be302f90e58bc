#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ranks do where one of them stops, dies or gives up: all have ended in time, with an error that names it.

usage: calls_test.py MPIRUN RANK_CALLS SLOW_NETWORK (run by ctest)
"""
import concurrent.futures
import re
import subprocess
import sys
import unittest

MPIRUN, PROGRAM, SLOW_NETWORK = sys.argv[1:4]
DEADLINE_S = 4  # a rank on a busy machine answers within it
LOOK_S = DEADLINE_S / 80  # of an MPI_Test: ten are little beside the deadline, 64 are longer than a rank may be silent
HANG_S = 300  # a call that waits for ever is found


def ranks(n, *arguments, environment=()):
    """Exit code and all output."""
    done = subprocess.run([MPIRUN, "-n", str(n), "env", *environment, PROGRAM, str(DEADLINE_S), *map(str, arguments)], capture_output=True,
                          text=True, timeout=HANG_S, check=False)
    return done.returncode, done.stdout + done.stderr


def two_at_once(runs):
    """What ranks() says of each (number, arguments, environment); for runs that mostly wait. Where a machine's own name has no address, the
    start of MPI waits for a name server: 5 s alone, and 24 s, the limit, if four start at once."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda run: ranks(run[0], *run[1], environment=run[2]), runs))


class Calls(unittest.TestCase):
    def test_each_call_does_what_it_says(self):
        for n in (1, 2, 3):
            self.assertEqual(ranks(n, "calls"), (0, f"{n} ranks: done\n"))

    def test_busy_ranks_and_one_that_leaves_late_are_not_lost(self):
        """They mostly wait: all but one, where a rank spins. Of three ranks one leads, one is busy, and one is neither."""
        look = ("LD_PRELOAD=" + SLOW_NETWORK, f"LOOK_US={LOOK_S * 1e6:.0f}")
        cases = {"busy": (2, ("busy",), ()), "busy, and looks take long": (3, ("busy",), look),
                 "rank 0 leaves late": (2, ("leaves", 0), ()), "rank 1 leaves late": (2, ("leaves", 1), ())}
        for name, done in zip(cases, two_at_once(cases.values())):
            with self.subTest(name):
                self.assertEqual(done, (0, f"{cases[name][0]} ranks: done\n"))

    def test_a_rank_that_stops_in_a_pass_or_without_one_is_named(self):
        cases = [(what, stopped) for what in ("gathers", "waits") for stopped in (0, 2)]
        for (what, stopped), (code, text) in zip(cases, two_at_once([(3, case, ()) for case in cases])):
            with self.subTest(what, stopped=stopped):
                self.assertNotEqual(code, 0)
                self.assertRegex(text, rf"ranks: rank {stopped} on \S+ does not answer any more; look at its machine")
                self.assertNotRegex(text, rf"rank {1 if stopped == 2 else 2} on \S+ does not answer")

    def test_a_rank_that_is_stopped_before_it_joins_ends_all(self):
        rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
        command = f'if [ "{rank}" = 1 ]; then kill -STOP $$; fi; exec "$@"'
        done = subprocess.run([MPIRUN, "-n", "2", "sh", "-c", command, "sh", PROGRAM, "1", "calls"], capture_output=True, text=True,
                              timeout=HANG_S, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"rank 0 on \S+: not all ranks have joined in 6 s, because one is stopped")

    def test_a_rank_that_gives_up_ends_all(self):
        code, text = ranks(3, "aborts", 1)
        self.assertNotEqual(code, 0)
        self.assertRegex(text, r"foretoken: rank 1 on \S+: this rank cannot go on")

    def test_a_rank_that_is_killed_ends_all(self):
        for killed in (0, 1):
            code, text = ranks(3, "dies", killed)
            self.assertNotEqual(code, 0)
            self.assertTrue(re.search(rf"\brank {killed}\b", text) or "BAD TERMINATION" in text, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
