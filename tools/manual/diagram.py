# SPDX-License-Identifier: Apache-2.0
"""Diagrams of pages, which GitHub draws from Mermaid's notation, as pictures in the page, drawn by graphviz.

Contract: `drawn` replaces each block of Mermaid by an SVG whose lines and letters have the colour of the text. What is read of the notation are flowcharts
with boxes, arrows `-->`, `-.->` and `-- text -->`, and subgraphs; anything else is an error that names the line.
"""
import re
import subprocess
import textwrap

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)
ARROW = re.compile(r" (?:-- (.+?) )?(-->|-\.->) ")
NODE = re.compile(r'(\w+)(?:\["([^"]*)"\])?$')
HEAD = 'digraph { compound=true; bgcolor=transparent; rankdir=TB; nodesep=0.2; ranksep=0.35; node [shape=box style=rounded fontsize=11 fontname="sans-serif"];'
TAIL = 'edge [fontsize=10 fontname="sans-serif"]; fontsize=12; fontname="sans-serif";'


def quoted(label):
    lines = [line for part in re.split(r"<br>", label) for line in textwrap.wrap(part, 26)]
    return '"' + "\\n".join(lines).replace('"', '\\"') + '"'


class Flowchart:
    """A flowchart that is read line by line, and its lines in graphviz' notation."""

    def __init__(self):
        self.out, self.groups, self.open, self.known = [HEAD, TAIL], {}, [], set()

    def node(self, word):
        """The name of a box; a box belongs to the subgraphs that are open where it is first named."""
        match = NODE.match(word)
        if not match:
            raise ValueError(f"diagram: {word}: no box, name or arrow; tools/manual/diagram.py says what is read")
        name, label = match.groups()
        if name not in self.groups and name not in self.known:
            self.known.add(name)
            for group in self.open:
                self.groups[group].append(name)
        if label:
            self.out.append(f"{name} [label={quoted(label)}];")
        return name

    def edge(self, start, to, word, arrow):
        """An arrow; one from or to a subgraph ends at its border."""
        style = [f'label="{word}"'] if word else []
        style += ["style=dashed"] if arrow == "-.->" else []
        style += [f"ltail=cluster_{start}"] if start in self.groups else []
        style += [f"lhead=cluster_{to}"] if to in self.groups else []
        first, last = (self.groups[name][0] if name in self.groups else name for name in (start, to))
        self.out.append(f"{first} -> {last} [{' '.join(style)}];")

    def read(self, line):
        if line.startswith("subgraph "):
            name, label = NODE.match(line[len("subgraph "):]).groups()
            self.groups[name] = []
            self.open.append(name)
            self.out.append(f"subgraph cluster_{name} {{ style=rounded; label={quoted(label)};")
        elif line == "end":
            self.open.pop()
            self.out.append("}")
        elif line and not line.startswith("direction"):
            parts = ARROW.split(line)
            names = [self.node(word) for word in parts[::3]]
            for number in range(len(names) - 1):
                self.edge(names[number], names[number + 1], parts[3 * number + 1], parts[3 * number + 2])


def dot(text):
    chart = Flowchart()
    for line in text.split("\n")[1:]:
        chart.read(line.strip())
    return "\n".join([*chart.out, "}"])


def picture(match):
    ran = subprocess.run(["dot", "-Tsvg"], input=dot(match.group(1)), capture_output=True, text=True, check=True)
    svg = ran.stdout[ran.stdout.index("<svg"):]
    svg = re.sub(r'stroke="black"', 'stroke="currentColor"', svg)
    svg = re.sub(r"<text ", '<text fill="currentColor" ', re.sub(r'fill="black"', 'fill="currentColor"', svg))
    svg = re.sub(r"<title>.*?</title>\n?|<!--.*?-->\n?", "", svg, flags=re.S)
    return f'<div class="diagram">{re.sub(chr(10) + "+", chr(10), svg).strip()}</div>'


def drawn(text):
    return BLOCK.sub(picture, text)
