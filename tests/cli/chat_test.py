#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken chat` through a pipe, as a script uses it, and `generate --chat`."""
import json
import os
import pathlib
import re
import sys
import unittest

import cli_testing
from cli_testing import DRAFT, FOLDER, TARGET, Transcript, path_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from gguf_file import with_key  # noqa: E402

MODELS = os.path.abspath(sys.argv[3])
TEMPLATED, UNKNOWN = path_of("templated.gguf"), path_of("unknown.gguf")
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
# What the bundled tales are asked with in some tests: another form than that of the model file.
ZEPHYR = ("{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token + '\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}")
RATE = r" +[\d.]+ tokens/s"
LENGTH = r"(?:\d+ tokens?|cut at \d+)"


def run(*arguments, lines=()):
    return cli_testing.run(*arguments, stdin="".join(line + "\n" for line in lines).encode(),
                           environment={"FORETOKEN_MODELS": MODELS, "XDG_STATE_HOME": FOLDER.name + "/state"})


class Chat(Transcript):
    def says(self, *lines, flags=("-m", TARGET, "-md", DRAFT)):
        result = run("chat", "-s", "1", *flags, lines=lines)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertEqual(result.stderr, b"")
        return result.stdout.decode(errors="replace")

    def answers(self, *lines, flags=()):
        """The texts of the bundled model's answers, without the lines on them."""
        text = self.says(*lines, flags=("--temp", "0", "-n", "12", *flags))
        return [answer for answer in re.split(r"  (?:speculative|target|drafter|ngram) .*\n", text) if answer]

    def fails(self, words, *lines, flags=("-m", TARGET, "-md", DRAFT)):
        """One line on standard error, exit code 1."""
        result = run("chat", *flags, lines=lines)
        error = result.stderr.decode()
        self.assertEqual(result.returncode, 1, error)
        self.assertRegex(error, r"\Aforetoken: [^\n]+: [^\n]+[;?][^\n]*\n\Z")
        for word in words:
            self.assertIn(word, error)


class Commands(Chat):
    def test_each_prints_the_value_it_set(self):
        for line, reply in (
                ("/length 20", "length: 20 tokens at most"), ("/gamma 5", "gamma: 5 drafted tokens a round"), ("/seed 9", "seed: 9"),
                ("/processor greedy", "processor: greedy"), ("/processor multinomial 0.5", "processor: multinomial, temperature 0.5"),
                ("/processor topk 0.5 4", "processor: topk, temperature 0.5, k 4"),
                ("/processor nucleus 1 0.9", "processor: nucleus, temperature 1, p 0.9"),
                ("/processor topknucleus 1 40 0.9", "processor: topknucleus, temperature 1, k 40, p 0.9"),
                ("/speculative", "speculative: off; nobody answers now"), ("/target", "target: on"), ("/target off", "target: off"),
                ("/drafter", "drafter: on"), ("/ngram on", "ngram: on"), ("/debug", "debug: on, each round is shown"),
                ("/top_k_filler 3", "top_k_filler: 3"), ("/set_ngramstorage onelevel 4", "ngramstorage: onelevel, contexts of 4 tokens"),
                ("/set_ngramstorage basic 3", "ngramstorage: basic, contexts of up to 3 tokens"),
                ("/reset_in_between", "reset_in_between: off"), ("/clear", "history: empty"), ("/reset_stats", "stats: reset"),
                ("/stats", "stats: nobody has answered yet"), ("/cache", "cache: on; a beginning that"), ("/cache off", "cache: off; each round computes"),
                ("/chat off", "chat: off")):
            with self.subTest(line):
                self.assertTrue(self.says(line).startswith(reply), self.says(line))

    def test_a_switch_twice_is_as_before(self):
        self.assertEqual(self.says("/debug", "/debug").splitlines()[1], "debug: off")
        self.assertTrue(self.says("/reset_in_between", "/reset_in_between").splitlines()[1].startswith("reset_in_between: on"))

    def test_help_names_every_command(self):
        text = self.says("/help")
        for command in ("help quit clear debug speculative target drafter ngram cache chat length gamma processor top_k_filler "
                        "set_ngramstorage reset_in_between seed stats reset_stats").split():
            self.assertRegex(text, rf"(?m)^  /{command}\b")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_wrong_values_are_refused_and_change_nothing(self):
        for words, line in ((("/length", "0", "[1,"), "/length 0"), (("/length", "many"), "/length many"), (("/gamma", "65"), "/gamma 65"),
                            (("/gamma", "/gamma K"), "/gamma"), (("/seed", "-1"), "/seed -1"), (("multinomial T",), "/processor softmax 1"),
                            (("topk T K",), "/processor topk 1"), (("3", "[0, 2]"), "/processor multinomial 3"),
                            (("1.5", "[0, 1]"), "/processor nucleus 1 1.5"), (("/processor", "greedy"), "/processor"),
                            (("maybe", "on nor off"), "/target maybe"), (("basic|onelevel",), "/set_ngramstorage twolevel 3"),
                            (("17",), "/set_ngramstorage basic 17"), (("0",), "/top_k_filler 0"), (("did you mean /length",), "/lenght 3"),
                            (("/help",), "/"), (("nothing",), "/quit now"), (("--chat-template",), "/chat on")):
            with self.subTest(line):
                self.fails(words, line)
        result = run("chat", "-m", TARGET, "-md", DRAFT, "--temp", "0", "-n", "6", lines=("/length 0", "Once"))
        self.assertIn("cut at 6", result.stdout.decode(errors="replace"))

    def test_quit_ends_before_the_lines_that_follow(self):
        self.assertEqual(self.says("/quit", "/seed 1"), "")


class Modes(Chat):
    def test_every_mode_answers_the_same_prompt_and_is_compared_with_plain(self):
        text = self.says("/target", "/drafter", "/ngram", "Once upon a time", flags=("--temp", "0", "-n", "30", "--lookahead", "fixed"))
        for mode in ("speculative", "target", "drafter", "ngram"):
            self.assertRegex(text, rf"(?m)^\[{mode}\] ")
            self.assertRegex(text, rf"(?m)^  {mode} +{LENGTH}{RATE} +[\d.]+x plain")
        answers = dict(re.findall(r"(?s)\[(\w+)\] (.*?)\n(?=\[|  speculative )", text))
        self.assertEqual(answers["speculative"], answers["target"])
        self.assertEqual(answers["ngram"], answers["target"])
        self.assertNotEqual(answers["drafter"], answers["target"], "a smaller model writes something else")
        self.assertRegex(text, rf"(?m)^  speculative .*% of \d+ drafts accepted, same text$")
        self.assertRegex(text, r"(?m)^  target .* 1.00x plain$")

    def test_with_one_seed_texts_are_the_same_again_and_with_another_not(self):
        lines = ("/chat off", "/processor multinomial 1", "/seed 4", "Once", "/seed 4", "Once", "/seed 5", "Once")
        first, second, third = self.answers(*lines)[0:3]
        first = first.split("\n", 3)[3]  # after three replies
        self.assertEqual(first, second.split("\n", 1)[1])
        self.assertNotEqual(first, third.split("\n", 1)[1])

    def test_cache_tells_what_was_found_in_it(self):
        """Texts with a shared prefix share blocks of 32 positions."""
        prompt = "Once upon a time there was a dog and a cat and a bird in a house by the sea and they played"
        counts = re.compile(r"so far (\d+) prompt tokens were read, and (\d+) found in the cache")
        flags = ("-m", TARGET, "--spec-type", "ngram", "--temp", "0", "-n", "4")
        found = [(int(read), int(known)) for read, known in counts.findall(self.says("/cache", prompt, "/cache", prompt, "/cache", flags=flags))]
        (read, none), (all_read, known) = found[1:]
        self.assertEqual(found[0], (0, 0))
        self.assertEqual(none, 0)
        self.assertGreaterEqual(known, 32)
        self.assertEqual(all_read + known, 2 * read)
        text = self.says("/cache off", prompt, prompt, "/cache", flags=flags)
        self.assertEqual(counts.findall(text)[-1], (str(2 * read), "0"))
        self.assertEqual(text.count("each round computes the whole text anew"), 2)
        self.assertEqual(text.count("the model is opened again"), 1)
        text = self.says(prompt, prompt, "/cache", flags=(*flags, "--prefix-cache", "off"))
        self.assertIn("each prompt is read whole (--prefix-cache off)", text)
        self.assertEqual(counts.findall(text)[-1], (str(2 * read), "0"))

    def test_gamma_0_drafts_nothing(self):
        self.assertIn("drafts accepted", self.says("/gamma 3", "Once upon a time", flags=("--temp", "0", "-n", "30", "--lookahead", "fixed")))
        self.assertNotIn("drafts accepted", self.says("/gamma 0", "Once upon a time", flags=("--temp", "0", "-n", "30")))

    def test_ngram_settings_reopen_the_model_and_change_no_text(self):
        lines = ("/chat off", "/speculative", "/target", "/ngram")
        settings = ("/set_ngramstorage onelevel 2", "/top_k_filler 3", "/reset_in_between")
        text = self.says(*lines, *settings, "Once upon a time", "Once upon a time", flags=("--temp", "0", "-n", "40", "--lookahead", "fixed"))
        self.assertEqual(len(re.findall(r"(?m)^  ngram .*, same text$", text)), 2)
        kept = [int(n) for n in re.findall(r"(?m)^  ngram .* (\d+) % of", text)]
        self.assertGreater(kept[-1], 80, "the second answer was known from the first")

    def test_nobody_answers_when_all_are_off(self):
        self.fails(("nobody answers",), "/speculative", "Once")

    def test_without_a_drafter_the_target_answers_and_says_so(self):
        flags = ("-m", TARGET, "--spec-type", "none", "-n", "4")
        self.assertRegex(self.says("Once", flags=flags), rf"  target +{LENGTH}")
        self.fails(("--spec-type none",), "/speculative", flags=flags)
        self.fails(("-md",), "/drafter", flags=flags)

    def test_stats_add_up_and_reset(self):
        text = self.says("Once", "Once", "/stats", "/reset_stats", "/stats", flags=("--temp", "0", "-n", "10"))
        self.assertRegex(text, r"(?m)^  speculative +2 answers, 20 tokens,")
        self.assertTrue(text.endswith("stats: reset\nstats: nobody has answered yet\n"))

    def test_debug_shows_the_rounds(self):
        self.assertRegex(self.says("/debug", "Once upon", flags=("--temp", "0", "-n", "10")), r"\[=[^]]+\]")

    def test_a_prompt_may_begin_with_a_slash(self):
        self.assertRegex(self.says("//a", "  ", "", flags=("-n", "4")), rf"  speculative +{LENGTH}")


class Conversations(Chat):
    FLAGS = ("--chat-template-file", FOLDER.name + "/zephyr.jinja")

    def test_the_conversation_is_remembered_and_forgotten(self):
        once, = self.answers("The dog", flags=self.FLAGS)
        first, second, third = self.answers("The dog", "The dog", "/clear", "The dog", flags=self.FLAGS)
        self.assertEqual(first, once)
        self.assertNotEqual(second, first, "the second prompt stands behind the first and its answer")
        self.assertEqual(third, "history: empty\n" + first)

    def test_without_the_template_each_prompt_stands_alone(self):
        first, second = self.answers("/chat off", "The dog", "The dog")
        first = first.split("\n", 1)[1]
        self.assertEqual(first, second)
        third, = self.answers("/chat off", "The dog", flags=self.FLAGS)
        self.assertEqual(third.split("\n", 1)[1], first)

    def test_the_system_message_counts(self):
        plain, = self.answers("The dog", flags=self.FLAGS)
        told, = self.answers("The dog", flags=(*self.FLAGS, "--system", "Tell a sad story about rain."))
        self.assertNotEqual(plain, told)

    def test_a_full_context_forgets_the_oldest_turns(self):
        lines = ["Tell me about the dog and the big red ball in the park."] * 8
        text = self.says(*lines, flags=("--temp", "0", "-n", "40", "-c", "256", *self.FLAGS))
        self.assertIn("oldest turn is forgotten", text)
        self.assertEqual(len(re.findall(r"(?m)^  speculative ", text)), len(lines))

    def test_the_model_files_own_template_is_used(self):
        with_own = run("chat", "-m", TEMPLATED, "-s", "1", "-n", "8", lines=("a", "a"))
        named = run("chat", "-m", TARGET, "--chat-template", "chatml", "-s", "1", "-n", "8", lines=("a", "a"))
        text = [re.sub(RATE, "", result.stdout.decode(errors="replace")) for result in (with_own, named)]
        self.assertEqual(with_own.returncode, 0, with_own.stderr.decode())
        self.assertEqual(text[0], text[1])

    def test_a_bad_template_is_an_error_with_its_line_and_another_can_be_chosen(self):
        self.fails(("chat template", "line 1", "'own'"), "a", flags=("-m", UNKNOWN))
        self.says("a", flags=("-m", UNKNOWN, "--chat-template", "chatml", "-n", "2"))
        self.says("a", flags=("-m", UNKNOWN, *self.FLAGS, "-n", "2"))
        result = run("chat", "-m", TARGET, "--chat-template", "chatlm", lines=("a",))
        self.assertEqual(result.returncode, 2)
        self.assertIn("chatml", result.stderr.decode())


class GenerateChat(Transcript):
    def ids(self, *flags):
        return json.loads(self.done("generate", "-m", TEMPLATED, "-n", "1", "--json", *flags).stdout)["prompt_token_ids"]

    def refused(self, words, *flags, codes=(1, 2)):
        """One line with these words, and a way out."""
        result = run("generate", *flags)
        self.assertIn(result.returncode, codes, flags)
        self.assertRegex(result.stderr.decode(), rf"\Aforetoken: {words}[^\n]*; [^\n]+\n\Z")

    def test_the_prompt_becomes_a_message(self):
        written = "<|im_start|>user\nabc<|im_end|>\n<|im_start|>assistant\n"  # the tiny vocabulary has none of the marks
        self.assertEqual(self.ids("--chat", "-p", "abc"), self.ids("-p", written))
        with_system = "<|im_start|>system\nde<|im_end|>\n" + written
        self.assertEqual(self.ids("--chat", "--system", "de", "-p", "abc"), self.ids("-p", with_system))
        zephyr = Conversations.FLAGS
        self.assertEqual(self.ids("--chat", *zephyr, "-p", "abc"), self.ids("-p", "<|user|>\nabc</s>\n<|assistant|>\n", "--special"))

    def test_a_named_template_of_the_file_is_used(self):
        out = path_of("named.gguf")
        with_key(TARGET, out, "tokenizer.chat_template.tool_use", "tools {{ messages[0].content }}")
        result = run("generate", "-m", out, "-n", "1", "--json", "--chat", "--chat-template", "tool_use", "-p", "abc")
        self.assertEqual(json.loads(result.stdout)["prompt_token_ids"], self.ids("-p", "tools abc"))

    def test_variables_for_the_template(self):
        path = pathlib.Path(FOLDER.name, "variables.jinja")
        path.write_text("{{ messages[0].content }}{% if not thinking %} /plain{% endif %}")
        template = ("--chat", "--chat-template-file", str(path), "-p", "abc")
        self.assertEqual(self.ids(*template), self.ids("-p", "abc /plain"))
        self.assertEqual(self.ids(*template, "--chat-template-kwargs", '{"thinking": true}'), self.ids("-p", "abc"))
        for text in ("[1]", "{thinking"):
            self.refused(r"[^\n]*chat_template_kwargs", "-m", TARGET, *template, "--chat-template-kwargs", text)

    def test_a_template_file_that_cannot_be_used_is_an_error(self):
        for text, words in (("", "empty"), ("\n{% if %}", "line 2")):
            path = pathlib.Path(FOLDER.name, "bad.jinja")
            path.write_text(text)
            self.refused(rf"[^\n]*{words}", "-m", TARGET, "--chat", "--chat-template-file", str(path), "-p", "a")
        result = run("generate", "-m", TARGET, "--chat", "--chat-template-file", "absent.jinja", "-p", "a")
        self.assertIn("absent.jinja", result.stderr.decode())

    def test_control_tokens_in_a_message_are_text(self):
        self.assertEqual(self.ids("--chat", "-p", "</s>").count(2), 0)
        self.assertEqual(self.ids("--special", "-p", "</s>").count(2), 1, "the control: it is a token where it may be")

    def test_flags_that_do_not_go_together(self):
        for flags in (("--system", "x", "-p", "a"), ("--chat-template", "chatml", "-p", "a"), (*Conversations.FLAGS, "-p", "a"), ("--chat-template-kwargs", "{}", "-p", "a"),
                      ("--chat", "--prompt-tokens", "1,2"), ("--chat", "--special", "-p", "a")):
            self.refused(r"--[^\n]", "-m", TEMPLATED, *flags, codes=(2,))


class Sampling(Chat):
    def test_a_grammar_holds_for_answers_and_a_processor_replaces_it(self):
        first, second = self.answers("The dog", "/processor greedy", "The dog", flags=("--grammar", 'root ::= " sat" [a-z]*'))
        self.assertRegex(first, r"\A sat[a-z]*\n\Z")
        self.assertNotIn(first, second)


class Verb(unittest.TestCase):
    def test_help(self):
        text = run("chat", "--help-all").stdout.decode()
        self.assertTrue(text.startswith("usage: foretoken chat "))
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for flag in ("--system", "--chat-template", "--chat-template-file", "--model-draft", "--temp"):
            self.assertIn(flag, text)

    def test_no_prompt_and_no_colour_in_a_pipe(self):
        out = run("chat", "-m", TARGET, "-n", "2", lines=("a",)).stdout
        self.assertNotIn(b"> ", out)
        self.assertNotIn(b"\033", out)
        self.assertFalse(os.path.exists(FOLDER.name + "/state"), "a script leaves no history")

    def test_a_missing_model_is_an_error(self):
        result = run("chat", "-m", "absent.gguf")
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn("absent.gguf", result.stderr.decode())


if __name__ == "__main__":
    cli_testing.write_models()
    for out, template in ((TEMPLATED, CHATML), (UNKNOWN, "{{ my own }}")):
        with_key(TARGET, out, "tokenizer.chat_template", template)
    pathlib.Path(FOLDER.name, "zephyr.jinja").write_text(ZEPHYR)
    unittest.main(argv=sys.argv[:1])
