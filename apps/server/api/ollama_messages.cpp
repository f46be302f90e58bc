// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama_messages.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "server/api/json_member.h"

namespace foretoken::server {
namespace {

class OllamaMessages {
 public:
  explicit OllamaMessages(std::optional<ApiError>& error) : error_(error) {}

  std::string Translate(const Json& list, std::string_view raw) {
    const std::vector<std::string_view> texts = RawElements(raw);
    std::string out = "[";
    for (std::size_t i = 0; i < list.size() && !error_; ++i) {
      const std::string where = fmt::format("messages[{}]", i);
      if (!list[i].is_object()) {
        error_ = BadField(where, "it is not an object; give {\"role\": ..., \"content\": ...}");
        break;
      }
      out.append(i > 0 ? "," : "").append(Message(list[i], texts[i], where));
    }
    return out + "]";
  }

 private:
  std::string Message(const Json& message, std::string_view raw, const std::string& where) {
    JsonFields fields(message, where + ".", error_);
    std::string role, name, id;
    fields.Text("role", role);
    if (role.empty()) fields.Bad("role", "it is missing; use system, user, assistant or tool");
    const bool content = fields.Has("content");
    const Json* const thought = fields.FindForeign("thinking");
    const Json* const images = fields.Find("images");
    if (images != nullptr && !(images->is_array() && images->empty()))
      fields.Bad("images", "models here read and write text; leave it out",
                 "unsupported_parameter");
    fields.Text({"tool_name", "name"}, name);
    fields.Text("tool_call_id", id);
    const Json* const calls = fields.Find("tool_calls");
    [[maybe_unused]] const auto others = fields.Others();  // a mistyped name is an error
    std::string out = "{\"role\":" + Json(role).dump() + ",\"content\":";
    out += content ? RawMember(raw, {"content"}) : "\"\"";
    if (calls != nullptr && !(calls->is_array() && calls->empty()))
      out += Calls(*calls, RawMember(raw, {"tool_calls"}), where);
    if (thought != nullptr && thought->is_string())
      out.append(",\"reasoning_content\":").append(RawMember(raw, {"thinking"}));
    if (role == "tool" && id.empty()) id = IdOfResult(name);
    if (!id.empty()) out += ",\"tool_call_id\":" + Json(id).dump();
    if (!name.empty()) out += ",\"name\":" + Json(name).dump();
    return out + "}";
  }

  std::string Calls(const Json& calls, std::string_view raw, const std::string& where) {
    if (!calls.is_array()) {
      error_ = error_.value_or(BadField(where + ".tool_calls", "it is not a list; give one"));
      return {};
    }
    const std::vector<std::string_view> texts = RawElements(raw);
    open_.clear(), by_name_.clear(), next_ = 0;
    std::string out;
    for (std::size_t i = 0; i < calls.size() && !error_; ++i)
      out.append(i > 0 ? "," : ",\"tool_calls\":[")
          .append(Call(calls[i], texts[i], fmt::format("{}.tool_calls[{}]", where, i)));
    return out + "]";
  }

  std::string Call(const Json& call, std::string_view raw, const std::string& where) {
    const Json* const function =
        call.is_object() && call.contains("function") ? &call.at("function") : nullptr;
    if (function == nullptr || !function->is_object()) {
      error_ = BadField(where, "it has no function; give {\"function\": {\"name\": ...}}");
      return {};
    }
    JsonFields outer(call, where + ".", error_), fields(*function, where + ".function.", error_);
    std::string id, name;
    outer.Text("id", id);
    if (!fields.Text("name", name)) fields.Bad("name", "it is missing; give a tool's name");
    const bool arguments = fields.Object("arguments") != nullptr;
    if (id.empty()) id = fmt::format("call_{}", n_calls_++);
    open_.push_back(id);
    by_name_[name].push_back(id);
    return fmt::format(
        "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
        Json(id).dump(), Json(name).dump(),
        arguments ? RawMember(raw, {"function", "arguments"}) : "{}");
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

std::string MessagesOfOllama(const Json& list, std::string_view raw,
                             std::optional<ApiError>& error) {
  return OllamaMessages(error).Translate(list, raw);
}

}  // namespace foretoken::server
