// SPDX-License-Identifier: Apache-2.0
// foretoken/structured_output.h: grammars for answers that a program reads.
//
//   FORETOKEN_TRY(request.sampling.grammar, foretoken::JsonSchemaGrammar(schema));
//
// The grammars are GBNF for SamplingParameters.grammar that every engine takes. Equal arguments
// give equal grammars. Arguments may come from anyone: what is wrong or too large is an error, with
// its place. Cost: milliseconds for a schema of 100 KB.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

// JSON texts that a JSON Schema (draft 2020-12, or the older forms of its keywords) allows. Every
// text of the grammar is valid under the schema, but for oneOf, whose alternatives may overlap;
// not every valid text is of the grammar: members come in the order of `properties`, one space may
// stand behind , and :, and objects have no members but those of `properties` unless
// additionalProperties allows them.
//
//   any       type, enum, const, anyOf, oneOf (as anyOf), allOf, $ref into the schema itself
//   objects   properties, required, additionalProperties
//   arrays    items, prefixItems, minItems, maxItems
//   strings   minLength, maxLength, pattern (as RegexGrammar, but found anywhere unless anchored),
//             format date, time, date-time, uuid, ipv4, email; other formats do not constrain
//   numbers   minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf 1
//
// A keyword without `type` implies its type. Whole numbers have at most 16 digits, others 16 and 16
// behind the point, unless a bound has more; exponents have two and come only without bounds.
// Annotations and x- keywords are passed over, every other keyword is an error.
// Errors: kInvalidArgument (also a schema that no text fits), kUnsupported, kTooLarge.
[[nodiscard]] Result<std::string> JsonSchemaGrammar(std::string_view schema);

// Any JSON object.
std::string JsonGrammar();

// Texts that match as a whole. Literals, classes, . \d \D \w \W \s \S, groups, | and repetitions
// with their lazy forms; ^ and $ at the ends. Errors: what cannot be read, by its place;
// lookaround, backreferences, word boundaries and other constructs, by their names; kTooLarge.
[[nodiscard]] Result<std::string> RegexGrammar(std::string_view pattern);

// One of these texts. Errors: none of them, an empty one, one that is not UTF-8, more than 4096.
[[nodiscard]] Result<std::string> ChoiceGrammar(std::span<const std::string> choices);

// Whether engines take this GBNF. Errors: what is wrong with it, by its line; kTooLarge.
[[nodiscard]] Status CheckGrammar(std::string_view gbnf);

}  // namespace foretoken
