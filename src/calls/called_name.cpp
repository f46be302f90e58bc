// SPDX-License-Identifier: Apache-2.0
#include "calls/called_name.h"

#include <algorithm>
#include <utility>

#include "base/control_text.h"
#include "base/json/json.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls {
namespace {

constexpr std::size_t kMostCalled = std::size_t{1} << 16;  // bytes of a name

bool IsPlainInName(char c) {
  if (c == kControlBegin || c == kControlEnd) return false;
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

std::string PlainOrQuoted(std::string_view name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), IsPlainInName);
  return plain ? std::string(name) : QuotedJson(name);
}

CalledName::State CalledName::Read(char c) {
  const bool quoted = written_.starts_with('"');
  if (c == bracket_ && (closed_ || (!quoted && !written_.empty()))) {
    if (!quoted) return State::kRead;
    const auto text = grammar::JsonTree::Parse(written_);
    if (!text) return State::kOther;
    const std::string name = (*text)[grammar::JsonTree::kRoot].text();
    if (PlainOrQuoted(name) != written_) return State::kOther;
    written_ = name;
    return State::kRead;
  }
  const bool fits =
      quoted ? !closed_ && c != kControlBegin : IsPlainInName(c) || (written_.empty() && c == '"');
  if (!fits || written_.size() == kMostCalled) return State::kOther;
  closed_ = quoted && c == '"' && !escaped_;
  escaped_ = quoted && c == '\\' && !escaped_;
  written_ += c;
  return State::kOpen;
}

const Tool* CalledName::ToolIn(const std::vector<Tool>& tools) const {
  for (const Tool& tool : tools)
    if (tool.name == written_) return &tool;
  return nullptr;
}

}  // namespace foretoken::calls
