// SPDX-License-Identifier: Apache-2.0
// server/routes/embedding_reply.h: what all endpoints that embed do: inputs to tokens, a few of them
// at a time to the engine, embeddings to an answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/api/embedding_replies.h"
#include "server/net/http.h"
#include "server/service.h"

namespace foretoken::server {

struct EmbeddingJob {
  std::vector<Prompt> inputs;                    // at least one
  std::function<std::string(std::size_t)> name;  // of an input, for errors: "input[3]"
  Pooling pooling = Pooling::kLast;
  std::function<std::string(const std::string&)> written;  // the text of an input; or null: itself
  bool add_special = true;
  bool truncate = false;                           // an input that is too long is cut
  std::size_t bytes = 0;                           // that the functions below hold
  std::function<void(std::vector<float>&)> shape;  // each input's numbers; or null
  std::function<LongText(Embeddings)> write;       // the body of the reply
  std::string (*refusal)(const ApiError& error);   // that of an error
};

// The answer to a call that cannot be taken; also in the log line.
HttpResponse RefusedEmbedding(const ApiError& error, std::string (*refusal)(const ApiError& error),
                              LogLine& line);
HttpResponse Embed(Service& service, const HttpRequest& request, EmbeddingJob job, LogLine& line);

}  // namespace foretoken::server
