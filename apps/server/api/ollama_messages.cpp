// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama_messages.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace foretoken::server {
namespace {

class OllamaMessages {
 public:
  explicit OllamaMessages(std::optional<ApiError>& error) : error_(error) {}

  Json Translate(const Json& list) {
    Json out = Json::array();
    for (std::size_t i = 0; i < list.size() && !error_; ++i) {
      const std::string where = fmt::format("messages[{}]", i);
      if (!list[i].is_object()) {
        error_ = BadField(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
        break;
      }
      out.push_back(Message(list[i], where));
    }
    return out;
  }

 private:
  Json Message(const Json& message, const std::string& where) {
    JsonFields fields(message, where + ".", error_);
    std::string role, name, id;
    fields.Text("role", role);
    if (role.empty()) fields.Bad("role", "it is missing; use system, user, assistant or tool");
    const Json* const content = fields.Find("content");
    const Json* const thought = fields.FindForeign("thinking");
    const Json* const images = fields.Find("images");
    if (images != nullptr && !(images->is_array() && images->empty()))
      fields.Bad("images", "models here read and write text; leave it out",
                 "unsupported_parameter");
    fields.Text({"tool_name", "name"}, name);
    fields.Text("tool_call_id", id);
    const Json* const calls = fields.Find("tool_calls");
    [[maybe_unused]] const auto others = fields.Others();  // a mistyped name is an error
    Json out = {{"role", role}, {"content", content != nullptr ? *content : Json("")}};
    if (calls != nullptr && !(calls->is_array() && calls->empty()))
      out["tool_calls"] = Calls(*calls, where);
    if (thought != nullptr && thought->is_string()) out["reasoning_content"] = *thought;
    if (role == "tool" && id.empty()) id = IdOfResult(name);
    if (!id.empty()) out["tool_call_id"] = id;
    if (!name.empty()) out["name"] = name;
    return out;
  }

  Json Calls(const Json& calls, const std::string& where) {
    if (!calls.is_array()) {
      error_ = error_.value_or(BadField(where + ".tool_calls", "it is not a list; give one"));
      return {};
    }
    open_.clear(), by_name_.clear(), next_ = 0;
    Json out = Json::array();
    for (std::size_t i = 0; i < calls.size() && !error_; ++i)
      out.push_back(Call(calls[i], fmt::format("{}.tool_calls[{}]", where, i)));
    return out;
  }

  Json Call(const Json& call, const std::string& where) {
    const Json& function = call.at("function");
    if (!function.is_object()) {
      error_ = BadField(where, "it has no function; give {\"function\": {\"name\": ...}}");
      return {};
    }
    JsonFields outer(call, where + ".", error_), fields(function, where + ".function.", error_);
    std::string id, name;
    outer.Text("id", id);
    if (!fields.Text("name", name)) fields.Bad("name", "it is missing; give a tool's name");
    const Json* const arguments = fields.Object("arguments");
    if (id.empty()) id = fmt::format("call_{}", n_calls_++);
    open_.push_back(id);
    by_name_[name].push_back(id);
    return {{"id", id},
            {"type", "function"},
            {"function",
             {{"name", name}, {"arguments", arguments != nullptr ? *arguments : Json::object()}}}};
  }

  // Results come in the order of the calls, or name their tool. "": there is no such call.
  std::string IdOfResult(const std::string& name) {
    if (name.empty()) return next_ < open_.size() ? open_[next_++] : std::string();
    const auto found = by_name_.find(name);
    if (found == by_name_.end() || found->second.empty()) return {};
    std::string id = std::move(found->second.front());
    found->second.pop_front();
    return id;
  }

  std::optional<ApiError>& error_;
  std::size_t n_calls_ = 0;
  // The calls of the last message that has some.
  std::vector<std::string> open_;
  std::map<std::string, std::deque<std::string>> by_name_;
  std::size_t next_ = 0;
};

}  // namespace

Json MessagesOfOllama(const Json& list, std::optional<ApiError>& error) {
  return OllamaMessages(error).Translate(list);
}

}  // namespace foretoken::server
