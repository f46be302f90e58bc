#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken bench` as its users meet it, on tiny models."""
import json
import pathlib

from cli_testing import BUNDLED, DRAFT, TARGET, Transcript, main, path_of

QUICK = ("-n", "12", "--repeats", "2", "--rows", "1,2", "--contexts", "0,40", "--ignore-eos", "-c", "128", "-t", "2")
KEYS = ["machine", "model", "draft_model", "verify_us", "verify_ratio", "decode_gb_per_s", "draft_us",
        "prompt_tokens_per_second", "plain", "speculative", "speedup", "identical", "prompts"]


def prompts_file(text, name="prompts.jsonl"):
    pathlib.Path(path_of(name)).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path_of(name)


TWO_KINDS = prompts_file("""{"prompt": "Once upon", "category": "story"}

{"question_id": 81, "category": "list", "turns": ["one, two, three,", "and back"]}
{"prompt": "a time", "category": "story"}
""", "two_kinds.jsonl")


class Bench(Transcript):
    def bench(self, *flags, **keywords):
        return self.json("bench", "-m", TARGET, *QUICK, "--json", *flags, **keywords)

    def check_rate(self, rate):
        self.assertGreater(rate["min"], 0)
        self.assertLessEqual(rate["min"], rate["tokens_per_second"])
        self.assertLessEqual(rate["tokens_per_second"], rate["max"])

    def test_the_object_has_the_keys_of_the_schema(self):
        answer = self.bench("-md", DRAFT, "--gamma", "3", "--lookahead", "fixed", "--prompts", TWO_KINDS)
        self.assertEqual(list(answer)[:len(KEYS)], KEYS)
        self.assertLessEqual({"cpu", "isa", "cores", "memory_gb_per_s"}, answer["machine"].keys())
        self.assertGreater(answer["machine"]["memory_gb_per_s"], 0)
        self.assertEqual((answer["model"]["path"], answer["draft_model"]["path"]), (TARGET, DRAFT))
        self.assertEqual(list(answer["verify_us"]), ["1", "2"])
        self.assertEqual(list(answer["draft_us"]), ["1"])
        self.assertEqual(answer["verify_ratio"]["1"], 1)
        self.assertAlmostEqual(answer["verify_ratio"]["2"], answer["verify_us"]["2"] / answer["verify_us"]["1"])
        self.check_rate(answer["plain"])
        self.check_rate(answer["speculative"])
        self.assertEqual(answer["speculative"]["k"], 3)
        self.assertTrue(0 < answer["speculative"]["acceptance_rate"] <= 1)
        self.assertTrue(1 < answer["speculative"]["mean_acceptance_length"] <= 4)
        self.assertGreater(answer["speedup"], 0)
        self.assertIs(answer["identical"], True)
        self.assertEqual(answer["prompts"], 3)

    def test_the_tables_of_cost_are_whole(self):
        answer = self.bench("-md", DRAFT, "--gamma", "4", "--prompts", TWO_KINDS)
        points = [(point["context"], point["rows"]) for point in answer["target_costs"]]
        self.assertEqual(points, [(0, 1), (0, 2), (40, 1), (40, 2)])
        self.assertEqual([(p["context"], p["rows"]) for p in answer["draft_costs"]], [(0, 1), (40, 1)])
        for point in answer["target_costs"] + answer["draft_costs"]:
            self.assertTrue(0 < point["min"] <= point["us"] <= point["max"])
        overhead = answer["overhead"]
        for key in ("dispatch_us", "barrier_us", "judge_us", "draw_us", "target_share", "draft_share"):
            self.assertGreater(overhead[key], 0, key)
        self.assertEqual(overhead["judged_rows"], 5)

    def test_one_row_is_always_measured(self):
        answer = self.json("bench", "-m", TARGET, "-n", "4", "--repeats", "1", "--rows", "4,2,4", "--ignore-eos", "--json")
        self.assertEqual(list(answer["verify_us"]), ["1", "2", "4"])

    def test_kinds_and_batches_have_rows_of_their_own(self):
        answer = self.bench("-md", DRAFT, "--prompts", TWO_KINDS, "--batch", "2,1")
        self.assertEqual([row["batch"] for row in answer["batches"]], [1, 2])
        self.assertEqual([(row["kind"], row["prompts"]) for row in answer["kinds"]], [("story", 2), ("list", 1)])
        for row in answer["batches"] + answer["kinds"]:
            self.check_rate(row["plain"])
            self.check_rate(row["speculative"])
            self.assertTrue(0 < row["speedup_min"] <= row["speedup"] <= row["speedup_max"])
        self.assertEqual(list(answer["draft_us"]), ["1", "2"])
        self.assertIs(answer["identical"], True)

    def test_texts_need_only_agree_where_their_distribution_says_so(self):
        self.assertIs(self.bench("--spec-type", "ngram", "--temp", "0.8", "--prompts", TWO_KINDS)["identical"], True)
        self.assertIs(self.bench("-md", DRAFT, "--temp", "0.8", "--prompts", TWO_KINDS)["identical"], True)
        self.assertIsNone(self.bench("-md", DRAFT, "--temp", "0.8", "--verify", "residual", "-q", "--prompts", TWO_KINDS)["identical"])

    def test_a_copy_of_the_model_is_there_before_the_first_text(self):
        answer = self.bench("--self-draft", "Q4_0", "--lookahead", "fixed", "--num-speculative-tokens", "2")
        self.assertEqual(answer["method"], "self,ngram")
        self.assertGreater(answer["draft_us"]["1"], 0)

    def test_plain_decoding_alone(self):
        answer = self.bench("--spec-type", "none", "--prompts", TWO_KINDS)
        self.check_rate(answer["plain"])
        self.assertEqual(answer["draft_us"], {})
        for key in ("draft_model", "speculative", "speedup", "identical"):
            self.assertIsNone(answer[key], key)

    def test_without_flags_the_bundled_models_write_the_built_in_prompts(self):
        answer = self.json("bench", "-n", "4", "--repeats", "1", "--rows", "1", "--ignore-eos", "--json",
                           environment={"FORETOKEN_MODELS": str(BUNDLED)})
        self.assertEqual(answer["model"]["path"], str(BUNDLED / "tales-9m-q8_0.gguf"))
        self.assertEqual({row["kind"] for row in answer["kinds"]}, {"story", "list", "repetition"})

    def test_the_tables_fit_100_columns_and_name_what_was_measured(self):
        text = self.done("bench", "-m", TARGET, "-md", DRAFT, *QUICK, "--prompts", TWO_KINDS, "--batch", "1,2").stdout.decode()
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for word in ("machine", "target passes", "one more draft", "overhead", "decoding", "story", "list", "token by token"):
            self.assertIn(word, text)
        self.assertEqual(len([line for line in text.splitlines() if line.startswith("  all")]), 3)


class BadUsage(Transcript):
    def bad(self, words, *flags):
        self.fails(2, words, "bench", "-m", TARGET, *flags)

    def test_values_out_of_range_or_of_no_kind(self):
        for flag, value in (("--rows", "0"), ("--rows", "1,,2"), ("--rows", "two"), ("--rows", ""), ("--batch", "0"),
                            ("--batch", "257"), ("--contexts", "-1"), ("--repeats", "0"), ("-n", "0"), ("--temp", "3")):
            self.bad((flag,), flag, value)
        self.bad(("rows: 66", "1 to 65"), "--rows", "66", "--contexts", "0")
        self.bad(("--verify greedy",), "--verify", "greedy", "--temp", "1")
        self.bad(("--prompt",), "--prompt", "a")

    def test_a_context_that_does_not_fit(self):
        self.fails(1, ("contexts: 2000", "--ctx-size"), "bench", "-m", TARGET, "--contexts", "2000")

    def test_lines_of_the_prompts_file_are_named(self):
        for line, words in (("{", ("not JSON",)), ("[1]", ("not a JSON object",)), ('{"text": "a"}', ("`prompt`", "`turns`")),
                            ('{"prompt": 3}', ("`prompt`",)), ('{"prompt": ""}', ("`prompt`", "empty")),
                            ('{"turns": []}', ("`turns`",)), ('{"turns": [1]}', ("`turns`",)), ('{"turns": "a"}', ("`turns`",))):
            path = prompts_file('{"prompt": "fine"}\n\n%s\n' % line, "bad.jsonl")
            self.fails(1, (f"{path}:3: ", *words), "bench", "-m", TARGET, "--prompts", path)
        path = prompts_file(b'{"prompt": "\xff\xfe"}', "bytes.jsonl")
        self.fails(1, (f"{path}:1: ",), "bench", "-m", TARGET, "--prompts", path)
        path = prompts_file("\n \n", "empty.jsonl")
        self.fails(1, (path, "no prompt"), "bench", "-m", TARGET, "--prompts", path)
        self.fails(1, ("/no/such.jsonl",), "bench", "-m", TARGET, "--prompts", "/no/such.jsonl")

    def test_a_prompt_that_does_not_fit_is_named_by_its_line(self):
        path = prompts_file('{"prompt": "fine"}\n' + json.dumps({"prompt": "word " * 200}) + "\n", "long.jsonl")
        self.fails(1, (f"{path}:2: ", "--ctx-size"), "bench", "-m", TARGET, *QUICK, "--prompts", path)

    def test_texts_that_end_at_once_are_no_measurement(self):
        self.fails(2, ("--ignore-eos",), "bench", "-m", TARGET, "-n", "1", "--repeats", "1", "--rows", "1")


if __name__ == "__main__":
    main()
