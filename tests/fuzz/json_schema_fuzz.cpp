// SPDX-License-Identifier: Apache-2.0
// Random JSON Schemas and regular expressions: each makes a grammar that compiles or gives an error
// of one line, and a random text of a schema's grammar is valid JSON.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json/json_reader.h"
#include "foretoken/structured_output.h"
#include "grammar/grammar.h"

namespace {

using foretoken::Result;
using foretoken::grammar::Grammar;
using foretoken::grammar::TokenTrie;

constexpr std::string_view kSeeds[] = {
    R"({"type":"object","properties":{"a":{"type":"integer","minimum":-5,"maximum":17},"b":{"enum":["x",1,null]}},"required":["b"],"additionalProperties":{"type":"number","exclusiveMinimum":0.5}})",
    R"({"$defs":{"n":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/$defs/n"},"minItems":1,"maxItems":3}]}},"$ref":"#/$defs/n"})",
    R"({"allOf":[{"properties":{"p":{"const":{"k":[1]}}}},{"required":["p"]}],"oneOf":[{"title":"t"},{"type":"string","minLength":2,"maxLength":4}]})",
    R"({"prefixItems":[{"pattern":"^[a-c]{2}|x\\d$"},{"format":"date"},{"type":["boolean","null"]}],"items":false})",
    R"({"type":"number","minimum":1e-3,"exclusiveMaximum":12.75})"};

void CheckError(const foretoken::Error& error) {
  FORETOKEN_CHECK(error.message.find("; ") != std::string::npos && error.message.size() < 1000);
  for (const char c : error.message) FORETOKEN_CHECK(c >= ' ' && c < '\x7f');
}

std::shared_ptr<const Grammar> Compiled(const Result<std::string>& gbnf) {
  static const auto trie = std::make_shared<const TokenTrie>(std::vector<std::string>{"a", ""},
                                                             std::vector<foretoken::Token>{1});
  if (!gbnf) return CheckError(gbnf.error()), nullptr;
  const auto grammar = Grammar::Compile(*gbnf, trie);
  if (!grammar) {  // it has too many ways to begin
    FORETOKEN_CHECK(grammar.error().code == foretoken::ErrorCode::kTooLarge);
    return nullptr;
  }
  return *grammar;
}

// Appends a random one of the bytes that may follow; ends where the text may end, or at 200 bytes.
void Walk(const Grammar& grammar, FuzzedDataProvider& data) {
  std::string text;
  Grammar::State state = grammar.Start();
  while (text.size() < 200) {
    if (!text.empty() && grammar.CanEnd(state) && data.ConsumeBool()) break;
    std::string followers;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const Grammar::State after = grammar.After(state, {&c, 1});
      if (after == Grammar::kUnknown) return;  // more than its budget holds
      if (after != Grammar::kOver) followers += c;
    }
    if (followers.empty()) break;
    text += followers[data.ConsumeIntegralInRange<std::size_t>(0, followers.size() - 1)];
    state = grammar.After(state, std::string_view(text).substr(text.size() - 1));
  }
  // Every text can be continued, or has ended.
  if (text.size() < 200) {
    FORETOKEN_CHECK(grammar.CanEnd(state));
    FORETOKEN_CHECK(foretoken::ReadJson(text).has_value());
  }
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

// The schema is the bytes before the first NUL; the rest are the random choices of the walk.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(bytes), size);
  const std::size_t end = std::min(all.find('\0'), size);
  const std::string schema(all.substr(0, end));
  Compiled(foretoken::RegexGrammar(schema));
  const auto gbnf = foretoken::JsonSchemaGrammar(schema);
  if (gbnf) FORETOKEN_CHECK(*gbnf == *foretoken::JsonSchemaGrammar(schema));
  const auto grammar = Compiled(gbnf);
  if (!grammar) return 0;
  FuzzedDataProvider data(bytes + end, size - end);
  for (int i = 0; i < 3; ++i) Walk(*grammar, data);
  return 0;
}
