#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C++ source of the examples that stand in documents and public headers, so that the build compiles them.

An example is a block fenced with ```cpp in a Markdown file, or a block of lines indented by three spaces ("//   ") in the comment at the top of a public
header. Each becomes the body of a function that may use the names of tools/doc_examples_context.h. A block whose first line begins with # is YAML, and is
left out.

usage: doc_examples.py OUT.cpp          writes the source
       doc_examples.py --list           prints file and line of each example
       doc_examples.py --controls CXX FLAGS...   checks that a broken example does not compile and a good one does
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
HEADERS = "include/foretoken"
LEAST = 20  # fewer examples than this mean that they are no longer found


def files(folder, ending):
    for path, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
        for name in sorted(names):
            if name.endswith(ending):
                yield os.path.relpath(os.path.join(path, name), ROOT)


def fenced(text):
    """(line, code) of each ```cpp block of a Markdown text."""
    for match in re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1)


def commented(text):
    """(line, code) of each indented block of the comment at the top of a header."""
    block, begin = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        inside = line.startswith("//   ")
        if inside:
            begin = begin or number
            block.append(line[5:])
        elif block:
            yield begin, "\n".join(block) + "\n"
            block, begin = [], 0
        if not line.startswith("//"):
            return


def examples():
    """(file, line, code) of all examples."""
    pages = ["README.md", *files("docs", ".md")]
    for path, read in [(page, fenced) for page in pages] + [(header, commented) for header in files(HEADERS, ".h")]:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            for line, code in read(file.read()):
                if not code.startswith("#"):
                    yield path, line, code


def source(found):
    """One function for each example; #line lets an error name the document."""
    headers = [os.path.relpath(header, "include") for header in files(HEADERS, ".h")]
    parts = ["// Made by tools/doc_examples.py.\n", *(f'#include "{header}"\n' for header in headers), '#include "doc_examples_context.h"\n']
    for number, (path, line, code) in enumerate(found):
        directives = "".join(re.findall(r'^#include .*\n', code, re.M))
        body = re.sub(r'^#include .*$', "", code, flags=re.M)
        parts.append(f'{directives}Outcome Example{number}(int argc, char** argv) {{\n#line {line} "{os.path.join(ROOT, path)}"\n{body}return 0;\n}}\n')
    return "".join(parts)


def compiles(command, code):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write(source([("control", 1, code)]))
        file.flush()
        return subprocess.run([*command, "-fsyntax-only", "-w", "-I", os.path.join(ROOT, "tools"), "-I", os.path.join(ROOT, "include"), file.name],
                              stderr=subprocess.DEVNULL, check=False).returncode == 0


def controls(command):
    good = list(fenced("text\n```cpp\nrequest.prompt = \"x\";\n```\n")) + list(commented("// A header.\n//\n//   request.prompt = \"x\";\n#pragma once\n"))
    broken = list(fenced("```cpp\nrequest.prompt == {\n```\n")) + list(commented("//   request.nothing = 1;\n#pragma once\n"))
    assert len(good) == 2 and len(broken) == 2
    for _, code in good:
        assert compiles(command, code), "a good example does not compile: " + code
    for _, code in broken:
        assert not compiles(command, code), "a broken example compiles: " + code
    found = list(examples())
    assert len(found) >= LEAST, f"only {len(found)} examples are found"
    print(f"doc examples: {len(found)} found, controls pass")


def main():
    if sys.argv[1:2] == ["--controls"]:
        controls(sys.argv[2:])
    elif sys.argv[1:] == ["--list"]:
        for path, line, _ in examples():
            print(f"{path}:{line}")
    elif len(sys.argv) == 2:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(source(list(examples())))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
