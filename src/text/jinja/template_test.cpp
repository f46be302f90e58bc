// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/template.h"

#include <gtest/gtest.h>

#include "base/failure_testing.h"
#include "foretoken/cancellation.h"
#include "text/jinja/values/json_text.h"

// tests/templates compares whole templates with Python's Jinja, and random ones. Here are what those
// cannot see: marks of characters, errors with their lines, bounds.
namespace foretoken::text::jinja {
namespace {

struct Outcome {
  std::string text, error;
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string from_input;  // the characters of the text that came from the conversation
};

Outcome OutcomeOf(std::string_view source, std::string_view context = "{}",
                  const Limits& limits = {}) {
  const auto parsed = Template::Parse(source);
  if (!parsed) return {.error = parsed.error().message, .code = parsed.error().code};
  Budget budget(limits);
  const auto values = FromJson(budget, context, true);
  EXPECT_TRUE(values.has_value());
  std::vector<Variable> variables;
  for (const auto& [name, value] : values->dictionary()->items)
    variables.push_back({ToUtf8(name.text()), value});
  std::tm now = {};
  now.tm_year = 131, now.tm_mon = 10, now.tm_mday = 9;
  const auto text = parsed->Render(budget, variables, now);
  if (!text) return {.error = text.error().message, .code = text.error().code};
  Characters input;
  for (const char32_t c : *text)
    if ((c & kFromInput) != 0) input += c;
  return {.text = ToUtf8(*text), .from_input = ToUtf8(input)};
}

std::string Text(std::string_view source, std::string_view context = "{}") {
  const Outcome outcome = OutcomeOf(source, context);
  return outcome.error.empty() ? outcome.text : "error: " + outcome.error;
}

TEST(Template, WritesTextsValuesAndBlocks) {
  EXPECT_EQ(Text("a{{ 1 + 2 }}b{# no #}{% if x is defined %}c{% else %}d{% endif %}\n\n"), "a3bd");
  EXPECT_EQ(Text("{% for m in ms %}{{ loop.index }}{{ m.a }}{{ ',' if not loop.last }}{% endfor %}",
                 R"({"ms": [{"a": 1}, {"a": "x"}]})"),
            "11,2x");
  EXPECT_EQ(Text("{% macro f(a, b='B') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) ~ f(b=2, a=3) }}"),
            "[1B][32]");
  EXPECT_EQ(Text("{%- set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}"
                 "{% endfor %}{{ ns.n }}"),
            "6");
}

TEST(Template, ElseRunsWhereNoIterationReachesTheEndOfTheBody) {
  EXPECT_EQ(Text("{% for x in [1, 2] %}{{ x }}{% continue %}{% else %}e{% endfor %}"), "12e");
  EXPECT_EQ(
      Text("{% for x in [1, 2] %}{% if x > 1 %}{% break %}{% endif %}{% else %}e{% endfor %}"), "");
}

TEST(Template, RemovesWhiteSpaceAroundStatements) {
  EXPECT_EQ(Text("  {% if true %}\n  a\n  {% endif %}\n b"), "  a\n b");
  EXPECT_EQ(Text("a \n {%- if true -%} \n b {%+ endif +%}\n c"), "ab \n c");
  EXPECT_EQ(Text("{% raw %}{{ a }}{% endraw %} {{- 'b' }}"), "{{ a }}b");
}

TEST(Template, NumbersAndTextsAreThoseOfPython) {
  EXPECT_EQ(Text("{{ 7 // -2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 1e16 }} {{ 0.1 + 0.2 }} {{ 2 ** 10 }}"),
            "-4 2 3.5 1e+16 0.30000000000000004 1024");
  EXPECT_EQ(Text("{{ [1, 'a\\'b', none, true, 1.0, {'k': ()}] }}"),
            "[1, \"a'b\", None, True, 1.0, {'k': ()}]");
  EXPECT_EQ(Text("{{ 'Stra\u00dfe'.upper() }} {{ x[::-1] }} {{ x | length }}",
                 R"({"x": "a\u00e9\ud83d\ude00"})"),
            "STRASSE \U0001f600\u00e9a 3");
  EXPECT_EQ(Text("{{ x | tojson }} {{ x | tojson(indent=1) }}",
                 R"({"x": {"b": [1.5, null], "a": "<\u00e9"}})"),
            "{\"b\": [1.5, null], \"a\": \"<\u00e9\"} {\n \"b\": [\n  1.5,\n  null\n ],\n \"a\": "
            "\"<\u00e9\"\n}");
}

TEST(Template, CharactersOfTheConversationKeepTheirMarks) {
  const std::string_view context = R"({"x": "<|end|>", "l": ["a", "b"]})";
  for (const std::string_view source :
       {"<|end|>{{ x }}", "{{ '<|end|>' ~ x }}", "{{ '<|end|>' + x | trim }}",
        "<|end|>{{ x[::-1][::-1] }}", "<|end|>{{ x.split('q') | join('|') }}",
        "<|end|>{{ x | list | join }}", "{% set y %}<|end|>{{ x }}{% endset %}{{ y }}",
        "<|end|>{{ x | upper | lower }}", "<|end|>{{ '%s' % x }}", "<|end|>{{ '{}'.format(x) }}",
        "<|end|>{{ x.replace('q', '') }}"}) {
    const Outcome outcome = OutcomeOf(source, context);
    EXPECT_EQ(outcome.text, "<|end|><|end|>") << source;
    EXPECT_EQ(outcome.from_input, "<|end|>") << source;
  }
  EXPECT_EQ(OutcomeOf("{{ l | tojson }}{{ {'k': x} }}", context).from_input, "ab<|end|>");
  EXPECT_EQ(OutcomeOf("{% if x == '<|end|>' %}{{ '<|end|>' }}{% endif %}", context).from_input, "");
}

TEST(Template, BytesThatAreNotUtf8StayThemselves) {
  EXPECT_EQ(ToUtf8(FromUtf8("a\xff\xe2\x82z\xc3\xa9")), "a\xff\xe2\x82z\xc3\xa9");
}

TEST(Template, ErrorsNameTheLine) {
  EXPECT_EQ(Text("a\n{{ x y }}"),
            "error: line 2: 'y' stands where }} should be; correct the template");
  EXPECT_EQ(Text("\n\n{% if x %}"), "error: line 3: a block has no end; close it with {% endif %}");
  EXPECT_EQ(Text("{{ 'a"), "error: line 1: a string has no end; close it with its quote");
  EXPECT_EQ(Text("{# a"), "error: line 1: a comment has no end; close it with #}");
  EXPECT_EQ(Text("{% frob %}"), "error: line 1: 'frob' is not a statement; correct the template");
  EXPECT_EQ(Text("\n{{ missing.a }}"), "error: line 2: 'missing' is undefined");
  EXPECT_EQ(Text("\n\n{% if true %}\n{{ 1 + 'a' }}{% endif %}"),
            "error: line 4: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_EQ(Text("{{ raise_exception('No ' ~ 'roles') }}"),
            "error: line 1: it refuses the conversation: No roles");
  EXPECT_EQ(Text("{% break %}"), "error: line 1: 'break' is outside of a loop; remove it");
  EXPECT_EQ(OutcomeOf("{% include 'a' %}").code, ErrorCode::kUnsupported);
}

TEST(Template, ValuesCannotBeChanged) {
  EXPECT_TRUE(Text("{{ x.append(1) }}", R"({"x": []})").find("unsafe") != std::string::npos);
  EXPECT_TRUE(Text("{{ x.update({}) }}", R"({"x": {}})").find("unsafe") != std::string::npos);
  EXPECT_EQ(Text("{{ x.__class__ }}", R"({"x": {}})"), "");
}

TEST(Template, DatesAreEnglish) {
  EXPECT_EQ(Text("{{ strftime_now('%d %b %Y, %A %-d %B, %Y-%m-%d %q%%') }}"),
            "09 Nov 2031, Sunday 9 November, 2031-11-09 %q%");
}

// ------------------------------------------------------------------ bounds

void ExpectBound(std::string_view source, std::string_view words,
                 const Limits& limits = {.memory_bytes = std::size_t{1} << 23}) {
  const Outcome outcome = OutcomeOf(source, "{}", limits);
  EXPECT_NE(outcome.error.find(words), std::string::npos) << source << ": " << outcome.error;
  EXPECT_EQ(outcome.code, ErrorCode::kTooLarge) << source;
}

std::string Times(std::string_view part, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += part;
  return all;
}

constexpr std::string_view kGrow =
    "{% set ns = namespace(x='a') %}{% for i in range(99999) %}{% set ns.x = ns.x + ns.x %}{% "
    "endfor %}";

TEST(Bounds, OfSteps) {
  ExpectBound("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
              "steps", {.steps = 100'000});
  ExpectBound("{% for i in range(999) %}{{ 'a' * 100000 in 'b' * 200000 }}{% endfor %}", "steps",
              {.steps = 1'000'000});
  // Equal values that hold one value many times.
  const std::string twice =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  for (const char* const use : {"{{ ns.x == ns.y }}", "{{ ns.x }}", "{{ ns.x | tojson }}",
                                "{{ [ns.x] | sort }}{{ ns.x in [ns.y] }}", "{{ ns.x < ns.y }}",
                                "{{ [ns.x, ns.y] | sort }}"})
    ExpectBound(twice + use, "steps", {.steps = 300'000});
}

TEST(Bounds, OfDepth) {
  ExpectBound("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "inside each other");
  ExpectBound(
      "{% set ns = namespace(x=[]) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}",
      "lists and dictionaries are more than 100");
  for (const auto& [open, close] :
       {std::pair("(", ")"), {"[", "]"}, {"-", ""}, {"not ", ""}, {"{1: ", "}"}, {"f(", ")"}}) {
    const Outcome outcome =
        OutcomeOf("{{ " + Times(open, 100'000) + "1" + Times(close, 100'000) + " }}");
    EXPECT_NE(outcome.error.find("inside each other"), std::string::npos) << open << outcome.error;
  }
  for (const char* const chain :
       {".a", "[0]", "|d", "+1", " and 1", "()", "~1", " if 1", " is none"}) {
    const Outcome outcome = OutcomeOf("{{ a" + Times(chain, 50'000) + " }}");
    EXPECT_FALSE(outcome.error.empty() && std::string_view(chain) != "~1") << chain;
  }
  EXPECT_NE(OutcomeOf(Times("{% if 1 %}", 50'000)).error.find("inside each other"),
            std::string::npos);
  EXPECT_NE(OutcomeOf("{% set " + Times("(", 50'000) + "a").error, "");
}

TEST(Bounds, OfMemoryAndOutput) {
  ExpectBound(kGrow, "MiB of memory");
  ExpectBound("{{ 'a' * 999999999999 }}", "MiB of memory");
  ExpectBound("{{ [1] * 999999999999 }}", "MiB of memory");
  ExpectBound("{{ ('a' * 100000).replace('', 'b' * 100000) }}", "MiB of memory");
  ExpectBound("{{ 'a'.center(999999999999) }}", "MiB of memory");
  ExpectBound("{{ ('a\n' * 100000) | indent(100000) }}", "MiB of memory");
  ExpectBound("{% for i in range(1000) %}{{ 'a' * 1000 }}{% endfor %}", "999999 characters",
              {.output_characters = 999'999, .memory_bytes = std::size_t{1} << 24});
  ExpectBound("{{ range(100001) }}", "Range too big");
}

// A bound of steps holds for a short operation on a long text, too: 20 million characters are not
// one step.
TEST(Bounds, OfStepsCountWhatAnOperationReads) {
  const std::string long_texts = "{% set x = 'a' * 100000 %}{% set y = 'a' * 50000 ~ 'b' %}";
  const auto steps_of = [&](const std::string& source) {
    const auto parsed = Template::Parse(long_texts + source);
    EXPECT_TRUE(parsed.has_value()) << source;
    Budget budget({});
    EXPECT_TRUE(parsed->Render(budget, {}, {}).has_value()) << source;
    return budget.steps();
  };
  const std::size_t steps_of_texts = steps_of("");
  constexpr std::size_t kStepsOfAText = 50'000 / 32;
  for (const char* const use : {"{{ x.find(y) }}",
                                "{{ x.rfind(y) }}",
                                "{{ y in x }}",
                                "{{ x.count(y) }}",
                                "{{ x.partition('c')[1] }}",
                                "{{ x.rpartition('c')[1] }}",
                                "{{ x.split('c') | length }}",
                                "{{ x.rsplit('c', 1) | length }}",
                                "{{ x.split() | length }}",
                                "{{ x.strip('a') }}",
                                "{{ x.splitlines() | length }}",
                                "{{ x.removeprefix(x) }}",
                                "{{ x.startswith(x) }}",
                                "{{ x == x ~ '' }}",
                                "{{ x | int }}",
                                "{{ x | float }}",
                                "{{ x | wordcount }}",
                                "{{ (' ' * 60000).strip() }}",
                                "{{ (' ' * 60000) | trim }}",
                                "{{ x is sameas(x ~ '') }}",
                                "{{ x in {} }}",
                                "{{ {}.get(x) }}",
                                "{{ {x: 1} | length }}",
                                "{{ x is lower }}"})
    EXPECT_GE(steps_of(use), steps_of_texts + kStepsOfAText) << use;
  // An element is more work than a character.
  const std::string list = "{% set l = range(8000) | list %}";
  for (const char* const use : {"{% set m = l + [1] %}", "{% set m = l | list %}",
                                "{% for i in l %}{% break %}{% endfor %}", "{% set m = l[1:] %}"})
    EXPECT_GE(steps_of(list + use), steps_of(list) + 8000 / 8) << use;
  // Nothing is searched where the part is longer than the text.
  EXPECT_LT(steps_of("{{ 'b'.find(x) }}{{ x in 'b' }}{{ 'b'.rfind(x) }}"), steps_of_texts + 100);
}

TEST(Bounds, AreNotReachedByOrdinaryWork) {
  // Each of many parts is counted once, not once for each that is behind it.
  EXPECT_EQ(OutcomeOf("{{ (['a' * 100] * 10000) | join(',') | length }}").text, "1009999");
  EXPECT_EQ(OutcomeOf("{{ ('%s' * 2000) % (('a' * 100,) * 2000) | length }}").error.empty(), false);
  EXPECT_EQ(OutcomeOf("{{ (('%s,' * 10000) % (('a' * 100,) * 10000)) | length }}").text, "1010000");
}

TEST(Bounds, ARenderingEndsWhenNobodyWantsItsText) {
  for (const std::string_view source :
       {"{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'a' * 100000 in 'b' * 200000 }}{% endfor %}"}) {
    const auto parsed = Template::Parse(source);
    ASSERT_TRUE(parsed.has_value());
    int n_asked = 0;
    std::size_t steps = 0;
    Budget budget({});
    const CancellationScope scope([&] {
      steps = budget.steps();
      return ++n_asked == 3;
    });
    EXPECT_TRUE(Fails(parsed->Render(budget, {}, {}), ErrorCode::kStopped, "cancelled")) << source;
    EXPECT_EQ(n_asked, 3);
    EXPECT_LE(budget.steps(), steps + 20'000) << source;
  }
}

TEST(Values, NanIsItselfInListsAndAsAKey) {
  EXPECT_EQ(
      Text("{% set n = 1e999 - 1e999 %}{{ n == n }}{{ [n] == [n] }}{{ {n: 1, n: 2} | length }}"
           "{{ ([n] * 1000) | unique | list | length }}"),
      "FalseTrue11");
}

TEST(Bounds, HoldNothingBehind) {
  // Values that contain themselves, in every way that a template has.
  for (const char* const source :
       {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns.a.a is defined }}",
        "{% set ns = namespace() %}{% for i in [1] %}{% set ns.l = loop %}{{ loop.changed([ns]) "
        "}}{% endfor %}",
        "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}x{% endmacro %}{{ f() }}",
        "{% set ns = namespace() %}{% for i in range(20000) %}{% set p = ns.x %}{% for x in [1] "
        "recursive %}{% set ns.x = loop %}{% endfor %}{% endfor %}",
        "{% set ns = namespace() %}{% for i in range(20000) %}{{ loop.changed(ns.x) }}{% set ns.x "
        "= loop %}{% endfor %}",
        "{% set ns = namespace() %}{% for i in range(20000) %}{% set ns.x = namespace(y=ns.x) %}{% "
        "endfor %}",
        "{% set ns = namespace() %}{% for i in range(20000) %}{% set q = ns.m %}{% macro m() %}{% "
        "endmacro %}{% set ns.m = m %}{% endfor %}"})
    EXPECT_EQ(OutcomeOf(source).error, "") << source;
}

}  // namespace
}  // namespace foretoken::text::jinja
