#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random Jinja templates, rendered by foretoken and by Python's Jinja: the texts must be equal, and what one refuses the
other refuses too.

usage: template_fuzz.py RENDER_TEMPLATES [--seed S] [--templates N] [--keep FILE]
"""
import argparse
import json
import random
import sys
import warnings

from rendered import Ours

try:
    import python_jinja
except ImportError:
    sys.exit(77)  # python3-jinja2 is not installed

CONTEXT = {
    "messages": [{"role": "system", "content": " You are x.\n"}, {"role": "user", "content": "Hi <b> & \"q\" 'p'"},
                 {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"a": [1, 2.5, None, True]}}}]},
                 {"role": "tool", "content": "4\u00e9\U0001f600", "name": "f"}, {"role": "user", "content": ""}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}}}],
    "xs": [3, 1, 2, 1], "ys": ["b", "A", "a", ""], "d": {"k": 1, "a": "x", "Z": [1]}, "e": {}, "n": None, "t": True, "f": 0.5, "i": 7,
    "s": "Hello World-foo", "w": "  a\tb\n c ", "u": "stra\u00dfe \u0130 \u03a3\u03a3", "bos_token": "<s>", "add_generation_prompt": True,
    "z": [[1, "x"], [2, "y"]], "o": [{"a": 1, "b": "q"}, {"a": 2}, {"a": 1, "b": "r"}], "neg": -3, "big": 123456789012,
}
NAMES = [*CONTEXT, "ns", "v", "x", "m", "loop", "missing"]
TEXTS = ["''", "'a'", "' '", "'role'", "'content'", "'user'", "'\\n'", "'%s'", "'a,b,,c'", "'\\u00e9'", "\"it's\"", "'Hello'", "'{}'", "'x' 'y'"]
NUMBERS = ["0", "1", "2", "-1", "7", "0.5", "2.0", "1e3", "1_000", "-2.5", "10"]
FILTERS = ["upper", "lower", "trim", "length", "list", "first", "last", "tojson", "string", "int", "float", "title", "capitalize", "sort",
           "reverse", "unique", "default('z')", "default('z', true)", "d", "join", "join(', ')", "join('-', attribute='a')", "items", "dictsort", "abs",
           "round", "round(1)", "map('upper')", "map(attribute='role')", "map(attribute='a', default=0)", "selectattr('role', 'equalto', 'user')",
           "rejectattr('b')", "selectattr('a')", "select('string')", "reject('none')", "select", "replace('a', 'b')", "indent", "indent(2, true)",
           "tojson(indent=2)", "safe", "escape", "batch(2)", "batch(3, 'x')", "slice(2)", "sum", "min", "max", "count", "trim('H')", "wordcount",
           "map('int')", "map('string')", "map('tojson')", "groupby('a')", "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "truncate(5)", "center(9)",
           "dictsort(by='value')", "sort(reverse=true)", "sort(attribute='a')", "format(1, 2)", "map('first')", "tojson(ensure_ascii=true)", "int(5)", "float(1)",
           "attr('upper')", "forceescape", "map('length')", "join(n)", "sum(attribute='a')", "round(0, 'ceil')", "round(1, 'floor')"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "true", "false", "odd",
         "even", "divisibleby 2", "divisibleby(3)", "equalto('user')", "eq 1", "in [1, 'a', 'user']", "in(xs)", "callable", "lower", "upper", "sameas true",
         "gt 1", "lt(2)", "ne 'a'", "ge 1", "escaped"]
METHODS = [".strip()", ".lstrip()", ".rstrip()", ".upper()", ".lower()", ".title()", ".capitalize()", ".split()", ".split(' ')", ".split('a', 1)", ".rsplit('o', 1)",
           ".startswith('H')", ".endswith(('o', 'd'))", ".replace('l', 'L')", ".replace('l', 'L', 1)", ".find('o')", ".rfind('o')", ".count('l')", ".items()", ".keys()",
           ".values()", ".get('k')", ".get('q', 5)", ".get('role')", ".join(['a', 'b'])", ".splitlines()", ".strip('H d')", ".isdigit()", ".isalpha()", ".index('o')",
           ".format(1, x=2)", ".zfill(9)", ".center(11, '*')", ".ljust(9)", ".partition('o')", ".rpartition('o')", ".removeprefix('He')", ".istitle()", ".isupper()", ".isspace()",
           ".content", ".role", ".a", ".k", ".function.name", ".append(1)", ".index(1)", ".copy()", ".tool_calls", ".rsplit()", ".split(none, 1)", ".isalnum()"]
ITEMS = ["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "['role']", "['content']", "['k']", "[5]", "[0:2]", "[1:-1]", "[::2]", "['a']", "['items']", "[1:0]", "[-2:]", "[:1]", "[i]",
         "[3::-2]", "[-9:9]"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or", "**"]
BOUNDED = {"**": ["2", "0.5", "3"], "*": ["2", "0", "3", "-1"]}


TEXT_FILTERS = ["upper", "lower", "trim", "title", "capitalize", "replace('a', 'b')", "replace('l', 'L', 1)", "indent", "indent(2, true)", "indent(2, true, true)", "tojson",
                "string", "truncate(5)", "truncate(4, true, '')", "center(9)", "reverse", "default('z', true)", "trim('H d')", "first", "list | join('.')", "escape", "safe",
                "escape | string | upper", "unique | join", "sort | join", "replace('', '-')", "indent('> ')"]
TEXT_METHODS = [".strip()", ".lstrip()", ".rstrip()", ".upper()", ".lower()", ".title()", ".capitalize()", ".replace('l', 'L')", ".replace('o', '')", ".strip('H d')", ".zfill(9)",
                ".center(11, '*')", ".ljust(9)", ".rjust(8)", ".removeprefix('He')", ".removesuffix('o')", ".split('o')[0]", ".split('o')[-1]", ".rsplit('l', 1)[0]",
                ".partition('o')[2]", ".rpartition('o')[0]", ".split() | join('_')", ".lstrip('\\n')", ".split('</think>')[-1].lstrip('\\n')"]
LIST_FILTERS = ["list", "reverse | list", "map('string') | list", "select('string') | list", "reject('none') | list", "map('tojson') | list", "batch(2) | list", "slice(2) | list",
                "map('string') | sort", "map('string') | unique | list", "select | list", "map('string') | map('upper') | list", "batch(3, 'x') | list",
                "select('defined') | list", "map('string') | sort(reverse=true)", "select('mapping') | list", "map('string') | groupby(0)"]
JSON_OPTIONS = ["", "", "(indent=2)", "(separators=(',', ':'))", "(ensure_ascii=true)", "(indent=4, sort_keys=true)", "(indent='\\t')"]
SAFE_TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "true", "false", "equalto('user')",
              "eq 1", "in [1, 'a', 'user']", "callable", "lower", "upper", "ne 'a'", "sameas none"]


class Maker:
    def __init__(self, rng):
        self.rng, self.depth = rng, 0

    def pick(self, values):
        return self.rng.choice(values)

    def atom(self):
        kind = self.rng.random()
        if kind < 0.55:
            return self.pick(NAMES)
        if kind < 0.7:
            return self.pick(TEXTS)
        if kind < 0.82:
            return self.pick(NUMBERS)
        return self.pick(["true", "false", "none", "[]", "{}", "()", "[1, 'a', none]", "(1, 2)", "{'a': 1, 'b': [2]}", "namespace(a=1)", "range(4)", "range(5, 0, -2)",
                          "dict(a=1)", "[x, i]", "{'k': s}", "loop.index", "loop.last", "loop.first", "ns.a", "ns.c", "messages[0]", "messages[1].content", "o[0]", "tools[0].function"])

    # Mostly expressions that have a value; a wild one now and then, whose error must be an error in both.
    def expression(self):
        if self.depth > 3:
            return self.atom()
        self.depth += 1
        made = self.wild() if self.rng.random() < 0.06 else getattr(self, self.pick(["text_", "text_", "number", "items", "truth"]))()
        self.depth -= 1
        return made

    def nested(self, kind):
        self.depth += 1
        made = getattr(self, kind)() if self.depth < 5 else {"text_": "s", "number": "i", "items": "xs", "truth": "t"}[kind]
        self.depth -= 1
        return made

    def text_(self):
        kind = self.rng.random()
        if kind < 0.35:
            return self.pick(["s", "w", "u", "bos_token", "messages[1].content", "messages[1]['role']", "ns.b", *TEXTS])
        inner = self.nested("text_")
        if kind < 0.5:
            return f"({inner} | {self.pick(TEXT_FILTERS)})"
        if kind < 0.65:
            return "(" + inner + ")" + self.pick(TEXT_METHODS)
        if kind < 0.72:
            return "(" + inner + ")" + self.pick(["[1:]", "[:-1]", "[::-1]", "[0:2]", "[:1]", "[-3:]", "[3::-2]", "[-9:9]"])
        if kind < 0.85:
            return f"({inner} {self.pick(['+', '~'])} {self.nested('text_')})"
        if kind < 0.9:
            return f"({inner} if {self.nested('truth')} else {self.nested('text_')})"
        return self.pick([f"({self.nested('items')} | join({self.pick(TEXTS)}))", f"({self.nested('items')} | tojson{self.pick(JSON_OPTIONS)})",
                          f"({self.nested('items')} | string)", f"({self.nested('number')} | string)", f"({inner} * {self.pick(['2', '0', '3'])})",
                          f"(d | tojson{self.pick(JSON_OPTIONS)})", f"(messages[2] | tojson{self.pick(JSON_OPTIONS)})", f"('%s|%5.1f|%d' | format(s, {self.nested('number')}, i))"])

    def number(self):
        kind = self.rng.random()
        if kind < 0.3:
            return self.pick(["i", "f", "neg", "big", "t", *NUMBERS])
        if kind < 0.6:
            op = self.pick(["+", "-", "*", "/", "//", "%"])
            return f"({self.nested('number')} {op} {self.nested('number')})"
        return self.pick([f"({self.nested('items')} | length)", f"({self.nested('text_')} | length)", f"({self.nested('text_')} | int)", f"({self.nested('number')} | round)",
                          f"({self.nested('number')} | round(1))", f"({self.nested('number')} | abs)", f"({self.nested('number')} | int)", f"(-{self.nested('number')})",
                          f"({self.nested('text_')}).count('l')", f"({self.nested('text_')}).find('o')", "(xs | sum)", "(xs | max)", f"({self.nested('number')} ** 2)",
                          f"({self.nested('text_')} | float(0.5))", f"(xs | map('float') | sum / {self.pick(NUMBERS)})", "(o | sum(attribute='a'))"])

    def items(self):
        kind = self.rng.random()
        if kind < 0.35:
            return self.pick(["xs", "ys", "messages", "o", "z", "d", "tools", "[]", "[1, 'a', none]", "(1, 2)", "range(4)", "(d.items() | list)", "(d | dictsort)", "{'a': 1, 'b': [2]}"])
        if kind < 0.6:
            return self.pick([f"({self.nested('text_')}).split({self.pick(['', repr('a'), repr(' '), repr('o') + ', 1'])})", f"({self.nested('text_')} | list)",
                              f"({self.nested('text_')}).splitlines()", "(d.keys() | list)", "(messages | map(attribute='role') | list)", f"[{self.expression()}, {self.expression()}]",
                              f"({self.nested('items')} | list + [{self.nested('number')}])"])
        return f"({self.nested('items')} | {self.pick(LIST_FILTERS)})" if kind < 0.9 else f"({self.nested('items')} | list)" + self.pick(["[1:]", "[:-1]", "[::-1]", "[0:2]", "[-2:]", "[::2]"])

    def truth(self):
        kind = self.rng.random()
        if kind < 0.2:
            return self.pick(["t", "true", "false", "missing", "n", "e", "loop.first", "ns.a"])
        if kind < 0.45:
            return f"({self.expression()} is {self.pick(['', 'not '])}{self.pick(SAFE_TESTS)})"
        if kind < 0.6:
            return f"({self.nested('number')} {self.pick(['<', '>', '<=', '>=', '==', '!='])} {self.nested('number')})"
        if kind < 0.75:
            return f"({self.nested('text_')} {self.pick(['<', '>', '<=', '>=', '==', '!=', 'in', 'not in'])} {self.nested('text_')})"
        if kind < 0.85:
            return f"({self.expression()} {self.pick(['and', 'or', '=='])} {self.expression()})"
        return self.pick([f"(not {self.expression()})", f"({self.expression()} in {self.nested('items')})", f"({self.nested('text_')}).startswith({self.pick(TEXTS)})",
                          f"(1 < {self.nested('number')} <= 7)"])

    def wild(self):
        kind = self.rng.random()
        if kind < 0.3:
            return f"({self.expression()} | {self.pick(FILTERS)})"
        if kind < 0.5:
            return self.atom() + self.pick(METHODS)
        if kind < 0.65:
            return self.pick(NAMES) + self.pick(ITEMS)
        if kind < 0.8:
            return f"({self.expression()} is {self.pick(['', 'not '])}{self.pick(TESTS)})"
        op = self.pick(OPERATORS)
        return f"({self.expression()} {op} {self.pick(BOUNDED[op]) if op in BOUNDED else self.expression()})"

    def tag(self, inside):
        return "{%" + self.pick(["", "", "-", "+"]) + " " + inside + " " + self.pick(["", "", "-", "+"]) + "%}"

    def text(self):
        return self.pick(["", "a", " ", "\n", "  \n  ", "x\n", "<|im_start|>", "{# c #}", "{#- c -#}\n", "  {# c #}\n", "\t", "\r\n", "{", "}} ", "{% raw %}{{ x }}{% endraw %}\n", "%}"])

    def statement(self, depth):
        kind = self.rng.random()
        body = lambda: self.block(depth + 1)
        if kind < 0.45 or depth > 2:
            return "{{" + self.pick(["", "-", " "]) + " " + self.expression() + " " + self.pick(["", "-"]) + "}}"
        if kind < 0.58:
            otherwise = self.tag("elif " + self.expression()) + body() if self.rng.random() < 0.3 else ""
            otherwise += self.tag("else") + body() if self.rng.random() < 0.5 else ""
            return self.tag("if " + self.expression()) + body() + otherwise + self.tag("endif")
        if kind < 0.74:
            head = self.pick(["x in xs", "m in messages", "x in " + self.nested("items"), "k, v in d.items()", "k, v in d | dictsort", "x in ys if x", "x in xs if x > 1",
                              "x in range(3)", "a, b in z", "x in [[1, [2]], 3] recursive", "m in o if m.b is defined"])
            inner = body() + self.pick(["", "", self.tag("if loop.index > 1") + self.tag("break") + self.tag("endif"),
                                        self.tag("if loop.first") + self.tag("continue") + self.tag("endif"), "{{ loop.index0 }}/{{ loop.length }}{{ loop.revindex }}",
                                        "{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('p', 'q') }}", "{{ loop.changed(x) }}", "{{ x }},"])
            otherwise = self.tag("else") + body() if self.rng.random() < 0.2 else ""
            return self.tag("for " + head) + inner + otherwise + self.tag("endfor")
        if kind < 0.86:
            return self.tag(self.pick(["set x = ", "set v = ", "set ns.a = ", "set x, v = ", "set ns.c = "]) + self.expression())
        if kind < 0.89:
            return self.tag("set " + self.pick(["v", "x | upper", "v | trim"])) + body() + self.tag("endset")
        if kind < 0.92:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('a', 'o')", "upper | trim"])) + body() + self.tag("endfilter")
        if kind < 0.96:
            return (self.tag("macro g(p, q='Q'" + self.pick([")", ", r=i)"])) + body() + "{{ p }}{{ q }}" + self.pick(["", "{{ varargs }}", "{{ kwargs }}", "{{ caller() if caller }}"]) +
                    self.tag("endmacro") + self.pick(["{{ g(1) }}", "{{ g('a', q=2) }}", "{{ g() }}", "{{ g(1, 2, 3) }}", "{{ g(q=s, p=i) }}", "{{ g(1, zz=2) }}",
                                                      self.tag("call g(5)") + "C" + self.tag("endcall")]))
        if kind < 0.98:
            return self.tag("with x = " + self.atom()) + body() + self.tag("endwith")
        return self.tag("generation") + body() + self.tag("endgeneration")

    def block(self, depth=0):
        return "".join(self.pick([self.text(), self.statement(depth), self.statement(depth)]) for _ in range(self.rng.randint(1, 4 if depth else 6)))

    def template(self):
        return self.pick(["", "{% set ns = namespace(a=1, b='x') %}"]) + self.block()


# What is known to differ and why; texts of Python's that hold the place of an object in memory, and the like.
def excused(theirs, why, our_why):
    if theirs is not None and (" at 0x" in theirs or "<built-in method" in theirs or "<bound method" in theirs or "<class '" in theirs or "<Macro" in theirs):
        return True
    if our_why and ("not supported" in our_why or "64 bits" in our_why):
        return True
    return bool(why) and ("recursion" in why or "Recursion" in why)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("renderer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", type=int, default=1500)
    parser.add_argument("--keep")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # about subscripts of numbers
    rng = random.Random(options.seed)
    ours = Ours(options.renderer)
    equal = refused = excuses = 0
    differences = []
    for _ in range(options.templates):
        template = Maker(rng).template()
        mine, our_why = ours.render(template, CONTEXT)
        theirs, why = python_jinja.render(template, CONTEXT)
        if mine == theirs:
            equal += mine is not None
            refused += mine is None
        elif excused(theirs, why, our_why):
            excuses += 1
        else:
            differences.append({"template": template, "ours": mine, "why": our_why, "theirs": theirs, "their_why": why})
    print(f"seed {options.seed}: {equal} equal, {refused} refused by both, {excuses} excused, {len(differences)} different")
    for difference in differences[:20]:
        print(json.dumps(difference, ensure_ascii=False))
    if options.keep:
        with open(options.keep, "w", encoding="utf-8") as file:
            json.dump(differences, file, ensure_ascii=False, indent=1)
    # A comparison that cannot fail proves nothing.
    control, _ = python_jinja.render("{{ 'a' | upper }}", CONTEXT)
    if control == ours.render("{{ 'a' | lower }}", CONTEXT)[0]:
        print("the control failed: different templates wrote the same")
        return 1
    return 1 if differences or equal < options.templates // 3 else 0


if __name__ == "__main__":
    sys.exit(main())
