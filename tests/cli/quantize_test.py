#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken quantize` as its users meet it."""
import json
import os
import pathlib
import resource

from cli_testing import TARGET as SOURCE
from cli_testing import Transcript, main, run_in_terminal

# Rows of the tiny model are 64 and 96 values: no super-blocks of 256.
TYPES = {"F32": "F32", "F16": "F16", "BF16": "BF16", "Q8_0": "Q8_0", "Q4_0": "Q4_0", "Q4_1": "Q4_1", "Q5_0": "Q5_0",
         "Q5_1": "Q5_1", "Q6_K": "Q8_0", "Q4_K": "Q5_0", "Q4_K_M": "Q5_0", "Q4_K_S": "Q5_0", "Q5_K": "Q5_1", "Q5_K_M": "Q5_1",
         "Q5_K_S": "Q5_1", "q4_k_m": "Q5_0", "Q3_K": "Q4_0", "Q2_K": "Q4_0", "IQ4_XS": "IQ4_NL", "IQ4_NL": "IQ4_NL",
         "MXFP4_MOE": "Q8_0"}


class Quantize(Transcript):
    WAY_OUT = r"; [^\n]+"

    def setUp(self):
        self.folder = self.new_folder()
        self.out = os.path.join(self.folder, "out.gguf")

    def quantize(self, *arguments):
        return self.quiet("quantize", *arguments)

    def fails(self, code, words, *arguments, **keywords):
        """And no file that was not there."""
        before = sorted(os.listdir(self.folder))
        super().fails(code, words, "quantize", *arguments, **keywords)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def types(self, path):
        return {tensor["name"]: tensor["type"] for tensor in self.json("inspect", path, "--json", "--tensors")["tensors"]}

    def test_every_type_is_written_and_runs(self):
        for name, matrices in TYPES.items():
            line = self.quantize(SOURCE, self.out, name)
            self.assertRegex(line, r"\A[^\n]+out\.gguf: \w+, [\d.]+ MiB to [\d.]+ MiB, [\d.]+ bits per weight, RMSE \S+, [\d.]+ s[^\n]*\n\Z")
            self.assertEqual("simpler type" in line, matrices[0] in "QI" and name not in ("Q8_0", "MXFP4_MOE"), name)  # at least the head
            types = self.types(self.out)
            self.assertEqual(types["blk.0.attn_q.weight"], matrices, name)
            self.assertEqual(types["blk.0.attn_norm.weight"], "F32", name)
            answer = self.json("generate", "-m", self.out, "-p", "once", "-n", "3", "--temp", "0", "--json", "--ignore-eos")
            self.assertEqual(len(answer["token_ids"]), 3, name)

    def test_json_tells_what_the_file_holds(self):
        report = json.loads(self.quantize(SOURCE, self.out, "Q4_K_M", "--json", "-t", "1"))
        self.assertEqual(report["type"], "Q4_K_M")
        self.assertEqual((report["input"], report["output"], report["threads"]), (SOURCE, self.out, 1))
        self.assertEqual(report["input_bytes"], os.path.getsize(SOURCE))
        self.assertEqual(report["output_bytes"], os.path.getsize(self.out))
        inspected = self.json("inspect", self.out, "--json")
        self.assertEqual(report["parameters"], inspected["parameters"])
        self.assertEqual({t["type"]: (t["tensors"], t["bytes"]) for t in report["tensor_types"]},
                         {t["type"]: (t["tensors"], t["bytes"]) for t in inspected["tensor_types"]})
        self.assertGreater(report["rmse"], 0)
        self.assertGreater(report["fallbacks"], 0)
        self.assertAlmostEqual(report["bits_per_weight"],
                               8 * sum(t["bytes"] for t in report["tensor_types"]) / report["parameters"])

    def test_flags_choose_types_of_single_tensors(self):
        self.quantize(SOURCE, self.out, "Q4_0", "--output-tensor-type", "Q8_0", "--token-embedding-type", "f16", "-q")
        types = self.types(self.out)
        self.assertEqual((types["output.weight"], types["token_embd.weight"], types["blk.0.ffn_up.weight"]), ("Q8_0", "F16", "Q4_0"))

    def test_a_fourth_argument_is_the_number_of_threads_and_changes_nothing(self):
        self.quantize(SOURCE, self.out, "Q5_1", "3")
        other = os.path.join(self.folder, "other.gguf")
        self.quantize(SOURCE, other, "Q5_1", "-t", "1")
        self.assertEqual(pathlib.Path(self.out).read_bytes(), pathlib.Path(other).read_bytes())

    def test_quiet_says_nothing(self):
        self.assertEqual(self.quantize(SOURCE, self.out, "Q8_0", "-q"), "")
        self.assertTrue(os.path.exists(self.out))

    def test_an_existing_output_is_replaced(self):
        pathlib.Path(self.out).write_text("something else")
        self.quantize(SOURCE, self.out, "Q8_0")
        self.assertEqual(self.types(self.out)["output.weight"], "Q8_0")
        self.assertEqual(os.listdir(self.folder), ["out.gguf"])

    def test_quantised_files_need_a_flag(self):
        first, second = os.path.join(self.folder, "first.gguf"), os.path.join(self.folder, "second.gguf")
        self.quantize(SOURCE, first, "Q8_0")
        self.fails(2, ("first.gguf", "token_embd.weight", "Q8_0", "--allow-requantize"), first, second, "Q4_0")
        self.quantize(first, second, "Q4_0", "--allow-requantize")
        self.assertEqual(self.types(second)["blk.0.attn_q.weight"], "Q4_0")

    def test_bad_usage(self):
        self.fails(2, ("0 of 3",))
        self.fails(2, ("2 of 3", "Q4_K_M"), SOURCE, self.out)
        self.fails(2, ("Q9_X", "Q4_K_M", "BF16", "Q8_0"), SOURCE, self.out, "Q9_X")
        self.fails(2, ("threads", "many"), SOURCE, self.out, "many", "many")
        self.fails(2, ("too many", "five"), SOURCE, self.out, "Q8_0", "1", "five")
        self.fails(2, ("-t", "0"), SOURCE, self.out, "Q8_0", "-t", "0")
        self.fails(2, ("output head", "Q4_K_M"), SOURCE, self.out, "Q8_0", "--output-tensor-type", "Q4_K_M")
        self.fails(2, ("--imatrix", "no such flag"), SOURCE, self.out, "Q8_0", "--imatrix", "x")
        self.fails(2, ("is the input, too",), SOURCE, SOURCE, "Q8_0")
        self.fails(2, ("is a folder",), SOURCE, self.folder, "Q8_0")

    def test_files_that_are_not_there(self):
        self.fails(1, ("nothing.gguf", "no such file"), os.path.join(self.folder, "nothing.gguf"), self.out, "Q8_0")
        self.fails(1, ("cannot create", "No such file"), SOURCE, os.path.join(self.folder, "none", "out.gguf"), "Q8_0")

    def test_without_space_nothing_is_left(self):
        pathlib.Path(self.out).write_text("before")

        def little_space():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

        # Python ignores SIGXFSZ; the program inherits that, and the write fails as on a full disk.
        self.fails(1, ("out.gguf", "free space"), SOURCE, self.out, "F16", restore_signals=False, preexec_fn=little_space)
        self.assertEqual(pathlib.Path(self.out).read_text(), "before")

    def test_progress_shows_on_a_terminal_only(self):
        shown, code = run_in_terminal("quantize", SOURCE, self.out, "Q4_0", term="xterm")
        self.assertEqual(code, 0)
        self.assertRegex(shown, r"quantising +\d+ %  blk\.0\.attn_q\.weight")
        self.assertRegex(shown, r"\x1b\[K[^\r]*out\.gguf: Q4_0, ")
        # The other tests find standard error empty: no progress in a pipe.


if __name__ == "__main__":
    main()
