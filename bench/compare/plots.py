#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the plots of README.md and docs/performance.md: docs/plots/NAME.json becomes NAME-light.svg and NAME-dark.svg beside it.

  plots.py [--check] [FOLDER]

The JSON comes from the scripts of this folder (--json): cost-by-rows from llama_cpp.py, clients from serving_load.py, speedup from speedup.py. A point is
the median of the repeats; a thin bar shows the least and the most. --check draws again and compares with the files that are there; it writes nothing and
exits with 1 where a file is missing or differs. The same JSON always gives the same bytes. Nothing but Python is needed.
"""
import argparse
import json
import math
import os
import statistics
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "plots")
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
THEMES = {
    "light": {"surface": "#ffffff", "text": "#1f2328", "muted": "#59636e", "grid": "#e4e8ec", "axis": "#9aa4ae",
              "ours": "#0b62d6", "plain": "#2f9e8f", "theirs": "#c4571a", "theirs2": "#8a6d3b",
              "steps": ["#84b4ee", "#4f92e6", "#1d68c9", "#0a3a80"]},
    "dark": {"surface": "#0d1117", "text": "#e6edf3", "muted": "#9198a1", "grid": "#232a33", "axis": "#57606a",
             "ours": "#4c9bff", "plain": "#3fb8a6", "theirs": "#f0883e", "theirs2": "#c9a86a",
             "steps": ["#3f70b0", "#4f8edb", "#7db3f7", "#c4deff"]},
}


def number(value):
    """At most two decimals, and none that say nothing: the same text on every machine."""
    return ("%.2f" % value).rstrip("0").rstrip(".")


def grouped(value):
    return "{:,}".format(round(value)) if value >= 1000 else number(value)


def ticks(top, count=5):
    """Round numbers from 0 to at least top, about `count` of them."""
    raw = top / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= raw)
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


class Svg:
    def __init__(self, width, height, theme, title):
        self.theme, self.parts = theme, []
        self.parts.append(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                          f'font-family="{FONT}" role="img" aria-label="{title}">')
        self.parts.append(f'<rect width="{width}" height="{height}" rx="6" fill="{theme["surface"]}"/>')

    def text(self, x, y, words, color="muted", size=12, anchor="start", weight=400):
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
                          f'fill="{self.theme.get(color, color)}">{words.replace("&", "&amp;").replace("<", "&lt;")}</text>')

    def line(self, x1, y1, x2, y2, color, width=1.0, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{self.theme.get(color, color)}" '
                          f'stroke-width="{number(width)}"{dashes}/>')

    def path(self, points, color):
        steps = " ".join(("M" if i == 0 else "L") + number(x) + " " + number(y) for i, (x, y) in enumerate(points))
        self.parts.append(f'<path d="{steps}" fill="none" stroke="{self.theme.get(color, color)}" stroke-width="2" stroke-linejoin="round" '
                          'stroke-linecap="round"/>')

    def dot(self, x, y, color):
        self.parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="4" fill="{self.theme.get(color, color)}" stroke="{self.theme["surface"]}" '
                          'stroke-width="1.5"/>')

    def end(self):
        return "\n".join([*self.parts, "</svg>", ""])


class Panel:
    """Axes in a rectangle: x by place (given places), y from 0 to top."""

    def __init__(self, svg, left, top, width, height, places, most):
        self.svg, self.left, self.top, self.width, self.height, self.places = svg, left, top, width, height, places
        self.scale = ticks(most)
        self.low, self.high = places[0][0], places[-1][0]

    def x(self, place):
        return self.left + 14 + (self.width - 28) * (place - self.low) / (self.high - self.low)

    def y(self, value):
        return self.top + self.height * (1 - value / self.scale[-1])

    def axes(self, title, x_name, unit=""):
        for value in self.scale:
            self.svg.line(self.left, self.y(value), self.left + self.width, self.y(value), "axis" if value == 0 else "grid")
            self.svg.text(self.left - 8, self.y(value) + 4, grouped(value) + (unit if value else ""), anchor="end")
        for place, name in self.places:
            self.svg.text(self.x(place), self.top + self.height + 18, name, anchor="middle")
        self.svg.text(self.left + self.width / 2, self.top + self.height + 38, x_name, anchor="middle")
        self.svg.text(self.left, self.top - 12, title, "text", 13, weight=600)

    def series(self, points, color):
        """points: (place, repeats)"""
        middle = [(self.x(place), self.y(statistics.median(values))) for place, values in points]
        for (x, _), (_, values) in zip(middle, points):
            self.svg.line(x, self.y(min(values)), x, self.y(max(values)), color, 1.25)
        self.svg.path(middle, color)
        for x, y in middle:
            self.svg.dot(x, y, color)


def head(svg, title, under):
    svg.text(24, 32, title, "text", 17, weight=600)
    svg.text(24, 52, under, "muted", 12.5)


def legend(svg, x, y, names):
    for name, color in names:
        svg.line(x, y - 4, x + 18, y - 4, color, 2)
        svg.dot(x + 9, y - 4, color)
        svg.text(x + 26, y, name, "text", 12.5)
        x += 46 + 6.7 * len(name)


def labels(panel, ends):
    """Names at the right end of lines, pushed apart where they would touch."""
    ends = sorted(((panel.y(statistics.median(values)), name, color) for name, values, color in ends))
    low = -1e9
    for y, name, color in ends:
        low = max(y, low + 15)
        panel.svg.text(panel.left + panel.width + 2, low + 4, name, color, 12.5, weight=600)


def where(data):
    """The machine in words."""
    cpu = data["machine"]["cpu"].replace("(R)", "").replace(" Processor", "").replace(" CPU", "")
    return "%d cores of %s" % (data["machine"]["cpus"], cpu)


def type_of(model):
    return model.rsplit(".", 1)[0].rsplit("-", 1)[-1]


def cost_by_rows(data, theme):
    models = data["models"]
    width, panel = 880, (880 - 90 * len(models) - 20) / len(models)
    svg = Svg(width, 384, theme, "Cost of a pass by its rows, foretoken and llama.cpp")
    head(svg, "Verifying several tokens in one pass", "Time of a pass by the tokens in it, lower is better. 1B model, random weights. Bars: least to most. " + where(data))
    legend(svg, 24, 78, [("foretoken", "ours"), ("llama.cpp", "theirs")])
    for i, model in enumerate(models):
        ours, theirs = ({int(rows): values for rows, values in model[key].items() if int(rows) <= 16} for key in ("foretoken_ms", "llama_cpp_ms"))
        axes = Panel(svg, 70 + i * (panel + 90), 128, panel, 190, [(rows, str(rows)) for rows in sorted(ours)],
                     max(max(values) for values in [*ours.values(), *theirs.values()]))
        axes.axes(type_of(model["model"]), "tokens in the pass (rows)", " ms")
        axes.series(sorted(theirs.items()), "theirs")
        axes.series(sorted(ours.items()), "ours")
    return svg.end()


def clients(data, theme):
    widths = sorted(data["clients"], key=int)
    kinds = [("speculative", "foretoken, speculative", "ours"), ("plain", "foretoken, plain", "plain"), ("llama-server", "llama-server", "theirs"),
             ("llama-server -md", "llama-server, speculative", "theirs2")]
    rates = {kind: [(i, data["clients"][w]["tokens_per_second"][kind]) for i, w in enumerate(widths)] for kind, _, _ in kinds
             if kind in data["clients"][widths[0]]["tokens_per_second"]}
    svg = Svg(880, 404, theme, "Tokens per second by the number of clients, foretoken serve and llama-server")
    head(svg, "Tokens per second by the number of clients",
         "Higher is better. The same files for both: %s, greedy. Bars: least to most. %s" % (data["model"].removesuffix(".gguf"), where(data)))
    legend(svg, 24, 78, [(name, color) for kind, name, color in kinds if kind in rates])
    axes = Panel(svg, 80, 112, 770, 226, [(i, w) for i, w in enumerate(widths)], max(max(v) for points in rates.values() for _, v in points))
    axes.axes("", "clients at once")
    for kind, _, color in reversed(kinds):
        if kind in rates:
            axes.series(rates[kind], color)
    return svg.end()


def speedup(data, theme):
    points = data["points"]
    rates, ks = sorted({p["rate"] for p in points}), sorted({p["k"] for p in points})
    svg = Svg(880, 420, theme, "Speed-up of speculative decoding by the acceptance of drafts and by K")
    head(svg, "Speed-up over plain decoding", "K drafts in every round. %s with %s, random weights, synthetic acceptance. %s" %
         (data["model"].removesuffix(".gguf"), data["draft"].removesuffix(".gguf"), where(data)))
    axes = Panel(svg, 70, 96, 730, 258, [(rate, "%.0f %%" % (100 * rate)) for rate in rates], max(p["speedup_max"] for p in points))
    axes.axes("", "probability that a draft is accepted, if the one before it was", "x")
    axes.svg.line(axes.left, axes.y(1), axes.left + axes.width, axes.y(1), "muted", 1.25, "4 4")
    axes.svg.text(axes.left + axes.width - 6, axes.y(1) + 16, "plain decoding", anchor="end")
    ends = []
    for i, k in enumerate(ks):
        color = THEMES["light" if theme is THEMES["light"] else "dark"]["steps"][i * 3 // max(1, len(ks) - 1)]
        line = [(p["rate"], [p["speedup_min"], p["speedup"], p["speedup_max"]]) for p in points if p["k"] == k]
        axes.series(sorted(line), color)
        ends.append(("K = %d" % k, line[-1][1], color))
    labels(axes, ends)
    return svg.end()


PLOTS = {"cost-by-rows": cost_by_rows, "clients": clients, "speedup": speedup}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", nargs="?", default=FOLDER)
    args = parser.parse_args()
    stale = []
    for name, draw in PLOTS.items():
        with open(os.path.join(args.folder, name + ".json"), encoding="utf-8") as file:
            data = json.load(file)
        for theme, colors in THEMES.items():
            path, drawn = os.path.join(args.folder, f"{name}-{theme}.svg"), draw(data, colors)
            if not args.check:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(drawn)
                continue
            try:
                with open(path, encoding="utf-8") as file:
                    same = file.read() == drawn
            except FileNotFoundError:
                same = False
            if not same:
                stale.append(path)
    for path in stale:
        print(f"{path}: not what the JSON gives; run bench/compare/plots.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
