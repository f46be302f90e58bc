#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/speculation.schema.json, read by a library for JSON Schema, accepts what the program accepts, and refuses what it refuses.

usage: settings_schema_test.py FORETOKEN SCHEMA
"""
import json
import pathlib
import subprocess
import sys
import unittest

import jsonschema

PROGRAM, SCHEMA = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
SETTINGS = json.loads(subprocess.run([PROGRAM, "help", "--json"], capture_output=True, text=True, check=True).stdout)["settings"]
SECONDS = 900  # a wait that only ends a hang: a machine may be busy


def by_schema(settings):
    return jsonschema.Draft202012Validator(SCHEMA).is_valid({"speculative_config": settings})


def by_program(settings):
    """Whether the settings are read: the model that is named does not exist, and that is told behind them."""
    told = subprocess.run([PROGRAM, "generate", "--speculative-config", json.dumps(settings), "-m", "/no/such/model.gguf", "-p", "x"],
                          capture_output=True, text=True, timeout=SECONDS, check=False).stderr
    return "/no/such/model.gguf" in told


class SchemaTest(unittest.TestCase):
    def agree(self, settings, accepted):
        self.assertEqual(by_program(settings), accepted, settings)
        self.assertEqual(by_schema(settings), accepted, settings)

    def test_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_numbers_have_the_programs_ranges(self):
        # These bound each other; their ranges are those of the schema alone.
        together = {"lookahead_initial", "lookahead_min", "lookahead_max", "min_speculative_tokens", "ngram_min", "acceptance_threshold",
                    "num_speculative_tokens_mixed_batch"}
        for row in SETTINGS:
            if "least" not in row:
                continue
            step = 1 if row["type"] == "integer" else 0.5
            value = int if row["type"] == "integer" else float
            for inside in (row["least"], row["most"]):
                if row["name"] not in together:
                    self.agree({row["name"]: value(inside)}, True)
            for outside in (row["least"] - step, row["most"] + step):
                self.agree({row["name"]: value(outside)}, False)
            self.agree({row["name"]: "many"}, False)

    def test_words(self):
        for row in SETTINGS:
            for word in row.get("words", []):
                self.assertTrue(by_schema({row["name"]: None if word == "null" else word}), (row["name"], word))
        self.agree({"speculative_method": ["ngram", "suffix"]}, True)
        self.agree({"speculative_method": "ngram, suffix"}, True)
        self.agree({"speculative_method": "guess"}, False)
        self.agree({"rejection_sampling_strategy": "block"}, True)
        self.agree({"rejection_sampling_strategy": "blocks"}, False)
        self.agree({"lookahead": "fixed"}, True)
        self.agree({"lookahead": None}, False)
        self.agree({"first_target": False}, True)
        self.agree({"first_target": "maybe"}, False)

    def test_other_names_tables_and_nests(self):
        self.agree({"gamma": 4, "spec_type": "ngram"}, True)
        self.agree({"gama": 4}, False)
        self.agree({"lookahead": "ewma", "ewma": {"initial": 3, "max": 8}}, True)
        self.agree({"lookahead": "ewma", "ewma": {"initial": 3, "most": 8}}, False)
        self.agree({"lookahead": "batch-size", "schedule": [[1, 4, 5], [5, 16, 2]]}, True)
        self.agree({"lookahead": "batch-size", "schedule": [[1, 4]]}, False)
        self.agree({"lookahead": "batch-size", "schedule": [[1, 4, 65]]}, False)

    def test_a_file_may_hold_the_settings_alone(self):
        validator = jsonschema.Draft202012Validator(SCHEMA)
        self.assertTrue(validator.is_valid({"gamma": 4}))
        self.assertFalse(validator.is_valid({"gama": 4}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
