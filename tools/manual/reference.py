# SPDX-License-Identifier: Apache-2.0
"""References, made when the site is built: of C and C++ from headers, of Python from docstrings, and the list of decisions.

Contract: each function gives the Markdown of a page. Nothing is imported or run; the files are read as text.
"""
import ast
import glob
import os
import re

from places import ROOT

LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".c": "c", ".py": "python", ".jsonl": "json", ".yml": "yaml", ".sh": "sh", ".service": "ini"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def headers():
    """The public headers of C++."""
    return [os.path.relpath(path, ROOT) for path in sorted(glob.glob(os.path.join(ROOT, "include", "foretoken", "**", "*.h"), recursive=True))]


def comment(text):
    """The comment at the top of a header, as Markdown, and the lines behind it."""
    lines = text.split("\n")
    if lines[0].startswith("/*"):
        end = next(number for number, line in enumerate(lines) if number and line.rstrip().endswith("*/"))
        words = [re.sub(r"^ ?/?\* ?|\s*\*/$", "", line) for line in lines[1:end + 1]]
    else:
        end = next(number for number, line in enumerate(lines) if not line.startswith("//")) - 1
        words = [re.sub(r"^// ?", "", line) for line in lines[1:end + 1]]
    return words, "\n".join(lines[end + 1:]).strip("\n")


def plain(text):
    """Text whose only marks are those of code, as Markdown."""
    return re.sub(r"`[^`]*`|[*_<\[]", lambda part: part.group() if len(part.group()) > 1 else "\\" + part.group(), text)


def prose(words):
    """Lines of a comment as Markdown: what is indented is code, and all else is text as it stands."""
    parts, code = [], False
    for line in words:
        if line.startswith("  ") != code and line.strip():
            code = not code
            parts.append("```cpp" if code else "```\n")
        parts.append(line[2:] if code else plain(line))
    return "\n".join(parts + ["```"] if code else parts)


def source(path):
    """A file of the repository. A header begins with its comment as text."""
    text, ending = read(path), os.path.splitext(path)[1]
    if not path.startswith("include/"):
        return f"# {path}\n\n```{LANGUAGES.get(ending, 'text')}\n{text.rstrip()}\n```\n"
    words, rest = comment(text)
    name = re.match(r"(\S+?): *(.*)", words[0])
    return f"# {name.group(1)}\n\n{prose([name.group(2)[:1].upper() + name.group(2)[1:], *words[1:]])}\n\n## Declarations\n\n```cpp\n{rest}\n```\n"


def cpp():
    """The list of the headers of C++, with the first sentences of their comments."""
    rows = []
    for path in headers():
        name, says = re.match(r"(\S+?): *(.*)", " ".join(comment(read(path))[0])).groups()
        first = re.split(r"(?<=[.:])\s", says.replace("|", "\\|"))[0].rstrip(":.")
        rows.append(f"| [{name}]({path}.md) | {first} |")
    return "\n".join(["# C++ headers", "", "All public headers of [the library](../library.md), each with its comments. Those in `tools/` are for",
                      "programs about models; most programs need `foretoken/engine.h` alone.", "", "| Header | What it is for |", "|---|---|", *rows, ""])


def signature(node):
    shown = ast.unparse(node.args)
    for lead in ("self, ", "self"):
        if shown.startswith(lead):
            shown = shown[len(lead):]
            break
    return f"({shown})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def described(node, name, depth):
    """Heading, signature and docstring of a class or a function, and of the public members of a class."""
    says = ast.get_docstring(node)
    if not says:
        return []
    parts = [f"{'#' * depth} {name}", ""]
    members = [member for member in getattr(node, "body", []) if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef))]
    start = next((member for member in members if member.name == "__init__"), None) if isinstance(node, ast.ClassDef) else node
    if start and not any(isinstance(mark, ast.Name) and mark.id == "property" for mark in start.decorator_list):
        parts += ["```python", name.replace("__init__", "") + signature(start), "```", ""]
    parts += [plain(says), ""]
    for member in members if isinstance(node, ast.ClassDef) else []:
        if not member.name.startswith("_"):
            parts += described(member, f"{node.name}.{member.name}", depth + 1)
    return parts


def python():
    """What `import foretoken` gives, in the order of its modules."""
    parts = ["# Python modules", "", "What the package `foretoken` exports; [Python](../python.md) is its guide.", ""]
    tree = ast.parse(read("python/foretoken/__init__.py"))
    for line in (node for node in tree.body if isinstance(node, ast.ImportFrom)):
        path, names = f"python/foretoken/{line.module}.py", {name.name for name in line.names}
        for node in ast.parse(read(path)).body:
            if getattr(node, "name", None) in names:
                parts += described(node, node.name, 2)
    return "\n".join(parts)


def decisions():
    """The list of the records of decisions."""
    rows = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "adr", "*.md"))):
        title = read(path).split("\n")[0].lstrip("# ")
        rows.append(f"- [{title}]({os.path.basename(path)})")
    return "\n".join(["# Decisions", "", "Why things are as they are, one decision a page, in the order in which they were taken.", "", *rows, ""])
