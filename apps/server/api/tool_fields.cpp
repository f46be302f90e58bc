// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/api/body_limits.h"

namespace foretoken::server {
namespace {

class ToolReader {
 public:
  ToolReader(JsonFields& fields, std::vector<std::string>& notices)
      : fields_(fields), notices_(notices) {}

  ToolFields Read() {
    const Json* const tools = fields_.Find("tools");
    const Json* const choice = fields_.Find("tool_choice");
    const bool says_several = fields_.Switch("parallel_tool_calls", read_.use.several);
    // A function that is asked for by name is called once.
    if (choice != nullptr && choice->is_object() && !says_several)
      read_.use.several = choice->at("type") == "allowed_tools";
    if (tools != nullptr && !tools->is_array())
      fields_.Bad("tools", "it is not a list; give a list of tools, or leave it out");
    if (fields_.failed()) return {};
    const bool none = choice != nullptr && *choice == "none";
    if (tools != nullptr && !tools->empty()) {
      if (none)
        notices_.emplace_back("tools: tool_choice is none, so the model is not told of them");
      else
        ReadList(*tools);
    }
    if (choice != nullptr && !none) ReadChoice(*choice);
    return fields_.failed() ? ToolFields() : std::move(read_);
  }

 private:
  // {"type": "function", "function": {"name", "parameters", ...}}, or all in one object.
  void ReadList(const Json& tools) {
    if (tools.size() > kMostTools)
      return fields_.Bad(
          "tools", fmt::format("{} tools are more than {}; give fewer", tools.size(), kMostTools));
    std::set<std::string> names, others;
    std::string kept;
    for (std::size_t i = 0; i < tools.size() && !fields_.failed(); ++i) {
      const std::string where = fmt::format("tools[{}]", i);
      if (!tools[i].is_object()) return fields_.Bad(where, "it is not an object; give one");
      const Json type = tools[i].at("type", "function");
      if (type != "function") {
        others.insert(JsonFields::Shown(type));
        continue;
      }
      const Json& function = tools[i].at("function", tools[i]);
      const Json& name = function.at("name");
      if (!name.is_string() || name.text().empty() || name.text().size() > kMostToolNameBytes)
        return fields_.Bad(
            where, fmt::format("it has no name of at most {} bytes; give one", kMostToolNameBytes));
      if (!names.insert(name.text()).second)
        return fields_.Bad(where, "another tool has its name; give it one of its own");
      const Json& parameters = function.at("parameters");
      if (!parameters.is_null() && !parameters.is_object())
        return fields_.Bad(where, "its parameters are not a JSON Schema; give one");
      calls::Tool tool{.name = name.text()};
      if (parameters.is_object() && !parameters.empty())
        tool.parameters_json = parameters.written();
      read_.use.tools.push_back(std::move(tool));
      kept.append(kept.empty() ? "" : ",").append(tools[i].written());
    }
    for (const std::string& type : others)
      notices_.push_back(
          fmt::format("tools: those of type {} are left out; models here call "
                      "functions",
                      type));
    if (!read_.use.tools.empty()) read_.json = others.empty() ? tools.written() : "[" + kept + "]";
  }

  void ReadChoice(const Json& choice) {
    if (choice == "auto") return;
    if (choice == "required" || choice == "any") {
      read_.use.required = true;
      return NeedTools();
    }
    const Json& type = choice.at("type");
    if (type == "function" || type == "tool") {
      const Json& function = choice.at("function", choice);
      read_.use.required = true;
      return Keep({function.at("name")});
    }
    if (type == "allowed_tools") {
      const Json& allowed = choice.at("allowed_tools", choice);
      const Json mode = allowed.is_object() ? allowed.at("mode", "auto") : Json();
      const Json& tools = allowed.at("tools");
      if ((mode == "auto" || mode == "required") && tools.is_array()) {
        read_.use.required = mode == "required";
        std::vector<Json> names;
        for (const Json& tool : tools) {
          const Json& function = tool.at("function", tool);
          names.push_back(function.at("name"));
        }
        return Keep(names);
      }
    }
    fields_.Bad("tool_choice", fmt::format("{} is not a choice; use none, auto, required, or "
                                           "{{\"type\": \"function\", \"function\": {{\"name\": "
                                           "...}}}}",
                                           JsonFields::Shown(choice)));
  }

  // Only these tools may be called.
  void Keep(const std::vector<Json>& names) {
    std::set<std::string> wanted;
    for (const Json& name : names) {
      const auto& tools = read_.use.tools;
      const bool known =
          name.is_string() && std::any_of(tools.begin(), tools.end(), [&](const calls::Tool& tool) {
            return tool.name == name.text();
          });
      if (!known)
        return fields_.Bad("tool_choice", fmt::format("{} is none of the tools; name one of them",
                                                      JsonFields::Shown(name)));
      wanted.insert(name.text());
    }
    std::erase_if(read_.use.tools,
                  [&](const calls::Tool& tool) { return !wanted.contains(tool.name); });
    NeedTools();
  }

  void NeedTools() {
    if (read_.use.tools.empty())
      fields_.Bad("tool_choice", "there are no tools; give some, or leave it out");
  }

  JsonFields& fields_;
  std::vector<std::string>& notices_;
  ToolFields read_;
};

}  // namespace

ToolFields ReadTools(JsonFields& fields, std::vector<std::string>& notices) {
  return ToolReader(fields, notices).Read();
}

}  // namespace foretoken::server
