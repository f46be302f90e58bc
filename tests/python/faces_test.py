#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The five designs' own words (foretoken.faces): the programs of examples/python, and calls as users of each design chain them, against the engine.

usage: faces_test.py LIBRARY PROGRAM MODELS [--without-numpy]
"""
import contextlib
import io
import itertools
import json
import math
import os
import subprocess
import sys

from python_testing import DRAFT, PROGRAM, ROOT, SECONDS, TARGET, TestCase, foretoken, main, open_engine

from foretoken import Code, faces
from foretoken.faces import speculate, speculative_decoder
from foretoken.faces.text_generation import GenerationStatus, SamplingParams, TextContext, TextGenerationInputs

SHAPE = {"context_size": 256, "threads": 1, "repack_cache": "off"}
PROMPTS = ("Once upon a time", "The fox", "There was a king")


class FacesTest(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain, cls.target, cls.drafter = open_engine(), faces.Model(TARGET, **SHAPE), faces.Model(DRAFT, **SHAPE)
        cls.inputs = cls.plain.tokenize(PROMPTS[0])
        cls.addClassCleanup(cls.plain.close)
        cls.addClassCleanup(cls.target.close)

    def greedy(self, prompt, count, **options):
        return self.plain.generate(prompt, max_new_tokens=count, temperature=0, **options).result().tokens

    def refused(self, field, part, function, *arguments, **named):
        self.fails(Code.INVALID_ARGUMENT, field, part, function, *arguments, **named)


class ExamplesTest(TestCase):
    def test_the_examples_run(self):
        for path in sorted((ROOT / "examples/python").glob("*.py")):
            with self.subTest(example=path.name):
                environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
                done = subprocess.run([sys.executable, "-B", str(path), TARGET, DRAFT], env=environment, capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertGreater(len(done.stdout.split()), 20)


class SpeculativeGenerateTest(FacesTest):
    def generate(self, *more, **named):
        return faces.speculative_generate(self.inputs, self.drafter, self.target, *more, **{"eos_tokens_id": None, "use_cache": True, **named})

    def test_greedy_text_is_that_of_the_target(self):
        expected = self.greedy(self.inputs, 40)
        self.assertEqual(faces.autoregressive_generate(self.inputs, self.target), expected)
        for gamma, use_cache, first_target in ((0, True, True), (1, True, False), (5, False, True), (8, True, False)):
            with self.subTest(gamma=gamma, use_cache=use_cache, first_target=first_target):
                tokens, rate = self.generate(gamma=gamma, use_cache=use_cache, first_target=first_target)
                self.assertEqual(tokens, expected)
                self.assertEqual(rate > 0, gamma > 0)
        self.assertEqual(faces.speculative_generate(self.inputs, DRAFT, TARGET, max_gen_len=9)[0], expected[:9])  # paths, and the design's defaults

    def test_an_end_token_is_the_last_one(self):
        free = self.greedy(self.inputs, 40)
        for ends in (free[6], [4095, free[6]]):
            expected = free[:free.index(free[6]) + 1]
            self.assertEqual(self.generate(eos_tokens_id=ends)[0], expected)
            self.assertEqual(faces.autoregressive_generate(self.inputs, self.target, eos_tokens_id=ends, use_cache=True), expected)

    def test_processors_draw_as_the_engine_does(self):
        with open_engine(DRAFT, rejection_sampling_strategy="residual") as engine:
            for processor, options in ((faces.MultinomialProcessor(0.9), {"temperature": 0.9}),
                                       (faces.TopKProcessor(0.9, 8), {"temperature": 0.9, "top_k": 8}),
                                       (faces.NucleusProcessor(0.6, 0.9), {"temperature": 0.6, "top_p": 0.9}),
                                       (faces.TopKNucleusProcessor(1.1, 30, 0.8), {"temperature": 1.1, "top_k": 30, "top_p": 0.8})):
                expected = engine.generate(self.inputs, max_new_tokens=40, seed=7, **options).result()
                tokens, rate = self.generate(gamma=4, logits_processor=processor, seed=7)
                self.assertEqual((tokens, rate), (expected.tokens, expected.statistics["acceptance_rate"]))
                self.assertNotEqual(self.generate(gamma=4, logits_processor=processor, seed=8)[0], tokens)

    def test_a_lossy_rule_is_the_engines(self):
        processor = faces.MultinomialProcessor(1.2)
        with open_engine(DRAFT, rejection_sampling_strategy="residual", skip_sample_adjustment=True) as engine:
            expected = engine.generate(self.inputs, max_new_tokens=40, temperature=1.2, seed=3).result()
        self.assertEqual(self.generate(gamma=4, logits_processor=processor, seed=3, skip_sample_adjustment=True)[0], expected.tokens)
        self.assertNotEqual(self.generate(gamma=4, logits_processor=processor, seed=3)[0], expected.tokens)

    def test_own_processors_edit_logits(self):
        banned = self.greedy(self.inputs, 1)[0]

        class Without(faces.GreedyProcessor):
            def _process(self, logits):
                logits[banned] = -math.inf
                return logits

        expected = self.greedy(self.inputs, 20, logit_bias={banned: -math.inf})
        self.assertEqual(self.generate(logits_processor=Without(), max_gen_len=20)[0], expected)

        class Draws(faces.GreedyProcessor):
            def sample(self, probs):
                return 0

        self.refused("logits_processor", "override _process", self.generate, logits_processor=Draws())
        self.refused("logits_processor", "is no LogitsProcessor", self.generate, logits_processor=max)

    def test_ngrams_draft_and_are_kept(self):
        expected = self.greedy(self.inputs, 60)
        for kind, n in ((faces.NGramStorage, 4), (faces.OneLevelNGramStorage, 3)):
            storage = kind(n, 4096)

            def run():
                return faces.ngram_assisted_speculative_generate(self.inputs, storage, self.target, gamma=4, max_gen_len=60, eos_tokens_id=None,
                                                                 use_cache=True)

            first, again = run(), run()
            self.assertEqual((first[0], again[0]), (expected, expected))
            self.assertGreater(again[1], first[1] + 0.1)  # the second text is known
            storage.reset()
            self.assertEqual(run(), first)
            storage.reset()
        wrong = faces.NGramStorage(99, 4096)
        self.refused("ngramstorage.n", "", faces.ngram_assisted_speculative_generate, self.inputs, wrong, self.target)
        self.refused("filler_top_k", "[1, 64]", faces.ngram_assisted_speculative_generate, self.inputs, faces.NGramStorage(3, 4096), TARGET, filler_top_k=0)
        self.refused("n", "at least 2", faces.NGramStorage, 1, 4096)

    def test_rounds_are_shown(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            tokens, _ = self.generate(debug=True)
        lines = said.getvalue().splitlines()
        self.assertTrue(lines[0].startswith("Initial step: "), lines[0])
        self.assertIn("of 5 drafts", lines[1])
        self.assertGreater(len(lines), 3)

    def test_wrong_arguments_are_named(self):
        for field, value, part in (("gamma", 65, "[0, 64]"), ("max_gen_len", -1, "negative"), ("eos_tokens_id", [4096], "vocabulary")):
            self.refused(field, part, self.generate, **{field: value})
        self.refused("inputs", "Model.encode", faces.speculative_generate, PROMPTS[0], DRAFT, TARGET)
        self.refused("inputs", "", faces.speculative_generate, [99999], DRAFT, self.target)
        self.refused("logits_processor.top_p", "top_p", self.generate, logits_processor=faces.NucleusProcessor(1.0, 2.0))


class SpeculativeConfigTest(FacesTest):
    def of_program(self, config, draft):
        command = [PROGRAM, "generate", "-m", TARGET, *(["-md", draft] if draft else []), "-p", PROMPTS[0], "--temp", "0.9", "-s", "7", "-n", "40",
                   "-t", "1", "-c", "256", "--repack-cache", "off", "--json", "--config-dialect", "max", "--speculative-config",
                   json.dumps({"speculative_config": config})]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_fields_mean_what_a_file_of_max_means(self):
        sampling = SamplingParams(top_k=0, temperature=0.9, seed=7)
        for draft, given in ((None, {}), (DRAFT, {"speculative_method": "standalone"}),
                             (DRAFT, {"speculative_method": "standalone", "num_speculative_tokens": 5, "rejection_sampling_strategy": "residual"}),
                             (DRAFT, {"speculative_method": "standalone", "rejection_sampling_strategy": "typical-acceptance"}),
                             (DRAFT, {"speculative_method": "standalone", "synthetic_acceptance_rate": 0.5}),
                             (DRAFT, {"speculative_method": "standalone", "num_speculative_tokens": 6,
                                      "num_speculative_tokens_per_batch_size": [{"batch_start": 1, "batch_end": 4, "num_tokens": 3}]}),
                             (None, {"speculative_method": "ngram", "num_speculative_tokens": 4})):
            with self.subTest(**given):
                expected = self.of_program(given, draft)
                config = faces.PipelineConfig(TARGET, draft, faces.SpeculativeConfig(**given), 256, options={"threads": 1, "repack_cache": "off"})
                with faces.LLM(config) as llm:
                    self.assertEqual(llm.generate(PROMPTS[0], max_new_tokens=40, sampling_params=sampling), [expected["text"]])
                    done = llm.completions[0]
                found = expected["speculation"]
                self.assertEqual((done.tokens, done.strategy, done.lossless), (expected["token_ids"], found["strategy"], found["lossless"]))
                if found["drafted"]:
                    self.assertEqual(done.controller, found["lookahead"])
                self.assertEqual([done.statistics[key] for key in ("rounds", "drafted", "accepted")],
                                 [found[key] for key in ("rounds", "drafted", "accepted")])

    def test_predicates(self):
        config = faces.SpeculativeConfig()
        self.assertEqual((config.num_speculative_tokens, config.is_standalone(), config.uses_greedy_rejection()), (2, False, False))
        config = faces.SpeculativeConfig("standalone", rejection_sampling_strategy="typical-acceptance")
        self.assertEqual((config.is_standalone(), config.is_eagle(), config.is_mtp(), config.uses_typical_acceptance(), config.uses_logit_comparison()),
                         (True, False, False, True, False))
        with self.assertRaises(AttributeError):
            config.num_speculative_tokens = 3
        self.assertEqual(faces.SpeculativeConfig(adaptive_speculative_widths="1,3").engine_options()["lookahead"], "cost-model")

    def test_wrong_settings_are_named(self):
        for field, value in (("num_speculative_tokens", 65), ("speculative_method", "nothing"), ("rejection_sampling_strategy", "hope"),
                             ("synthetic_acceptance_rate", 1.5), ("config_file", "a.yaml"), ("section_name", "a"), ("draft_proposal", "argmax"),
                             ("use_greedy_acceptance", True), ("adaptive_speculative_min_batch_size", 4), ("adaptive_speculative_widths", [0]),
                             ("num_speculative_tokens_per_batch_size", [[1, 2]])):
            self.refused(field, ";", faces.SpeculativeConfig, **{field: value})
        self.refused("relaxed_topk", "[1,", faces.SpeculativeConfig, use_relaxed_acceptance_for_thinking=True, relaxed_topk=0)
        self.refused("max_length", "out of range", faces.LLM, faces.PipelineConfig(TARGET, max_length=-1))
        self.refused("max_batch_size", "out of range", faces.LLM, faces.PipelineConfig(TARGET, max_batch_size=0))

    def test_many_prompts_run_together(self):
        config = faces.PipelineConfig(TARGET, DRAFT, faces.SpeculativeConfig("standalone"), 256, 3,
                                      {"threads": 1, "repack_cache": "off", "max_waiting": 1})
        with faces.LLM(config) as llm:
            llm.generate(PROMPTS * 3, max_new_tokens=12)
            self.assertEqual([done.tokens for done in llm.completions], [self.greedy(prompt, 12) for prompt in PROMPTS] * 3)


class PipelineTest(FacesTest):
    def open(self, batch_size=3, **settings):
        config = faces.SpeculativeConfig(**{"speculative_method": "standalone", "num_speculative_tokens": 4, **settings})
        options = {"threads": 1, "repack_cache": "off"}
        return faces.StandaloneSpeculativeDecodingPipeline(faces.PipelineConfig(TARGET, DRAFT, config, 256, batch_size, options))

    def contexts(self):
        sampled = SamplingParams(top_k=0, temperature=0.9, top_p=0.95, repetition_penalty=1.1, seed=5)
        return [TextContext(30 + 9 * i, self.plain.tokenize(prompt), prompt, sampling_params=sampled if i % 2 else SamplingParams())
                for i, prompt in enumerate(PROMPTS)]

    def alone(self, context):
        options = context.sampling_params.request_options()
        return self.plain.generate(context.prompt_tokens, max_new_tokens=context.max_new_tokens, **options).result()

    def test_each_text_is_that_of_its_request_alone(self):
        with self.open() as pipeline:
            for again in range(2):  # released ids begin again, with the sessions of the first ones
                contexts, seen = self.contexts(), {prompt: [] for prompt in PROMPTS}
                for step in itertools.count():
                    batches = [contexts[:2], contexts[2:]] if step % 3 else [[], contexts[1:]]  # some pause
                    outputs = pipeline.execute(TextGenerationInputs(batches))
                    for name, output in outputs.items():
                        seen[name] += output.tokens
                    if all(context.is_done for context in contexts):
                        break
                for context in contexts:
                    expected = self.alone(context)
                    self.assertEqual((context.generated_tokens, seen[context.request_id]), (expected.tokens, expected.tokens))
                    self.assertIs(context.status, GenerationStatus.MAXIMUM_LENGTH)
                    pipeline.release(context.request_id)
            found, metrics = pipeline.metrics.get_stats(), pipeline.metrics
            self.assertEqual(found["draft_tokens_generated"], sum(metrics.drafted_per_position))
            self.assertEqual(found["draft_tokens_accepted"], sum(metrics.accepted_per_position))
            self.assertTrue(0.3 < found["acceptance_rate"] < 1, found)
            self.assertEqual(metrics.accepted_per_position, sorted(metrics.accepted_per_position, reverse=True))
            self.assertEqual(metrics.acceptance_rate_per_position, [a / d for a, d in zip(metrics.accepted_per_position, metrics.drafted_per_position)])
            metrics.reset()
            self.assertEqual((metrics.get_stats()["draft_tokens_generated"], metrics.acceptance_rate_per_position), (0, [None] * 4))

    def test_an_end_token_ends_a_request(self):
        context, = self.contexts()[:1]
        free = self.alone(context).tokens
        context.eos_token_ids = frozenset([free[7]])
        with self.open() as pipeline:
            while not context.is_done:
                output = pipeline.execute(TextGenerationInputs([[context]]))[context.request_id]
            self.assertEqual((context.generated_tokens, output.is_done), (free[:free.index(free[7]) + 1], True))
            self.assertIs(context.status, GenerationStatus.END_OF_SEQUENCE)
            self.assertEqual(pipeline.execute(TextGenerationInputs([[context]]))[context.request_id].tokens, [])

    def test_parts_are_steps(self):
        with self.open() as pipeline:
            batch = self.contexts()[:2]
            inputs, steps = pipeline.prepare_batch(None, batch, [batch], 4, is_draft=True)
            self.assertEqual((inputs.tokens, inputs.input_row_offsets[-1], steps), (batch[0].tokens + batch[1].tokens, len(inputs.tokens), 4))
            generated, tokens, logits, inputs, all_logits = pipeline.generate_draft_tokens(batch, steps, inputs)
            merged = pipeline.merge_draft_tokens(inputs, tokens)
            self.assertEqual(merged.tokens, batch[0].tokens + tokens[0] + batch[1].tokens + tokens[1])
            arguments = [inputs, batch, [batch], generated, tokens, logits, merged.tokens, merged.input_row_offsets, all_logits]
            self.refused("merged_draft_tokens", "merge_draft_tokens", pipeline.prepare_batch, None, batch, [batch], 1)
            wrong = [*arguments[:6], merged.tokens[::-1], *arguments[7:]]
            self.refused("merged_draft_tokens", "draft_tokens", pipeline.verify_draft_tokens_with_target_model, *wrong)
            self.refused("context_batch", "verify_draft", pipeline.update_contexts, batch, [0, 0], [1, 1], [-1, -1], tokens, 4)
            rejected, recovered, bonus = pipeline.verify_draft_tokens_with_target_model(*arguments)
            for context, kept, drafts, own, more in zip(batch, rejected, tokens, recovered, bonus):
                expected = self.alone(context).tokens
                self.assertEqual(drafts[:kept], expected[:kept])
                self.assertEqual((own, more), (expected[kept], -1) if kept < len(drafts) else (-1, expected[kept]))
            pipeline.update_contexts(batch, rejected, recovered, bonus, tokens, generated)
            self.assertEqual([len(output.tokens) for output in pipeline.build_response(batch).values()], [kept + 1 for kept in rejected])

    def test_what_it_has_not_is_refused(self):
        self.refused("rejection_sampling_strategy", "LLM", self.open, rejection_sampling_strategy="residual")
        self.refused("speculative_method", "LLM", self.open, speculative_method="ngram")
        self.refused("adaptive_speculative_widths", "num_steps", self.open, adaptive_speculative_widths=[1, 2])
        config = faces.PipelineConfig(TARGET, DRAFT, faces.SpeculativeConfig("standalone"))
        self.refused("pipeline_model", "model files", faces.StandaloneSpeculativeDecodingPipeline, config, object)
        self.refused("draft_model", "PipelineConfig", faces.StandaloneSpeculativeDecodingPipeline,
                     faces.PipelineConfig(TARGET, None, faces.SpeculativeConfig("standalone")))
        with self.open() as pipeline:
            one, two = self.contexts()[:2]
            two.request_id = one.request_id
            self.refused("batch", "request_id", pipeline.execute, TextGenerationInputs([[one], [two]]))
            self.refused("request_id", "no request", pipeline.release, one.request_id)
            self.refused("tokens", "vocabulary", pipeline.execute, TextGenerationInputs([[TextContext(40, [99999])]]))


class SpeculativeDecoderTest(FacesTest):
    def test_verified_text_is_greedy(self):
        expected = self.greedy(self.inputs, 40)
        with open_engine(DRAFT) as engine:
            counted = engine.generate(self.inputs, max_new_tokens=40, temperature=0).result().statistics
        decoder = faces.SpeculativeDecoder(self.drafter, speculative_decoder.SpeculativeConfig(lookahead=4))
        self.assertEqual((decoder.acceptance_rate(), decoder.speedup_estimate()), (0.0, 1.0))
        self.assertEqual(decoder.generate_verified(self.target, self.inputs, 40), expected)
        self.assertEqual((decoder.total_steps, decoder.total_draft_tokens, decoder.total_accepted_tokens),
                         tuple(counted[key] for key in ("draft_rounds", "drafted", "accepted")))
        self.assertEqual(decoder.acceptance_rate(), counted["acceptance_rate"])
        decoder.reset_stats()
        self.assertEqual(decoder.total_steps, 0)
        self.assertEqual(decoder.generate_verified(TARGET, [], 40), [])
        adaptive = faces.SpeculativeDecoder.with_adaptive(self.drafter, speculative_decoder.SpeculativeConfig(),
                                                          speculative_decoder.AdaptiveLookaheadConfig(initial=2, min=1))
        self.assertEqual(adaptive.generate_verified(self.target, self.inputs, 40), expected)
        self.refused("adaptive_config", "generate_verified", adaptive.draft, self.inputs, speculative_decoder.SamplingParams())
        for field, value in (("min", 0), ("max", 1), ("alpha", 2.0)):
            config = speculative_decoder.AdaptiveLookaheadConfig(**{field: value})
            wrong = faces.SpeculativeDecoder.with_adaptive(self.drafter, None, config)
            with self.subTest(field=field):
                self.refused(f"adaptive_config.{field}", "", wrong.generate_verified, self.target, self.inputs, 5)

    def test_steps_use_the_drafters_distributions(self):
        params = speculative_decoder.SamplingParams(temperature=1.3, top_k=0, top_p=1.0)
        plain, shifted = speculative_decoder.SpeculativeConfig(lookahead=6), speculative_decoder.SpeculativeConfig(6, acceptance_threshold=1.0)
        accepted = {}
        with foretoken.Scorer(TARGET, **SHAPE) as scorer, foretoken.Session("model", model=DRAFT, threads=1, temperature=1.3) as session:
            for name, config in (("plain", plain), ("shifted", shifted)):
                with faces.SpeculativeDecoder(self.drafter, config) as decoder:
                    for prompt in PROMPTS:
                        context = self.plain.tokenize(prompt)
                        session.begin(context)
                        own = session.propose(6, distributions=True)
                        self.assertEqual(decoder.draft(context, params), own.tokens)
                        rows = scorer.score(context + own.tokens)[len(context) - 1:]
                        scorer.truncate(0)
                        step = decoder.step(context, rows[:6], params)
                        rule = foretoken.Verification(len(rows[0]), rejection_sampling_strategy="residual", temperature=1.3,
                                                      acceptance_threshold=config.acceptance_threshold)
                        expected = rule.verify(rows, own.tokens, text=context, draft_probabilities=own.distributions).accepted
                        self.assertEqual(step, (own.tokens, own.tokens[:expected], expected / 6))
                        self.assertEqual(decoder.verify(own.tokens, rows[:1], params), own.tokens[:min(1, expected)])
                    accepted[name] = decoder.total_accepted_tokens
                    self.assertEqual((decoder.total_steps, decoder.total_draft_tokens), (3, 18))
        self.assertGreater(accepted["plain"], accepted["shifted"])

    def test_wrong_arguments_are_named(self):
        self.refused("config", "SpeculativeConfig", faces.SpeculativeDecoder, DRAFT, faces.SpeculativeConfig())
        decoder = faces.SpeculativeDecoder(self.drafter, speculative_decoder.SpeculativeConfig(lookahead=99))
        self.refused("lookahead", "64", decoder.generate_verified, self.target, self.inputs, 5)
        self.refused("lookahead", "64", decoder.draft, self.inputs, speculative_decoder.SamplingParams())
        self.refused("context", "vocabulary", decoder.draft, [99999], speculative_decoder.SamplingParams())
        decoder.close()


class DrafterAndScorerTest(FacesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.large, cls.small = faces.LanguageModel(TARGET, max_sequences=2, **SHAPE), faces.LanguageModel(DRAFT, **SHAPE)
        cls.addClassCleanup(cls.large.close)
        cls.addClassCleanup(cls.small.close)

    def decoder(self, caches, k=4, **named):
        return speculate.SpeculativeDecoder(speculate.SpeculateConfig(k), faces.Drafter(faces.Inferencer(self.small, **named)),
                                            faces.Scorer(self.large), *caches, **named)

    def test_rounds_give_the_greedy_text(self):
        expected = self.greedy(self.inputs, 40, ignore_eos=True)
        for k, strategy in itertools.product((1, 4, 7), faces.SampleStrategy):
            caches = faces.KVCache(), faces.KVCache()
            decoder, query, tokens, rounds = self.decoder(caches, k), self.inputs, [], 0
            while len(tokens) < 40:
                found = [int(token) for token in decoder.speculative_decode([query], strategy, speculate.VerifyStrategy.GREEDY_MATCH)[0]]
                tokens, query, rounds = tokens + found, found[-1:], rounds + 1
                self.assertEqual(caches[1].get_num_tokens(), len(self.inputs) + len(tokens) - 1)
                self.assertLessEqual(caches[0].get_num_tokens(), caches[1].get_num_tokens())
            self.assertEqual(tokens[:40], expected)
            self.assertLess(rounds, 35)
            for cache in caches:
                cache.close()

    def test_inferencers_continue_a_text(self):
        expected, cache = self.greedy(self.inputs, 20, ignore_eos=True), faces.KVCache()
        inferencer = faces.Inferencer(self.large)
        first = inferencer.prefill([self.inputs], cache, faces.SampleStrategy.GREEDY)
        self.assertEqual((int(first.token_ids[0][0]), len(first.token_logits[0])), (expected[0], len(self.inputs)))
        more = inferencer.decode(first.token_ids, cache, 19, faces.SampleStrategy.GREEDY)
        self.assertEqual([int(token) for token in more.token_ids[0]], expected[1:])
        self.assertEqual((len(more.token_logits[0]), cache.get_num_tokens()), (19, len(self.inputs) + 19))
        cache.crop(10)
        again = faces.Scorer(self.large).score([expected[9:12]], cache).token_logits[0]
        self.assertEqual([list(row) for row in again], [list(row) for row in more.token_logits[0][9:12]])
        cache.close()
        ends = faces.LanguageModel(TARGET, eos_token_ids=[expected[4]], **SHAPE)
        drafted = faces.Drafter(faces.Inferencer(ends)).draft([self.inputs], cache, 9, faces.SampleStrategy.GREEDY)
        self.assertEqual([int(token) for token in drafted.token_ids[0]], expected[:expected.index(expected[4]) + 1])
        ends.close()

    def test_sampled_rounds_have_the_targets_distribution(self):
        prompt, count = self.plain.tokenize("The dog"), 400
        row = self.large.forward([prompt], cache := faces.KVCache())[0][-1]
        cache.close()
        small = self.small.forward([prompt], cache := faces.KVCache())[0][-1]
        cache.close()
        best = sorted(range(len(row)), key=row.__getitem__)[-6:]
        wanted, drafters = ([[math.exp(float(logits[token])) / sum(math.exp(float(x)) for x in logits) for token in best] for logits in (row, small)])
        seen = [0] * 6
        for seed in range(count):
            caches = faces.KVCache(), faces.KVCache()
            token = int(self.decoder(caches, 1, seed=seed).speculative_decode([prompt], faces.SampleStrategy.RANDOM,
                                                                             speculate.VerifyStrategy.SPECULATIVE_SAMPLING)[0][0])
            if token in best:
                seen[best.index(token)] += 1
            for cache in caches:
                cache.close()

        def distance(probabilities):  # chi-square over six tokens and the rest
            groups = [*zip(seen, probabilities), (count - sum(seen), 1 - sum(probabilities))]
            return sum((found - count * p) ** 2 / (count * p) for found, p in groups)

        self.assertLess(distance(wanted), 25)
        self.assertGreater(distance(drafters), 60)  # what drafts alone would have

    def test_drafts_of_the_target_itself_are_accepted(self):
        caches = faces.KVCache(), faces.KVCache()
        drafter = faces.Drafter(faces.Inferencer(self.large, seed=4))
        decoder = speculate.SpeculativeDecoder(speculate.SpeculateConfig(6), drafter, faces.Scorer(self.large), *caches, seed=9)
        query = self.inputs
        for _ in range(4):
            tokens = decoder.speculative_decode([query], faces.SampleStrategy.RANDOM, speculate.VerifyStrategy.SPECULATIVE_SAMPLING)[0]
            self.assertEqual(len(tokens), 7)
            query = [int(tokens[-1])]
        for cache in caches:
            cache.close()

    def test_wrong_calls_are_named(self):
        caches = faces.KVCache(), faces.KVCache()
        drafter, scorer = faces.Drafter(faces.Inferencer(self.small)), faces.Scorer(self.large)
        self.refused("num_draft_tokens", "positive", drafter.draft, [self.inputs], caches[0], 0, faces.SampleStrategy.GREEDY)
        self.refused("query_token_ids", "[1, tokens]", scorer.score, self.inputs, caches[1])
        self.refused("query_token_ids", "[1, tokens]", scorer.score, [self.inputs, self.inputs], caches[1])
        scorer.score([self.inputs], caches[1])
        self.refused("num_tokens_crop", "[0, 5]", caches[1].crop, 6)
        self.refused("kv_states", "Scorer.score", caches[1].update, [])
        self.refused("kv_cache", "another model", drafter.draft, [self.inputs], caches[1], 2, faces.SampleStrategy.GREEDY)
        self.refused("scorer_kvcache", "empty caches", self.decoder(caches).speculative_decode, [self.inputs], faces.SampleStrategy.GREEDY,
                     speculate.VerifyStrategy.GREEDY_MATCH)
        caches[1].close()
        taken = [faces.KVCache(), faces.KVCache()]
        for cache in taken:
            scorer.score([self.inputs], cache)
        self.refused("kv_cache", "max_sequences", scorer.score, [self.inputs], faces.KVCache())
        for cache in taken:
            cache.close()


if __name__ == "__main__":
    main()
