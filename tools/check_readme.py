#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md stays short enough to be read to its end, and what it tells people to type works.

PROGRAM is the built foretoken, MODELS the folder of the bundled models.

- Length: lines that are not empty, words, the longest cell of a table, the longest line.
- Commands in its fenced blocks. `tools/dev COMMAND` must be in `tools/dev help`. `build/release/foretoken ...` is run by PROGRAM, with a bundled
  model in place of model.gguf, target.gguf and draft.gguf; a server gets a free port, must answer, and must end when it is told to. A block that
  begins with `$ ` shows what its command prints. Any other command and any other kind of block is a fault, so nothing is passed over. C++ is compiled
  by tools/doc_examples.py.
- Commands of all other pages name verbs and flags that exist. They are not run.

--controls shows, on texts with planted faults, that each is seen. Nothing here depends on the time that something takes.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES, MOST_WORDS, MOST_IN_A_CELL, MOST_IN_A_LINE = 90, 850, 120, 130
HANG_S = 600  # for what never ends; not a limit of speed
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
BUILT = "build/release/foretoken"
STAND_INS = {"model.gguf": "tales-9m-q8_0.gguf", "target.gguf": "tales-9m-q8_0.gguf", "draft.gguf": "tales-1m-draft-q8_0.gguf"}
SHOWN = re.compile(r"\[([+\-=])((?:[^\[\]])*)\]")


def too_long(text):
    """What is longer than a visitor reads."""
    prose = FENCE.sub("", text)
    cells = [cell.strip() for line in prose.splitlines() if line.startswith("|") for cell in line.strip("|").split("|")]
    lines = [line for line in text.splitlines() if line.strip()]
    wide = [line for line in prose.splitlines() if not line.startswith("|") and "<" not in line]
    measured = [("lines that are not empty", len(lines), MOST_LINES), ("words", len(text.split()), MOST_WORDS),
                ("characters in a cell", max(map(len, cells), default=0), MOST_IN_A_CELL),
                ("characters in a line", max(map(len, wide), default=0), MOST_IN_A_LINE)]
    return [f"{n} {what}; at most {most}" for what, n, most in measured if n > most]


def dev_commands():
    """What `tools/dev help` lists."""
    usage = subprocess.run([ROOT / "tools/dev", "help"], check=True, capture_output=True, text=True).stdout
    names = " ".join(re.findall(r"^  ((?:[a-z][a-z-]*)(?:, [a-z][a-z-]*)*)(?: |$)", usage, re.M))
    return set(re.findall(r"[a-z-]+", names))


class Runner:
    def __init__(self, program, models, folder):
        self.program, self.models = os.path.abspath(program), os.path.abspath(models)
        self.environment = {**os.environ, "FORETOKEN_MODELS": self.models, "XDG_CACHE_HOME": folder, "NO_COLOR": "1"}
        self.folder = folder

    def started(self, words, **options):
        arguments = [os.path.join(self.models, STAND_INS[word]) if word in STAND_INS else word for word in words]
        return subprocess.Popen([self.program, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, text=True, **options)

    def run(self, words):
        """(faults, standard output)"""
        process = self.started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, error = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return ["does not end"], ""
        if process.returncode != 0:
            return [f"exit code {process.returncode}: {error.strip()}"], out
        return ([] if out.strip() else ["prints nothing"]), out

    def serve(self, words):
        process = self.started([*words, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            line = process.stdout.readline()
            address = re.search(r"http://\S+", line)
            if not address:
                return [f"does not listen: {line.strip()}"]
            faults = asked(address.group(0))
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=HANG_S)
            return faults + ([] if code == 0 else [f"exit code {code} at its end"])
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def asked(address):
    """The page, and a completion."""
    page = urllib.request.urlopen(address + "/", timeout=HANG_S).read()
    body = json.dumps({"prompt": "Once upon a time", "max_tokens": 5}).encode()
    reply = urllib.request.urlopen(urllib.request.Request(address + "/v1/completions", body, {"Content-Type": "application/json"}), timeout=HANG_S)
    tokens = json.load(reply)["usage"]["completion_tokens"]
    return ([] if b"<html" in page.lower() else ["its page is none"]) + ([] if tokens == 5 else [f"a completion has {tokens} tokens"])


def told(trace):
    """The text that a trace shows, without rejected drafts. Lines may be broken anywhere."""
    one_line = trace.replace("\n", "")
    return " ".join(SHOWN.sub(lambda m: "" if m.group(1) == "-" else m.group(2), one_line).split())


def fault_of(command, shown, runner, dev):
    """The faults of one command. `shown`: the output that the page gives, or None."""
    if re.search(r"[|&;<>$`]", re.sub(r'"[^"]*"', "", command)):
        return ["more than one plain command, which this program cannot check"]
    words = shlex.split(command)
    if words[0] == "tools/dev":
        return [] if len(words) > 1 and words[1] in dev else ["tools/dev help does not list it"]
    if words[0] != BUILT:
        return [f"neither tools/dev nor {BUILT}, so it cannot be checked"]
    if words[1:2] == ["serve"]:
        return runner.serve(words[1:])
    faults, out = runner.run(words[1:])
    if faults or shown is None:
        return faults
    if "--trace" in words:
        return [] if told(out) == told(shown) else [f"writes another text: {told(out)}"]
    return [] if out.strip() == shown.strip() else [f"prints {out.strip()}"]


def commands(text):
    """(command, shown output or None) of all blocks, and faults of blocks of no known kind."""
    found, faults = [], []
    for kind, block in FENCE.findall(text):
        if kind == "sh":
            found += [(line, None) for line in (re.sub(r"\s+#.*$", "", raw) for raw in block.splitlines()) if line.strip()]
        elif kind == "" and block.startswith("$ "):
            command, _, shown = block[2:].partition("\n")
            found.append((command, shown))
        elif kind != "cpp":
            faults.append(f"a block of the kind '{kind}': fence it as sh or cpp, or begin it with '$ '")
    return found, faults


def check_readme(text, runner, dev):
    found, faults = commands(text)
    faults += too_long(text)
    if not found:
        faults.append("no command is found")
    for command, shown in found:
        faults += [f"{command}: {fault}" for fault in fault_of(command, shown, runner, dev)]
    return [f"README.md: {fault}" for fault in faults]


def check_names(where, text, verbs):
    """Verbs and flags of the commands in a page's blocks. `verbs`: {verb: names of its flags}."""
    faults = []
    for _, block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            for verb, rest in re.findall(r"(?:^|\| |&& |\$ )(?:build/release/)?foretoken ([a-z][\w-]*)(.*)", line):
                if verb not in verbs:
                    faults.append(f"{where}: foretoken {verb}: no such verb")
                    continue
                given = re.sub(r"\s#.*$|[|&].*$", "", re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", rest)).split()
                flags = [word.partition("=")[0] for word in given if re.match(r"--?[a-z]", word)]
                faults += [f"{where}: foretoken {verb} {flag}: no such flag" for flag in flags if flag not in verbs[verb]]
    return faults


def verbs_of(program):
    rows = json.loads(subprocess.run([program, "help", "--json"], check=True, capture_output=True).stdout)["verbs"]
    always = {"-h", "--help", "--help-all"}
    return {row["name"]: always | {name for flag in row["flags"] for name in [flag["name"], *flag["aliases"]]} for row in rows}


def controls(text, runner, dev, verbs):
    """Planted faults that are not seen."""
    def block(line, kind="sh"):
        return f"```{kind}\n{line}\n```\n"

    found, _ = commands(text)
    command, shown = next((c, s) for c, s in found if s and "--trace" in c)
    good = block(f"$ {command}\n{shown}", "")
    planted = {
        "too many lines": "a\n" * (MOST_LINES + 1) + block("tools/dev run"),
        "too many words": "a b c d e f g h i j\n" * (MOST_WORDS // 10) + block("tools/dev run"),
        "a wide cell": f"| {'x' * (MOST_IN_A_CELL + 1)} |\n" + block("tools/dev run"),
        "a wide line": "x" * (MOST_IN_A_LINE + 1) + "\n" + block("tools/dev run"),
        "no such tools/dev command": block("tools/dev fly"),
        "no such verb": block(f"{BUILT} fly"),
        "no such flag": block(f"{BUILT} generate -p x --fly"),
        "a model that is not there": block(f"{BUILT} generate -m nothing.gguf -p x"),
        "a server that does not start": block(f"{BUILT} serve -m nothing.gguf"),
        "a command of another kind": block("curl http://127.0.0.1:8080/health"),
        "two commands in a line": block(f"{BUILT} version && true"),
        "a block of another kind": block("{}", "json"),
        "no command at all": "text\n",
        "a trace of another text": good.replace("Lily", "Lucy", 1),
        "an output that is another": block(f"$ {BUILT} version\nforetoken 999", ""),
    }
    missed = [f"control: {what}, and the check does not see it" for what, made in planted.items() if not check_readme(made, runner, dev)]
    right = {"good commands": block(f"tools/dev run   # builds\n{BUILT} inspect model.gguf\n{BUILT} serve   # a server") + good}
    missed += [f"control: {what}: {fault}" for what, made in right.items() for fault in check_readme(made, runner, dev)]
    if len(check_names("x.md", block("foretoken fly\nforetoken serve --fly 1\ncat x | foretoken generate --fly"), verbs)) != 3:
        missed.append("control: verbs and flags that do not exist, and the check does not see all of them")
    if check_names("x.md", block('foretoken generate -p "a --fly b" --temp 0 # --fly\nmpirun foretoken serve -m x'), verbs):
        missed.append("control: verbs and flags that exist are refused")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("models", metavar="MODELS")
    parser.add_argument("--controls", action="store_true")
    a = parser.parse_args()
    program, models = a.program, a.models
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    dev, verbs = dev_commands(), verbs_of(program)
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(program, models, folder)
        if a.controls:
            faults = controls(text, runner, dev, verbs)
        else:
            faults = check_readme(text, runner, dev)
            for page in sorted(ROOT.glob("docs/**/*.md")):
                faults += check_names(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"), verbs)
    print("\n".join(faults) if faults else "README.md: short, and its commands work")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
