// SPDX-License-Identifier: Apache-2.0
// calls/value_grammar.h: GBNF of arguments that are written in a notation that is not JSON.
//
// The values are those that JsonSchemaGrammar allows: members come in one order, required ones always,
// others may be left out. Members that a schema allows without a name come only where it names none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_use.h"
#include "grammar/pattern/gbnf_writer.h"

namespace foretoken::calls {

// What a schema says of a text.
struct TextLimits {
  int least = 0, most = grammar::GbnfWriter::kNoEnd;  // characters
  std::optional<std::string> pattern = {};            // which keeps the lengths
};

// How a form writes what differs from JSON; brackets and numbers are as there. Its parts belong to
// one writer, which must outlive it.
class ValueNotation {
 public:
  using Part = grammar::GbnfWriter::Part;
  // A rule that a writer cannot write: what it has under this name stands for ForeignRules.
  static constexpr std::string_view kForeign = "foreign";

  virtual ~ValueNotation() = default;
  virtual std::string_view Null() const = 0;
  virtual std::string_view Boolean(bool value) const = 0;
  // A text. AnyOf of nothing: the notation cannot write it.
  virtual Part Text(std::string_view text) = 0;
  virtual Part AnyText() = 0;
  // Nothing: the limits cannot be followed.
  virtual std::optional<Part> TextWithin(const TextLimits& limits) = 0;
  // A key with what stands between it and its value. argument: of the arguments themselves.
  virtual Part Key(std::string_view name, bool argument) = 0;
  virtual Part AnyKey(bool argument) = 0;
  // Whether members are sorted by their names; otherwise the schema's order counts.
  virtual bool sorts() const = 0;
  virtual std::string ForeignRules() const { return {}; }
};

using MakeNotation = std::function<std::unique_ptr<ValueNotation>(grammar::GbnfWriter& writer)>;

// The rules of a tool's arguments without the brackets around them, with `prefix` root as the first;
// a notice where its schema cannot be followed.
std::string NotatedArguments(const Tool& tool, std::string_view prefix, const MakeNotation& make,
                             std::vector<std::string>& notices);

}  // namespace foretoken::calls
