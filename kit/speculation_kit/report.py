# SPDX-License-Identifier: Apache-2.0
"""Reports in Markdown and as JSON values.

Contract: pure functions. Text that servers wrote stands in tables on one line, with its marks of Markdown made harmless.
"""
import collections

from .chi_square import LEAST_TOGETHER, POWER
from .speed import CONFIDENCE

MOST_SHOWN = 20


def _cell(value):
    text = str(value).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return " ".join(text.split())[:120]


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]


def _number(value, form=".3g", none="-"):
    return none if value is None else format(value, form)


# ---- Vectors ------------------------------------------------------------------------------------------------


def vectors_json(outcomes):
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    passed = counts["right"] > 0 and counts["wrong"] == 0
    return {"verdict": "right" if passed else "wrong" if counts["wrong"] else "not shown", "rounds": len(outcomes), "right": counts["right"],
            "wrong": counts["wrong"], "left_out": counts["left out"],
            "failed": [{"name": o.name, "strategy": o.strategy, "expected": o.expected, "answer": o.why} for o in outcomes if o.verdict == "wrong"]}


def vectors_markdown(outcomes):
    value = vectors_json(outcomes)
    by = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        by[outcome.strategy][outcome.verdict] += 1
    lines = ["# Verification vectors", "", f"**{value['verdict']}**: {value['right']} of {value['rounds']} rounds are right, {value['wrong']} wrong, "
             f"{value['left_out']} left out.", ""]
    lines += _table(["strategy", "right", "wrong", "left out"],
                    [[strategy, counts["right"], counts["wrong"], counts["left out"]] for strategy, counts in by.items()])
    if value["failed"]:
        lines += ["", "## Wrong rounds", ""]
        lines += _table(["round", "strategy", "expected", "answer"],
                        [[f["name"], f["strategy"], f["expected"], f["answer"]] for f in value["failed"][:MOST_SHOWN]])
        if len(value["failed"]) > MOST_SHOWN:
            lines += ["", f"{len(value['failed']) - MOST_SHOWN} more are in the JSON report."]
    return "\n".join(lines) + "\n"


# ---- Comparisons --------------------------------------------------------------------------------------------


def comparison_json(result):
    return {"verdict": result.verdict, "problems": result.problems, "notes": result.notes,
            "endpoints": {endpoint.name: {"url": endpoint.url, "model": endpoint.model} for endpoint in result.endpoints},
            "plan": result.plan._asdict(), "texts": [row.as_json() for row in result.rows],
            "distribution": {"level": result.plan.level, "level_each": result.level_each, "power": POWER,
                             "tests": [test.as_json(result.level_each) for test in result.tests]} if result.tests else None,
            "speed": [speed.as_json() for speed in result.speeds]}


def _texts(rows):
    lines = ["", "## Texts", "", "Against plain decoding's whole replies: texts, tokens and lengths must be equal.", ""]
    lines += _table(["endpoint", "temperature", "seed", "asked of", "texts", "tokens", "drafted", "differ", "log-probabilities differ by at most"],
                    [[row.kind, f"{row.temperature:g}", "-" if row.seed is None else row.seed, row.way, row.texts, row.tokens,
                      _number(row.drafted, "d"), row.differing, _number(row.largest)] for row in rows])
    first = next((row for row in rows if row.first and row.temperature == 0), None)
    if first:
        d = first.first
        lines += ["", f"First difference ({first.kind}, temperature {first.temperature:g}, {first.way}), the {d.what} at position {d.position}:", ""]
        lines += _table(["prompt", "plain", "other", "plain's token is likelier by"], [[repr(d.prompt[:60]), d.plain, d.other, _number(d.gap)]])
    return lines


def _tests(result):
    plan, n = result.plan, len(result.tests)
    lines = ["", "## Distribution of drawn tokens", "",
             f"{plan.samples} texts of each server for each of {min(plan.sample_prompts, len(plan.prompts))} prompts. \"likeliest\" compares how often the "
             "likeliest tokens were drawn; the others are chi-square tests of homogeneity, summed over the prompts, in which outcomes that were drawn "
             f"less than {LEAST_TOGETHER} times share a cell. A test finds a difference below p = {result.level_each:.2g}, so that all {n} "
             f"together raise a false alarm with a probability of at most {plan.level:g}. \"Found from\": the share of draws in which the likeliest "
             f"token stands in place of a draw, that the test finds with a probability of {POWER:g}.", ""]
    lines += _table(["endpoint", "temperature", "what", "chi-square", "degrees", "p", "found from", "verdict"],
                    [[t.kind, f"{t.temperature:g}", t.what, f"{t.comparison.statistic:.1f}", t.comparison.degrees, f"{t.comparison.p:.2g}",
                      "-" if t.detectable is None else f"{100 * t.detectable:.2g} %",
                      "one outcome" if t.comparison.degrees == 0 else "DIFFERS" if t.comparison.p < result.level_each else "the same"]
                     for t in result.tests])
    return lines


def _speeds(speeds):
    lines = ["", "## Speed", "", "Streamed requests, one at a time, in pairs that take turns. Medians, in brackets the quartiles; tokens/s count from "
             f"the request to the end. The interval holds the median of the pairs' ratios with a probability of {CONFIDENCE:g}.", ""]
    span = lambda s, form: f"{format(s.median, form)} [{format(s.lower, form)}, {format(s.upper, form)}]"
    rows = []
    for s in speeds:
        interval = "too few pairs" if s.interval is None else f"{s.interval[0]:.3f} to {s.interval[1]:.3f}"
        rows.append([s.kind, f"{s.temperature:g}", len(s.pairs), span(s.rates["plain"], ".1f"), span(s.rates["speculative"], ".1f"),
                     span(s.first_s["plain"], ".3f"), span(s.first_s["speculative"], ".3f"), span(s.ratio, ".3f"), interval])
    return lines + _table(["endpoint", "temperature", "pairs", "plain tokens/s", "speculative tokens/s", "plain first text, s",
                           "speculative first text, s", "ratio", "interval"], rows)


def comparison_markdown(result):
    plain, speculative = result.endpoints
    lines = ["# Speculative decoding against plain decoding", "", f"**{result.verdict}**", ""]
    lines += _table(["", "address", "model"], [[e.name, e.url, e.model] for e in (plain, speculative)])
    if result.problems or result.notes:
        lines += [""] + [f"- {_cell(text) if len(text) < 120 else ' '.join(text.split())}" for text in result.problems + result.notes]
    lines += _texts(result.rows) if result.rows else []
    lines += _tests(result) if result.tests else []
    lines += _speeds(result.speeds) if result.speeds else []
    return "\n".join(lines) + "\n"
