#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Failures are foretoken.Error with a code, a field and a text; the bound functions and structures are those of foretoken.h.

usage: errors_test.py LIBRARY PROGRAM MODELS
"""
import ctypes
import os
import pickle
import re
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

from python_testing import ARGUMENTS, MODELS, PROGRAM, ROOT, SECONDS, TARGET, TestCase, foretoken, main, open_engine
from foretoken import _library, engine as engines, stream as streams

HEADER = re.sub(r"/\*.*?\*/", " ", (ROOT / "include/foretoken.h").read_text(), flags=re.S)
COMMENTS = (ROOT / "include/foretoken.h").read_text()
Code = foretoken.Code
LETTERS = {"int32_t": "i", "foretoken_status": "i", "foretoken_kind": "i", "foretoken_event_kind": "i", "int64_t": "l", "size_t": "z",
           "uint64_t": "Q", "void": "v"}
MEMBERS = {ctypes.c_int32: "i", ctypes.c_int64: "l", ctypes.c_size_t: "z", ctypes.c_void_p: "p", ctypes.c_char_p: "s"}
# Texts that are not C strings have their size beside them.
STRUCTURES = {"foretoken_event": _library.EventView, "foretoken_result_view": _library.ResultView, "foretoken_drafts": _library.DraftsView,
              "foretoken_verification_input": _library.VerificationInput, "foretoken_verified": _library.VerifiedView}


def letter(declared):
    """The letter of a C type, as in _library.FUNCTIONS."""
    words = declared.replace("const", " ").split()
    stars = declared.count("*")
    if declared.split()[:2] == ["const", "char*"] and stars == 1:
        return "s"
    return "p" if stars or words[0] == "foretoken_processor" or words[0] == "foretoken_on_event" else LETTERS[words[0]]


def functions():
    found = {}
    for result, name, arguments in re.findall(r"FORETOKEN_API\s+([\w\s*]+?)\s*\b(foretoken_\w+)\((.*?)\);", HEADER, re.S):
        pointed = re.sub(r"void \(\*\w+\)\([^)]*\)", "void* f", arguments)
        listed = [] if pointed.strip() == "void" else [" ".join(part.split()) for part in pointed.split(",")]
        found[name] = letter(result) + "".join(letter(part) for part in listed)
    return found


class BindingsTest(TestCase):
    def test_functions_are_those_of_the_header(self):
        declared = functions()
        self.assertGreater(len(declared), 50)
        # A text with its size is bound as a C string too: ctypes gives the bytes of an object, and a buffer of the caller is any pointer.
        self.assertEqual(_library.FUNCTIONS, declared)

    def test_structures_are_those_of_the_header(self):
        for name, structure in STRUCTURES.items():
            body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), HEADER, re.S).group(1)
            members = [part.split()[-1].lstrip("*") for part in body.split(";") if part.strip()]
            kinds = [letter(part.strip()) for part in body.split(";") if part.strip()]
            self.assertEqual([member for member, _ in structure._fields_], members, name)
            bound = ["Q" if kind == "Q" else MEMBERS[field] for kind, (_, field) in zip(kinds, structure._fields_)]
            self.assertEqual(["p" if kind == "s" else kind for kind in bound], ["p" if kind == "s" else kind for kind in kinds], name)

    def test_names_are_those_of_the_header(self):
        listed = re.search(r"as text:(.*?)\.\s", COMMENTS, re.S).group(1)
        self.assertEqual(list(engines.INFORMATION), re.findall(r"\w+", listed.replace("*", " ")))
        example = re.search(r"A statistic:(.*?) and so on", COMMENTS, re.S).group(1)
        self.assertLess(set(re.findall(r"\w+", example)), set(streams.statistic_names()))
        codes = dict(re.findall(r"FORETOKEN_(\w+) = (\d+)", HEADER.split("foretoken_status;")[1].split("}")[0]))
        self.assertEqual({code.name: int(code) for code in Code} | {"OK": 0}, {name: int(number) for name, number in codes.items()})
        self.assertEqual({key for kind in foretoken.Kind for key in foretoken.option_keys(kind)} & {"top_k", "model", "drafter", "tools_json", "strategy"},
                         {"top_k", "model", "drafter", "tools_json"})


class ErrorsTest(TestCase):
    def test_engines(self):
        self.fails(Code.NOT_FOUND, "", "nowhere.gguf", foretoken.Engine, "nowhere.gguf")
        self.fails(Code.INVALID_FILE, "", "errors_test.py", foretoken.Engine, __file__)
        self.fails(Code.NOT_FOUND, "colour", "colour", open_engine, colour="red")
        self.fails(Code.INVALID_ARGUMENT, "threads", "many", open_engine, threads="many")
        with self.assertRaises(foretoken.Error) as caught:
            foretoken.Engine("nowhere.gguf")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.code, again.field, again.text), (caught.exception.code, caught.exception.field, caught.exception.text))

    def test_requests(self):
        with open_engine() as engine:
            self.fails(Code.INVALID_ARGUMENT, "temperature", "temperature", engine.generate, "a", temperature=float("nan"))
            self.fails(Code.INVALID_ARGUMENT, "top_k", "-7", engine.generate, "a", top_k=-7)
            self.fails(Code.NOT_FOUND, "colour", "no such key", engine.generate, "a", colour=1)
            self.fails(Code.TOO_LARGE, "prompt", "", engine.generate, [5] * 300)
            self.fails(Code.INVALID_ARGUMENT, "prompt", "UTF-8", engine.generate, "\ud800")
            self.fails(Code.INVALID_ARGUMENT, "prompt_tokens", "token ids", engine.generate, [1 << 40])
            self.fails(Code.INVALID_ARGUMENT, "tokens", "not in [0, ", engine.detokenize, [4096])
            self.fails(Code.DEADLINE, "", "", engine.generate("a", deadline_ms=0).result)
            self.fails(Code.UNSUPPORTED, "n", "one answer", engine.chat, [], n=2)
            self.fails(Code.INVALID_ARGUMENT, "role", "no role", engine.chat, [{"content": "a"}])
            self.fails(Code.UNSUPPORTED, "content", "image", engine.chat, [{"role": "user", "content": [{"type": "image"}]}])

    def test_options_have_the_names_of_keywords(self):
        """The library names options by their members in C++ (EngineOptions::context_size, Request::verify, dry.base)."""
        rows = [
            ("", "path of a GGUF file with model", lambda: foretoken.Engine("")),
            ("", "with draft_model", lambda: open_engine(speculative_method="mtp")),
            ("colour", r"foretoken\.option_keys\('engine'\) lists", lambda: open_engine(colour="red")),
        ]
        requests = [
            ("prompt", "raise context_size", {"prompt": "word " * 600}),
            ("prompt", "raise cache_tokens", {"prompt": "word " * 100, "max_new_tokens": 150}),
            ("rejection_sampling_strategy", "rejection_sampling_strategy: 'greedy' with temperature 1",
             {"rejection_sampling_strategy": "greedy", "temperature": 1}),
            ("dry_base", "dry_base: 0.5 is out of range", {"dry_multiplier": 1, "dry_base": 0.5}),
            ("dry_allowed_length", "dry_allowed_length: 0 is", {"dry_multiplier": 1, "dry_allowed_length": 0}),
            ("dry_window", "dry_window: -2 is", {"dry_multiplier": 1, "dry_window": -2}),
            ("dry_breakers", "dry_breakers: token 99999", {"dry_multiplier": 1, "dry_breakers": [99999]}),
            ("min_new_tokens", "of max_new_tokens", {"min_new_tokens": 9, "max_new_tokens": 3}),
            ("colour", r"foretoken\.option_keys\('request'\) lists", {"colour": 1}),
        ]
        with open_engine(cache_tokens=192) as engine:
            rows += [(field, part, lambda named=named: engine.generate(**{"prompt": "a", **named}).result()) for field, part, named in requests]
            chat = [{"role": "user", "content": "a"}]
            rows.append(("", "or chatml, or give another with template_text", lambda: engine.chat(chat, chat_template="nothing")))
            for field, part, function in rows:
                with self.subTest(part=part):
                    with self.assertRaises(foretoken.Error) as caught:
                        function()
                    error = caught.exception
                    self.assertEqual(error.field, field, error.text)
                    self.assertRegex(error.text, part)
                    self.assertNotRegex(error.text, r"::|foretoken_options|\bdry\.|\bverify:")

    def test_options_that_messages_name_have_keys(self):
        keys = {kind.name: set(foretoken.option_keys(kind)) for kind in foretoken.Kind}
        named = set()
        for path in (ROOT / "src").rglob("*.cpp"):
            for line in path.read_text().splitlines():
                if '"' in line and not line.strip().startswith("//"):
                    named |= set(re.findall(r"\b(Engine|Speculative|Chat)Options::(\w+)", line))
        self.assertGreater(len(named), 12)
        # The first has the key speculative_method; slots are not in the C interface, so nobody meets the second.
        for kind, member in named - {("Speculative", "method"), ("Engine", "slot_folder")}:
            self.assertIn(member, keys["CHAT" if kind == "Chat" else "ENGINE"], kind)

    def test_a_library_that_is_not_there(self):
        program = "import foretoken\ntry:\n  foretoken.version()\nexcept foretoken.Error as e:\n  print(int(e.code), e.field, e.text)"
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "FORETOKEN_LIBRARY": "/nowhere.so"}).stdout
        self.assertRegex(said, r"^2 FORETOKEN_LIBRARY library /nowhere.so: ")
        self.assertEqual(foretoken.version(), foretoken.__version__)


SERVES = subprocess.run([PROGRAM, "help", "serve"], capture_output=True, check=False).returncode == 0


def listens(address):
    with socket.socket() as one:
        return one.connect_ex(address) == 0


class ProgramTest(TestCase):
    @unittest.skipUnless(SERVES, "the program has no server")
    def test_serve_is_a_server_until_it_is_closed(self):
        with foretoken.serve(TARGET, threads=1, ctx_size=256, repack_cache="off") as server:
            with urllib.request.urlopen(f"{server.url}/v1/models") as answer:
                self.assertIn(b"tales-9m", answer.read())
        self.assertIsNotNone(server.process.poll())
        self.fails(Code.INVALID_ARGUMENT, "serve", "nowhere.gguf", foretoken.serve, "nowhere.gguf")

    @unittest.skipUnless(SERVES, "the program has no server")
    def test_a_process_that_is_killed_leaves_no_server(self):
        program = f"import foretoken\nserver = foretoken.serve({TARGET!r}, threads=1, repack_cache='off')\nprint(server.url, flush=True)\ninput()"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as parent:
            host, port = re.search(r"//(.*):(\d+)", parent.stdout.readline()).groups()
            address = host, int(port)
            self.assertTrue(listens(address))
            parent.kill()
        end = time.monotonic() + SECONDS
        while listens(address):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_the_module_is_the_program(self):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "FORETOKEN_MODELS": MODELS}
        said = subprocess.run([sys.executable, "-m", "foretoken", "--version"], capture_output=True, text=True, check=True, env=environment).stdout
        self.assertIn(foretoken.version(), said)
        self.assertEqual(len(ARGUMENTS), 3)


if __name__ == "__main__":
    main()
