// SPDX-License-Identifier: Apache-2.0
// server/api/llama_cpp_schema.h: reads the bodies of llama.cpp's own paths. They become bodies of
// OpenAI's completions, whose reader checks what they have in common.
//
// Pure functions of their arguments; any bytes may come in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/openai_schema.h"

namespace foretoken::server {

// What is asked of the text between two others.
struct LlamaCppGap {
  std::string prefix, suffix;
  std::string prompt;                                      // the beginning of the text between them
  std::vector<std::pair<std::string, std::string>> extra;  // names of other files, and their texts
};

struct LlamaCppCall {
  // A completion's: texts and tokens that follow each other. Names of control tokens in a text are
  // these tokens.
  std::vector<std::vector<Prompt>> prompts;
  LlamaCppGap gap;                                    // of /infill
  std::vector<std::pair<std::string, float>> biases;  // for all tokens of a text
  bool return_tokens = false;
  std::vector<std::string> response_fields;  // empty: all members
  GenerationCall generation;                 // its prompts are to be filled in
};
[[nodiscard]] Parsed<LlamaCppCall> ParseLlamaCppCompletion(std::string_view body,
                                                           const ModelLimits& limits);
[[nodiscard]] Parsed<LlamaCppCall> ParseLlamaCppInfill(std::string_view body,
                                                       const ModelLimits& limits);

// The body of what is done with a slot. to_erase: it may be empty, as it names no file.
struct LlamaCppSlotCall {
  std::string filename, cache_salt;
};
[[nodiscard]] Parsed<LlamaCppSlotCall> ParseLlamaCppSlot(std::string_view body, bool to_erase);

}  // namespace foretoken::server
