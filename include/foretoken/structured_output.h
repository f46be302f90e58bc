// SPDX-License-Identifier: Apache-2.0
// foretoken/structured_output.h: grammars for answers that a program parses.
//
//   FORETOKEN_TRY(request.sampling.grammar, foretoken::JsonSchemaGrammar(schema));
//
// The results are GBNF for SamplingParameters.grammar, which every engine accepts. Equal arguments
// give equal grammars. Arguments may come from anyone: what is wrong or too large is an error, with
// its place. Cost: milliseconds for a schema of 100 KB; a CancellationScope ends it with kStopped.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretoken/result.h"

namespace foretoken {

// JSON texts that a JSON Schema (draft 2020-12, or the older forms of its keywords) allows. Every
// text of the grammar is valid under the schema, except for oneOf, whose alternatives may overlap.
// Not every valid text follows the grammar: members come in the order of `properties`, one space
// may follow , and :, and objects have no other members unless additionalProperties allows them.
//
//   any       type, enum, const, anyOf, oneOf (as anyOf), allOf, $ref into the schema itself
//   objects   properties, required, additionalProperties
//   arrays    items, prefixItems, minItems, maxItems
//   strings   minLength, maxLength, pattern (as RegexGrammar, but found anywhere unless anchored),
//             format date, time, date-time, uuid, ipv4, email; other formats do not constrain
//   numbers   minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf 1
//
// A keyword without `type` implies its type. Whole numbers have at most 16 digits, others 16 and 16
// behind the point, unless a bound has more; exponents have two digits and come only without
// bounds. Annotations and x- keywords are ignored, every other keyword is an error. Errors:
// kInvalidArgument (also for a schema that no text fits), kUnsupported, kTooLarge.
[[nodiscard]] Result<std::string> JsonSchemaGrammar(std::string_view schema);

// Any JSON object. Empty if a CancellationScope ended it.
std::string JsonGrammar();

// Texts that match as a whole. Supported: literals, classes, . \d \D \w \W \s \S, groups, | and
// repetitions with their lazy forms; ^ and $ at the ends. Errors: syntax errors, with their place;
// lookaround, backreferences, word boundaries and other constructs, by name; kTooLarge.
[[nodiscard]] Result<std::string> RegexGrammar(std::string_view pattern);

// One of these texts. Errors: no texts, an empty one, one that is not UTF-8, more than 4096.
[[nodiscard]] Result<std::string> ChoiceGrammar(std::span<const std::string> choices);

// Whether engines accept this GBNF. Errors: what is wrong with it, with the line; kTooLarge.
[[nodiscard]] Status CheckGrammar(std::string_view gbnf);

}  // namespace foretoken
