#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken certify`, `check-pair` and `tune` as their users meet them, on tiny models."""
import json
import pathlib
import subprocess
import unittest

from cli_testing import BUNDLED, DRAFT, OTHER, TARGET, WITH_BUNDLED, Transcript, main, path_of, run

PAIR = ("-m", TARGET, "-md", DRAFT, "-c", "128", "-t", "1")
QUICK = ("-n", "12", "--max-prompts", "2", "-s", "7")


def prompts_file(*prompts):
    path = path_of("pair_prompts.jsonl")
    pathlib.Path(path).write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    return path


class Certify(Transcript):
    def certify(self, code, *flags, **keywords):
        result = run("certify", *PAIR, *QUICK, "--json", *flags, **keywords)
        self.assertEqual((result.returncode, result.stderr), (code, b""))
        return json.loads(result.stdout)

    def test_a_pair_is_exact_for_every_k_and_batch(self):
        answer = self.certify(0, "--ks", "3,1", "--batch", "1,3", "--temp", "0.9")
        self.assertEqual(answer["certificate"], "exact")
        self.assertIsNone(answer["first_difference"])
        runs = [(run["text"], run["batch"], run["k"]) for run in answer["runs"]]
        self.assertEqual(runs, [(text, batch, k) for text in ("greedy", "sampled")
                                for batch, k in ((1, 1), (1, 3), (3, 0), (3, 1), (3, 3))])
        for run in answer["runs"]:
            self.assertEqual(run["differing"], 0)
            self.assertGreater(run["tokens"], 0)
            self.assertEqual(run["drafted"] > 0, run["k"] > 0)
        self.assertGreater(sum(run["accepted"] for run in answer["runs"]), 0)

    def test_every_drafter_is_exact(self):
        for method in ("standalone", "eagle", "mtp", "self", "ngram"):
            answer = self.json("certify", *QUICK, "-t", "1", "--ks", "2", "--json", "--spec-type", method, "--prompts",
                               prompts_file("a b a b a b a b", "once once once once"), environment=WITH_BUNDLED)
            self.assertEqual((answer["method"], answer["certificate"]), (method, "exact"))
            self.assertEqual(list(answer["drafters"]), [method])
            for count in ("drafted", "accepted"):
                self.assertEqual(answer["drafters"][method][count], sum(run[count] for run in answer["runs"]))

    def test_a_copy_that_nobody_asked_for_drafts_from_the_first_text_on(self):
        """Elsewhere it is made while the engine works, and all that is compared might be plain texts."""
        flags = ("-m", TARGET, "-t", "1", *QUICK, "--self-draft", "Q4_0", "--ks", "2", "--batch", "1")
        answer = self.json("certify", *flags, "--json")
        self.assertEqual((answer["certificate"], answer["method"]), ("exact", "self,ngram"))
        self.assertGreater(answer["drafters"]["self"]["accepted"], 0)
        text = self.done("certify", *flags).stdout.decode()
        self.assertIn("drafter   self,ngram: a copy in Q4_0\n", text)
        self.assertRegex(text, r"(?m)^  self +\d+ +\d+ +\d+\.\d %$")

    def test_drafters_that_drafted_nothing_are_not_certified(self):
        answer = self.certify(0, "--ks", "1", "--batch", "1", "--spec-type", "standalone,ngram")  # the first one that drafts does
        self.assertEqual((answer["certificate"], list(answer["drafters"])), ("exact", ["standalone"]))
        self.assertEqual(answer["not_proved"], ["drafts by ngram: there were none for these prompts"])

    def test_texts_that_are_not_the_models_are_found_out(self):
        """The negative control of the comparison: accepting at random changes texts."""
        answer = self.certify(1, "--synthetic-acceptance-rate", "0.9", "--ks", "2", "--batch", "1")
        self.assertEqual(answer["certificate"], "differs")
        first = answer["first_difference"]
        self.assertEqual((first["k"], first["batch"], first["text"], first["what"]), (2, 1, "greedy", "token"))
        self.assertNotEqual(first["plain"]["id"], first["speculative"]["id"])
        self.assertGreater(answer["runs"][0]["differing"], 0)

    def test_the_table_ends_with_a_verdict(self):
        text = self.done("certify", *PAIR, *QUICK, "--ks", "1,2").stdout.decode()
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertRegex(text, r"(?m)^EXACT: every text of temperature 0 ")
        result = run("certify", *PAIR, *QUICK, "--ks", "2", "--synthetic-acceptance-rate", "0.9")
        text = result.stdout.decode()
        self.assertEqual(result.returncode, 1)
        self.assertRegex(text.splitlines()[-1], r"\ADIFFERENT: ")
        self.assertIn("first difference: built-in prompt", text)

    def test_the_verdict_says_what_was_tested_and_what_not(self):
        flags = ("--ks", "2", "--batch", "1")
        greedy = "every text of temperature 0 is plain decoding's, bit for bit (greedy)"
        sampled = "every text of temperature 0.8 too, with one seed (sample-match)"
        for more, certificate, strategy, proved in (
                ((), "exact", "sample-match", [greedy, sampled]), (("--verify", "sample-match"), "exact", "sample-match", [greedy, sampled]),
                (("--verify", "residual"), "untested", "residual", [greedy]), (("--verify", "block"), "untested", "block", [greedy]),
                (("--verify", "relaxed"), "untested", "relaxed", [greedy]),
                # With a controller of fixed rules sampled drafts are verified by residual.
                (("--lookahead", "ewma"), "untested", "residual", [greedy, sampled]),
                (("--temp", "0"), "exact", "greedy", [greedy])):
            answer = self.certify(0 if certificate == "exact" else 1, *flags, *more)
            self.assertEqual((answer["certificate"], answer["strategy"], answer["proved"]), (certificate, strategy, proved), more)
            self.assertEqual(len(answer["not_proved"]), 1 if certificate == "untested" else 0, more)
            for part in answer["not_proved"]:
                self.assertRegex(part, f"'{strategy}', which verifies texts of temperature 0.8 here: .*; add --stochastic")
        for strategy in ("residual", "typical-acceptance"):  # asked for, and replaced by greedy
            result = run("certify", *PAIR, *QUICK, *flags, "--temp", "0", "--verify", strategy)
            lines = result.stdout.decode().splitlines()
            self.assertEqual((result.returncode, lines[-2]), (0, "EXACT: " + greedy))
            self.assertEqual(lines[-1], f"not tested: '{strategy}' itself: at temperature 0 every strategy is greedy; raise --temp")
        text = run("certify", *PAIR, *QUICK, *flags, "--verify", "residual").stdout.decode()
        self.assertNotIn("EXACT", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_flags_that_only_the_stochastic_test_reads_are_named(self):
        result = run("certify", *PAIR, *QUICK, "--ks", "2", "--batch", "1", "--gamma", "3", "--draft-temp", "0.5", "--samples", "500")
        self.assertRegex(result.stderr.decode(), r"the sampling of drafts \(only --stochastic reads it\), --num-speculative-tokens "
                                                 r"\(--ks decides\), --samples \(only --stochastic reads it\); leave them out\n\Z")

    def test_nothing_drafted_proves_nothing(self):
        self.fails(2, ("nothing drafts",), "certify", "-m", TARGET, "--spec-type", "none")


DISTRIBUTION = ("--stochastic", "--ks", "2", "--batch", "1", "-n", "4", "--max-prompts", "1", "--temp", "0.7")


class Distribution(Transcript):
    def distribution(self, code, *flags, top_k=6):
        result = run("certify", *PAIR, "-s", "11", *DISTRIBUTION, "--top-k", str(top_k), "--json", *flags)
        self.assertEqual(result.returncode, code, result.stdout.decode() + result.stderr.decode(errors="replace"))
        return json.loads(result.stdout)

    def test_speculation_keeps_the_distribution_and_the_control_fails(self):
        answer = self.distribution(0, "--samples", "3000")
        distribution = answer["law"]
        self.assertEqual((answer["certificate"], distribution["strategy"]), ("exact", "residual"))
        self.assertTrue(distribution["passed"] and distribution["control_failed"])
        self.assertEqual([test["tokens"] for test in distribution["tests"]], ["2", "3", "4", "2 and 3"])
        self.assertLess(min(test["control"]["p"] for test in distribution["tests"]), distribution["level"])
        for test in distribution["tests"]:
            self.assertGreaterEqual(test["speculation"]["p"], distribution["level"])

    def test_a_rule_that_changes_the_distribution_is_found_out(self):
        for flags in (("--skip-sample-adjustment",), ("--verify", "typical-acceptance")):
            answer = self.distribution(1, "--samples", "3000", *flags)
            self.assertEqual(answer["certificate"], "differs", flags)
            self.assertFalse(answer["law"]["passed"])

    def test_a_control_that_passes_proves_nothing(self):
        answer = self.distribution(1, "--samples", "100", top_k=1)
        self.assertEqual(answer["certificate"], "untested")
        self.assertEqual(answer["law"]["samples"], 400)

    def test_a_lossy_rule_is_not_certified_by_greedy_texts(self):
        result = run("certify", *PAIR, *QUICK, "--ks", "2", "--verify", "typical-acceptance", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["certificate"]), (1, "untested"))

    def test_temperature_0_has_no_distribution(self):
        self.fails(2, ("--stochastic",), "certify", *PAIR, "--stochastic", "--temp", "0")


class CheckPair(Transcript):
    def test_a_pair_that_fits(self):
        answer = self.json("check-pair", *PAIR, *QUICK, "--gamma", "3", "--json")
        self.assertIs(answer["usable"], True)
        self.assertEqual(answer["vocabulary"]["differing"], 0)
        for part in ("model", "draft_model"):
            self.assertGreater(answer[part]["weight_bytes"], 0)
            self.assertGreater(answer[part]["cache_bytes"], 0)
        measured = answer["measured"]
        self.assertEqual(list(measured["verify_us"]), ["1", "2", "3", "4"])
        costs = list(measured["verify_us"].values())
        self.assertEqual(costs, sorted(costs))
        self.assertEqual(len(measured["survival"]), 3)
        self.assertEqual(measured["survival"], sorted(measured["survival"], reverse=True))
        self.assertEqual(list(measured["expected_speedup"]), ["1", "2", "3"])
        drafted, gained, passes = measured["drafted_share"][0], measured["gained_share"][0], measured["verify_us"]
        us = drafted * (measured["begin_us"] + measured["draft_us"] + passes["2"]) + (1 - drafted) * passes["1"] + measured["rest_us"]
        self.assertAlmostEqual(measured["expected_speedup"]["1"], (1 + gained) * measured["plain_us"] / us)
        self.assertIn(measured["best_k"], range(4))
        self.assertEqual(measured["best"] is None, measured["best_k"] == 0)
        self.assertGreater(measured["as_set"]["speedup"], 0)
        self.assertTrue(answer["recommendation"])
        if answer["recommendation"].startswith("Use it"):  # with the fastest of what was measured
            faster = measured["best"] is not None and measured["best"]["speedup"] > measured["as_set"]["speedup"]
            self.assertIn("--lookahead " + ("fixed" if faster else "cost-model"), answer["recommendation"])

    def test_it_measures_what_bench_does(self):
        """Same prompts, settings and lengths without a flag: only the clock differs."""
        for flags in ((), ("--gamma", "3", "--temp", "0.8", "-s", "7"), ("--spec-type", "ngram")):
            files = ("-m", TARGET) if "--spec-type" in flags else ("-m", TARGET, "-md", DRAFT)
            common = (*files, "-c", "256", "-t", "1", "--lookahead", "fixed", "--repeats", "2", *flags)
            bench = self.json("bench", *common, "--rows", "1", "--contexts", "0", "--json", "-q")
            answer = self.json("check-pair", *common, "--json", "-q")
            for field in ("prompts", "tokens", "temperature", "repeats"):
                self.assertEqual(answer[field], bench[field], (flags, field))
            measured = answer["measured"]["as_set"]
            self.assertEqual(measured["batch"], 1)
            for field in ("k", "acceptance_rate", "mean_acceptance_length"):
                self.assertEqual(measured["speculative"][field], bench["speculative"][field], (flags, field))
            self.assertLessEqual(measured["speedup_min"], measured["speedup"])

    def test_a_lookup_needs_no_file(self):
        answer = self.json("check-pair", "-m", TARGET, "-c", "128", "-t", "1", *QUICK, "--spec-type", "ngram", "-q", "--json",
                           "--prompts", prompts_file("a b a b a b a b", "once once once once"))
        self.assertIs(answer["usable"], True)
        self.assertEqual((answer["draft_model"], answer["vocabulary"]), (None, None))
        self.assertEqual(answer["measured"]["method"], "ngram")
        self.assertLess(answer["measured"]["drafted_share"][0], 1)

    def test_a_pair_of_two_vocabularies(self):
        pair = ("-m", TARGET, "-md", OTHER, "-c", "128", "-t", "1")
        answer = self.json("check-pair", *pair, *QUICK, "-q", "--json")
        self.assertIs(answer["usable"], True)
        self.assertEqual((answer["vocabulary"]["model"], answer["vocabulary"]["draft_model"]), (320, 280))
        loss = answer["vocabulary"]["map"]
        self.assertLessEqual(loss["pairs"], 280)
        self.assertGreater(loss["pairs"], 200)
        for share in ("text_share_unpaired", "draft_probability_unpaired"):
            self.assertGreater(loss[share], 0)
            self.assertLess(loss[share], 1)
        self.assertGreaterEqual(loss["draft_tokens_per_token"], 1)
        text = run("check-pair", *pair, *QUICK, "-q").stdout.decode()
        self.assertIn("320 and 280 of two vocabularies", text)
        self.assertLessEqual(max(map(len, text.splitlines()[:-1])), 100)
        certified = self.json("certify", *pair, *QUICK, "--ks", "1,3", "-q", "--json")
        self.assertEqual(certified["certificate"], "exact")

    def test_a_pair_of_nearly_one_vocabulary(self):
        padded = ("-m", TARGET, "-md", path_of("padded.gguf"), "-c", "128", "-t", "1")
        answer = self.json("check-pair", *padded, *QUICK, "--gamma", "3", "-q", "--json")
        self.assertIs(answer["usable"], True)
        self.assertGreater(answer["measured"]["accepted"], 0)
        self.assertEqual(answer["vocabulary"], {"model": 320, "draft_model": 330, "shared": 318, "differing": 2, "first":
                                                ["0: '<unk>' / '<|pad|>'", "300: 'ed' / '<|tool|>'"]})
        text = run("check-pair", *padded, *QUICK, "-q").stdout.decode()
        self.assertIn("318 (99.38 % of the model's) are shared, the others are never drafted", text)
        certified = self.json("certify", *padded, *QUICK, "--ks", "1,3", "-q", "--json")
        self.assertEqual(certified["certificate"], "exact")

    def test_a_head_and_its_model(self):
        answer = self.json("check-pair", *QUICK, "-t", "1", "--spec-type", "mtp", "--json", environment=WITH_BUNDLED)
        self.assertEqual((answer["draft_model"]["drafts_as"], answer["measured"]["method"]), ("mtp", "mtp"))

    def test_drafts_are_found_as_generate_finds_them(self):
        """The draft model beside these heads is as large as the model, so nobody uses it unasked."""
        model = ("-m", str(BUNDLED / "tales-9m-q8_0.gguf"), "-c", "128", "-t", "1")
        done = self.done("check-pair", *model, *QUICK, "--gamma", "2", "--json")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer["measured"]["method"] for answer in answers], ["eagle", "mtp"])
        for answer in answers:
            method = answer["measured"]["method"]
            self.assertEqual(answer["draft_model"]["path"], str(BUNDLED / f"tales-9m-{method}-q8_0.gguf"))
            self.assertIs(answer["usable"], True)
        self.assertIn("tales-1m-draft-q8_0.gguf", done.stderr.decode())
        one = self.json("check-pair", *model, *QUICK, "--gamma", "2", "--spec-type", "mtp", "-q", "--json")
        self.assertEqual(one["draft_model"]["path"], str(BUNDLED / "tales-9m-mtp-q8_0.gguf"))
        text = self.done("check-pair", *model, *QUICK, "--gamma", "2", "-q").stdout.decode()
        self.assertEqual(text.count("\n\nmodel     tales-9m-q8_0.gguf"), 1)

    def test_the_tables_fit_100_columns(self):
        for flags, shown, hidden in (((), ("tokens", "accepted in", "cost-model, K 16"), ("memory", "one more draft")),
                                     (("--stats",), ("tokens", "memory", "one more draft", "estimates", "cost-model, K 16"), ())):
            text = self.done("check-pair", *PAIR, *QUICK, *flags).stdout.decode()
            self.assertLessEqual(max(map(len, text.splitlines()[:-1])), 100)
            for word in shown:
                self.assertIn(word, text)
            for word in hidden:
                self.assertNotIn(word, text)

    def test_what_is_missing(self):
        self.fails(2, ("-md", "beside the model"), "check-pair", "-m", TARGET)
        self.fails(2, ("'eagle'", "beside the model"), "check-pair", "-m", TARGET, "--spec-type", "eagle")
        self.fails(2, ("--spec-type",), "check-pair", "-m", TARGET, "--spec-type", "none")
        self.fails(1, ("/no/such.gguf",), "check-pair", "-m", TARGET, "-md", "/no/such.gguf")


RANDOM_MODELS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "peer" / "make-random-gguf"


@unittest.skipUnless(RANDOM_MODELS.exists(), "no make-random-gguf beside the repository")
class RandomPairs(Transcript):
    """Random weights of another shape, with vocabularies of other sizes: drafts are mostly wrong, texts hold any token."""

    def model(self, name, vocabulary, dim):
        path = path_of(name)
        made = subprocess.run([RANDOM_MODELS, path, str(dim), str(2 * dim), "1", "2", "1", str(vocabulary), "5"],
                              capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("make-random-gguf failed: %s" % made.stderr.decode(errors="replace")[-200:])
        return path

    def test_vocabularies_of_other_sizes_are_exact(self):
        target = self.model("random.gguf", 1000, 64)
        for vocabulary in (880, 920, 1100):  # the first has a map of tokens
            pair = ("-m", target, "-md", self.model("random%d.gguf" % vocabulary, vocabulary, 32), "-t", "1", "-c", "256")
            answer = self.json("certify", *pair, *QUICK, "-q", "--json", "--ks", "1,4", "--batch", "1,3", "--temp", "0.9")
            self.assertEqual(answer["certificate"], "exact")
            self.assertGreater(sum(run["drafted"] for run in answer["runs"]), 100)
            distribution = self.json("certify", *pair, "-s", "11", *DISTRIBUTION, "--top-k", "6", "--samples", "3000", "-q", "--json")
            self.assertEqual(distribution["certificate"], "exact")


class Tune(Transcript):
    def test_a_profile_is_written_and_read(self):
        profile = path_of("tuned.json")
        answer = self.json("tune", *PAIR, *QUICK, "--gamma", "3", "--repeats", "1", "-o", profile, "--json")
        self.assertEqual(answer["profile_path"], profile)
        written = json.loads(pathlib.Path(profile).read_text())
        self.assertEqual(written, answer["profile"])
        self.assertEqual(written["target"]["bytes"], pathlib.Path(TARGET).stat().st_size)
        self.assertEqual([(p["context"] > 0, p["rows"]) for p in written["passes"]],
                         [(later, rows) for later in (False, True) for rows in (1, 2, 3, 4, 6)])
        methods = [drafter["method"] for drafter in answer["drafters"]]
        self.assertEqual(methods, ["standalone", "ngram", "suffix"])
        for trial in answer["trials"]:
            self.assertGreater(trial["speedup"]["median"], 0)
            self.assertIn(trial["lookahead"], ("fixed", "cost-model"))
        self.assertIn(written["recommendation"]["method"], methods + ["none"])
        recommended = answer["recommended"]
        self.assertEqual(recommended is None, written["recommendation"]["method"] == "none")
        if recommended is not None:
            self.assertEqual(written["recommendation"]["speedup"], recommended["speedup"]["median"])
        self.done("generate", *PAIR, "-p", "a", "-n", "4", "--profile", profile)

    def test_the_bundled_drafters_are_tried(self):
        answer = self.json("tune", *QUICK, "-t", "1", "--gamma", "2", "--repeats", "1", "-o", path_of("bundled.json"),
                           "--json", environment=WITH_BUNDLED)
        self.assertEqual([drafter["method"] for drafter in answer["drafters"]],
                         ["standalone", "eagle", "mtp", "ngram", "suffix"])

    def test_copies_of_the_model_are_tried(self):
        profile = path_of("copies.json")
        answer = self.json("tune", *QUICK, "-m", TARGET, "-t", "1", "--gamma", "2", "--repeats", "1", "--self-draft", "Q4_0",
                           "--self-draft", "Q4_0,Q4_0", "--self-draft", "Q4_K", "--self-draft", "Q8_0", "-o", profile, "--json")
        copies = [drafter for drafter in answer["drafters"] if drafter["method"] == "self"]
        self.assertEqual([copy["self_draft"] for copy in copies], ["Q4_0", "Q4_K", "Q8_0"])  # Q4_0,Q4_0 is Q4_0
        self.assertGreater(min(copy["drafted"] for copy in copies), 0)
        written = json.loads(pathlib.Path(profile).read_text())
        self.assertEqual([draft["self_draft"] for draft in written["drafts"] if draft["method"] == "self"],
                         ["Q4_0", "Q4_K", "Q8_0"])
        text = self.done("tune", *QUICK, "-m", TARGET, "--repeats", "1", "--self-draft", "Q4_0", "-o", profile).stdout
        self.assertIn(b"a copy in Q4_0", text)

    def test_the_report_names_the_profile(self):
        text = self.done("tune", *PAIR, *QUICK, "--repeats", "1", "-o", path_of("named.json")).stdout.decode()
        for word in ("passes, microseconds", "drafters", "recommended:", "named.json"):
            self.assertIn(word, text)

    def test_what_is_wrong(self):
        self.fails(1, ("/no/such.gguf",), "tune", "-m", TARGET, "-md", "/no/such.gguf")
        self.fails(1, ("/no/such/folder/a.json",), "tune", *PAIR, *QUICK, "--repeats", "1", "--gamma", "1", "-o",
                   "/no/such/folder/a.json")
        self.fails(2, ("--repeats",), "tune", *PAIR, "--repeats", "0")
        self.fails(2, ("self_draft", "Q9"), "tune", *PAIR, "--self-draft", "Q9")


if __name__ == "__main__":
    main()
