// SPDX-License-Identifier: Apache-2.0
#include "server/api/call_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json/json_reader.h"

namespace foretoken::server {
namespace {

// Nine letters and digits that an id leads to, always the same (FNV-1a, 64 bits).
std::string NineLetters(std::string_view id) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const auto is_letter = [&](char c) { return kLetters.find(c) != kLetters.npos; };
  if (id.size() == 9 && std::all_of(id.begin(), id.end(), is_letter)) return std::string(id);
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::string letters;
  for (int i = 0; i < 9; ++i, hash /= kLetters.size()) letters += kLetters[hash % kLetters.size()];
  return letters;
}

class CallIdWriter {
 public:
  explicit CallIdWriter(calls::CallIds form) : form_(form) {}

  void Write(ChatMessage& message) {
    auto members = ReadJson(message.members_json, {.keeps_text = true});
    if (!members) return;
    if (Json* const calls = members->find("tool_calls"))
      for (std::size_t i = 0; calls->is_array() && i < calls->size(); ++i) {
        Json& call = (*calls)[i];
        Replace(call.find("id"), call.at("function").at("name"));
      }
    Replace(members->find("tool_call_id"), {});
    message.members_json = members->written();
  }

 private:
  // name: of the tool, in a call.
  void Replace(Json* id, const Json& name) {
    if (id != nullptr && id->is_string() && !id->text().empty()) *id = IdFor(id->text(), name);
  }

  std::string IdFor(const std::string& id, const Json& name) {
    if (form_ == calls::CallIds::kNineLetters) return NineLetters(id);
    const auto known = numbered_.find(id);
    if (known != numbered_.end()) return known->second;
    if (name.is_null()) return id;  // a result of no call
    std::string numbered =
        fmt::format("functions.{}:{}", name.is_string() ? name.text() : "", numbered_.size());
    return numbered_.emplace(id, std::move(numbered)).first->second;
  }

  const calls::CallIds form_;
  std::map<std::string, std::string> numbered_;
};

}  // namespace

void WriteCallIds(calls::CallIds form, std::vector<ChatMessage>& messages) {
  if (form == calls::CallIds::kAny) return;
  CallIdWriter writer(form);
  for (ChatMessage& message : messages) writer.Write(message);
}

}  // namespace foretoken::server
