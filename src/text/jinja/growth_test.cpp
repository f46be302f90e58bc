// SPDX-License-Identifier: Apache-2.0
// Templates come from files and texts from clients, so the work must grow no faster than their
// size.
#include "base/growth_testing.h"

#include <gtest/gtest.h>

#include "text/jinja/template.h"

namespace foretoken::text::jinja {
namespace {

constexpr Sizes kSizes = {4096, 16384};

TEST(JinjaGrowth, TemplatesAreParsed) {
  for (const char* const part :
       {"a", "{", "{{ x }}", "{# c #}", "{% if x %}a{% endif %}", "\n  {% set x = 1 %}\n",
        "{{ 'a' }}", "{%", "{#", "{{", "{% raw %}", "{{ x",
        "{{ [1, 2, {'a': -1.5e3}] | join(',') }}", " ", "\n", "{% -",
        "{{ a.b.c[0](x, y=1) is not defined and not x }}",
        "{% for x in y %}{{ x }}{% else %}{% endfor %}"})
    ExpectLinear(std::string("parses ") + part, kSizes, [&](std::size_t size) {
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
      ExpectLinear(std::string(source) + " of " + part, kSizes, [&](std::size_t size) {
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
    ExpectLinear(source, {1024, 4096}, [&](std::size_t size) {
      return [&parsed, size] {
        Budget budget({});
        Values messages;
        for (std::size_t i = 0; i < size; ++i) {
          DictionaryBuilder message;
          message.Set(budget, "role", TextValue(budget, "user"));
          message.Set(budget, "content", TextValue(budget, std::to_string(i)));
          messages.push_back(message.Take(budget));
        }
        const Value list = ListValue(budget, std::move(messages));
        [[maybe_unused]] const auto out = parsed->Render(budget, {{"x", list}}, {});
      };
    });
  }
}

}  // namespace
}  // namespace foretoken::text::jinja
