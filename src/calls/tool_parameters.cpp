// SPDX-License-Identifier: Apache-2.0
#include "calls/tool_parameters.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/control_text.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls {

using grammar::JsonNode;
using grammar::JsonTree;

std::vector<Parameter> ParametersOf(const Tool& tool) {
  std::vector<Parameter> parameters;
  const auto tree = JsonTree::Parse(tool.parameters_json);
  if (!tree) return parameters;
  const int properties = tree->Find(JsonTree::kRoot, "properties");
  const int required = tree->Find(JsonTree::kRoot, "required");
  if (properties < 0) return parameters;
  std::set<std::string_view> needed;
  if (required >= 0)
    for (const int name : (*tree)[required].children) needed.insert((*tree)[name].text);
  const JsonNode& all = (*tree)[properties];
  for (std::size_t i = 0; i < all.keys.size(); ++i) {
    const int type = tree->Find(all.children[i], "type");
    Parameter parameter{.name = all.keys[i], .schema = tree->Compact(all.children[i])};
    if (type >= 0)
      parameter.is_text =
          (*tree)[type].kind != JsonNode::Kind::kString || (*tree)[type].text == "string";
    parameter.required = needed.contains(parameter.name);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::string InsideOfJsonString(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == kControlBegin || c == kControlEnd) continue;
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace foretoken::calls
