// SPDX-License-Identifier: Apache-2.0
#include "attack/chat_maker.h"

#include <fmt/format.h>

#include <string_view>

#include "attack/colliding_names.h"

namespace foretoken::attack {
namespace {

constexpr std::string_view kNames[] = {"messages", "tools", "names",     "m",    "x",
                                       "y",        "ns",    "bos_token", "loop", "missing"};
constexpr std::string_view kTargets[] = {"x", "y", "ns.x", "ns.y", "x, y"};
constexpr std::string_view kLiterals[] = {
    "0",     "1",    "-1",   "7",      "1.5",  "99999",        "9223372036854775807",
    "1e308", "true", "none", "''",     "'a'",  "'a b\\n'",     "'<|im_start|>'",
    "'%s'",  "[]",   "{}",   "[1, 2]", "(1,)", "{'a': [1, 2]}"};
const std::vector<std::string> kMethods = Words(
    "split();split('a');rsplit('b', 2);splitlines();find('ab');rfind('a');count('a');strip();"
    "strip('ab ');replace('a', 'bb');replace('', 'a');partition('a');upper();title();"
    "startswith('a');endswith(('a', 'b'));join(['a', 'b']);items();keys();get('a');center(50);"
    "zfill(9);removeprefix('a');format(1, 2);isdigit()",
    ';');
const std::vector<std::string> kFilters = Words(
    "length;upper;trim;list;join;join(', ');tojson;tojson(indent=4);string;sort;unique | list;"
    "reverse | list;first;last;sum;batch(3) | list;slice(3) | list;groupby('role');"
    "map('upper') | list;map(attribute='content') | list;selectattr('role') | list;"
    "rejectattr('a') | list;dictsort;items | list;indent(8);wordcount;truncate(9);"
    "replace('a', 'b');e;int;float;abs;round;default('a');string | list",
    ';');
constexpr std::string_view kTests[] = {"defined", "none",     "string", "mapping", "iterable",
                                       "odd",     "sequence", "in [1]", "eq 1",    "sameas none"};
constexpr std::string_view kOperators[] = {" ~ ",  " + ",   " - ",  " * ",     " / ",
                                           " // ", " % ",   " ** ", " == ",    " < ",
                                           " in ", " and ", " or ", " not in "};

class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  std::string Statements(int depth) {
    std::string all;
    for (auto n = 1 + random_.Below(4); n > 0; --n) all += Statement(depth);
    return all;
  }

  // More than there is: of steps, memory, depth or output.
  std::string Bomb() {
    const std::string value = Expression(2);
    const auto n = 10 + random_.Below(400);
    switch (random_.Below(12)) {
      case 0:
        return "{% for a in range(99999) %}{% for b in range(99999) %}" + Output() +
               "{% endfor %}{% endfor %}";
      case 1:
        return "{% set ns.x = 'ab ' %}{% for a in range(60) %}{% set ns.x = ns.x ~ ns.x %}"
               "{% endfor %}{{ ns.x }}";
      case 2:
        return "{% set b = 'a b' * 99999 %}" + Again("{% set x %}{{ b }}", n) +
               Again("{% endset %}", n);
      case 3:
        return "{% set b = 'a b' * 99999 %}{{ b" + Again(" ~ b", n) + " }}";
      case 4:
        return "{% set b = 'a b\n' * 99999 %}{% set x = [" + Again("b.splitlines(), ", n) + "] %}";
      case 5:
        return "{% macro f(n) %}" + Output() + "{{ f(n + 1) }}{% endmacro %}{{ f(0) }}";
      case 6:
        return "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}";
      case 7:
        return "{% set ns.l = [] %}{% for a in range(99999) %}{% set ns.l = ns.l + [namespace(a=" +
               value + ")] %}{% endfor %}";
      case 8:
        return "{{ " + Again("(", n) + value + Again(")", n) + " }}" + Again("{% if x %}", n) +
               Again("{% endif %}", n);
      case 9:
        return "{{ ('a' * 999999).find('a' * 99999 ~ 'b') }}{{ ('ab' * 99999).replace('a', 'a' * "
               "999) }}";
      case 10:
        return "{{ 'a' * 16000000 }}";
      default:
        return "{% for a in range(9999) %}{{ a }}{{ messages[0].content }}{% endfor %}";
    }
  }

  static std::string Again(std::string_view part, std::uint64_t n) {
    std::string all;
    for (; n > 0; --n) all += part;
    return all;
  }

 private:
  std::string Picked(const auto& list) { return std::string(random_.Pick(list)); }
  std::string Output() { return "{{ " + Expression(2) + " }}"; }

  std::string Statement(int depth) {
    if (depth <= 0) return Output();
    const auto inside = [&] { return Statements(depth - 1); };
    switch (random_.Below(12)) {
      case 0:
        return "text <|im_end|>\n";
      case 1:
        return "{% for m in " + Expression(2) + (random_.OneIn(4) ? " if m" : "") +
               (random_.OneIn(8) ? " recursive %}" : " %}") + inside() + "{% else %}-{% endfor %}";
      case 2:
        return "{% if " + Expression(2) + " %}" + inside() + "{% else %}" + inside() +
               "{% endif %}";
      case 3:
        return "{% set " + Picked(kTargets) + " = " + Expression(3) + " %}";
      case 4:
        return "{% set x %}" + inside() + "{% endset %}";
      case 5:
        return "{% macro f(a, b=" + Picked(kLiterals) + ") %}" + inside() +
               "{{ caller() if caller }}{% endmacro %}{{ f(" + Expression(1) + ") }}{% call f(" +
               Expression(1) + ") %}" + inside() + "{% endcall %}";
      case 6:
        return "{% filter " + Picked(kFilters) + " %}" + inside() + "{% endfilter %}";
      case 7:
        return "{%- set ns = namespace(x=" + Expression(1) + ", y=[]) -%}";
      default:
        return Output();
    }
  }

  std::string Expression(int depth) {
    if (depth <= 0) return random_.OneIn(2) ? Picked(kNames) : Picked(kLiterals);
    const std::string a = Expression(depth - 1);
    switch (random_.Below(10)) {
      case 0:
        return "(" + a + Picked(kOperators) + Expression(depth - 1) + ")";
      case 1:
        return "(" + a + ")." + Picked(kMethods);
      case 2:
      case 3:
        return "(" + a + " | " + Picked(kFilters) + ")";
      case 4:
        return "(" + a + " is " + Picked(kTests) + ")";
      case 5:
        return "(" + a + ")[" + (random_.OneIn(2) ? Picked(kLiterals) : "1:-1:2") + "]";
      case 6:
        return "[" + a + ", " + Expression(depth - 1) + "]";
      case 7:
        return "{'a': " + a + ", " + Expression(depth - 1) + ": 1}";
      case 8:
        return "range(" + a + ")";
      default:
        return a;
    }
  }

  Random& random_;
};

constexpr std::string_view kParts[] = {
    "a",      "the ",   " ",       "\n",     "7",          "<|im_start|>", "<s>", "{{ 1 }}",
    "\u00e9", "\u4e16", "e\u0301", "\u2581", "\U0001F600", "\x01",         "'s"};

}  // namespace

std::string HostileTemplate(Random& random) {
  Maker maker(random);
  std::string text = "{% set ns = namespace(x=1, y=2, l=[]) %}" + maker.Statements(4);
  if (random.OneIn(6)) text += maker.Bomb();
  if (random.OneIn(12)) text += Maker::Again(maker.Statements(2), random.Below(300));
  if (random.OneIn(8))
    for (auto n = 1 + random.Below(4); n > 0; --n) {
      const auto at = static_cast<std::size_t>(random.Below(text.size()));
      random.OneIn(2) ? text.erase(at, 1) : text.insert(at, 1, "{}%'\"-#|"[random.Below(8)]);
    }
  return text;
}

std::string HostileText(Random& random, std::size_t most_bytes) {
  const auto size = static_cast<std::size_t>(random.Below(most_bytes + 1));
  const bool one_part = random.OneIn(3);
  const std::string_view part = random.Pick(kParts);
  std::string text;
  while (text.size() < size) text += one_part ? part : random.Pick(kParts);
  return text;
}

std::string HostileObject(Random& random) {
  const auto n =
      static_cast<std::size_t>(random.OneIn(8) ? random.Below(20'000) : random.Below(40));
  std::string members;
  const auto add = [&](const std::string& name, const std::string& value) {
    members += (members.empty() ? "\"" : ",\"") + name + "\":" + value;
  };
  switch (random.Below(6)) {
    case 0:
      for (std::size_t i = 0; i < n; ++i) add(fmt::format("name {}", i), "0");
      break;
    case 1:
      for (std::size_t i = 0; i < n % 1024; ++i) add(CollidingName(i), "0");
      break;
    case 2:
      add("x", Maker::Again("[", n) + Maker::Again("]", n));
      break;
    case 3:
      add("x", "[" + Maker::Again("{},", n) + "{}]");
      break;
    case 4:
      add("tool_calls", "[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":[1]}\"}}]");
      add("content", "null");
      break;
    default:
      add("names", "[\"a\", 1.5, null, {\"a\": \"b\"}]");
  }
  std::string object = "{" + members + "}";
  if (random.OneIn(16)) object.resize(static_cast<std::size_t>(random.Below(object.size())));
  return object;
}

}  // namespace foretoken::attack
