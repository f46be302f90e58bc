#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A terminal agent from npm, unchanged, against `foretoken serve`, in a session of three turns in which its tools really run. It is configured as
docs/agents.md says: the files and variables are copied from there. The packages are those of terminal_agents/package-lock.json, which lacks packages of
platforms that the registry did not have when it was written; `npm ci` puts them into FOLDER. Skipped (77) without node and npm, where their registry cannot
be reached, and where the agent has no program for this machine.

A model that says what a key in its prompt chooses (scripted_model.py) stands for a clever one. The user's key makes it write a script with a tool; the key
in its thought, or in the script where the agent does not send thoughts back, makes it read and run the script in one turn; what the script prints is the key
of the last answer. So that answer shows that calls and thoughts reached the agent as they were meant, and came back to the model with the tools' results.

usage: terminal_agents_test.py FORETOKEN FOLDER AGENT
"""
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "compare"))

import npm_packages
from scripted_model import CONTROL, USER, scripted_model
from server_testing import Server

SOURCE = pathlib.Path(__file__).resolve().parent / "terminal_agents"
INSTALL_SECONDS = 1800  # hundreds of megabytes
HANG_SECONDS = 900
UNREACHABLE = "http://127.0.0.1:9"  # a proxy: an agent that asks for anything else than the server fails at once
PROMPT = "Write a script, read it, and run it. <key-begin>"
SCRIPT = "# A script.{}\nprintf '<key-%s>' \"printed\" | tee made.txt\n"
FINAL = "The script ran, and the file has what it printed: \"{}\", 5 < 6 & so on."
THOUGHT = "What is asked of me? To write first."
NEXT = " <key-written>"
TEMPLATE = ("{% if tools %}<|system|>\nTools:\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|end|>\n{% endif %}"
            "{% for m in messages %}<|{{ m.role }}|>\n{{ m.reasoning_content if m.reasoning_content }}{{ m.content }}{% for c in m.tool_calls or [] %}\n"
            "<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|end|>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")
MARKS = {"<|system|>": CONTROL, "<|user|>": CONTROL, "<|assistant|>": CONTROL, "<|tool|>": CONTROL, "<tool_call>": USER, "</tool_call>": USER,
         "<think>": USER, "</think>": USER}


@dataclasses.dataclass
class Agent:
    heading: str  # of docs/agents.md
    path: str  # of the server, which it asks
    programs: list  # below node_modules: the first one that runs
    flags: list  # before the prompt
    write: tuple  # its tools, each with the names of its arguments in the order of their schema, which the server's grammar keeps
    read: tuple
    shell: tuple
    keeps_thoughts: bool = True  # sends them back

    def script(self):
        return SCRIPT.format("" if self.keeps_thoughts else NEXT)


AGENTS = {
    "codex": Agent("Codex", "/v1/responses", ["@openai/codex/bin/codex.js"],
                   ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
                   ("exec_command", "cmd"), ("exec_command", "cmd"), ("exec_command", "cmd")),
    "claude_code": Agent("Claude Code", "/v1/messages", ["@anthropic-ai/claude-code/cli-wrapper.cjs"],
                         ["-p", "--output-format", "json", "--allowedTools", "Bash,Write,Read", "--"],
                         ("Write", "file_path", "content"), ("Read", "file_path"), ("Bash", "command")),
    "qwen_code": Agent("Qwen Code", "/v1/chat/completions", ["@qwen-code/qwen-code/cli-entry.js"], ["--yolo", "-p"],
                       ("write_file", "file_path", "content"), ("read_file", "file_path"), ("run_shell_command", "command")),
    "opencode": Agent("opencode", "/v1/chat/completions", [f"opencode-linux-{cpu}/bin/opencode" for cpu in ("x64", "x64-baseline", "arm64")],
                      ["run", "--format", "json"], ("write", "content", "filePath"), ("read", "filePath"), ("bash", "command")),
    "pi": Agent("pi", "/v1/chat/completions", ["@mariozechner/pi-coding-agent/dist/cli.js"], ["-p"],
                ("write", "path", "content"), ("read", "path"), ("bash", "command")),
    "cn": Agent("cn", "/v1/chat/completions", ["@continuedev/cli/dist/cn.js"], ["--config", "~/.continue/config.yaml", "--auto", "-p"],
                ("Write", "filepath", "content"), ("Read", "filepath"), ("Bash", "command"), keeps_thoughts=False),
}


def call(tool, *values):
    text = json.dumps({"name": tool[0], "arguments": dict(zip(tool[1:], values))})
    return f"<tool_call>\n{text}\n</tool_call>"


def answers_of(agent, work):
    path = str(work / "next.sh")
    if agent.write == agent.shell:  # Codex' way to write
        added = "".join(f"+{line}\n" for line in agent.script().splitlines())
        write = call(agent.write, f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: next.sh\n{added}*** End Patch\nEOF\n")
        read = call(agent.read, "cat next.sh")
    else:
        values = {"content": agent.script()}
        write, read = call(agent.write, *(values.get(name, path) for name in agent.write[1:])), call(agent.read, path)
    both = f"{read}\n{call(agent.shell, 'sh next.sh')}"
    thought = THOUGHT + (NEXT if agent.keeps_thoughts else "")
    return {"<key-begin>": f"<think>\n{thought}\n</think>\n\nI write it.\n{write}", "<key-written>": f"<think>\nSo it is there.\n</think>\n\n{both}",
            "<key-printed>": FINAL}


def configured(agent, port, home):
    """Writes the files that docs/agents.md has for the agent, and returns the variables."""
    section = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8").split(f"\n## {agent.heading}\n")[1].split("\n## ")[0]
    section = section.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    for name, text in re.findall(r"^`~/([^`]+)`:\n\n```\w+\n(.*?)^```$", section, re.M | re.S):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    return dict(re.findall(r"^export (\w+)=(\S+)$", section, re.M))


def command_of(agent, node, packages, env):
    for program in agent.programs:
        path = packages / "node_modules" / program
        command = [node, str(path)] if path.suffix else [str(path)]
        if path.exists() and subprocess.run([*command, "--version"], env=env, capture_output=True, timeout=HANG_SECONDS, check=False).returncode == 0:
            return command
    raise npm_packages.Skip(f"there is no {agent.heading} for this machine: none of {agent.programs} tells its version")


def run(agent, server, node, packages, home, work):
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
           **{name: UNREACHABLE for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}, **configured(agent, server.port, home)}
    command = [*command_of(agent, node, packages, env), *(flag.replace("~", str(home)) for flag in agent.flags), PROMPT]
    with subprocess.Popen(command, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            texts = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the agent's own programs, too
            texts = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, *texts)


def faults(agent, done, log, work):
    requests = re.findall(r"method=(\S+) path=(\S+) .*?status=(\d+)$", log, re.M)
    texts = {name: (work / name).read_text(encoding="utf-8") if (work / name).exists() else None for name in ("next.sh", "made.txt")}
    checks = {
        f"it ended with {done.returncode}": done.returncode == 0,
        f"next.sh has {texts['next.sh']!r}": texts["next.sh"] == agent.script(),
        f"made.txt has {texts['made.txt']!r}": texts["made.txt"] == "<key-printed>",
        "it did not show the last answer": FINAL in done.stdout or json.dumps(FINAL)[1:-1] in done.stdout,
        "it shows a thought as a part of its answer": THOUGHT not in done.stdout,
        f"there were less than three turns: {requests}": requests.count(("POST", agent.path, "200")) >= 3,
        f"the server refused a request: {requests}": all(status == "200" for _, _, status in requests),
    }
    return [fault for fault, right in checks.items() if not right]


def main():
    program, packages, agent = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), AGENTS[sys.argv[3]]
    try:
        node = npm_packages.install(SOURCE, packages, INSTALL_SECONDS)
        with tempfile.TemporaryDirectory(prefix="foretoken-agent-") as folder:
            home, work, model = (pathlib.Path(folder).resolve() / name for name in ("home", "work", "scripted.gguf"))
            home.mkdir()
            work.mkdir()
            answers = answers_of(agent, work)
            scripted_model(model, MARKS, answers, "<|assistant|>", context=131072, end="<|end|>", template=TEMPLATE,
                           bare=list(answers), read=(ROOT / "docs" / "server.md").read_text(encoding="utf-8"))
            with Server(program, "-m", str(model), "--model-name", "local", "--repack-cache", "off") as server:
                done = run(agent, server, node, packages, home, work)
                log = server.log_text()
                found = faults(agent, done, log, work)
    except npm_packages.Skip as why:
        print(f"skipped: {why}")
        return npm_packages.SKIPPED
    if found:
        print(f"{done.stdout[-20000:]}\n{done.stderr[-20000:]}\n{log}\n" + "\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
