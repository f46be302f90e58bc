// SPDX-License-Identifier: Apache-2.0
#include "calls/text_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "calls/answer_grammar.h"
#include "foretoken/structured_output.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls {
namespace {

using grammar::JsonTree;

// The rules of a value that is written as it is, with what follows it.
class TextValue {
 public:
  TextValue(const Tool& tool, const Parameter& parameter, const std::string& prefix,
            const TextEnd& end, std::vector<std::string>& notices)
      : tool_(tool), parameter_(parameter), prefix_(prefix), end_(end), notices_(notices) {}

  std::string Rules() const {
    const auto schema = JsonTree::Parse(parameter_.schema);
    if (!schema) return Free();
    if (const int values = schema->Find(JsonTree::kRoot, "enum"); values >= 0)
      return OneOf(*schema, schema->Children(values));
    if (const int value = schema->Find(JsonTree::kRoot, "const"); value >= 0)
      return OneOf(*schema, {value});
    if (const int pattern = schema->Find(JsonTree::kRoot, "pattern"); pattern >= 0)
      return Matching(schema->Text(pattern));
    const auto least = NumberOf(*schema, "minLength"), most = NumberOf(*schema, "maxLength");
    return least || most ? OfLength(least.value_or(0), most) : Free();
  }

 private:
  static std::optional<int> NumberOf(const JsonTree& schema, std::string_view name) {
    const int node = schema.Find(JsonTree::kRoot, name);
    if (node < 0) return std::nullopt;
    const std::string text = schema.Text(node);
    int number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number < 0)
      return std::nullopt;
    return number;
  }

  std::string Is(std::string_view part) const {
    return fmt::format("{}value ::= ({}) {}\n", prefix_, part, end_.items);
  }
  std::string Free() const {
    return end_.free(prefix_ + "text") + fmt::format("{}value ::= {}text-0\n", prefix_, prefix_);
  }
  std::string OneOf(const JsonTree& schema, const std::vector<int>& values) const {
    std::string ways;
    for (const int value : values) ways += (ways.empty() ? "" : " | ") + Quoted(schema.Text(value));
    return Is(ways);
  }
  // A line without <, so that its length is plain to see.
  std::string OfLength(int least, std::optional<int> most) const {
    constexpr int kMost = 2048;
    if (least > kMost || most.value_or(0) > kMost) return Unfollowed("its length");
    return Is(fmt::format("[^<\\x00-\\x1F]{{{},{}}}", least,
                          most ? std::to_string(std::max(least, *most)) : ""));
  }
  // JSON Schema's patterns match anywhere unless they are anchored.
  std::string Matching(std::string pattern) const {
    if (!pattern.starts_with('^')) pattern.insert(0, ".*");
    if (!pattern.ends_with('$')) pattern += ".*";
    const auto grammar = RegexGrammar(pattern);
    if (!grammar) return Unfollowed("its pattern");
    return Prefixed(*grammar, prefix_ + "pattern-") + Is(prefix_ + "pattern-root");
  }
  std::string Unfollowed(std::string_view what) const {
    notices_.push_back(fmt::format("tools: {} of {} may be any text, because {} is not followed",
                                   Shown(parameter_.name), Shown(tool_.name), what));
    return Free();
  }

  const Tool& tool_;
  const Parameter& parameter_;
  const std::string& prefix_;
  const TextEnd& end_;
  std::vector<std::string>& notices_;
};

}  // namespace

std::string TextValueRules(const Tool& tool, const Parameter& parameter, const std::string& prefix,
                           const TextEnd& end, std::vector<std::string>& notices) {
  return TextValue(tool, parameter, prefix, end, notices).Rules();
}

}  // namespace foretoken::calls
