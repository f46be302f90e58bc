// SPDX-License-Identifier: Apache-2.0
// Templates come from files and texts from clients, so the work must grow no faster than their
// size.
#include "base/growth_testing.h"

#include "base/failure_testing.h"
#include "text/chat_template.h"
#include "text/jinja/template.h"
#include "text/jinja/values/json_text.h"

namespace foretoken::text::jinja {
namespace {

constexpr Sizes kTemplateSizes = {2048, 8192};

TEST(JinjaGrowth, TemplatesAreParsed) {
  for (const char* const part :
       {"a", "{", "{{ x }}", "{# c #}", "{% if x %}a{% endif %}", "\n  {% set x = 1 %}\n",
        "{{ 'a' }}", "{%", "{#", "{{", "{% raw %}", "{{ x",
        "{{ [1, 2, {'a': -1.5e3}] | join(',') }}", " ", "\n", "{% -",
        "{{ a.b.c[0](x, y=1) is not defined and not x }}",
        "{% for x in y %}{{ x }}{% else %}{% endfor %}"})
    ExpectLinear(std::string("parses ") + part, kTemplateSizes, [&](std::size_t size) {
      return [text = Repeated(part, size)] {
        [[maybe_unused]] const auto parsed = Template::Parse(text);
      };
    });
}

// Each template handles one long text, or a list of many.
TEST(JinjaGrowth, ConversationsAreRendered) {
  constexpr const char* kTexts[] = {
      "{{ x }}",
      "{{ x | trim }}",
      "{{ x.split('</think>')[-1].lstrip('\\n') }}",
      "{{ x | upper }}",
      "{{ x | tojson }}",
      "{{ x.replace('a', 'bb') }}",
      "{{ x ~ x + x }}",
      "{{ 'aab' in x }}",
      "{{ [x] }}",
      "{{ x.count('ab') }}{{ x.find('aaaaaaaaaaab') }}{{ x.rfind('b') }}",
      "{{ (x ~ x).find(x ~ 'b') }}{{ x ~ 'b' in x ~ x }}{{ (x ~ x).rfind('b' ~ x) }}",
      "{{ x.split() | length }}",
      "{{ x.splitlines() | join('\\n') }}",
      "{{ x | indent(2) }}",
      "{{ x | title }}{{ x | escape }}",
      "{{ x == x }}{{ x < x }}",
      "{{ x[::-1] }}",
      "{{ x.rsplit('a', 1)[0] }}",
      "{{ x | list | length }}",
      "{{ '%s' % x }}{{ '{}'.format(x) }}",
      "{% set y %}{{ x }}{% endset %}{{ y | length }}"};
  for (const char* const source : kTexts)
    for (const char* const part : {"a", " ", "\n", "ab", "</think>", "\u00e9\n"}) {
      const auto parsed = Template::Parse(source);
      ASSERT_TRUE(parsed.has_value()) << source;
      ExpectLinear(std::string(source) + " of " + part, kTemplateSizes, [&](std::size_t size) {
        return [&parsed, text = FromUtf8(Repeated(part, size), true)] {
          Budget budget({});
          [[maybe_unused]] const auto out =
              parsed->Render(budget, {{"x", TextValue(budget, text)}}, {});
        };
      });
    }
}

TEST(JinjaGrowth, ListsAreRendered) {
  constexpr const char* kLists[] = {
      "{% for m in x %}{{ m.role ~ m['content'] }}{% if not loop.last %},{% endif %}{% endfor %}",
      "{% for m in x[::-1] %}{{ loop.index }}{% endfor %}",
      "{{ x | selectattr('role', 'equalto', 'user') | map(attribute='content') | join }}",
      "{{ x | tojson }}",
      "{{ x | string }}",
      "{{ x | map(attribute='content') | unique | list | length }}",
      "{{ x | sort(attribute='content') | length }}",
      "{{ x | length }}{{ x[-1].role }}",
      "{% macro f(m) %}{{ m.role }}{% endmacro %}{% for m in x %}{{ f(m) }}{% endfor %}",
      "{% set ns = namespace(n=0) %}{% for m in x %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n "
      "}}"};
  for (const char* const source : kLists) {
    const auto parsed = Template::Parse(source);
    ASSERT_TRUE(parsed.has_value()) << source;
    ExpectLinear(source, {512, 2048}, [&](std::size_t size) {
      return [&parsed, size] {
        Budget budget({});
        Values messages;
        for (std::size_t i = 0; i < size; ++i) {
          DictionaryBuilder message(budget);
          message.Set("role", TextValue(budget, "user"));
          message.Set("content", TextValue(budget, std::to_string(i)));
          messages.push_back(message.Take());
        }
        const Value list = ListValue(budget, std::move(messages));
        [[maybe_unused]] const auto out = parsed->Render(budget, {{"x", list}}, {});
      };
    });
  }
}

// ------------------------------------------------------------------ many names

// Parts of names that lead from one state of FNV-1a (64 bits, a step for each character) to one
// other: n rows are 2^n names with one hash.
constexpr CharactersView kTwins[][2] = {
    {U"\u66B1\u6D77\u8318\u86F0\U00040000", U"\u7295\u76A5\u77A9\u57B0\U0006C9E7"},
    {U"\u846F\u883F\u7970\u87AF\U00040000", U"\u6913\u64F2\u704F\u6CF4\U0005BC49"},
    {U"\u66CF\u70F0\u769D\u82E8\U00040000", U"\u7D87\u4E3A\u764A\u608B\U000705C0"},
    {U"\u579A\u6B67\u4F8E\u8D91\U00040000", U"\u8A10\u5D1B\u66F9\u89AB\U0007383B"},
    {U"\u624E\u6842\u57FF\u530B\U00040000", U"\u6A4F\u7EB1\u6852\u8A26\U00073DC6"},
    {U"\u593E\u5087\u6789\u85B9\U00040000", U"\u5B6C\u8449\u5B99\u8AC4\U0007B58F"},
    {U"\u7F5C\u832B\u6C90\u5977\U00040000", U"\u66CC\u7E69\u6E32\u66E3\U00059C38"},
    {U"\u7D03\u78D9\u85DA\u5F84\U00040000", U"\u7F83\u74CD\u6C77\u566D\U0006B642"},
    {U"\u65C1\u7785\u6D37\u5D0E\U00040000", U"\u6601\u6F30\u6CD2\u7C24\U00073B20"},
    {U"\u5BEE\u87FF\u85EB\u730F\U00040000", U"\u5162\u72B9\u66CD\u5F64\U000752D5"},
    {U"\u8A96\u77AD\u880B\u7540\U00040000", U"\u699F\u5D6C\u5D8E\u729B\U0004434E"},
    {U"\u53E6\u72BB\u86FD\u8A39\U00040000", U"\u593E\u82B3\u89F2\u6250\U0004AE40"},
};

std::string CollidingName(std::size_t number) {
  Characters name;
  for (const auto& twins : kTwins) name += twins[number % 2], number /= 2;
  return ToUtf8(name);
}

std::uint64_t KnownHash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char32_t c : FromUtf8(name)) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

// {name 0: 0, name 1: 0, ...}
std::string Members(std::size_t n, const std::function<std::string(std::size_t)>& name) {
  std::string json = "{";
  for (std::size_t i = 0; i < n; ++i) json += (i == 0 ? "\"" : ",\"") + name(i) + "\":0";
  return json + "}";
}
std::string PlainName(std::size_t number) {
  return "name_" + std::to_string(number);
}

constexpr Sizes kNames = {256, 2048};

TEST(JinjaGrowth, CollidingNamesAreReadAsFastAsOthers) {
  ASSERT_EQ(KnownHash(CollidingName(0)), KnownHash(CollidingName(kNames.larger - 1)));
  ASSERT_NE(CollidingName(0), CollidingName(kNames.larger - 1));
  ExpectLinear("members of an object", kNames, [](std::size_t n) {
    return [json = Members(n, CollidingName)] {
      Budget budget({});
      EXPECT_TRUE(FromJson(budget, json, true).has_value());
    };
  });
}

// Members of a message, tools, and chat_template_kwargs, whose names become variables.
TEST(JinjaGrowth, ConversationsHaveManyNames) {
  const auto parsed = ChatTemplate::Parse("{{ messages | length }}{{ name_7 }}");
  ASSERT_TRUE(parsed.has_value());
  for (const auto& name : {PlainName, CollidingName})
    for (const int place : {0, 1, 2})
      ExpectLinear("names in place " + std::to_string(place), kNames, [&](std::size_t n) {
        const std::string json = Members(n, name);
        const std::vector<ChatMessage> messages = {{"user", "a", place == 0 ? json : ""}};
        const ChatOptions options = {.tools_json = place == 1 ? "[" + json + "]" : "",
                                     .template_kwargs_json = place == 2 ? json : ""};
        return [&parsed, messages, options] {
          EXPECT_TRUE(parsed->Render(messages, options, "", "").has_value());
        };
      });
}

TEST(JinjaGrowth, TemplatesHaveManyNames) {
  struct Case {
    const char *front, *part, *back;
  };
  for (const Case& c :
       {Case{"", "{% set v@ = @ %}", "{{ v7 }}"},
        {"", "{% set v@ = @ %}{{ v@ }}", ""},
        {"{% macro f(z", ", v@=0", ") %}{{ v7 }}{% endmacro %}{{ f(1) }}"},
        {"{% macro f(z", ", v@", ") %}{{ z }}{% endmacro %}{{ f(1) }}"},
        {"{% macro f() %}{{ kwargs | length }}{% endmacro %}{{ f(z=0", ", v@=@", ") }}"},
        {"{% set d = {'z': 0", ", 'v@': @",
         "} %}{% macro f() %}{{ kwargs | length }}{% endmacro %}{{ f(**d) }}"},
        {"{% set ns = namespace() %}", "{% set ns.v@ = @ %}", "{{ ns.v7 }}"},
        {"{% set ns = namespace({'z': 0", ", 'v@': @", "}) %}{{ ns.v7 }}"},
        {"{{ dict(z=0", ", v@=@", ") | length }}"},
        {"{% with z=0", ", v@=@", " %}{{ v7 }}{% endwith %}"},
        {"{% for z", ", v@", " in [] %}{% endfor %}"},
        {"{{ '{z}'.format(z=0", ", v@=@", ") }}"},
        {"{{ [0", ", @", "] | unique | list | length }}"},
        {"{{ [0", ", 'v@'", "] | unique | list | length }}"},
        {"{% if false %}", "{% elif false %}{{ v@ }}", "{% endif %}"}})
    ExpectLinear(std::string(c.front) + c.part, {256, 1024}, [&](std::size_t n) {
      return [source = c.front + Numbered(n, c.part) + c.back] {
        const auto parsed = Got(Template::Parse(source));
        Budget budget({});
        EXPECT_TRUE(Works(parsed.Render(budget, {}, {})));
      };
    });
  // Places and arguments with names, both many.
  ExpectLinear("named places", {256, 1024}, [](std::size_t n) {
    return
        [source = "{{ '" + Numbered(n, "{v@}") + "'.format(z=0" + Numbered(n, ", v@=@") + ") }}"] {
          const auto parsed = Got(Template::Parse(source));
          Budget budget({});
          EXPECT_TRUE(parsed.Render(budget, {}, {}).has_value());
        };
  });
}

// ------------------------------------------------------------------ what a step is

// The bound of steps bounds the time only if no step is much work.
void ExpectLittleWorkPerStep(const std::string& source,
                             const std::function<std::vector<Variable>(Budget&)>& variables) {
  constexpr std::uint64_t kMost = 3000 * kBuildFactor;
  const auto parsed = Template::Parse(source);
  ASSERT_TRUE(parsed.has_value()) << source << parsed.error().message;
  std::size_t steps = 0;
  const std::uint64_t instructions = Instructions([&] {
    Budget budget({.steps = 100'000});
    [[maybe_unused]] const auto out = parsed->Render(budget, variables(budget), {});
    steps = budget.steps();
  });
  EXPECT_LE(instructions, kMost * steps)
      << source << ": " << instructions / steps << " instructions for each of " << steps;
}

// x and y: long texts; l: a list of many; d: a dictionary of many.
TEST(JinjaSteps, AreNeverMuchWork) {
  constexpr const char* kSources[] = {
      // one short operation on a long text
      "{{ 'b'.find(x) }}{{ 'b'.rfind(x) }}{{ x in 'b' }}{{ 'b'.count(x) }}",
      "{{ x.find(y) }}{{ x.rfind(y) }}{{ x.index('b') }}{{ y in x }}{{ x.count(y) }}",
      "{{ x.partition('c') | length }}{{ x.rpartition('c') | length }}",
      "{{ x.partition(y) | length }}{{ x.rpartition(y) | length }}",
      "{{ x.split('c') | length }}{{ x.rsplit('c') | length }}{{ x.rsplit('c', 3) | length }}",
      "{{ x.split() | length }}{{ x.split('a') | length }}{{ x.rsplit('a', 99999) | length }}",
      "{{ x.splitlines() | length }}{{ x.strip('b' * 100) | length }}{{ x.strip(x) | length }}",
      "{{ (' ' * 100000) | trim | length }}{{ (' ' * 100000).strip() }}{{ x.strip('a') }}",
      "{{ x.startswith(x) }}{{ x.endswith(x) }}{{ x.removeprefix(x) }}{{ x.removesuffix(x) }}",
      "{{ x | int }}{{ x | float }}{{ ('1' * 50000) | int }}{{ ('1' * 50000) | float }}",
      "{{ x is lower }}{{ x is upper }}{{ x is filter }}{{ x is test }}{{ x is sameas(x ~ '') }}",
      "{{ x.isalpha() }}{{ x | wordcount }}{{ x | title | length }}{{ x | capitalize | length }}",
      "{{ x | truncate(3) }}{{ x | truncate(90000) | length }}{{ x | reverse | length }}",
      "{{ x | replace('a', '') }}{{ x.replace(x, '') }}{{ x | indent | length }}",
      "{{ x == y }}{{ x < y }}{{ x != x }}{{ [x] == [x] }}{{ x | length }}{{ x[0] }}{{ x[5:7] }}",
      "{{ d.get(x) }}{{ d[x] is defined }}{{ x in d }}{{ {x: 1}[x] }}{{ d | attr(x) is defined }}",
      "{% set e = {x: 1, x: 2, x: 3, x: 4, x: 5, x: 6, x: 7, x: 8, x: 9, x: 10} %}",
      "{{ l | map(attribute=x) | list | length }}",
      "{{ '{}'.format(x) | length }}{{ '%s' % x | length }}{{ '%.1s' % x }}{{ x % () | length }}",
      "{{ [d] | tojson(indent='          ') | length }}{{ l | tojson(separators=(y, y)) | length "
      "}}",
      "{{ strftime_now(x) | length }}{{ x | e | length }}{{ (x | safe) ~ y | length }}",
      // many short ones
      "{% for i in range(3000) %}{{ 'b'.find(y) }}{% endfor %}",
      "{% for i in range(3000) %}{{ '%.300f' % 1.5 }}{{ 1.5 | round(200) }}{% endfor %}",
      "{% for i in range(300) %}{{ '{:.300f}{:>90}'.format(1e300, 1) }}{{ 1e300 }}{% endfor %}",
      "{% for i in range(300) %}{% set e = dict(d) %}{% endfor %}",
      "{% for i in range(300) %}{{ l | first }}{{ l | last }}{{ l | length }}{% endfor %}",
      "{% for i in range(300) %}{% set m = l + l %}{% set m = l[::-1] %}{% endfor %}",
      "{% for i in range(300) %}{{ l == l ~ '' }}{{ l | join | length }}{{ i in l }}{% endfor %}",
      "{% for i in l %}{{ loop.changed(i) }}{{ loop.cycle(1, 2) }}{{ loop.nextitem }}{% endfor %}",
      "{{ l | map('upper') | list | length }}{{ l | select('eq', 1) | list | length }}",
      "{{ l | groupby('x') | length }}{{ l | sort | length }}{{ l | batch(2) | list | length }}",
      "{{ l | unique | list | length }}{{ l | min }}{{ d | dictsort | length }}{{ d.items() | list "
      "}}",
      "{{ missing0 }}{% for i in range(3000) %}{{ missing }}{{ d.missing }}{{ i.missing }}{% "
      "endfor %}",
      "{% for i in range(999) %}{% set ns = namespace(d) %}{% endfor %}"};
  for (const char* const source : kSources)
    ExpectLittleWorkPerStep(source, [](Budget& budget) {
      Values list;
      DictionaryBuilder members(budget);
      for (std::size_t i = 0; i < 500; ++i) {
        list.push_back(TextValue(budget, PlainName(i)));
        members.Set(PlainName(i), Value(static_cast<std::int64_t>(i)));
      }
      return std::vector<Variable>{
          {"x", TextValue(budget, FromUtf8(std::string(100'000, 'a')))},
          {"y", TextValue(budget, FromUtf8(std::string(50'000, 'a') + "b"))},
          {"l", ListValue(budget, std::move(list))},
          {"d", members.Take()}};
    });
}

// A name that is looked for in many scopes, a macro with many parameters.
TEST(JinjaSteps, CountScopesAndParameters) {
  std::string scopes, ends;
  for (int i = 0; i < 150; ++i)
    scopes += "{% with z=0" + Numbered(20, ", v@=0") + " %}", ends += "{% endwith %}";
  for (const std::string& source :
       {scopes + "{% for i in range(1000) %}{{ range is defined }}{% endfor %}" + ends,
        "{% macro f(z" + Numbered(1000, ", v@") +
            ") %}{% endmacro %}{% for i in range(1000) %}{{ f() }}{% endfor %}"})
    ExpectLittleWorkPerStep(source, [](Budget&) { return std::vector<Variable>(); });
}

}  // namespace
}  // namespace foretoken::text::jinja
