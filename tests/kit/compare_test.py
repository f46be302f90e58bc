#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`speculation_kit compare` on servers of the bundled models, of which some change the text, and on servers that send what is wrong.

usage: compare_test.py PROGRAM MODELS
"""
import json
import os
import sys
import tempfile
import unittest

from kit_testing import ROOT, ScriptedServer, run_kit

sys.path.insert(0, str(ROOT / "tests/server"))
from server_testing import Server  # noqa: E402

PROGRAM, MODELS = (os.path.abspath(word) for word in sys.argv[1:3])
TARGET, DRAFT = (os.path.join(MODELS, name) for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf"))
ONE_WAY = ("--lookahead", "fixed", "--num-speculative-tokens", "3", "--threads", "1", "--repack-cache", "off", "-q")  # the same at each run
SMALL = ("--max-tokens", "24", "--max-prompts", "4", "--seeds", "1", "--samples", "400", "--speed-pairs", "0")


def serve(*flags, model=TARGET):
    return Server(PROGRAM, "-m", model, *flags, *ONE_WAY)


def url(server):
    return f"http://127.0.0.1:{server.port}"


def compare(plain, speculative, *flags, **options):
    return run_kit("compare", "--plain", plain, "--speculative", speculative, *flags, **options)


class ServersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = serve("--spec-type", "none")
        cls.addClassCleanup(server.__exit__)
        cls.plain = url(server)

    def run_with(self, *flags, model=TARGET, kit=SMALL):
        with serve(*flags, model=model) as server:
            return compare(self.plain, url(server), *kit)

    def ways(self, value, temperature):
        return {(row["endpoint"], row["way"]): row["differing"] for row in value["texts"] if row["temperature"] == temperature}

    def test_a_draft_model_is_exact(self):
        """Its drawn texts are others for the same seed, so their distribution is compared."""
        code, value, out, err = self.run_with("-md", DRAFT)
        self.assertEqual((code, value["verdict"], value["problems"]), (0, "exact", []), out + err)
        self.assertEqual(list(self.ways(value, 0).values()), [0] * 6)
        self.assertGreater(max(self.ways(value, 1).values()), 0)
        for row in value["texts"]:
            self.assertEqual(row["drafted"] > 0, row["way"].startswith("speculative"), row)
            self.assertGreater(row["tokens"], 0)
            self.assertTrue(row["temperature"] or row["largest_logprob_difference"] == 0, row)
        tests = value["distribution"]["tests"]
        self.assertEqual([test["what"] for test in tests], 2 * ["likeliest", "token 1", "token 2", "token 3", "token 4"])
        self.assertTrue(all(not test["differs"] and test["degrees"] for test in tests), tests)
        self.assertAlmostEqual(value["distribution"]["level_each"], 1e-4)
        self.assertIn("## Distribution of drawn tokens", out)

    def test_the_texts_own_tokens_are_exact_by_their_seeds(self):
        code, value, out, err = self.run_with("--spec-type", "ngram")
        self.assertEqual((code, value["verdict"], value["distribution"]), (0, "exact", None), out + err)
        self.assertEqual(set(self.ways(value, 1).values()), {0})

    def test_without_seeds_distributions_are_compared_at_once(self):
        kit = (*SMALL, "--seeds", "none", "--endpoints", "completions", "--temperatures", "0.8")
        code, value, out, err = self.run_with("--spec-type", "ngram", kit=kit)
        self.assertEqual((code, value["verdict"], value["texts"]), (0, "exact", []), out + err)
        self.assertEqual(len(value["distribution"]["tests"]), 5)

    def test_another_distribution_is_found(self):
        code, value, out, err = self.run_with("-md", DRAFT, "--verify", "typical-acceptance", kit=(*SMALL, "--endpoints", "completions"))
        self.assertEqual((code, value["verdict"]), (1, "different"), out + err)
        self.assertEqual(set(self.ways(value, 0).values()), {0})  # at temperature 0 it changes nothing
        self.assertGreater(sum(test["differs"] for test in value["distribution"]["tests"]), 1)
        self.assertIn("DIFFERS", out)

    def test_another_model_is_found(self):
        code, value, out, err = self.run_with("--spec-type", "ngram", model=DRAFT, kit=(*SMALL, "--temperatures", "0", "--endpoints", "completions"))
        self.assertEqual((code, value["verdict"]), (1, "different"), out + err)
        self.assertEqual([n for (_, way), n in self.ways(value, 0).items() if way == "plain, streamed"], [0])
        self.assertIn("First difference", out)

    def test_what_shows_nothing_is_not_exact(self):
        kit = (*SMALL, "--temperatures", "0", "--endpoints", "completions")
        code, value, _, _ = compare(self.plain, self.plain, *kit)
        self.assertEqual((code, value["verdict"]), (1, "not shown"))
        self.assertIn("drafted nothing", value["problems"][0])
        few = ("--seeds", "none", "--temperatures", "1", "--samples", "20", "--sample-prompts", "1")
        code, value, _, _ = self.run_with("--spec-type", "ngram", kit=(*SMALL, "--endpoints", "completions", *few))
        self.assertEqual((code, value["verdict"]), (1, "not shown"))
        self.assertIn("give more --samples", value["problems"][0])

    def test_speed_is_told_in_pairs(self):
        kit = ("--temperatures", "0", "--max-tokens", "16", "--max-prompts", "2", "--speed-pairs", "6", "--endpoints", "completions")
        code, value, out, err = self.run_with("-md", DRAFT, kit=kit)
        self.assertEqual(code, 0, out + err)
        (speed,) = value["speed"]
        self.assertEqual((speed["endpoint"], speed["pairs"], len(speed["ratio_interval"])), ("completions", 6, 2))
        for part in (speed["ratio"], *speed["tokens_per_s"].values(), *speed["first_token_s"].values()):
            self.assertTrue(0 < part["lower"] <= part["median"] <= part["upper"], speed)
        low, high = speed["ratio_interval"]
        self.assertTrue(low <= speed["ratio"]["median"] <= high, speed)
        self.assertIn("## Speed", out)

    def test_a_key_and_a_file_of_prompts(self):
        with tempfile.TemporaryDirectory() as folder, serve("--spec-type", "ngram", "--api-key", "open sesame") as server:
            path = os.path.join(folder, "prompts.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"prompt": "a b a b a b a b"}\n{"turns": ["One two one two one two"]}\n')
            kit = ("--temperatures", "0", "--endpoints", "completions", "--speed-pairs", "0", "--prompts", path)
            code, value, out, err = compare(self.plain, url(server), *kit, "--api-key-env", "KIT_KEY", env={"KIT_KEY": "open sesame"})
            self.assertEqual((code, value["texts"][1]["texts"]), (0, 2), out + err)
            code, _, _, err = compare(self.plain, url(server), *kit)
            self.assertEqual(code, 2)
            self.assertIn("HTTP 401", err)


def reply(value):
    return 200, {}, json.dumps(value).encode()


class WrongInputTest(unittest.TestCase):
    def fails(self, part, plain, *flags, **options):
        code, value, _, err = compare(plain, plain, "--model", "m", "--speed-pairs", "0", *flags, **options)
        self.assertEqual((code, value), (2, None), err)
        errors = [line for line in err.splitlines() if line.startswith("speculation_kit: ")]
        self.assertTrue(len(errors) == 1 and err.endswith(errors[0] + "\n") and part in errors[0], err)

    def test_flags(self):
        for address in ("nothing", "ftp://x", "http://", "http://x:99999", "http://me:secret@x", "http://x/v1?a=1"):
            self.fails("is no address of a server", address)
        self.fails("is the server there", "http://127.0.0.1:1")
        self.fails("holds no key", "http://x", "--api-key-env", "KIT_NONE")
        self.fails("no JSON", "http://x", "--extra", "{")
        self.fails("no JSON object", "http://x", "--extra", "3")
        self.fails("No such file", "http://x", "--prompts", "/no/such/file")
        self.fails("an empty list", "http://x", "--temperatures", "none")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write('{"prompt": "a"}\n{"prompt": 3}\n')
            file.flush()
            self.fails("line 2: no text `prompt`", "http://x", "--prompts", file.name)
        for flag, value in (("--samples", "5"), ("--temperatures", "nan"), ("--endpoints", "x"), ("--false-alarms", "2"), ("--seeds", "-1")):
            code, _, _, err = compare("http://x", "http://x", flag, value)
            self.assertEqual(code, 2)
            self.assertIn(f"argument {flag}", err)

    def test_replies(self):
        scripts = [(reply([]), "a reply that is no object"), (reply({}), "a reply without choices"), ((200, {}, b"<html>"), "no JSON"),
                   ((200, {}, b"[" * 200_000), "no JSON"), ((200, {"Content-Length": "100"}, b"{}"), "is the server there"),
                   ((302, {"Location": "http://127.0.0.1:1"}, b""), "HTTP 302"), ((500, {}, b"broken"), "HTTP 500: broken"),
                   (reply({"error": {"message": "mine"}}), "mine"), ((200, {}, b"x" * (33 << 20)), "more than 32 MiB")]
        for script, part in scripts:
            with self.subTest(part=part), ScriptedServer(lambda path, body, script=script: script) as server:
                self.fails(part, server.url, "--timeout", "5")
        streams = [(b"data: {}\n\n", "without its end"), (b"data: x\n\n", "no JSON"), (b"x" * (33 << 20), "more than 32 MiB"),
                   (b'data: {"error": {"message": "mine"}}\n\ndata: [DONE]\n\n', "mine")]
        for script, part in streams:
            def answer(path, body, script=script):
                return (200, {}, script) if body.get("stream") else reply({"choices": [{"text": "a"}]})
            with self.subTest(part=part), ScriptedServer(answer) as server:
                self.fails(part, server.url, "--endpoints", "completions")
        with ScriptedServer(lambda path, body: reply({"data": [3]})) as server:
            code, _, _, err = compare(server.url, server.url)
            self.assertEqual((code, "its list of models has no name" in err), (2, True), err)

    def test_a_server_without_log_probabilities_is_compared_by_its_texts(self):
        asked = []

        def answer(path, body):
            asked.append(body)
            if "logprobs" in body:
                return 400, {}, b"no logprobs here"
            text = {"text": "same", "finish_reason": "length"}
            if not body.get("stream"):
                return reply({"choices": [text], "usage": {"completion_tokens": 1}, "timings": {"draft_n": 2, "draft_n_accepted": 1}})
            return 200, {}, b"data: " + json.dumps({"choices": [text]}).encode() + b"\n\ndata: [DONE]\n\n"
        with ScriptedServer(answer) as server:
            code, value, out, err = compare(server.url, server.url + "/v1/", "--model", "m", "--speed-pairs", "0", "--endpoints", "completions",
                                            "--temperatures", "0", "--extra", '{"ignore_eos": true}')
        self.assertEqual((code, value["verdict"]), (0, "exact"), out + err)
        self.assertIn("texts alone are compared", value["notes"][0])
        self.assertTrue(all(body["ignore_eos"] is True and body["model"] == "m" for body in asked))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
