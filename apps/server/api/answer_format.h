// SPDX-License-Identifier: Apache-2.0
// server/api/answer_format.h: the fields for the form of an answer, as one grammar.
//
// OpenAI's response_format, llama.cpp's json_schema and grammar, vLLM's structured_outputs and
// guided_json, guided_regex, guided_choice, guided_grammar, SGLang's regex and ebnf. A request has
// at most one of them.
#pragma once

#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace foretoken::server {

// fields: those of the body. grammar: for SamplingParameters; unchanged if no field asks for one.
// Errors go to fields.
void ReadAnswerFormat(JsonFields& fields, std::string& grammar);

}  // namespace foretoken::server
