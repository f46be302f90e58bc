// SPDX-License-Identifier: Apache-2.0
// calls/json_arguments.h: writes the arguments of a call as a JSON object, from the values of a
// notation that is not JSON, while they come.
//
// Whatever comes, what is written is the beginning of a JSON object, and the whole of one once the
// arguments have ended. What cannot stand where it comes is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_use.h"

namespace foretoken::calls {

class JsonArguments {
 public:
  // names: of arguments that come without one, in order.
  explicit JsonArguments(std::vector<std::string> names = {}) : names_(std::move(names)) {}

  // What is next may be a key. In the arguments themselves it is the name of one.
  bool before_key() const { return at_ == At::kItem && Innermost() != Kind::kList; }
  bool in_arguments() const { return n_left_out_ == 0 && kinds_.size() == 1; }
  // A key came, or a value without one.
  bool has_key() const { return at_ == At::kKey; }

  // A text: its parts are the inside of a JSON string.
  void BeginText(std::vector<AnswerPart>& parts);
  void AddText(std::string_view inside, std::vector<AnswerPart>& parts);
  void EndText(std::vector<AnswerPart>& parts);
  // Characters without quotes: a number, true, null, ..., or else a text.
  void Word(std::string_view word, std::vector<AnswerPart>& parts);
  // Between a key and its value.
  void Separator(std::vector<AnswerPart>& parts);
  void Comma(std::vector<AnswerPart>& parts);
  // A list, or else an object, begins.
  void Open(bool list, std::vector<AnswerPart>& parts);
  // The innermost list or object ends. True: the arguments have ended.
  bool Close(std::vector<AnswerPart>& parts);

 private:
  enum class Kind : char { kArguments, kObject, kList };
  // Where the innermost one is: before an item, behind what may be a key, before the value of a key,
  // behind an item.
  enum class At { kItem, kKey, kValue, kBehind };

  Kind Innermost() const { return kinds_.back(); }
  bool BeginValue(std::vector<AnswerPart>& parts);
  void BeginItem(std::vector<AnswerPart>& parts);
  void BeginMember(std::string_view key, std::vector<AnswerPart>& parts);
  void BeginUnnamed(std::vector<AnswerPart>& parts);
  void EndItem(std::vector<AnswerPart>& parts);

  std::vector<std::string> names_;
  std::size_t n_unnamed_ = 0;
  std::vector<Kind> kinds_ = {Kind::kArguments};
  At at_ = At::kItem;
  bool first_ = true;           // the innermost one has no item yet
  std::size_t n_left_out_ = 0;  // open lists and objects that are left out
  bool passes_on_ = false;      // the text at hand is a value
  bool collects_ = false;       // it may be a key
  std::string key_;             // the inside of a JSON string
  std::string key_value_;       // the JSON that it is if it is a value
};

}  // namespace foretoken::calls
