# SPDX-License-Identifier: Apache-2.0
"""Where the files of the repository are in the site, and links between them.

Contract: paths are relative to the root of the repository, or to that of the site, with slashes. A page of the site is a Markdown file. `linked`
changes the links of a page so that each leads to the same file in the site; what the site does not have becomes text without a link, and a page that is
named by its file is named by its heading.
"""
import os
import posixpath
import re

from github_markdown import outside_fences

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PAGES = {"README.md": "index.md", "CHANGELOG.md": "project/CHANGELOG.md", "CONTRIBUTING.md": "project/CONTRIBUTING.md", "SECURITY.md": "project/SECURITY.md",
         "models/README.md": "project/models.md", "src/README.md": "project/src.md", "docs/adr": "adr/index.md"}
LARGEST_SOURCE = 100_000  # bytes; files of data are only named
LINK = re.compile(r"(`+)(?:.*?[^`])??\1(?!`)|(!?)\[((?:[^\[\]`]|`[^`]*`|\[[^\]]*\])*)\]\(([^)\s]+)\)", re.S)


def is_source(path):
    full = os.path.join(ROOT, path)
    return os.path.isfile(full) and not path.endswith(".md") and os.path.getsize(full) <= LARGEST_SOURCE


def place(path):
    """The file of the site for one of the repository; None if it has none."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        if os.path.isdir(os.path.join(ROOT, path)):
            return None
        return path[len("docs/"):]
    return f"reference/{path}.md" if is_source(path) else None


def target(page, link):
    """The file of the repository that a link of the page `page` names, and its anchor; None for other links."""
    path, _, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", link):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), anchor


def links(page, text):
    """The files that a page links to."""
    found = []
    outside_fences(text, lambda part: found.extend(match.group(4) for match in LINK.finditer(part) if match.group(4)) or part)
    return [file[0] for file in (target(page, link) for link in found) if file]


def title(path):
    """What the heading of a page says, up to its colon."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip().partition(": ")[0]


def linked(page, text):
    """The text of a page of the repository, with links as they are in the site."""
    folder = posixpath.dirname(place(page))

    def change(match):
        found = match.group(4) and target(page, match.group(4))
        if not found:
            return match.group()
        to = place(found[0])
        if to is None:
            return match.group(3)
        words = title(found[0]) if found[0].endswith(".md") and posixpath.join(".", found[0]).endswith("/" + match.group(3)) else match.group(3)
        return f"{match.group(2)}[{words}]({posixpath.relpath(to, folder or '.')}{'#' + found[1] if found[1] else ''})"

    return outside_fences(text, lambda part: LINK.sub(change, part))
