// SPDX-License-Identifier: Apache-2.0
// server/routes/embeddings.cpp: the paths that embed texts and rank documents, in the forms of OpenAI,
// llama.cpp and Jina. Ollama's are in ollama.cpp.
#include "server/routes/embeddings.h"

#include <fmt/format.h>

#include <utility>

#include "server/api/llama_cpp_replies.h"
#include "server/api/plain_replies.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

HttpResponse EmbedAs(Service& service, const HttpRequest& request, EmbeddingForm form,
                     LogLine& line) {
  const auto refusal = form == EmbeddingForm::kLlama ? LlamaCppErrorJson : ErrorJson;
  auto call = ParseEmbeddingCall(request.body, service.limits, form);
  if (!call) return RefusedEmbedding(call.error(), refusal, line);
  return EmbedCall(service, request, *std::move(call), refusal, line);
}

HttpResponse OpenAiEmbed(Service& service, const HttpRequest& request, LogLine& line) {
  return EmbedAs(service, request, EmbeddingForm::kOpenAi, line);
}

HttpResponse LlamaEmbed(Service& service, const HttpRequest& request, LogLine& line) {
  return EmbedAs(service, request, EmbeddingForm::kLlama, line);
}

// The template with a pair in the places of its names, of which the texts may have some, too.
std::string PairText(std::string_view pair_template, std::string_view query,
                     std::string_view document) {
  constexpr std::string_view kQuery = "{query}", kDocument = "{document}";
  std::string text;
  for (std::size_t at = 0; at < pair_template.size();) {
    const std::string_view rest = pair_template.substr(at);
    if (rest.starts_with(kQuery)) {
      text += query;
      at += kQuery.size();
    } else if (rest.starts_with(kDocument)) {
      text += document;
      at += kDocument.size();
    } else {
      text += rest.front();
      ++at;
    }
  }
  return text;
}

// Each input is a document, and the pair with the query is read.
EmbeddingJob PairsJob(const Service& service, const RerankCall& call) {
  return {.inputs = {call.documents.begin(), call.documents.end()},
          .name = [field = call.field](std::size_t i) { return fmt::format("{}[{}]", field, i); },
          .pooling = call.pooling,
          .written =
              [&service, query = call.query](const std::string& document) {
                return PairText(service.limits.pair_template, query, document);
              },
          .add_special = false,
          .bytes = call.query.size(),
          .refusal = ErrorJson};
}

// The query is the first input.
EmbeddingJob CosinesJob(const RerankCall& call) {
  EmbeddingJob job{
      .inputs = {call.query},
      .name = [field = call.field](
                  std::size_t i) { return i == 0 ? "query" : fmt::format("{}[{}]", field, i - 1); },
      .pooling = call.pooling,
      .shape = [](std::vector<float>& row) { ShapeEmbedding({}, row); },
      .refusal = ErrorJson};
  job.inputs.insert(job.inputs.end(), call.documents.begin(), call.documents.end());
  return job;
}

HttpResponse Rerank(Service& service, const HttpRequest& request, LogLine& line) {
  auto call = ParseRerankCall(request.body, service.limits);
  if (!call) return RefusedEmbedding(call.error(), ErrorJson, line);
  EmbeddingJob job = call->pooling == Pooling::kRank ? PairsJob(service, *call) : CosinesJob(*call);
  for (std::string& text : call->documents)
    if (call->with_documents)
      job.bytes += text.size();
    else
      text = {};
  job.write = [call = *std::move(call)](const Embeddings& embeddings) mutable {
    return RanksText(std::move(call), embeddings);
  };
  return Embed(service, request, std::move(job), line);
}

std::string ReadsLlamaEmbedding(const ModelLimits& limits) {
  return MissingField(ParseEmbeddingCall("{}", limits, EmbeddingForm::kLlama));
}

std::string ReadsRerank(const ModelLimits& limits) {
  return MissingField(ParseRerankCall("{}", limits));
}

}  // namespace

HttpResponse EmbedCall(Service& service, const HttpRequest& request, EmbeddingCall call,
                       std::string (*refusal)(const ApiError& error), LogLine& line) {
  EmbeddingJob job{
      .inputs = std::move(call.inputs),
      .name = [field = call.field, listed = call.listed](
                  std::size_t i) { return listed ? fmt::format("{}[{}]", field, i) : field; },
      .pooling = call.pooling,
      .add_special = call.add_special,
      .truncate = call.truncate,
      .refusal = refusal};
  if (call.pooling != Pooling::kNone)
    job.shape = [call](std::vector<float>& row) { ShapeEmbedding(call, row); };
  job.write = [call](Embeddings embeddings) { return EmbeddingsText(call, std::move(embeddings)); };
  return Embed(service, request, std::move(job), line);
}

extern const Route kEmbeddingsRoute = {
    .method = "POST",
    .path = "/v1/embeddings",
    .about = "OpenAI's embeddings, below",
    .handle = OpenAiEmbed,
    .reads =
        [](const ModelLimits& limits) {
          return MissingField(ParseEmbeddingCall("{}", limits, EmbeddingForm::kOpenAi));
        },
    .reply = "Embeddings"};
extern const Route kLlamaEmbeddingsRoute = {
    .method = "POST",
    .path = "/embeddings",
    .about = "the same in llama.cpp's form: a list of `{index, embedding}`, each with its rows",
    .handle = LlamaEmbed,
    .refusal = LlamaCppErrorJson,
    .reads = ReadsLlamaEmbedding,
    .reply = "LlamaCppEmbeddings"};
extern const Route kLlamaEmbeddingRoute = {.method = "POST",
                                           .path = "/embedding",
                                           .about = "likewise; `content` or `input`",
                                           .handle = LlamaEmbed,
                                           .refusal = LlamaCppErrorJson,
                                           .reads = ReadsLlamaEmbedding,
                                           .reply = "LlamaCppEmbeddings"};
extern const Route kRerankRoute = {
    .method = "POST",
    .path = "/v1/rerank",
    .about = "`query`, `documents` -> the documents by their closeness to the query, below",
    .handle = Rerank,
    .reads = ReadsRerank,
    .reply = "Ranks"};
extern const Route kRerankingRoute = {.method = "POST",
                                      .path = "/v1/reranking",
                                      .about = "the same",
                                      .handle = Rerank,
                                      .reads = ReadsRerank,
                                      .reply = "Ranks"};

}  // namespace foretoken::server
