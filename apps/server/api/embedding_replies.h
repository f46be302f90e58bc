// SPDX-License-Identifier: Apache-2.0
// server/api/embedding_replies.h: writes embeddings and ranks of documents, as JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "server/api/embedding_schema.h"
#include "server/api/long_text.h"

namespace foretoken::server {

// What the engine gave for the inputs of a request.
struct Embeddings {
  std::string model;
  int size = 0;                            // numbers of a row
  std::vector<std::vector<float>> inputs;  // the rows of each
  std::int64_t n_tokens = 0;
  std::chrono::nanoseconds time = {};
};

// Cuts a row to the dimensions, then makes its length what `normalize` says: -1: as it is; 0: the
// largest number is 32760; 1: the sum of all is 1; n > 1: the n-norm is 1. Rows of zeros stay.
void ShapeEmbedding(const EmbeddingCall& call, std::vector<float>& row);

// call: without its inputs.
LongText EmbeddingsText(const EmbeddingCall& call, Embeddings embeddings);
// The query comes first, then the documents, each of length 1: their products are the scores.
LongText RanksText(RerankCall call, const Embeddings& embeddings);

}  // namespace foretoken::server
