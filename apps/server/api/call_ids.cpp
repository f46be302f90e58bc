// SPDX-License-Identifier: Apache-2.0
#include "server/api/call_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "server/api/json_member.h"
#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

// The text of a JSON string; "" if it is none.
std::string TextOfJson(std::string_view raw) {
  const Json json = Json::parse(raw, nullptr, false);
  return json.is_string() ? json.get<std::string>() : std::string();
}

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
    std::string& members = message.members_json;
    if (members.empty()) return;
    written_.clear();
    at_ = 0;
    if (const std::string_view calls = RawMember(members, {"tool_calls"}); calls.starts_with('['))
      for (const std::string_view call : RawElements(calls))
        if (call.starts_with('{'))
          Replace(members, RawMember(call, {"id"}), RawMember(call, {"function", "name"}));
    Replace(members, RawMember(members, {"tool_call_id"}), {});
    if (at_ > 0) members = written_ + members.substr(at_);
  }

 private:
  // name: of the tool, in a call. The ids come in the order of the text.
  void Replace(std::string_view members, std::string_view raw_id, std::string_view raw_name) {
    const std::string id = TextOfJson(raw_id);
    if (id.empty()) return;
    const auto begin = static_cast<std::size_t>(raw_id.data() - members.data());
    if (begin < at_) return;
    written_ += members.substr(at_, begin - at_);
    written_ += QuotedText(IdFor(id, raw_name));
    at_ = begin + raw_id.size();
  }

  std::string IdFor(const std::string& id, std::string_view raw_name) {
    if (form_ == calls::CallIds::kNineLetters) return NineLetters(id);
    const auto known = numbered_.find(id);
    if (known != numbered_.end()) return known->second;
    if (raw_name.empty()) return id;  // a result of no call
    std::string numbered = fmt::format("functions.{}:{}", TextOfJson(raw_name), numbered_.size());
    return numbered_.emplace(id, std::move(numbered)).first->second;
  }

  const calls::CallIds form_;
  std::map<std::string, std::string> numbered_;
  std::string written_;  // of the message at hand, up to at_
  std::size_t at_ = 0;
};

}  // namespace

void WriteCallIds(calls::CallIds form, std::vector<ChatMessage>& messages) {
  if (form == calls::CallIds::kAny) return;
  CallIdWriter writer(form);
  for (ChatMessage& message : messages) writer.Write(message);
}

}  // namespace foretoken::server
