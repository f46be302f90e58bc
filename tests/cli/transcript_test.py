#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program as its users meet it: help, errors, exit codes, texts and JSON."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from cli_testing import BUNDLED, DRAFT, FOLDER, OTHER, PROGRAM, SECONDS, TARGET, WITH_BUNDLED, Transcript, main, run, run_in_terminal

# Bytes of every kind: letters, accents, CJK, emoji, control bytes, and some that are not UTF-8.
ODD_BYTES = "Once upon\n\ta time, café 日本 🙂 ".encode() + bytes([0xFF, 0xC3, 0x28, 0x80, 0x01, 0x7F])


class Help(Transcript):
    def test_the_program_alone_prints_its_verbs_and_two_examples(self):
        text = self.done().stdout.decode()
        for verb in ("generate", "bench", "inspect", "quantize", "tokenize"):
            self.assertRegex(text, rf"(?m)^  {verb} +\w")
        self.assertEqual(len(re.findall(r"(?m)^  foretoken ", text)), 2)
        for other in (("--help",), ("-h",), ("help",)):
            self.assertEqual(text, self.done(*other).stdout.decode())

    def test_version(self):
        for words in ("--version", "-V", "version"):
            self.assertRegex(self.done(words).stdout.decode(), r"\Aforetoken \d+\.\d+\.\d+\n\Z")

    def verbs(self):
        return re.findall(r"(?m)^  ([a-z-]+)  +[a-z]", self.done().stdout.decode())

    def test_each_verb_explains_itself_within_the_width(self):
        self.assertGreaterEqual(len(self.verbs()), 15)
        for verb in self.verbs():
            for flag in ("--help", "--help-all"):
                for columns in (60, 80, 120):
                    text = self.done(verb, flag, environment={"COLUMNS": str(columns)}).stdout.decode()
                    self.assertTrue(text.startswith(f"usage: foretoken {verb}"))
                    for line in text.splitlines():
                        # A word may be longer than what is left of a line.
                        self.assertTrue(len(line) <= columns or " " not in line.strip(), f"{verb} at {columns}: {line}")
                in_a_pipe = self.done(verb, flag).stdout
                self.assertEqual(in_a_pipe, self.done(verb, flag, environment={"COLUMNS": "80"}).stdout)

    def test_the_help_is_short_and_the_whole_one_has_every_flag(self):
        for verb in {"generate", "chat", "serve", "bench", "check-pair", "tune", "certify"} & set(self.verbs()):
            short, whole = (self.done(verb, flag).stdout.decode() for flag in ("--help", "--help-all"))
            self.assertLess(len(short.splitlines()), 90, verb)
            self.assertLess(len(short), 0.6 * len(whole), verb)
            self.assertIn("--help-all", short)
        for flag in ("--model-draft", "--gamma", "--trace", "--logit-bias", "--cache-type-k", "--stop-token"):
            self.assertIn(flag, self.done("generate", "--help-all").stdout.decode())
        for verb, flag in (("inspect", "--tensors"), ("tokenize", "--detokenize")):
            self.assertIn(flag, self.done(verb, "--help").stdout.decode())

    def test_help_verb_is_the_verbs_help(self):
        for verb in self.verbs():
            self.assertEqual(self.done("help", verb).stdout, self.done(verb, "--help").stdout)
            for whole in ("--all", "--help-all"):
                self.assertEqual(self.done("help", verb, whole).stdout, self.done(verb, "--help-all").stdout)
        self.fails(2, ("hlep", "did you mean help?"), "hlep")
        self.fails(2, ("generat", "did you mean generate?"), "help", "generat")

    def test_help_comes_though_other_flags_are_there(self):
        self.assertEqual(self.done("generate", "-m", "x", "--help").stdout, self.done("generate", "--help").stdout)


class BadUsage(Transcript):
    def bad(self, words, *arguments):
        self.fails(2, words, *arguments)

    def generate(self, words, *flags):
        self.bad(words, "generate", "-m", TARGET, "-p", "a", *flags)

    def test_verbs_and_flags_that_do_not_exist(self):
        self.bad(("generat", "did you mean generate?", "inspect, tokenize, quantize"), "generat")
        self.generate(("--temprature", "--temperature"), "--temprature", "1")
        self.generate(("--zzzzzzzzz", "--help"), "--zzzzzzzzz")
        self.generate(("-ngl", "CPU", "give 0"), "-ngl", "99")
        self.generate(("stray",), "stray")

    def test_what_is_missing(self):
        self.bad(("-m", "empty"), "generate", "-m", "", "-p", "a")
        self.bad(("prompt",), "generate", "-m", TARGET)
        for flag in ("-n", "-md", "--stop"):
            self.bad((flag + ": its value is missing",), "generate", "-m", TARGET, "-p", "a", flag)
        self.bad(("-m", "verb", "foretoken generate -m"), "-m", TARGET, "-p", "a")
        self.bad(("text",), "tokenize", "-m", TARGET)
        self.bad(("--model-draft",), "generate", "-m", TARGET, "-p", "a", "--spec-type", "draft")
        self.bad(("--model-draft", "head"), "generate", "-m", TARGET, "-p", "a", "--spec-type", "eagle")

    def test_values_out_of_range_or_of_no_kind(self):
        for flag, value in (("--temp", "3"), ("--temp", "-1"), ("--temp", "nan"), ("--temp", "hot"), ("-n", "-3"),
                            ("-n", "1.5"), ("-n", "99999999999999999999"), ("--gamma", "65"), ("--top-p", "1.1"),
                            ("--min-p", "-0.1"), ("--typical-p", "2"), ("--repeat-penalty", "0"),
                            ("--draft-p-min", "2"), ("--draft-temp", "9"), ("--logprobs", "65"), ("-c", "-5"),
                            ("-t", "-1"), ("-s", "x"), ("-ctk", "q5_1"), ("--logit-bias", "x"), ("--stop", ""),
                            ("--frequency-penalty", "inf"), ("--top-k", "-2")):
            self.generate((flag,), flag, value)
        self.bad(("--prompt-tokens", "'x'"), "generate", "-m", TARGET, "--prompt-tokens", "1,x")
        self.bad(("--detokenize",), "tokenize", "-m", TARGET, "--detokenize", "1,,2")

    def test_values_the_model_does_not_know(self):
        self.bad(("999999",), "generate", "-m", TARGET, "--prompt-tokens", "999999")
        self.bad(("999999",), "generate", "-m", TARGET, "-p", "a", "--logit-bias", "999999=1")
        self.bad(("999999",), "tokenize", "-m", TARGET, "--detokenize", "999999")

    def test_names_that_do_not_exist_list_what_exists(self):
        for method in ("medusa", "ngram,medusa"):
            self.generate(("--spec-type", "none, standalone, eagle, mtp, dflash, self, ngram, suffix, prediction, grammar, portfolio"),
                          "--spec-type", method)
        self.generate(("--lookahead", "fixed, ewma"), "--lookahead", "guess")
        self.generate(("--verify", "typical-acceptance"), "--verify", "guess")

    def test_settings_that_do_not_go_together(self):
        self.generate(("ngram_min", "ngram_max"), "--ngram-min", "4")
        self.generate(("kv cache", "leave the cache on"), "--kv-cache", "off", "--record", "trace.jsonl")
        self.fails(2, ("FORETOKEN_GAMMA", "'x'"), "generate", "-m", TARGET, "-p", "a", environment={"FORETOKEN_GAMMA": "x"})
        path = self.file("config.yaml", "speculative_config:\n  gama: 4\n")
        self.generate((path, "line 2", "gamma?"), "--speculative-config", path)

    def test_two_values_for_one_thing(self):
        self.bad(("second model",), "inspect", TARGET, "-m", DRAFT)
        self.bad(("more than one",), "generate", "-m", TARGET, "-p", "a", "--prompt-tokens", "1,2")
        self.generate(("--verify greedy",), "--verify", "greedy")
        self.bad(("draft",), "generate", "-m", TARGET, "-md", DRAFT, "-p", "a", "--spec-type", "ngram")
        self.generate(("--trace",), "--trace", "--json")

    def test_flags_of_llama_cpp_that_would_change_the_text_are_refused_with_a_way_out(self):
        for flags, words in ((("-e",), ("-e", "$'")), (("-l", "5-1"), ("--logit-bias ID=V",)), (("-r", "USER:"), ("--stop TEXT",)),
                             (("-v",), ("--trace",)), (("--lora", "a.gguf"), ("--lora", "merge")), (("-hf", "a/b"), ("downloads nothing", "-m PATH")),
                             (("-cnv",), ("foretoken chat",)), (("--mirostat", "2"), ("--mirostat", "leave it out")),
                             (("--rope-freq-base", "1e6"), ("--rope-freq-base", "leave it out"))):
            self.generate((flags[0], "no such flag", *words), *flags)

    def test_one_notice_names_all_harmless_flags_of_llama_cpp(self):
        plain = self.done("generate", "-m", TARGET, "-p", "Once", "-n", "8", "--temp", "0", "-q")
        flags = ("-cb", "-fa", "-b", "512", "-ub", "128", "--jinja", "--metrics", "--no-mmap", "--mlock", "-ngl", "0")
        result = self.done("generate", *flags, "-m", TARGET, "-p", "Once", "-n", "8", "--temp", "0", "-q")
        self.assertEqual(result.stdout, plain.stdout)
        self.assertEqual(result.stderr.decode(), "foretoken: -cb, -fa, -b 512, -ub 128, --jinja, --metrics, --no-mmap, --mlock, -ngl 0: "
                         "llama.cpp's, without effect here; leave them out\n")


class Failures(Transcript):
    def test_files_that_are_no_models(self):
        text = self.file("story.txt", "Once upon a time\n" * 100)
        half = str(pathlib.Path(FOLDER.name) / "half.gguf")
        pathlib.Path(half).write_bytes(pathlib.Path(TARGET).read_bytes()[:200_000])
        for path in ("/no/such.gguf", FOLDER.name, text, half):
            self.fails(1, (path,), "generate", "-m", path, "-p", "a")
            self.fails(1, (path,), "inspect", path)
            self.fails(1, (path,), "tokenize", "-m", path, "-p", "a")

    def test_texts_that_cannot_be_read(self):
        self.fails(1, ("/no/such.txt",), "generate", "-m", TARGET, "-f", "/no/such.txt")
        self.fails(1, (FOLDER.name,), "tokenize", "-m", TARGET, "-f", FOLDER.name)

    def test_a_prompt_that_does_not_fit(self):
        self.fails(1, ("--ctx-size",), "generate", "-m", TARGET, "-c", "16", "-p", "word " * 50)

    def test_a_draft_of_another_vocabulary(self):
        done = self.done("generate", "-m", TARGET, "-md", OTHER, "-p", "a", "-n", "4")
        self.assertIn("its vocabulary is another one (320 and 280 tokens); it drafts the", done.stderr.decode())

    def test_a_full_disk_is_named(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([PROGRAM, "generate", "-m", TARGET, "-p", "a", "-n", "9"], stdout=full,
                                    stderr=subprocess.PIPE, timeout=SECONDS, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"standard output: No space left", result.stderr)

    def test_a_reader_that_leaves_is_no_error(self):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "wb") as closed:
            result = subprocess.run([PROGRAM, "generate", "-m", TARGET, "-p", "a", "-n", "200"], stdout=closed,
                                    stderr=subprocess.PIPE, timeout=SECONDS, check=False)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, rb"\Aspeculation: [^\n]*\n\Z")


class Generate(Transcript):
    def test_the_text_is_alone_on_standard_output(self):
        flags = ("generate", "-m", TARGET, "-p", "Once upon", "-n", "20", "-s", "7")
        streamed = self.done(*flags)
        answer = self.json(*flags, "--json")
        self.assertEqual(streamed.stdout.decode(), answer["text"] + "\n")
        self.assertIn(b"tokens/s", streamed.stderr)
        self.assertIn(b"seed 7", streamed.stderr)
        all_of_them = self.done(*flags, "--stats").stderr.decode()
        for line in ("model", "prompt", "text", "drafter", "drafts", "time"):
            self.assertRegex(all_of_them, rf"(?m)^  {line} +\S")
        self.assertEqual(streamed.stderr.decode().splitlines()[-1].count("seed 7"), 1)
        self.assertEqual(len(streamed.stderr.decode().splitlines()), 3)  # what drafts, an empty line, one of statistics
        quiet = self.done(*flags, "-q")
        self.assertEqual((quiet.stdout, quiet.stderr), (streamed.stdout, b""))

    def test_equal_seeds_give_equal_texts_and_the_reported_seed_repeats_a_run(self):
        first = self.json("generate", "-m", TARGET, "-p", "Once", "-n", "30", "--json")
        again = self.json("generate", "-m", TARGET, "-p", "Once", "-n", "30", "--json", "-s", str(first["seed"]))
        other = self.json("generate", "-m", TARGET, "-p", "Once", "-n", "30", "--json")
        self.assertEqual(first["token_ids"], again["token_ids"])
        self.assertNotEqual(first["seed"], other["seed"])

    def test_prompts_come_from_flags_files_standard_input_and_ids(self):
        flags = ("--json", "-n", "8", "--temp", "0")
        path = self.file("prompt.txt", "Once upon\n")
        by_flag = self.json("generate", "-m", TARGET, "-p", "Once upon", *flags)
        by_file = self.json("generate", "-m", TARGET, "-f", path, *flags)
        by_pipe = self.json("generate", "-m", TARGET, "-f", "-", *flags, stdin=b"Once upon")
        ids = ",".join(map(str, by_flag["prompt_token_ids"]))
        by_ids = self.json("generate", "-m", TARGET, "--prompt-tokens", ids, *flags)
        for answer in (by_file, by_pipe, by_ids):
            self.assertEqual(answer["prompt_token_ids"], by_flag["prompt_token_ids"])
            self.assertEqual(answer["token_ids"], by_flag["token_ids"])

    def test_a_prompt_comes_from_a_pipe_without_a_flag_or_by_a_hyphen(self):
        flags = ("generate", "-m", TARGET, "-n", "8", "--temp", "0", "--json")
        expected = self.json(*flags, "-p", "Once upon")
        for more in ((), ("-p", "-"), ("-f", "-")):
            self.assertEqual(self.json(*flags, *more, stdin=b"Once upon\n")["token_ids"], expected["token_ids"], more)
        # What is piped counts only where no prompt is given.
        self.assertEqual(self.json(*flags, "-p", "Once upon", stdin=b"The dog")["token_ids"], expected["token_ids"])
        self.fails(2, ("prompt", "standard input is empty", "-p TEXT"), *flags, stdin=b"")
        nothing = subprocess.run([PROGRAM, *flags], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(nothing.returncode, 2)
        self.assertIn(b"prompt: none is given", nothing.stderr)

    def test_the_last_of_a_repeated_flag_wins(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "--json", "--temp", "2", "-s", "1")
        answer = self.json(*flags, "-n", "3", "--max-tokens", "6", "--temp", "0", "--gamma", "2", "--draft-max=5", "-p", "Once upon", "-n4")
        self.assertEqual(len(answer["token_ids"]), 4)
        self.assertEqual(answer["speculation"]["num_speculative_tokens"], 5)
        expected = self.json("generate", "-m", TARGET, "-p", "Once upon", "-n", "4", "--temp", "0", "--json")
        self.assertEqual((answer["prompt_token_ids"], answer["token_ids"]), (expected["prompt_token_ids"], expected["token_ids"]))

    def test_minus_one_is_as_much_as_the_context_holds(self):
        answer = self.json("generate", "-m", TARGET, "-c", "64", "-p", "Once", "-n", "-1", "--temp", "0", "--ignore-eos", "--json")
        self.assertEqual(len(answer["prompt_token_ids"]) + len(answer["token_ids"]), 64)
        self.assertEqual(answer["finish_reason"], "length")

    def test_end_tokens_are_named_by_id_or_text(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "--temp", "0", "--json", "--ignore-eos", "-n", "40")
        ids = self.json(*flags)["token_ids"]
        end = ids[12]
        first = ids.index(end)
        piece = json.loads(self.done("tokenize", "-m", TARGET, "--detokenize", str(end), "--special", "--json").stdout)["text"]
        by_id = self.json(*flags, "--stop-token", f"{end}")
        self.assertEqual((by_id["token_ids"], by_id["finish_reason"]), (ids[:first + 1], "stop"))
        self.assertEqual(self.json(*flags, "--stop-token-ids", f"319,{end}")["token_ids"], ids[:first + 1])
        if self.json("tokenize", "-m", TARGET, "--json", "--no-bos", "--special", "-p", piece)["token_ids"] == [end]:
            self.assertEqual(self.json(*flags, "--stop-token", piece)["token_ids"], ids[:first + 1])
        # The name of a control token: the tiny model's end token, which --ignore-eos alone passes over.
        self.assertEqual(self.json("generate", "-m", TARGET, "--prompt-tokens", "1,5", "-n", "5", "--temp", "0", "--ignore-eos", "--json",
                                   "--logit-bias", "2=1000", "--stop-token", "</s>")["token_ids"], [2])
        self.fails(2, ("--stop-token", "Once upon", "tokens of this model"), *flags, "--stop-token", "Once upon")
        self.fails(2, ("999999", "not in the vocabulary"), *flags, "--stop-token", "999999")

    def test_limits_stops_and_bans_hold(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "--temp", "0", "--json", "--ignore-eos")
        free = self.json(*flags, "-n", "40")
        self.assertEqual((len(free["token_ids"]), free["finish_reason"]), (40, "length"))
        self.assertEqual(self.json(*flags, "-n", "0")["token_ids"], [])
        stop = free["text"][10:13]
        stopped = self.json(*flags, "-n", "40", "--stop", stop)
        self.assertEqual(stopped["text"], free["text"][:free["text"].index(stop)])
        self.assertEqual(stopped["finish_reason"], "stop")
        banned = free["token_ids"][0]
        self.assertNotIn(banned, self.json(*flags, "-n", "40", "--logit-bias", f"{banned}=-inf")["token_ids"])

    def test_a_prompt_of_any_bytes_gives_json(self):
        answer = self.json("generate", "-m", TARGET, "-f", "-", "-n", "30", "--temp", "2", "--json", "--ignore-eos",
                           stdin=ODD_BYTES)
        self.assertEqual(len(answer["token_ids"]), 30)


class BundledModels(Transcript):
    FLAGS = ("generate", "-p", "Once upon", "-n", "30", "--temp", "0", "--ignore-eos", "--json")
    NAMES = {"standalone": "tales-1m-draft-q8_0.gguf", "eagle": "tales-9m-eagle-q8_0.gguf", "mtp": "tales-9m-mtp-q8_0.gguf"}

    def bundled(self, *flags):
        answer = self.json(*self.FLAGS, *flags, environment=WITH_BUNDLED)
        self.assertEqual(answer["model"]["path"], str(BUNDLED / "tales-9m-q8_0.gguf"))
        return answer

    def test_they_stand_where_none_is_named(self):
        answer = self.bundled()
        method = answer["speculation"]["method"]
        self.assertEqual(answer["draft_model"]["path"], str(BUNDLED / self.NAMES[method]))
        self.assertIn(f"{method} for the bundled model", " ".join(self.done("generate", "--help-all").stdout.decode().split()))

    def test_verbs_that_read_one_file_take_the_target(self):
        where = WITH_BUNDLED
        target = str(BUNDLED / "tales-9m-q8_0.gguf")
        self.assertEqual(lasting(self.done("inspect", environment=where)), lasting(self.done("inspect", target)))
        self.assertEqual(self.done("tokenize", "-p", "Once", environment=where).stdout, self.done("tokenize", "-m", target, "-p", "Once").stdout)
        self.assertEqual(self.done("tokenize", environment=where, stdin=b"Once").stdout, self.done("tokenize", "-m", target, "-p", "Once").stdout)
        self.assertEqual(self.done("tokenize", "-p", "-", environment=where, stdin=b"Once").stdout, self.done("tokenize", "-m", target, "-p", "Once").stdout)

    def test_a_method_brings_its_file_and_never_another_text(self):
        plain = self.bundled("--spec-type", "none")
        self.assertIsNone(plain["draft_model"])
        for names in (("standalone", "draft"), ("eagle", "eagle3", "draft-eagle3"), ("mtp", "draft-mtp", "nextn")):
            for name in names:
                answer = self.bundled("--spec-type", name)
                self.assertEqual(answer["speculation"]["method"], names[0])
                self.assertEqual(answer["draft_model"]["path"], str(BUNDLED / self.NAMES[names[0]]))
                self.assertEqual(answer["token_ids"], plain["token_ids"])
        ngram = self.bundled("--spec-type", "ngram")
        self.assertEqual((ngram["draft_model"], ngram["token_ids"]), (None, plain["token_ids"]))

    def test_several_methods_bring_several_files(self):
        plain = self.bundled("--spec-type", "none")
        answer = self.bundled("--spec-type", "mtp,eagle", "--lookahead", "fixed")
        self.assertEqual(answer["speculation"]["method"], "mtp,eagle")
        self.assertEqual([(draft["name"], draft["path"]) for draft in answer["draft_models"]],
                         [(name, str(BUNDLED / self.NAMES[name])) for name in ("eagle", "mtp")])
        self.assertEqual(answer["token_ids"], plain["token_ids"])
        self.assertGreater(answer["speculation"]["drafted"], 0)

    def test_draft_models_may_be_several_and_have_names(self):
        near = str(BUNDLED / self.NAMES["standalone"])
        name = "standalone:tales-1m-draft-q8_0"
        plain = self.bundled("--spec-type", "none")
        both = ("-md", DRAFT, "-md", near, "--lookahead", "fixed")
        for flags in (both, (*both, "--spec-type", "standalone"), (*both, "--spec-type", name)):
            done = self.done(*self.FLAGS, *flags, environment=WITH_BUNDLED)
            answer = json.loads(done.stdout)
            self.assertEqual([draft["name"] for draft in answer["draft_models"]], ["standalone:draft", name])
            self.assertGreater(min(draft[size] for draft in answer["draft_models"] for size in ("weight_bytes", "cache_bytes")), 0)
            self.assertEqual(answer["draft_model"]["path"], DRAFT)
            self.assertEqual(answer["token_ids"], plain["token_ids"])
            self.assertGreater(answer["speculation"]["drafted"], 0)
        shown = self.done(*self.FLAGS[:-1], *both, environment=WITH_BUNDLED).stderr.decode()
        self.assertIn("draft.gguf, tales-1m-draft-q8_0.gguf", shown)
        self.fails(2, ("twice",), *self.FLAGS, "-md", DRAFT, "-md", DRAFT, environment=WITH_BUNDLED)
        self.fails(2, ("standalone:absent",), *self.FLAGS, *both, "--spec-type", "standalone:absent", environment=WITH_BUNDLED)

    def test_the_build_finds_those_of_the_sources_and_each_drafter_fits(self):
        models = pathlib.Path(__file__).resolve().parents[2] / "models"
        if not all((models / name).exists() for name in ("tales-9m-q8_0.gguf", *self.NAMES.values())):
            self.skipTest("models/ is not complete")
        plain = self.json(*self.FLAGS, "--spec-type", "none")
        self.assertEqual(plain["model"]["path"], str(models / "tales-9m-q8_0.gguf"))
        for method, name in self.NAMES.items():
            # A fixed length: on a busy machine the measured costs may rightly say that drafting does not pay.
            answer = self.json(*self.FLAGS, "--spec-type", method, "--lookahead", "fixed")
            self.assertEqual(answer["draft_model"]["path"], str(models / name))
            self.assertEqual(answer["token_ids"], plain["token_ids"])
            self.assertGreater(answer["speculation"]["accepted"], 0, method)

    def test_a_named_draft_drafts_for_the_bundled_target(self):
        answer = self.bundled("-md", DRAFT)
        self.assertEqual((answer["speculation"]["method"], answer["draft_model"]["path"]), ("standalone", DRAFT))
        head = self.bundled("-md", str(BUNDLED / self.NAMES["mtp"]))
        self.assertEqual(head["speculation"]["method"], "mtp")

    def test_drafts_beside_a_named_model_are_found(self):
        flags = ("generate", "-m", str(BUNDLED / "tales-9m-q8_0.gguf"), "-p", "a", "-n", "8", "-t", "1", "--temp", "0", "--lookahead", "fixed")
        line = ("foretoken: drafts: eagle by tales-9m-eagle-q8_0.gguf, mtp by tales-9m-mtp-q8_0.gguf (found beside the model; "
                "--spec-type none turns it off)\n")
        done = self.done(*flags, "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["speculation"]["method"], "eagle,mtp")
        self.assertIn(line, done.stderr.decode())
        self.assertNotIn("passed over", done.stderr.decode())
        # The tiny draft model is as large as the tiny model.
        self.assertIn("passed over", self.done(*flags, "--trace").stderr.decode())
        plain = self.done(*flags, "--json", "--spec-type", "none")
        self.assertNotIn("drafts:", plain.stderr.decode())
        self.assertEqual(json.loads(plain.stdout)["token_ids"], answer["token_ids"])
        self.assertEqual(self.done(*flags, "--json", "-q").stderr, b"")

    def test_a_named_model_has_no_bundled_drafter(self):
        answer = self.json(*self.FLAGS, "-m", TARGET, environment=WITH_BUNDLED)
        self.assertEqual((answer["speculation"]["method"], answer["draft_model"]), ("ngram", None))

    def test_a_folder_without_them_is_named_with_the_way_out(self):
        empty = self.new_folder()
        where = {"FORETOKEN_MODELS": empty}
        self.fails(1, ("FORETOKEN_MODELS", empty, "tales-9m-q8_0.gguf", "-m"), "generate", "-p", "a", environment=where)
        shutil.copy(BUNDLED / "tales-9m-q8_0.gguf", empty)
        self.fails(1, (empty, "tales-9m-eagle-q8_0.gguf", "-md"), "generate", "-p", "a", "--spec-type", "eagle", environment=where)
        self.done("generate", "-p", "a", "-n", "3", "--spec-type", "ngram", environment=where)


class Speculation(Transcript):
    def test_first_token_drafted_and_no_cache_give_the_same_text(self):
        flags = ("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once upon", "-n", "20", "--json", "-s", "3", "--lookahead", "fixed",
                 "--ignore-eos")
        for temperature in ("0", "0.8"):
            usual = self.json(*flags, "--temp", temperature, "--verify", "auto" if temperature == "0" else "sample-match")
            for flag in ("--first-target", "--kv-cache"):
                other = self.json(*flags, "--temp", temperature, flag, "off",
                                  "--verify", "auto" if temperature == "0" else "sample-match")
                self.assertEqual(other["token_ids"], usual["token_ids"], flag)
                self.assertGreater(other["speculation"]["drafted"], 0)

    def check_counts(self, answer, k):
        counts = answer["speculation"]
        self.assertEqual(counts["emitted"], len(answer["token_ids"]))
        self.assertEqual(counts["drafted"], sum(counts["drafted_per_position"]))
        self.assertEqual(counts["accepted"], sum(counts["accepted_per_position"]))
        self.assertEqual(counts["rounds"], sum(counts["k_histogram"]))
        self.assertEqual(counts["drafted"], sum(i * n for i, n in enumerate(counts["k_histogram"])))
        self.assertEqual(counts["emitted"], counts["accepted"] + counts["recovered"] + counts["bonus"] + counts["plain"])
        self.assertLessEqual(len(counts["drafted_per_position"]), k)
        for drafted, judged, accepted in zip(counts["drafted_per_position"], counts["judged_per_position"],
                                             counts["accepted_per_position"]):
            self.assertTrue(drafted >= judged >= accepted >= 0)
        if counts["drafted"]:
            self.assertAlmostEqual(counts["acceptance_rate"], counts["accepted"] / counts["drafted"])
            self.assertAlmostEqual(counts["mean_acceptance_length"], 1 + counts["accepted"] / counts["draft_rounds"])
        else:
            self.assertNotIn("acceptance_rate", counts)
            self.assertNotIn("mean_acceptance_length", counts)

    def test_settings_come_from_a_file_the_environment_and_flags_in_this_order(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "5", "--json")
        path = self.file("config.json", json.dumps({"other": {}, "mine": {"method": "ngram", "gamma": 1, "ngram_max": 4, "p_min": 0.25}}))
        result = self.done(*flags, "--gamma", "3", "--speculative-config", path, "--config-section", "mine",
                           environment={"FORETOKEN_GAMMA": "2", "FORETOKEN_NGRAM_MAX": "5"})
        answer = json.loads(result.stdout)["speculation"]
        self.assertEqual((answer["method"], answer["num_speculative_tokens"]), ("ngram", 3))
        config = answer["config"]
        self.assertEqual([config[key] for key in ("speculative_method", "num_speculative_tokens", "ngram_max", "draft_p_min")],
                         ["ngram", 3, 5, 0.25])
        self.assertIs(config["skip_sample_adjustment"], False)
        by_flags = self.done(*flags, "-q", "--spec-type", "ngram", "--gamma", "3", "--ngram-max", "5", "--draft-p-min", "0.25")
        self.assertEqual(json.loads(by_flags.stdout)["speculation"]["config"], config)

    def settings(self, text, *flags):
        """What generate says at the start, and its settings, with this file of them."""
        path = self.file("settings.yaml", text)
        result = self.done("generate", "-m", TARGET, "-p", "Once", "-n", "2", "--json", "--speculative-config", path, *flags)
        return result.stderr.decode(), json.loads(result.stdout)["speculation"]["config"]

    def test_a_settings_file_without_sections(self):
        errors, config = self.settings("gamma: 3\nmethod: ngram\n")
        self.assertEqual((errors, config["num_speculative_tokens"], config["speculative_method"]), ("", 3, "ngram"))
        for code, text, words in ((2, "gama: 3\n", ("line 1", "did you mean gamma?")),
                                  (1, "gamma: 3\nserver: {port: 1}\n", "choose one of server"),
                                  (1, "# empty\n", "write 'speculative_config:' in a line of its own")):
            self.fails(code, words, "generate", "-m", TARGET, "-p", "a", "--speculative-config", self.file("settings.yaml", text))

    def test_a_settings_file_in_the_dialect_of_max(self):
        text = "speculative_config:\n  rejection_sampling_strategy: typical-acceptance\n"
        for more, flags in (("", ("--config-dialect", "max")), ("  dialect: max\n", ())):
            errors, config = self.settings(text + more, "-md", DRAFT, *flags)
            self.assertEqual((config["speculative_method"], config["num_speculative_tokens"], config["rejection_sampling_strategy"]),
                             ("none", 2, "target-probability"))
            self.assertIn("-md (no model drafts)", errors)
        _, config = self.settings(text, "-md", DRAFT, "--config-dialect", "max", "--spec-type", "standalone", "--gamma", "3")
        self.assertEqual((config["speculative_method"], config["num_speculative_tokens"]), ("standalone", 3))
        _, config = self.settings(text, "-md", DRAFT)
        self.assertEqual((config["speculative_method"], config["rejection_sampling_strategy"]), ("auto", "typical-acceptance"))
        self.fails(2, ("--config-dialect", "choose foretoken or max"), "generate", "-m", TARGET, "-p", "a", "--config-dialect", "vllm")
        self.fails(2, ("--config-dialect", "add --speculative-config"), "generate", "-m", TARGET, "-p", "a", "--config-dialect", "max")

    def test_the_first_line_says_who_drafts_and_who_verifies(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "5", "--spec-type", "ngram", "--gamma", "3", "--lookahead", "fixed")
        lines = self.done(*flags).stderr.decode().splitlines()
        self.assertEqual(lines[0], "speculation: ngram; K 3, fixed; verified by sample-match; lossless")
        by_text = self.done(*flags[:-2], "--verify", "target-probability", "--temp", "0.7").stderr.decode().splitlines()
        self.assertIn("K at most 3, by-text; verified by target-probability; lossless", " ".join(by_text))
        lossy = self.done(*flags, "--verify", "relaxed", "--temp", "0.7").stderr.decode().splitlines()
        self.assertRegex(lossy[0], "verified by relaxed; LOSSY")
        greedy = self.done(*flags, "--verify", "relaxed", "--temp", "0").stderr.decode()
        self.assertRegex(greedy, r"(?m)verified by greedy, which every strategy is at temperature 0 \(relaxed too\); lossless$")
        self.assertNotIn("LOSSY", greedy)
        all_of_them = self.done(*flags, "--verify", "relaxed", "--temp", "0", "--stats").stderr.decode()
        self.assertIn("verified by greedy, lossless", all_of_them)
        lot = self.done(*flags, "--synthetic-acceptance-rate", "1", "--temp", "0").stderr.decode()
        self.assertRegex(lot.splitlines()[0], "verified by synthetic; LOSSY")
        plain = self.done(*flags[:-6], "--spec-type", "none").stderr.decode().splitlines()
        self.assertEqual(plain[0], "speculation: none, plain decoding")

    def test_statistics_say_why_rounds_had_no_drafts(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "5", "--temp", "0", "--ignore-eos", "--spec-type", "ngram", "--lookahead", "fixed")
        why = r"in \d+ rounds? the drafter had none(, in 1 the text was about to end)?"
        self.assertRegex(self.done(*flags, "--stats").stderr.decode(), rf"(?m)^  (drafts    none in \d+ rounds:|plain    ) {why}$")
        self.assertRegex(self.done(*flags[:4], "Qq", *flags[5:]).stderr.decode(), rf"(; no drafts: {why}| drafts accepted) ")
        plain = self.done(*flags[:-4], "--spec-type", "none", "--stats").stderr.decode()
        self.assertNotIn("in 5 rounds", plain)

    def test_a_prediction_is_drafted(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "20", "--temp", "0", "--ignore-eos", "--json", "--lookahead", "fixed")
        plain = self.json(*flags, "--spec-type", "none", "-q")
        for given in (("--prediction", plain["text"]), ("--prediction-file", self.file("text", plain["text"]))):
            answer = self.json(*flags, "--spec-type", "prediction", *given)
            self.assertEqual(answer["token_ids"], plain["token_ids"])
            self.assertGreater(answer["speculation"]["drafted"], 0)

    def test_the_object_has_the_keys_of_the_schema(self):
        answer = self.json("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once", "-n", "20", "--json", "--logprobs", "3")
        self.assertLessEqual({"text", "token_ids", "prompt_token_ids", "finish_reason", "seed", "logprobs", "speculation",
                              "timings", "model", "draft_model", "isa", "threads"}, answer.keys())
        self.assertLessEqual({"method", "strategy", "lossless", "lookahead", "rounds", "drafted", "accepted", "recovered",
                              "bonus", "emitted", "drafted_per_position", "accepted_per_position", "draft_forwards",
                              "target_forwards", "rolled_back", "k_histogram"}, answer["speculation"].keys())
        self.assertLessEqual({"load_ms", "prompt_ms", "decode_ms", "draft_ms", "verify_ms", "overhead_ms"},
                             answer["timings"].keys())
        for model, path in (("model", TARGET), ("draft_model", DRAFT)):
            self.assertEqual(answer[model]["path"], path)
            self.assertEqual(answer[model]["architecture"], "llama")
        self.assertEqual([entry["id"] for entry in answer["logprobs"]], answer["token_ids"])
        for entry in answer["logprobs"]:
            self.assertLessEqual(entry["logprob"], 0)
            best = [top["logprob"] for top in entry["top"]]
            self.assertEqual((len(best), best), (3, sorted(best, reverse=True)))

    def test_drafts_never_change_greedy_text(self):
        flags = ("generate", "-m", TARGET, "-p", "Once upon", "-n", "60", "--temp", "0", "--json", "--ignore-eos")
        plain = self.json(*flags, "--spec-type", "none")
        self.assertEqual(plain["speculation"]["drafted"], 0)
        self.check_counts(plain, 0)
        self.assertIsNone(plain["draft_model"])
        for k in ("1", "4", "8"):
            for drafter in (("-md", DRAFT), ("--spec-type", "ngram")):
                answer = self.json(*flags, *drafter, "--gamma", k)
                self.assertEqual(answer["token_ids"], plain["token_ids"], (k, drafter))
                self.assertEqual(answer["speculation"]["strategy"], "greedy")
                self.check_counts(answer, int(k))

    def test_a_drafter_model_is_accepted_sometimes(self):
        for temperature, strategy in (("0", "greedy"), ("0.8", "residual")):
            answer = self.json("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once upon", "-n", "80", "-s", "1", "--json",
                               "--temp", temperature, "--ignore-eos", "--lookahead", "fixed")
            self.check_counts(answer, 4)
            self.assertEqual((answer["speculation"]["method"], answer["speculation"]["strategy"]), ("standalone", strategy))
            self.assertTrue(0 < answer["speculation"]["accepted"] < answer["speculation"]["drafted"])
            self.assertGreater(answer["speculation"]["draft_forwards"], 0)

    def test_a_seed_gives_one_text_however_much_is_drafted(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "60", "-s", "5", "--json", "--ignore-eos")
        plain = self.json(*flags, "--spec-type", "none")
        for more in (("-md", DRAFT), ("-md", DRAFT, "--gamma", "16"), ("--spec-type", "suffix"),
                     ("-md", DRAFT, "--spec-type", "portfolio")):
            answer = self.json(*flags, *more)
            self.assertEqual(answer["token_ids"], plain["token_ids"], more)
            self.assertEqual(answer["speculation"]["strategy"], "sample-match")

    def test_sample_match_gives_the_text_of_plain_decoding(self):
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "60", "-s", "5", "--json", "--ignore-eos")
        plain = self.json(*flags, "--spec-type", "none")
        drafted = self.json(*flags, "-md", DRAFT, "--verify", "sample-match")
        self.assertEqual(drafted["token_ids"], plain["token_ids"])
        self.assertEqual(drafted["speculation"]["strategy"], "sample-match")

    def test_compare_reports_speed_up_and_identity(self):
        flags = ("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once", "-n", "40", "--temp", "0", "--compare")
        comparison = self.json(*flags, "--json")["comparison"]
        self.assertTrue(comparison["identical"])
        self.assertAlmostEqual(comparison["speedup"],
                               comparison["tokens_per_second"] / comparison["plain_tokens_per_second"])
        self.assertRegex(self.done(*flags).stderr.decode(), r"speed-up +\d+\.\d\dx: .*the same token ids")

    def test_compared_texts_that_may_differ_are_no_fault(self):
        flags = ("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once upon", "-n", "60", "-s", "1", "--ignore-eos", "--lookahead",
                 "fixed", "--compare")
        for strategy, words in (("residual", "other draws of the same distribution"), ("block", "other draws of the same distribution"),
                                ("target-probability", "other draws of the same distribution"),
                                ("typical-acceptance", "other token ids: this strategy is lossy"), ("sample-match", "the same token ids")):
            line = self.done(*flags, "--temp", "0.9", "--verify", strategy).stderr.decode().splitlines()[-1]
            self.assertTrue(line.endswith(words), (strategy, line))
        self.assertTrue(self.done(*flags, "--temp", "0", "--verify", "relaxed").stderr.decode().endswith("the same token ids\n"))

    def test_compared_runs_do_not_teach_each_other(self):
        flags = ("generate", "-m", TARGET, "-p", "Once upon", "-n", "60", "--temp", "0", "--ignore-eos", "--lookahead", "fixed")
        for drafter in (("--spec-type", "suffix"), ("--spec-type", "portfolio"), ("--spec-type", "ngram", "--ngram-keep", "on")):
            answer = self.json(*flags, *drafter, "--compare", "--json", "-q")
            first, compared = answer["speculation"], answer["comparison"]
            self.assertGreater(first["drafted"], 0)
            # Each run drafts what the first one drafted, when nothing had been learned.
            self.assertEqual((compared["drafted"], compared["accepted"]),
                             (compared["repeats"] * first["drafted"], compared["repeats"] * first["accepted"]), drafter)


class WithoutEffect(Transcript):
    """What has no effect in a combination is named, once, with the reason."""

    def notice(self, *flags, environment=None):
        lines = self.done("generate", "-m", TARGET, "-p", "Once", "-n", "3", "--json", *flags, environment=environment).stderr.decode().splitlines()
        lines = [line for line in lines if not line.startswith("foretoken: draft lengths: ")]  # of by-text, another matter
        self.assertLessEqual(len(lines), 1, lines)
        return lines[0] if lines else ""

    def test_flags(self):
        draft, ngram, greedy = ("-md", DRAFT), ("--spec-type", "ngram"), ("--temp", "0")
        reads, drafts, best = "only {} reads it", "no model drafts", "temperature 0 takes the most probable token"
        for flag, idle, why, effective in (
                (("--typical-epsilon", "0.09"), draft, reads.format("typical-acceptance"), ("--verify", "typical-acceptance", *draft)),
                (("--ngram-max", "5"), draft, reads.format("ngram"), ngram),
                (("--ngram-min", "2"), (*ngram, "--ngram-storage", "onelevel"), "single-level storage has contexts of ngram_max only", ngram),
                (("--ngram-keep", "on"), ngram, "there is one request", None),
                (("--suffix-max-tokens", "9"), ngram, reads.format("suffix"), None),
                (("--prediction", "x"), ngram, reads.format("prediction"), ("--spec-type", "prediction,ngram")),
                (("--draft-temp", "0.3"), ngram, drafts, draft),
                (("--draft-top-k", "3"), (*draft, *greedy), "the drafter's temperature is 0", draft),
                (("--lookahead-max", "9"), draft, "only lookahead ewma reads it", ("--lookahead", "ewma", *draft)),
                (("--spec-draft-p-min", "0.2"), ngram, "ngram knows no probabilities", draft),
                (("--verify", "residual"), (*draft, *greedy), "at temperature 0 every strategy is greedy", draft),
                (("--verify", "sample-match"), ("--spec-type", "none"), "nothing drafts", ngram),
                (("--num-speculative-tokens", "3"), ("--spec-type", "none"), "nothing drafts", ngram),
                (("-md", DRAFT), ("--spec-type", "none"), drafts, ()),
                (("--spec-type", "grammar"), (), "grammar drafts from a grammar, and there is none", ("--grammar", 'root ::= "a"')),
                (("--top-k", "3"), (*ngram, *greedy), best, ngram), (("--eta", "0.1"), (*ngram, *greedy), best, ngram),
                (("--repeat-last-n", "9"), ngram, "--repeat-penalty is 1", ("--repeat-penalty", "1.1", *ngram)),
                (("--dry-base", "2"), ngram, "--dry-multiplier is 0", ("--dry-multiplier", "1", *ngram)),
                (("--no-bos",), ("--chat", "--chat-template", "chatml", *ngram), "the chat template begins and ends the prompt", ngram)):
            with self.subTest(flag):
                self.assertEqual(self.notice(*flag, *idle), f"foretoken: without effect here: {flag[0]} ({why}); leave it out")
                if effective is not None:
                    self.assertEqual(self.notice(*flag, *effective), "")

    def test_variables_and_keys_of_files(self):
        self.assertIn("FORETOKEN_NGRAM_MAX (only ngram reads it)", self.notice("-md", DRAFT, environment={"FORETOKEN_NGRAM_MAX": "4"}))
        file = '{"ngram_max": 4, "relaxed_top_n": 3, "typical_delta": 0.3}'  # the last is the default, and nobody's wish
        self.assertEqual(self.notice("-md", DRAFT, "--speculative-config", file, "--relaxed-top-n", "4"),
                         "foretoken: without effect here: --relaxed-top-n (only relaxed reads it), ngram_max of the settings file "
                         "(only ngram reads it); leave them out")

    def test_quiet_says_nothing_and_a_prediction_comes_from_a_file_everywhere(self):
        self.assertEqual(self.notice("-md", DRAFT, "--ngram-max", "4", "-q"), "")
        result = self.done("bench", "-m", TARGET, "-n", "4", "--repeats", "1", "--rows", "1", "-c", "128", "--max-prompts", "1", "--spec-type",
                           "ngram", "--prediction-file", os.path.abspath(__file__))
        self.assertIn("--prediction-file (only prediction reads it)", result.stderr.decode())
        self.fails(1, ("absent.txt",), "bench", "-m", TARGET, "--prediction-file", "absent.txt")

    def test_misspelt_variables(self):
        for verb in (("--version",), ("tokenize", "-m", TARGET, "-p", "a")):
            result = self.done(*verb, environment={"FORETOKEN_GAMA": "3", "FORETOKEN_THREAD": "1", "FORETOKEN_NOTHING_LIKE_IT": ""})
            self.assertEqual(sorted(result.stderr.decode().splitlines()), [
                "foretoken: FORETOKEN_GAMA: no such variable, so it has no effect; did you mean FORETOKEN_GAMMA?",
                "foretoken: FORETOKEN_NOTHING_LIKE_IT: no such variable, so it has no effect; docs/configuration.md lists them",
                "foretoken: FORETOKEN_THREAD: no such variable, so it has no effect; did you mean FORETOKEN_THREADS?"])

    def test_every_variable_that_the_project_reads_is_known(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        reads = re.compile(r"""(?:getenv\(|environ(?:\.get\(|\[)|environment=\{|Environment=|\$\{?)["']?(FORETOKEN_[A-Z0-9_]+)""")
        names = set()
        for folder in ("apps", "src", "tests", "tools", "deploy", "bench", "examples"):
            for path in (root / folder).rglob("*"):
                if path.is_file() and path.suffix != ".gguf" and path.stat().st_size < 1 << 20:
                    if path.suffix in (".cmake", ".in") or path.name == "CMakeLists.txt":
                        continue  # there ${FORETOKEN_...} are options of the build
                    names.update(reads.findall(path.read_text(errors="replace")))
        names -= {"FORETOKEN_GAMA", "FORETOKEN_THREAD", "FORETOKEN_NOTHING_LIKE_IT"}  # of the test above
        self.assertLessEqual({"FORETOKEN_ISA", "FORETOKEN_THREADS", "FORETOKEN_MODELS", "FORETOKEN_JOBS", "FORETOKEN_GAMMA"}, names)
        names.update(re.findall(r"`(FORETOKEN_[A-Z0-9_]*[A-Z0-9])", (root / "docs" / "configuration.md").read_text()))
        result = self.done("--version", environment={name: "1" for name in names})
        self.assertEqual(result.stderr.decode(), "")


class Trace(Transcript):
    FLAGS = ("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once upon", "-n", "60", "--temp", "0", "--ignore-eos", "--lookahead", "fixed")

    def test_brackets_hold_the_text_and_the_rejected_drafts(self):
        text = self.done(*self.FLAGS).stdout.decode()
        trace = self.done(*self.FLAGS, "--trace").stdout.decode()
        legend, _, body = trace.partition("\n\n")
        self.assertTrue(legend.startswith("trace: [+"))
        self.assertNotIn("\033", trace)
        self.assertTrue(body.startswith("Once upon[="))
        for mark in "+-=":
            self.assertIn(f"[{mark}", body)
        # Brackets that the model itself wrote would need a parser; the tiny vocabulary has none.
        kept = "".join(re.findall(r"\[[+=]([^\]]*)\]", body))
        self.assertEqual(kept + "\n", text)

    def test_a_terminal_gets_colours_unless_told_otherwise(self):
        shown, code = run_in_terminal(*self.FLAGS, "--trace")
        self.assertEqual(code, 0)
        for colour in ("\033[32m", "\033[31;9m", "\033[1;34m"):
            self.assertIn(colour, shown)
        plain, _ = run_in_terminal(*self.FLAGS, "--trace", no_colour=True)
        self.assertIn("[+", plain)
        self.assertNotIn("\033[3", plain)

    def test_a_dumb_terminal_gets_no_escape_sequences(self):
        out = os.path.join(self.new_folder(), "out.gguf")
        for arguments, typed in (((*self.FLAGS, "--trace", "--compare"), b""), (("inspect", TARGET), b""), (("generate", "--help"), b""),
                                 (("chat", "-m", TARGET, "--temp", "0", "-n", "5"), b"Once\n/target\nOnce\n/quit\n"),
                                 (("quantize", TARGET, out, "Q8_0"), b"")):
            coloured, code = run_in_terminal(*arguments, typed=typed)
            self.assertEqual(code, 0, coloured)
            dumb, code = run_in_terminal(*arguments, term="dumb", typed=typed)
            self.assertEqual(code, 0, dumb)
            self.assertNotIn("\033", dumb, arguments)
            self.assertNotEqual(dumb, "")
        self.assertIn("\033[K", run_in_terminal(*self.FLAGS, "--compare")[0], "elsewhere progress is shown")


class TerminalText(Transcript):
    """What a model, a file or a prompt says is never obeyed by the terminal, unless that was asked for."""
    EVIL = "a\033]0;title\007b\u009b31mc\rd\u202ee\u2066f\177g 日本 🙂\u200d🙂\tend\n"
    SAFE = "a\\u001b]0;title\\u0007b\\u009b31mc\\u000dd\\u202ee\\u2066f\\u007fg 日本 🙂\u200d🙂\tend\n"

    def ids(self, text):
        return ",".join(str(id) for id in json.loads(self.done("tokenize", "-m", TARGET, "--no-bos", "--json", "-p", text).stdout)["token_ids"])

    def shown(self, *arguments):
        text, code = run_in_terminal(*arguments)
        self.assertEqual(code, 0, text)
        return text.replace("\r\n", "\n")

    def test_text_of_tokens(self):
        flags = ("tokenize", "-m", TARGET, "--detokenize", self.ids(self.EVIL))
        self.assertEqual(self.shown(*flags), self.SAFE + "\n")
        self.assertEqual(self.shown(*flags, "--raw"), self.EVIL + "\n")
        self.assertEqual(self.done(*flags).stdout.decode(), self.EVIL)  # a pipe gets the bytes
        self.assertEqual(json.loads(self.shown(*flags, "--json"))["text"], self.EVIL)  # escapes of JSON
        self.assertEqual(self.done(*flags, "--json").stdout, self.done(*flags, "--json", "--raw").stdout)
        broken = ("tokenize", "-m", TARGET, "--detokenize", self.ids("é🙂").split(",")[-1])  # the last byte of a character
        self.assertRegex(self.shown(*broken), r"^\\x[89ab][0-9a-f]\n$")

    def test_generated_text(self):
        escape = self.ids("\033").split(",")[-1]
        flags = ("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once", "-n", "4", "--logit-bias", escape + "=100", "-q")
        for more in ((), ("--temp", "0"), ("--lookahead", "fixed"), ("--trace",)):
            self.assertIn("\\u001b\\u001b", re.sub(r"\033\[[0-9;]*m|[\[\]+=-]", "", self.shown(*flags, *more)), more)
            self.assertNotIn("\033\033", re.sub(r"\033\[[0-9;]+m", "", self.shown(*flags, *more)), more)
            self.assertIn(b"\033\033", re.sub(rb"[\[\]+=-]", b"", self.done(*flags, *more).stdout), more)
        self.assertIn("\033\033\033\033", self.shown(*flags, "--raw"))
        chat = ("chat", "-m", TARGET, "-n", "4", "--logit-bias", escape + "=100")
        for more, seen in (((), "\\u001b" * 4), (("--raw",), "\033" * 4)):
            self.assertIn(seen, run_in_terminal(*chat, *more, typed=b"Once\n/quit\n")[0])

    def test_characters_of_several_tokens_stay_whole(self):
        text = "é日本🙂\u0301\u200d🙂x"  # the vocabulary has bytes of them alone
        flags = ("generate", "-m", TARGET, "-p", "Once", "-n", "60", "-q", "--grammar", f'root ::= "{text}"')
        for more in ((), ("-md", DRAFT), ("-md", DRAFT, "--temp", "0", "--lookahead", "fixed"), ("--spec-type", "ngram"), ("-n", "12")):
            shown, piped = self.shown(*flags, *more), self.done(*flags, *more).stdout.decode()
            self.assertEqual(shown, piped, more)
            self.assertEqual(piped, (text if "-n" not in more else piped.strip()) + "\n", more)
        trace = self.done(*flags, "-md", DRAFT, "--lookahead", "fixed", "--trace").stdout.decode()
        self.assertEqual("".join(re.findall(r"\[[+=]([^\]]*)\]", trace.partition("\n\n")[2])), text)

    def test_prompts_and_names_of_files(self):
        trace = self.shown("generate", "-m", TARGET, "-p", self.EVIL, "-n", "1", "--trace")
        self.assertIn(self.SAFE.rstrip(), trace)
        path = os.path.join(FOLDER.name, "evil.gguf")
        with open(TARGET, "rb") as file:
            data = file.read()
        self.assertEqual(data.count(b"tiny llama"), 1)
        with open(path, "wb") as file:
            file.write(data.replace(b"tiny llama", b"\033[31m\xc2\x9b\xe2\x80\xae"))
        for flags in (("inspect", path), ("inspect", path, "--metadata"), ("inspect", path, "--json", "--metadata")):
            shown = self.shown(*flags)
            self.assertIn("\\u001b[31m\\u009b\\u202e", shown, flags)
            self.assertNotRegex(shown, "[\033\u009b\u202e]", flags)

    def test_errors_and_notices(self):
        for arguments in (("generate", "-m", "/no/" + self.EVIL.strip(), "-p", "a"), ("generate", "--gam" + self.EVIL.strip()),
                          (self.EVIL.strip(),), ("inspect", "-m", "\033[2J")):
            for text in (run_in_terminal(*arguments)[0], run(*arguments).stderr.decode()):  # for logs, too
                self.assertNotRegex(text.replace("\r\n", "\n"), "[\033\007\r\177\u009b\u202e\u2066]", arguments)


class Interrupt(Transcript):
    def test_one_ctrl_c_ends_the_text_and_still_reports(self):
        process = subprocess.Popen([PROGRAM, "generate", "-m", TARGET, "-p", "Once", "-n", "100000", "-c", "200000",
                                    "--ignore-eos"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(process.stdout.read(1))
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(b"ended: cancelled", error)


def lasting(done):
    """What `inspect` prints, without the memory that is available at the moment."""
    return re.sub(rb"; [^;]* available", b"", done.stdout)


class Inspect(Transcript):
    def test_the_summary_names_what_matters(self):
        text = self.done("inspect", TARGET).stdout.decode()
        for words in ("GGUF v3", "llama", "2 layers", "4 heads (2 for keys and values)", "256 tokens", "F32", "320 tokens"):
            self.assertIn(words, text)
        self.assertRegex(text, r"runs here +yes")
        self.assertRegex(text, r"memory +weights [0-9.]+ KiB, cache of 256 tokens [0-9.]+ KiB, up to [0-9.]+ .iB for passes; [0-9.]+ .iB available")
        self.assertEqual(lasting(self.done("inspect", TARGET)), lasting(self.done("inspect", "-m", TARGET)))

    def test_types_without_a_vector_kernel_are_told(self):
        note = "(slow here: no vector kernel for this type)"
        text = self.done("inspect", TARGET, environment={"FORETOKEN_ISA": "scalar"}).stdout.decode()
        self.assertEqual(len(re.findall(r"^    \w+ +\d+ .*", text, re.M)), text.count(note))
        self.assertGreater(text.count(note), 0)
        if "avx2" in pathlib.Path("/proc/cpuinfo").read_text().split():
            self.assertNotIn(note, self.done("inspect", TARGET).stdout.decode())

    def test_lists_come_on_demand(self):
        self.assertIn("blk.0.attn_q.weight", self.done("inspect", TARGET, "--tensors").stdout.decode())
        metadata = self.done("inspect", TARGET, "--metadata").stdout.decode()
        self.assertIn("general.architecture = llama", metadata)
        self.assertNotIn("blk.0.attn_q.weight", metadata)

    def test_json_adds_up(self):
        answer = self.json("inspect", TARGET, "--json", "--tensors", "--metadata")
        self.assertEqual(answer["file_bytes"], os.path.getsize(TARGET))
        self.assertEqual(answer["context_length"], 256)
        self.assertTrue(answer["runnable"])
        self.assertIsNone(answer["obstacle"])
        self.assertEqual(sum(row["bytes"] for row in answer["tensor_types"]),
                         sum(tensor["bytes"] for tensor in answer["tensors"]))
        self.assertEqual(sum(row["tensors"] for row in answer["tensor_types"]), len(answer["tensors"]))
        self.assertEqual(answer["metadata"]["general.architecture"], "llama")
        memory = answer["memory"]
        self.assertGreater(memory["available_bytes"], memory["weight_bytes"])
        self.assertEqual((memory["context_size"], memory["expert_bytes"], memory["experts_paged"], memory["obstacle"]), (256, 0, False, None))
        shorter = self.json("inspect", TARGET, "--json", "-c", "128")["memory"]
        self.assertEqual((shorter["context_size"], shorter["weight_bytes"]), (128, memory["weight_bytes"]))
        self.assertEqual(2 * shorter["cache_bytes"], memory["cache_bytes"])
        self.assertEqual({"tensors", "metadata"} & self.json("inspect", TARGET, "--json").keys(), set())

    def test_a_model_that_cannot_run_says_why(self):
        path = pathlib.Path(FOLDER.name) / "strange.gguf"
        path.write_bytes(pathlib.Path(TARGET).read_bytes().replace(b"llama", b"lmaal"))
        text = self.done("inspect", str(path)).stdout.decode()
        self.assertRegex(text, r"runs here +no: .*lmaal")
        answer = self.json("inspect", str(path), "--json")
        self.assertFalse(answer["runnable"])
        self.assertIn("lmaal", answer["obstacle"])
        self.fails(1, ("lmaal",), "generate", "-m", str(path), "-p", "a")


class Tokenize(Transcript):
    def ids(self, *flags, **keywords):
        return self.json("tokenize", "-m", TARGET, "--json", *flags, **keywords)["token_ids"]

    def test_any_bytes_survive_the_round_trip(self):
        for text in (b"", b" ", b"Once upon a time", ODD_BYTES, bytes(range(256))):
            ids = self.ids("--no-bos", "-", stdin=text)
            if not ids:
                self.assertEqual(text, b"")
                continue
            back = self.done("tokenize", "-m", TARGET, "--detokenize", ",".join(map(str, ids))).stdout
            self.assertEqual(back, text)

    def test_pieces_match_ids_and_bos_can_be_left_out(self):
        answer = self.json("tokenize", "-m", TARGET, "-p", "Once upon", "--json")
        self.assertEqual(len(answer["pieces"]), len(answer["token_ids"]))
        self.assertEqual(answer["pieces"][0], "<s>")
        self.assertEqual(self.ids("-p", "Once upon", "--no-bos"), answer["token_ids"][1:])

    def test_control_tokens_count_only_on_demand(self):
        as_text = self.ids("-p", "<s>", "--no-bos")
        as_token = self.ids("-p", "<s>", "--no-bos", "--special")
        self.assertEqual(as_token, [1])
        self.assertNotEqual(as_text, as_token)
        self.assertEqual(self.done("tokenize", "-m", TARGET, "--detokenize", "1").stdout, b"")
        self.assertEqual(self.done("tokenize", "-m", TARGET, "--detokenize", "1", "--special").stdout, b"<s>")

    def test_a_text_is_taken_byte_for_byte_from_anywhere(self):
        expected = self.ids("-p", "Once\n")
        self.assertEqual(self.ids("-f", self.file("text.txt", "Once\n")), expected)
        self.assertEqual(self.ids("-f", "-", stdin=b"Once\n"), expected)
        self.assertEqual(self.ids("-", stdin=b"Once\n"), expected)

    def test_lines_show_id_and_piece(self):
        lines = self.done("tokenize", "-m", TARGET, "-p", "a\n").stdout.decode().splitlines()
        self.assertEqual(len(lines), len(self.ids("-p", "a\n")))
        for line in lines:
            self.assertRegex(line, r'\A +\d+  ".*"\Z')


if __name__ == "__main__":
    main()
