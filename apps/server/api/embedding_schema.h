// SPDX-License-Identifier: Apache-2.0
// server/api/embedding_schema.h: reads the bodies of requests for embeddings and of those that rank
// documents: OpenAI's, llama.cpp's, Ollama's and Jina's.
//
// Pure functions of their arguments; any bytes may come in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/body_limits.h"
#include "server/api/openai_schema.h"

namespace foretoken::server {

// The form of a request and of its reply.
enum class EmbeddingForm {
  kOpenAi,
  kLlama,        // llama.cpp's list, with the rows of each input
  kOllama,       // /api/embed
  kOllamaPrompt  // /api/embeddings, of one text
};

struct EmbeddingCall {
  std::vector<Prompt> inputs;
  std::string field = "input";  // that has them
  bool listed = false;          // it is a list of them
  EmbeddingForm form = EmbeddingForm::kOpenAi;
  Pooling pooling = Pooling::kLast;
  int normalize = 2;              // llama.cpp's embd_normalize
  std::optional<int> dimensions;  // absent: all
  bool base64 = false;
  bool add_special = true;
  bool truncate = false;  // an input that is too long is cut
};
// form: of the endpoint; a body of llama.cpp's decides for itself.
[[nodiscard]] Parsed<EmbeddingCall> ParseEmbeddingCall(std::string_view body,
                                                       const ModelLimits& limits,
                                                       EmbeddingForm form);
// Ollama's; without inputs where the client only wants the model to be loaded.
[[nodiscard]] Parsed<EmbeddingCall> ParseOllamaEmbedding(std::string_view body,
                                                         const ModelLimits& limits,
                                                         EmbeddingForm form);

struct RerankCall {
  std::string query;
  std::vector<std::string> documents;
  std::string field = "documents";   // "texts": the request and its reply have TEI's form
  Pooling pooling = Pooling::kLast;  // kRank: pairs are scored by the model's head
  std::size_t most = kMostInputs;    // results
  bool with_documents = false;
};
[[nodiscard]] Parsed<RerankCall> ParseRerankCall(std::string_view body, const ModelLimits& limits);

}  // namespace foretoken::server
