# SPDX-License-Identifier: Apache-2.0
"""What mkdocs does for the manual beside its own work: pages from outside of docs/, references, links, and GitHub's Markdown.

Contract: the functions are mkdocs' events, named in mkdocs.yml. Pages are read from the repository and never written there.
"""
import glob
import json
import os
import re
import sys

from mkdocs.structure.files import File

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import diagram  # noqa: E402  (beside this file)
import github_markdown  # noqa: E402
import places  # noqa: E402
import reference  # noqa: E402
import pymdownx.slugs  # noqa: E402

_texts = {}  # of pages that are not in docs/, by their files in the site
_origins = {}  # files of the repository, by those of the site


def on_config(config):
    config["markdown_extensions"].insert(0, github_markdown.TwoSpaces())
    config["mdx_configs"]["toc"]["slugify"] = pymdownx.slugs.slugify(case="lower")  # GitHub's names of headings
    return config


def _pages(files):
    """Texts of the pages that are not in docs/, by their files in the site."""
    _origins.update({file.src_path: "docs/" + file.src_path for file in files if file.src_path.endswith(".md")})
    made = {"adr/index.md": reference.decisions(), "reference/cpp.md": reference.cpp(), "reference/python.md": reference.python()}
    for path, page in places.PAGES.items():
        if page not in made:
            made[page] = reference.read(path)
            _origins[page] = path
    wanted = {path for page, origin in _origins.items() for path in places.links(origin, reference.read(origin)) if not path.startswith("docs/")}
    for path in sorted(wanted | set(reference.headers()) | {"include/foretoken.h"}):
        if places.is_source(path):
            made[places.place(path)] = reference.source(path)
    return made


def on_files(files, config):
    _texts.update(_pages(files))
    for page in _texts:
        files.append(File(page, config["docs_dir"], config["site_dir"], config["use_directory_urls"]))
    files.append(File("manual.css", os.path.dirname(os.path.abspath(__file__)), config["site_dir"], config["use_directory_urls"]))
    return files


def on_page_read_source(page, config):
    return _texts.get(page.file.src_path)


def on_page_markdown(markdown, page, config, files):
    page.title = page.title.replace("`", "")
    origin = _origins.get(page.file.src_path)
    text = github_markdown.pictures(markdown)
    return diagram.drawn(github_markdown.adapted(places.linked(origin, text) if origin else text))


def on_post_page(output, page, config):
    """Browsers break lines behind the dashes of a flag, and a flag that ends with its dashes is none."""
    def kept(match):
        return match.group() if match.group(1) else re.sub(r"(?<![\w-])--?\w+", r'<span class="flag">\g<0></span>', match.group())
    return re.sub(r"(<pre\b.*?</pre>)|<code>[^<]*</code>", kept, output, flags=re.S)


def on_post_build(config):
    """search/offline.js: the search for pages that are opened from a folder (theme/main.html)."""
    site = config["site_dir"]
    with open(os.path.join(site, "search", "search_index.json"), encoding="utf-8") as file:
        index = json.load(file)
    with open(glob.glob(os.path.join(site, "assets", "javascripts", "workers", "search.*.min.js"))[0], encoding="utf-8") as file:
        worker = file.read()
    with open(os.path.join(site, "search", "offline.js"), "w", encoding="utf-8") as file:
        file.write(f"Object.assign(__search, {{index: Promise.resolve({json.dumps(index)}), worker: URL.createObjectURL(new Blob([{json.dumps(worker)}]))}});\n")
