# SPDX-License-Identifier: Apache-2.0
"""Python's Jinja with the settings that the package transformers gives chat templates."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2031, 11, 9, 14, 5, 6)


class Generation(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %} marks what a model is trained to write; its text is written as it is."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("body_of"), [], [], body).set_lineno(line)

    def body_of(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(now=NOW):
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = now.strftime
    return made


def render(program, variables, now=NOW):
    """The text, or None and why there is none."""
    try:
        return environment(now).from_string(program).render(**variables), None
    except Exception as why:  # whatever Python raises, the template has no text
        return None, f"{type(why).__name__}: {why}"
