#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the program as several ranks on the bundled models: texts and log-probabilities must be those of one process,
with every drafter, greedy and drawn; ranks that do not agree must be refused with what differs.

usage: program_test.py MPIEXEC FORETOKEN MODELS [FILE[,DRAFT]...]

With files: those instead of the bundled models, each on 1, 2, 3 and 4 ranks with the drafters that need no file, and
with the draft model that is named behind the comma.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

MPIEXEC, FORETOKEN, MODELS = sys.argv[1:4]
TARGET = f"{MODELS}/tales-9m-q8_0.gguf"
HEAD = ["-m", TARGET, "-md"]
DRAFTERS = {
    "a draft model": [],
    "n-grams": ["--spec-type", "ngram"],
    "suffixes": ["--spec-type", "suffix"],
    "all drafters": ["--spec-type", "portfolio"],
    "an EAGLE-3 head": [*HEAD, f"{MODELS}/tales-9m-eagle-q8_0.gguf"],
    "an MTP head": [*HEAD, f"{MODELS}/tales-9m-mtp-q8_0.gguf"],
    "a reduced draft model": ["--draft-vocabulary", "500"],
    "the model itself": ["--spec-type", "self"],
    "no drafter": ["--spec-type", "none"],
}
SAMPLINGS = {
    "greedy": ["--temp", "0"],
    "greedy with log-probabilities": ["--temp", "0", "--logprobs", "3"],
    "drawn": ["--temp", "0.8", "--seed", "3"],
    "drawn with filters": ["--temp", "1", "--seed", "5", "--top-k", "40", "--top-p", "0.9", "--logprobs", "2",
                           "--repeat-penalty", "1.1"],
}
failures = []


def run(n, arguments, environment=None, prompt="Once upon a time"):
    """n ranks; environments of the ranks, or the same for all."""
    command = [FORETOKEN, "generate", "-p", prompt, "-n", "48", "-t", "1", "--json", *arguments]
    if n > 0:
        command = [MPIEXEC, "-n", str(n), *command]
    if environment:
        command = [MPIEXEC]
        for rank, isa in enumerate(environment):
            command += ([":"] if rank else []) + ["-n", "1", "env", f"FORETOKEN_ISA={isa}", FORETOKEN, "generate", "-p",
                                                  "Once upon a time", "-n", "48", "-t", "1", "--json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


def answer(done, what):
    """What must not depend on ranks."""
    if done.returncode != 0:
        failures.append(f"{what}: exit code {done.returncode}: {done.stderr.strip()}")
        return None
    reply = json.loads(done.stdout)
    return {key: reply[key] for key in ("text", "tokens", "logprobs") if key in reply}


def expect(condition, what):
    if not condition:
        failures.append(what)


def compare_files(files):
    n = 0
    for file in files:
        target, _, draft = file.partition(",")
        drafters = {name: ["-m", target, *DRAFTERS[name]] for name in ("no drafter", "n-grams", "suffixes")}
        if draft:
            drafters["a draft model"] = ["-m", target, "-md", draft]
        for drafter, flags in drafters.items():
            for sampling, more in SAMPLINGS.items():
                what = f"{os.path.basename(target)}, {drafter}, {sampling}"
                alone = answer(run(0, flags + more), f"one process, {what}")
                for ranks in (1, 2, 3, 4):
                    n += 1
                    expect(alone is not None and answer(run(ranks, flags + more), what) == alone,
                           f"{ranks} ranks, {what}: another answer")
    return n


def samplings_of(number):
    """For the first drafter all, for the others a greedy and a drawn one, and one of the two with log-probabilities."""
    names = list(SAMPLINGS)
    if number == 0:
        return names
    return [names[0], names[3]] if number % 2 == 0 else [names[1], names[2]]


def compare():
    n = 0
    for number, (drafter, flags) in enumerate(DRAFTERS.items()):
        for sampling in samplings_of(number):
            ranks = 2 + n % 3
            n += 1
            flags_of_all = flags + SAMPLINGS[sampling]
            alone = answer(run(0, flags_of_all), f"one process, {drafter}, {sampling}")
            what = f"{ranks} ranks, {drafter}, {sampling}"
            expect(alone is not None and answer(run(ranks, flags_of_all), what) == alone, f"{what}: another answer")
    return n


def mixed():
    alone = answer(run(0, ["--temp", "0", "--logprobs", "2"]), "one process")
    for sets in (["scalar", "avx2"], ["avx2", "avx512"], ["amx", "scalar", "avx2"]):
        # An instruction set that the machine lacks is a cap above what it has.
        expect(answer(run(0, ["--temp", "0", "--logprobs", "2"], sets), str(sets)) == alone, f"{sets}: another answer")


def chosen_blocks():
    """Drafts of the model itself that choose blocks of its cache are the same on two ranks; three would divide a key-value head."""
    flags = ["-m", TARGET, "--spec-type", "self", "--self-draft", "own", "--draft-window", "1", "--draft-best-blocks", "2", "--lookahead", "fixed",
             "--draft-max", "3", "--temp", "0.9", "--seed", "4", "--verify", "residual", "--ignore-eos"]
    prompt = "Once upon a time there was a dog and a cat in a big green garden. " * 8
    done = [run(n, flags, prompt=prompt) for n in (0, 2)]
    if answer(done[0], "one process, blocks") is None or answer(done[1], "2 ranks, blocks") is None:
        return
    alone, ranks = (json.loads(reply.stdout) for reply in done)
    expect(alone["token_ids"] == ranks["token_ids"], "2 ranks, blocks: another text")
    for count in ("drafted", "accepted"):
        expect(alone["speculation"][count] == ranks["speculation"][count] > 0, f"2 ranks, blocks: other drafts {count}")
    refused = run(3, flags, prompt=prompt)
    expect(refused.returncode != 0 and "draft_best_blocks: the 3 ranks divide" in refused.stderr, f"3 ranks: {refused.stderr}")


def refusals():
    with tempfile.TemporaryDirectory() as folder:
        # The same path on both ranks, with another file behind it.
        other = f"{folder}/model.gguf"
        shutil.copy(TARGET, other)
        damaged = bytearray(open(TARGET, "rb").read())
        damaged[-1] ^= 1
        own = f"{folder}/own"
        os.mkdir(own)
        open(f"{own}/model.gguf", "wb").write(damaged)
        start = f"cd {folder}; [ ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} = 0 ] || cd own; exec "
        command = [MPIEXEC, "-n", "2", "sh", "-c", f"{start} {FORETOKEN} generate -p a -n 4 -t 1 -m model.gguf --spec-type none"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        expect(done.returncode != 0 and "model.gguf is" in done.stderr and "hash" in done.stderr and
               "rank 1 on" in done.stderr, f"another file: {done.stderr}")
    command = [MPIEXEC, "-n", "1", FORETOKEN, "generate", "-p", "a", "-c", "256", ":",
               "-n", "1", FORETOKEN, "generate", "-p", "a", "-c", "512"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    expect(done.returncode != 0 and "-c is '512' for rank 1 on" in done.stderr and done.stderr.count("do not agree") == 1,
           f"another option: {done.stderr}")
    done = run(2, ["-m", "/nonexistent.gguf"])
    expect(done.returncode != 0 and done.stderr.count("no such file") == 1, f"no file: {done.stderr}")


def main():
    if files := sys.argv[4:]:
        n = compare_files(files)
    else:
        n = compare()
        mixed()
        chosen_blocks()
        refusals()
    for failure in failures:
        print(failure)
    print(f"{n} settings, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
