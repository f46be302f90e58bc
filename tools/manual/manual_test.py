#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual can be built, and what is built is whole.

usage: manual_test.py [SITE]      SITE: a site that is built already

mkdocs builds it strictly into a temporary folder; without mkdocs or its theme the test is skipped (exit code 77). Then, in what came out:
every link leads to a file and a heading, nothing is loaded from elsewhere, every page of docs/ is in the navigation and in the index of the search, and a
page has as many tables, items of lists and blocks of code as its Markdown.
"""
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
THEME = "/usr/share/mkdocs/themes/material"
LOADS = {"script": "src", "link": "href", "img": "src", "source": "srcset", "iframe": "src"}  # what a browser fetches without being asked


class Page(html.parser.HTMLParser):
    """Names, links, what is loaded, and the numbers of elements in the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loads, self.counts, self.inside = set(), [], [], {}, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names.add(values.get("id"))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(LOADS.get(tag)):
            self.loads.append(values[LOADS[tag]])
        self.inside = self.inside or tag == "article"
        if self.inside:
            self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "article"


def counted(text):
    """The numbers of tables, items, diagrams and blocks of code that a Markdown text has on GitHub."""
    fence = re.compile(r"^[ ]*(```+).*?^[ ]*\1[ ]*$", re.M | re.S)
    rest = fence.sub("", text)
    return {"table": len(re.findall(r"^[ ]*\|[-| ]+\|$", rest, re.M)), "li": len(re.findall(r"^[ ]*(?:[-*]|\d+\.) +\S", rest, re.M)),
            "svg": text.count("\n```mermaid\n"), "pre": len(fence.findall(text)) - text.count("\n```mermaid\n") + len(re.findall(r"(?<=\n\n)    \S", rest))}


def built(folder):
    """The site in `folder`; ends with 77 where there is no mkdocs."""
    if not shutil.which("mkdocs") or not shutil.which("dot") or not os.path.isdir(THEME):
        print("skipped: no mkdocs with mkdocs-material, or no graphviz (packages.txt, group manual)")
        sys.exit(77)
    ran = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", os.path.join(ROOT, "mkdocs.yml"), "--site-dir", folder], check=False)
    if ran.returncode:
        sys.exit("mkdocs: the manual cannot be built strictly")
    return folder


def pages(site):
    for path, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html") and name != "404.html":  # whose addresses begin with the server's root
                full = os.path.join(path, name)
                with open(full, encoding="utf-8") as file:
                    yield os.path.relpath(full, site), Page(file.read())


def away(address):
    return bool(re.match(r"(?:[a-z]+:)?//", address))


def broken(site, found):
    """Links that lead nowhere, and what is loaded from elsewhere."""
    problems = []
    for name, page in found.items():
        for link in page.links + page.loads:
            if away(link):
                problems += [f"{name}: loads {link}"] if link in page.loads else []
                continue
            path, _, anchor = urllib.parse.unquote(link).partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if re.match(r"[a-z]+:", link) or anchor in ("only-light", "only-dark"):
                file, anchor = (file, "") if anchor else (name, "")
            if not os.path.isfile(os.path.join(site, file)):
                problems.append(f"{name}: {link}: no such file")
            elif anchor and file in found and anchor not in found[file].names:
                problems.append(f"{name}: {link}: no such heading")
    return problems


def styles(site):
    """What style sheets load from elsewhere."""
    for path, _, names in os.walk(site):
        for name in (name for name in names if name.endswith(".css")):
            with open(os.path.join(path, name), encoding="utf-8") as file:
                yield from (f"{name}: loads {url}" for url in re.findall(r"url\([\"']?([^)\"']+)", file.read()) if away(url))


def differences(site, found):
    """Pages of docs/ that are not in the navigation or the search, or have other parts than their Markdown."""
    problems = []
    with open(os.path.join(site, "search", "search_index.json"), encoding="utf-8") as file:
        searched = {entry["location"].partition("#")[0] for entry in json.load(file)["docs"]}
    for name in sorted(name for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")):
        page = name.replace(".md", ".html")
        if page not in found or page not in found["index.html"].links:
            problems.append(f"docs/{name}: not in the navigation; name it in mkdocs.yml")
            continue
        if page not in searched:
            problems.append(f"docs/{name}: not in the index of the search")
        with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
            wanted = counted(file.read())
        problems += [f"docs/{name}: {number} of <{tag}> in the Markdown, {found[page].counts.get(tag, 0)} in the page" for tag, number in wanted.items()
                     if found[page].counts.get(tag, 0) != number]
    return problems


def controls(site, found):
    """A broken link, a heading that is not there, and a script from elsewhere are seen."""
    planted = Page('<a href="nothing.html"></a><a href="cli.html#nothing"></a><a href="cli.html#model"></a><script src="https://example.org/x.js"></script>')
    assert len(broken(site, {**found, "planted.html": planted}).__str__().split("planted.html: ")) == 4, "planted faults are not found"
    assert counted("- a\n  - b\n\n| x |\n|---|\n| y |\n\n```\n- c\n```\n") == {"table": 1, "li": 2, "svg": 0, "pre": 1}


def main():
    with tempfile.TemporaryDirectory() as folder:
        site = sys.argv[1] if len(sys.argv) > 1 else built(folder)
        found = dict(pages(site))
        controls(site, found)
        problems = broken(site, found) + list(styles(site)) + differences(site, found)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"manual: {len(found)} pages, {sum(len(page.links) for page in found.values())} links lead somewhere, nothing is loaded from elsewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
