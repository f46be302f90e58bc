// SPDX-License-Identifier: Apache-2.0
// calls/loose_arguments.h: reads arguments in a notation that is like JSON, and writes JSON.
//
// Python's: (city="Rome", days=2, exact=True, tags=['a']); Gemma's: {city:<|"|>Rome<|"|>,days:2}.
// Keys may be bare words. Strings are quoted as Python quotes them, or stand between two marks as
// they are. True, False and None are JSON's; a word that is no JSON is a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/marked_text.h"
#include "calls/tool_parameters.h"

namespace foretoken::calls {

class LooseArguments {
 public:
  // quote: the mark around strings; "": there is none.
  explicit LooseArguments(std::string quote);

  // Begins behind the opening bracket. parameters: the names of arguments that have none, in order.
  void Begin(std::vector<Parameter> parameters, std::vector<AnswerPart>& parts);
  // Reads the next character. True: it closed the arguments.
  bool Read(char c, std::vector<AnswerPart>& parts);

 private:
  // kBehind: behind a value.
  enum class At { kKey, kValue, kWord, kString, kMarked, kBehind };
  struct Level {
    bool object = false;
    int n = 0;  // members or elements
  };

  void ReadKey(char c, std::vector<AnswerPart>& parts);
  void ReadValue(char c, std::vector<AnswerPart>& parts);
  void ReadWord(char c, std::vector<AnswerPart>& parts);
  void ReadString(char c, std::vector<AnswerPart>& parts);
  void ReadEscape(char c, std::vector<AnswerPart>& parts);
  void ReadMarked(char c, std::vector<AnswerPart>& parts);
  void ReadBehind(char c, std::vector<AnswerPart>& parts);

  void BeginValue(std::vector<AnswerPart>& parts);
  void AddKey(std::string_view key, std::vector<AnswerPart>& parts);
  void AddPosition(std::vector<AnswerPart>& parts);
  void AddWord(std::vector<AnswerPart>& parts);
  void EndString(std::vector<AnswerPart>& parts);
  void Open(bool object, std::vector<AnswerPart>& parts);
  void Close(std::vector<AnswerPart>& parts);
  void Say(std::string_view json, std::vector<AnswerPart>& parts);

  const std::string quote_;
  MarkFinder quote_end_;
  std::vector<Parameter> parameters_;
  std::vector<Level> levels_;
  At at_ = At::kKey;
  bool of_key_ = false;  // the string at hand is a key
  char end_ = '"';       // of the string
  std::string word_;     // a bare word, a key, or the beginning of a mark
  std::string escape_;   // the characters of an escape so far
};

}  // namespace foretoken::calls
