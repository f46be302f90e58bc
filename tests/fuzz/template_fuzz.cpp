// SPDX-License-Identifier: Apache-2.0
// Random chat templates: each is parsed and rendered, or gives an error of one line; the bounds of
// its budget hold, and everything that it held is given back.
#include <cstring>
#include <string>

#include "base/check.h"
#include "text/jinja/template.h"
#include "text/jinja/values/json_text.h"

namespace {

using namespace foretoken::text::jinja;

constexpr std::string_view kSeeds[] = {
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m.content | trim + "
    "'<|im_end|>\\n' }}{% endfor %}",
    "{%- set ns = namespace(a=1) %}{% macro f(x, y=2) %}{{ x ~ y }}{{ caller() }}{% endmacro %}{% "
    "call f(1) %}b{% endcall %}",
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | "
    "tojson(indent=2) }}",
    "{% for x in range(9) if x % 2 recursive %}{{ loop.index }}{% else %}{% endfor %}{{ "
    "messages[::-1][0]['content'].split('b') }}",
    "{% filter upper %}{% set q %}a{% endset %}{{ '%5.2f|%s' % (1.5, q) }}{% endfilter %}{{ {'a': "
    "[1, none]}.items() | dictsort }}"};
constexpr std::string_view kContext =
    R"({"messages": [{"role": "user", "content": "ab\u00e9\ud83d\ude00"}, {"role": "assistant", "content": null}], "tools": [], "n": 3})";

void CheckError(const foretoken::Error& error) {
  FORETOKEN_CHECK(!error.message.empty() && error.message.size() < 3000);
  FORETOKEN_CHECK(error.message.find('\n') == std::string::npos);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  const std::string_view text = kSeeds[seed % std::size(kSeeds)];
  if (size >= 16 || max_size < text.size()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto parsed = Template::Parse({reinterpret_cast<const char*>(bytes), size});
  if (!parsed) return CheckError(parsed.error()), 0;
  const Limits limits{.steps = 20'000, .output_characters = 1 << 16, .memory_bytes = 1 << 22};
  Budget budget(limits);
  {
    const auto context = FromJson(budget, kContext, true);
    std::vector<Variable> variables;
    for (const auto& [name, value] : context->dictionary()->items)
      variables.push_back({ToUtf8(name.text()), value});
    const auto text = parsed->Render(budget, variables, {});
    if (!text) CheckError(text.error());
    FORETOKEN_CHECK(!text || text->size() <= limits.output_characters);
  }
  FORETOKEN_CHECK(budget.bytes_held() == 0);
  return 0;
}
