#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why gemma4's files part from llama.cpp: measures foretoken and llama.cpp against a decoder in double precision (double_precision.py), and prints tables
(Markdown).

  gelu.py --foretoken BIN --score BIN --llama "PREFIX" --models FOLDER --seen-as FOLDER --make "PROGRAM"
          [--family gemma4-moe] [--seeds 4711,6,7,4712] [--types F32] [--keep]

The flags are those of families.py. llama.cpp's CPU code rounds GELU's argument and result to F16. For each file, the log-probabilities of the fixed text
of generation.py are compared:
  foretoken, llama.cpp        with the decoder in double precision
  llama.cpp, exact GELU       the same; llama.cpp with exact_gelu.c before its own GELU (LD_PRELOAD), and nothing else changed
  llama.cpp, rounded          llama.cpp with the decoder in double precision whose GELU is rounded to F16
  other experts               choices of experts that differ between the two decoders, the first of them, and the margin between its two experts' logits
A rounding to F16 jumps, so two programs that round nearly equal numbers choose other experts where margins are small. Where the rounded decoder is far from
llama.cpp, those of its choices with the smallest margins are tried the other way round; that which brings it to llama.cpp's numbers is kept, and counted
after a +. Where greedy texts part, the second table has the first place: by how much llama.cpp's token leads foretoken's, in log-probability.
Types that are quantised are compared with the same weights in F32.

Exit code 1 where foretoken or llama.cpp with exact GELU is farther from double precision than BOUND with F32, or texts still part with exact GELU;
77 where numpy, PROGRAM, llama.cpp or a C compiler is missing.
"""
import argparse
import os
import shlex
import shutil
import subprocess
import sys

import double_precision
import generation

BOUND = 1e-4
FAR = 0.002     # the mean distance from which on choices are tried the other way round
NEAREST = 6     # so many of them


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def preloaded(args):
    """llama.cpp's prefix with exact_gelu.c. The library lies beside the models, where llama.cpp's programs see it."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exact_gelu.c")
    library = os.path.join(args.models, "exact_gelu.so")
    compiler = shutil.which("cc") or skip("no C compiler")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    return "%s env LD_PRELOAD=%s" % (args.llama, os.path.join(args.seen_as, "exact_gelu.so"))


class Peer:
    """What llama.cpp says of a file."""

    def __init__(self, args, prefix, model):
        server = generation.Server(prefix, os.path.join(args.seen_as, os.path.basename(model)), args.port, args.context)
        try:
            self.text = generation.text_tokens(server)
            self.logprobs = generation.their_logprobs(server, self.text)
            self.prompts = [server.post("/tokenize", {"content": p, "add_special": True})["tokens"] for p in generation.PROMPTS]
            self.greedy = [server.complete(tokens, 64, 0)["tokens"] for tokens in self.prompts]
        finally:
            server.stop()


def next_logprobs(args, prefix, model, tokens):
    """What llama.cpp says of every token after these, by the token."""
    server = generation.Server(prefix, os.path.join(args.seen_as, os.path.basename(model)), args.port, args.context)
    try:
        return [logprob for _, logprob in sorted((t["id"], t["logprob"]) for t in server.top(tokens, 1 << 20))]
    finally:
        server.stop()


def rounded(decoder, tokens, mean, tries):
    """Of the decoder with rounded GELU: the log-probabilities, the routing, and the choices that were turned round, of so many that are tried.
    mean: of log-probabilities, their mean distance from llama.cpp's."""
    logprobs, routing = decoder.run(tokens, table=True)
    best, turned = mean(logprobs), []
    nearest = sorted((float(margin), layer, i) for layer, of in enumerate(routing) for i, margin in enumerate(of["margin"]))[:tries]
    for _, layer, i in nearest:
        if best <= FAR:
            break
        other, other_routing = decoder.run(tokens, table=True, swapped=turned + [(layer, i)])
        if mean(other) < best / 2:
            best, logprobs, routing = mean(other), other, other_routing
            turned.append((layer, i))
    return logprobs, routing, turned


def other_experts(exact, near, turned):
    """The words for how many choices differ, and for the first of them: the margin is that between the two experts' logits."""
    differ = [(i, layer, float(a["margin"][i])) for layer, (a, b) in enumerate(zip(exact, near))
              for i in range(len(a["margin"])) if (a["chosen"][i] != b["chosen"][i]).any()]
    words = "%d%s" % (len(differ) - len(turned), " + %d" % len(turned) if turned else "")
    return words + (": position %d, layer %d, by %.6f" % min(differ) if differ else "")


def first_part(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), None)


def compare_file(args, programs, exact_prefix, name, model, exact_file):
    """(whether the bounds hold, the row of the file, the rows of the places where texts part)"""
    decoder = double_precision.Model(exact_file)
    peer, exact_peer = Peer(args, args.llama, model), Peer(args, exact_prefix, model)
    is_exact = programs.type_of(model) == "F32"  # other types have other roundings, too
    tries = NEAREST if is_exact else 0
    of_text = lambda logprobs: double_precision.of_tokens(logprobs, peer.text)
    exact, routing = decoder.run(peer.text)
    near, near_routing, turned = rounded(decoder, peer.text, lambda x: generation.differences(peer.logprobs, of_text(x))[1], tries)
    exact, near, ours = of_text(exact), of_text(near), programs.score(model, peer.text)
    found = [generation.differences(*pair)[1:] for pair in ((ours, exact), (peer.logprobs, exact), (exact_peer.logprobs, exact), (peer.logprobs, near))]
    our_texts = [programs.greedy(model, tokens) for tokens in peer.prompts]
    parted = [sum(first_part(a, b) is not None for a, b in zip(texts, our_texts)) for texts in (peer.greedy, exact_peer.greedy)]
    row = "| %s | %s | %s | %d | %d |" % (
        name, " | ".join("%.6f, %.6f" % pair for pair in found), other_experts(routing, near_routing, turned), *parted)
    rows = []
    for prompt, tokens, theirs, our_text in zip(generation.PROMPTS, peer.prompts, peer.greedy, our_texts):
        at = first_part(theirs, our_text)
        if at is None:
            continue
        before, a, b = tokens + theirs[:at], theirs[at], our_text[at]
        said, said_exactly = (next_logprobs(args, prefix, model, before) for prefix in (args.llama, exact_prefix))
        exact, routing = decoder.run(before)
        near, near_routing, turned = rounded(decoder, before, lambda x: generation.differences(said, x[-1])[1], tries)
        leads = [float(x[a] - x[b]) for x in (said, near[-1], said_exactly, exact[-1])]
        leads.insert(3, programs.score(model, before + [a])[-1] - programs.score(model, before + [b])[-1])
        rows.append("| %s | %s | %d | %s | %s |" % (
            name, prompt, at, " | ".join("%+.6f" % x for x in leads), other_experts(routing, near_routing, turned)))
    return not is_exact or (max(found[0][1], found[2][1]) <= BOUND and parted[1] == 0), row, rows


def main():
    parser = argparse.ArgumentParser()
    generation.add_arguments(parser)
    parser.add_argument("--models", required=True)
    parser.add_argument("--make", required=True)
    parser.add_argument("--family", default="gemma4-moe")
    parser.add_argument("--options", default="")
    parser.add_argument("--seeds", default="4711,6,7,4712")
    parser.add_argument("--types", default="F32")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    for program in (shlex.split(args.make)[0], shlex.split(args.llama)[0]):
        if shutil.which(program) is None:
            skip("no " + program)
    if subprocess.run(shlex.split(args.llama) + ["llama-server", "--version"], capture_output=True).returncode != 0:
        skip("llama.cpp is not installed")
    exact_prefix = preloaded(args)
    programs = generation.Programs(args.foretoken, args.score, args.context)
    print("| file | foretoken | llama.cpp | llama.cpp, exact GELU | llama.cpp, rounded | other experts | texts that part | with exact GELU |\n"
          "|---|---|---|---|---|---|---|---|", flush=True)
    all_good, places = True, []
    for seed in args.seeds.split(","):
        source = os.path.join(args.models, "%s-%s.gguf" % (args.family, seed))
        subprocess.run(shlex.split(args.make) + [args.family, source, "--seed", seed] + args.options.split(), check=True, stdout=subprocess.DEVNULL)
        for kind in args.types.split(","):
            files = [source]
            if kind != "F32":
                files = [generation.quantise(args.llama, args.seen_as, source, kind)]
                if kind != "F16":
                    files.append(generation.quantise(args.llama, args.seen_as, files[0], "F32", "--allow-requantize"))
            good, row, rows = compare_file(args, programs, exact_prefix, "%s, %s" % (seed, kind), files[0], files[-1])
            print(row, flush=True)
            places += rows
            all_good = all_good and good
            for path in files:
                if path != source and not args.keep:
                    os.remove(path)
        if not args.keep:
            os.remove(source)
    print("\n| file | prompt | token | llama.cpp | double, rounded GELU | llama.cpp, exact GELU | foretoken | double | other experts |\n"
          "|---|---|---|---|---|---|---|---|---|")
    print("\n".join(places))
    os.remove(os.path.join(args.models, "exact_gelu.so"))
    sys.exit(0 if all_good else 1)


if __name__ == "__main__":
    main()
