#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares foretoken's tokenizer with llama.cpp's, id by id, on generated text.

  tokenizers.py FORETOKEN "LLAMA_PREFIX" MODEL.gguf... [--peer-folder FROM=TO] [--texts 200] [--seed 1]

FORETOKEN is the foretoken program. LLAMA_PREFIX is put before the names of llama.cpp's programs ("" where they are in PATH; for
example "chroot /srv/peer"). --peer-folder tells how llama.cpp sees the models' folder, where that differs. Every text is encoded
twice, with special tokens as plain text and as tokens. Where llama.cpp refuses a text, because a vocabulary without byte tokens lacks
one of its characters, the text is tried again without the characters that it refuses. Exit code 1 on a difference.
"""
import argparse
import json
import os
import random
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

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


def our_tokens(program, model, text, special):
    with tempfile.NamedTemporaryFile(suffix=".txt") as f:
        f.write(text.encode())
        f.flush()
        command = shlex.split(program) + ["tokenize", "-m", model, "-f", f.name, "--json"] + (["--special"] if special else [])
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["token_ids"]


def compare(args, model):
    seen = model
    if args.peer_folder:
        here, there = args.peer_folder.split("=")
        seen = os.path.join(there, os.path.relpath(model, here))
    peer = Peer(args.prefix, seen)
    same = different = shortened = 0
    try:
        for text in make_texts(args.texts, args.seed):
            for special in (False, True):
                want = peer.tokens(text, special)
                if want is None:
                    text = peer.without_refused(text)
                    want = peer.tokens(text, special)
                    shortened += 1
                got = our_tokens(args.program, model, text, special)
                if got == want:
                    same += 1
                    continue
                different += 1
                if different <= args.show:
                    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
                    print(f"  special={special} text={text!r}\n    at {at}: foretoken {got[at:at + 6]} llama.cpp {want[at:at + 6]}")
    finally:
        peer.close()
    print(f"{os.path.basename(model)}: {same} equal, {different} different, {shortened} of them shortened", flush=True)
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("prefix")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--peer-folder", metavar="FROM=TO")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=3, help="differences printed per model")
    args = parser.parse_args()
    sys.exit(1 if sum(compare(args, model) for model in args.models) else 0)


if __name__ == "__main__":
    main()
