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


def dot(text):
    """A flowchart in graphviz' notation."""
    out, groups, ends, labels = [HEAD, TAIL], {}, [], {}

    def node(word):
        match = NODE.match(word)
        if not match:
            raise ValueError(f"diagram: no box: {word}")
        name, label = match.groups()
        if label:
            labels[name] = label
        if name not in groups and (label or name not in labels):
            labels.setdefault(name, name)
            for group in ends:
                groups[group].append(name)
            if label:
                out.append(f"{name} [label={quoted(label)}];")
        return name

    for line in (line.strip() for line in text.split("\n")[1:]):
        arrows = ARROW.split(line)
        if line.startswith("subgraph "):
            name, label = NODE.match(line[len("subgraph "):]).groups()
            groups[name] = []
            ends.append(name)
            out.append(f"subgraph cluster_{name} {{ style=rounded; label={quoted(label)};")
        elif line == "end":
            ends.pop()
            out.append("}")
        elif line and not line.startswith("direction"):
            names = [node(word) for word in arrows[::3]]
            for number, (start, to) in enumerate(zip(names, names[1:])):
                word, arrow = arrows[3 * number + 1], arrows[3 * number + 2]
                out.append(edge(groups, start, to, word, arrow))
    return "\n".join([*out, "}"])


def edge(groups, start, to, word, arrow):
    """An arrow; one from or to a subgraph ends at its border."""
    style = [f'label="{word}"'] if word else []
    style += ["style=dashed"] if arrow == "-.->" else []
    style += [f"ltail=cluster_{start}"] if start in groups else []
    style += [f"lhead=cluster_{to}"] if to in groups else []
    first, last = (groups[name][0] if name in groups else name for name in (start, to))
    return f"{first} -> {last} [{' '.join(style)}];"


def picture(match):
    ran = subprocess.run(["dot", "-Tsvg"], input=dot(match.group(1)), capture_output=True, text=True, check=True)
    svg = ran.stdout[ran.stdout.index("<svg"):]
    svg = re.sub(r'stroke="black"', 'stroke="currentColor"', svg)
    svg = re.sub(r"<text ", '<text fill="currentColor" ', re.sub(r'fill="black"', 'fill="currentColor"', svg))
    svg = re.sub(r"<title>.*?</title>\n?|<!--.*?-->\n?", "", svg, flags=re.S)
    return f'<div class="diagram">{re.sub(chr(10) + "+", chr(10), svg).strip()}</div>'


def drawn(text):
    return BLOCK.sub(picture, text)
