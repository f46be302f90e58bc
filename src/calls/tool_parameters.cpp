// SPDX-License-Identifier: Apache-2.0
#include "calls/tool_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/control_text.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls {

using grammar::JsonTree;

namespace {

constexpr int kMostSteps = 8;  // from reference to reference, and of alternatives in alternatives

// Where the references of a schema within the tool's lead.
int Followed(const JsonTree& tree, int schema) {
  for (int step = 0; step < kMostSteps; ++step) {
    const int ref = tree.Find(schema, "$ref");
    if (ref < 0 || !tree.Text(ref).starts_with('#')) break;
    const int target = tree.Resolve(tree.Text(ref).substr(1));
    if (target < 0) break;
    schema = target;
  }
  return schema;
}

// Whether a value of the schema may be a text; true where the schema does not tell.
bool MayBeText(const JsonTree& tree, int schema, int depth = 0) {
  schema = Followed(tree, schema);
  if (depth > kMostSteps) return true;
  const auto any = [&](int list, const auto& holds) {
    const std::vector<int>& all = tree.Children(list);
    return std::any_of(all.begin(), all.end(), holds);
  };
  if (const int type = tree.Find(schema, "type"); type >= 0)
    return tree[type].is_string() ? tree[type] == "string"
                                  : any(type, [&](int name) { return tree[name] == "string"; });
  if (const int value = tree.Find(schema, "const"); value >= 0) return tree[value].is_string();
  if (const int values = tree.Find(schema, "enum"); values >= 0)
    return any(values, [&](int value) { return tree[value].is_string(); });
  for (const char* const key : {"anyOf", "oneOf"})
    if (const int ways = tree.Find(schema, key); ways >= 0)
      return any(ways, [&](int way) { return MayBeText(tree, way, depth + 1); });
  return tree.Find(schema, "properties") < 0 && tree.Find(schema, "items") < 0;
}

// The bytes of definitions that are copied for the parameters of a tool.
constexpr std::size_t kMostCopied = std::size_t{1} << 20;

// A parameter's schema with the definitions of the tool's, where it may refer to them. `room`: bytes
// that may still be copied; without it, what it refers to is not found.
std::string SchemaOf(const JsonTree& tree, int schema, std::size_t& room) {
  std::string text = tree.Compact(schema);
  if (!text.starts_with('{') || text.find("\"$ref\"") == text.npos) return text;
  for (const char* const key : {"$defs", "definitions"})
    if (const int all = tree.Find(JsonTree::kRoot, key);
        room > 0 && all >= 0 && tree.Find(schema, key) < 0) {
      const std::string definitions = fmt::format("\"{}\":{},", key, tree.Compact(all));
      text.insert(1, definitions);
      room -= std::min(room, definitions.size());
    }
  return text;
}

}  // namespace

std::vector<Parameter> ParametersOf(const Tool& tool) {
  std::vector<Parameter> parameters;
  const auto tree = JsonTree::Parse(tool.parameters_json);
  if (!tree) return parameters;
  const int properties = tree->Find(JsonTree::kRoot, "properties");
  const int required = tree->Find(JsonTree::kRoot, "required");
  if (properties < 0) return parameters;
  std::set<std::string> needed;
  if (required >= 0)
    for (const int name : tree->Children(required)) needed.insert(tree->Text(name));
  const auto all = (*tree)[properties].members();
  std::size_t room = kMostCopied;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int schema = Followed(*tree, tree->Children(properties)[i]);
    parameters.push_back({.name = all[i].name,
                          .schema = SchemaOf(*tree, schema, room),
                          .is_text = MayBeText(*tree, schema),
                          .required = needed.contains(all[i].name)});
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
