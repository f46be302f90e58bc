// SPDX-License-Identifier: Apache-2.0
// Random chat templates: each is parsed and rendered, or gives an error of one line; the bounds of
// its budget hold, and everything that it held is given back. Behind the template, each behind a
// zero byte, an input may have its variables, its tools, other members of a message, and a message.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "foretoken/cancellation.h"
#include "text/chat_template.h"
#include "text/jinja/template.h"
#include "text/jinja/values/json_text.h"

namespace {

using namespace foretoken::text::jinja;
using std::string_view_literals::operator""sv;

constexpr std::string_view kSeeds[] = {
    "{% for k in x %}{{ k ~ x[k] }}{% endfor %}{{ tools | tojson }}{{ messages | tojson }}\0"
    "{\"x\": {\"a\": 1, \"b\": [null]}}\0[{\"type\": \"function\"}]\0"
    "{\"tool_calls\": [{\"function\": {\"arguments\": \"{}\"}}]}\0text"sv,
    "{{ messages[0].content.split() }}{{ x }}\0{\"x\": [[[[{\"\": 1e9}]]]]}\0\0{\"name\": \"a\"}\0a b"sv,
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

// The template, its variables, tools, a message's other members, the message.
std::array<std::string, 5> FieldsOf(std::string_view input) {
  std::array<std::string, 5> fields;
  for (std::string& field : fields) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    field = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return fields;
}

void CheckError(const foretoken::Error& error) {
  FORETOKEN_CHECK(!error.message.empty() && error.message.size() < 3000);
  FORETOKEN_CHECK(error.message.find('\n') == std::string::npos);
}

// As a server writes a conversation. The scope ends it after about 20,000 steps.
void WriteConversation(const std::array<std::string, 5>& fields) {
  const auto parsed = foretoken::text::ChatTemplate::Parse(fields[0]);
  if (!parsed) return CheckError(parsed.error());
  int n_asked = 0;
  const foretoken::CancellationScope scope([&] { return ++n_asked >= 5; });
  const std::vector<foretoken::ChatMessage> messages = {{"user", fields[4], fields[3]},
                                                        {"assistant", "b"}};
  const auto written = parsed->Render(
      messages,
      {.tools_json = fields[2], .template_kwargs_json = fields[1], .max_memory_bytes = 1 << 22},
      "<s>", "</s>");
  if (!written) return CheckError(written.error());
  FORETOKEN_CHECK(n_asked < 5);
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
  const auto fields = FieldsOf({reinterpret_cast<const char*>(bytes), size});
  WriteConversation(fields);
  const auto parsed = Template::Parse(fields[0]);
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
