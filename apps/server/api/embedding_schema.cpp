// SPDX-License-Identifier: Apache-2.0
#include "server/api/embedding_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "server/api/json_fields.h"
#include "server/api/ollama_schema.h"
#include "server/api/sampling_fields.h"

namespace foretoken::server {
namespace {

constexpr std::string_view kEmbeddingPoolings[] = {"mean", "cls", "last", "none"};
constexpr std::string_view kRerankPoolings[] = {"mean", "cls", "last", "none", "rank"};
constexpr std::size_t kMostPairBytes = std::size_t{16} << 20;

bool FewEnough(const Json& list, std::size_t most, const std::string& field, JsonFields& fields) {
  if (list.empty())
    fields.Bad(field, "it is an empty list; give one text at least");
  else if (list.size() > most)
    fields.Bad(field, fmt::format("{} are more than {}; send several requests", list.size(), most));
  return !fields.failed();
}

void ReadEmbeddingInput(const Json& value, const std::string& name, int vocabulary_size,
                        JsonFields& fields, std::vector<Prompt>& inputs) {
  if (value.is_string()) {
    inputs.emplace_back(value.text());
  } else if (value.is_array() && !value.empty()) {
    std::vector<std::int32_t> tokens;
    if (ReadTokenIds(name, value, vocabulary_size, fields, tokens))
      inputs.emplace_back(std::move(tokens));
  } else {
    fields.Bad(name, fmt::format("{} is no input; give a text, a list of token ids, or a list of "
                                 "such",
                                 value.is_array() ? "an empty list" : JsonFields::Shown(value)));
  }
}

// A text, a list of token ids, or a list of such.
void ReadInputs(const Json& value, int vocabulary_size, JsonFields& fields, EmbeddingCall& call) {
  call.listed = value.is_array() && (value.empty() || !value.front().is_number());
  if (!call.listed)
    return ReadEmbeddingInput(value, call.field, vocabulary_size, fields, call.inputs);
  if (!FewEnough(value, kMostInputs, call.field, fields)) return;
  call.inputs.reserve(value.size());
  for (std::size_t i = 0; i < value.size() && !fields.failed(); ++i)
    ReadEmbeddingInput(value[i], fmt::format("{}[{}]", call.field, i), vocabulary_size, fields,
                       call.inputs);
}

// The model's own where none is named. Poolings: those that this path has.
Pooling ReadPooling(JsonFields& fields, const ModelLimits& limits,
                    std::span<const std::string_view> poolings) {
  std::string name = Name(limits.pooling);
  const bool given = fields.OneOf("pooling", "a pooling", poolings, name);
  for (const Pooling pooling : {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast})
    if (name == Name(pooling)) return pooling;
  if (std::find(poolings.begin(), poolings.end(), name) != poolings.end()) return Pooling::kRank;
  if (!given)
    fields.Bad("pooling",
               "the model's file says 'rank', for pairs of texts; name \"mean\", \"cls\" or "
               "\"last\" for embeddings",
               "unsupported_parameter");
  return Pooling::kLast;
}

// A text of pairs is the query's text again for each document.
void CheckPairs(JsonFields& fields, const ModelLimits& limits, const RerankCall& call) {
  if (call.pooling == Pooling::kNone)
    return fields.Bad("pooling",
                      "'none' gives no single row to compare; use \"mean\", \"cls\", \"last\" or, "
                      "with a model that scores pairs, \"rank\"");
  if (call.pooling != Pooling::kRank) return;
  if (limits.pair_template.empty())
    return fields.Bad("pooling",
                      "the model's file has no tokenizer.chat_template.rerank, so how a pair of "
                      "texts is written is not known; use \"mean\", \"cls\" or \"last\"",
                      "unsupported_parameter");
  std::size_t bytes = (call.query.size() + limits.pair_template.size()) * call.documents.size();
  for (const std::string& document : call.documents) bytes += document.size();
  if (bytes > kMostPairBytes)
    fields.Bad(call.field, fmt::format("written as pairs with the query they are {} bytes, more "
                                       "than {}; send several requests",
                                       bytes, kMostPairBytes));
}

void ReadEncoding(JsonFields& fields, EmbeddingCall& call) {
  std::string encoding = "float";
  constexpr std::string_view kEncodings[] = {"float", "base64"};
  fields.OneOf("encoding_format", "an encoding", kEncodings, encoding);
  call.base64 = encoding == "base64";
}

void ReadNumbers(JsonFields& fields, const ModelLimits& limits, EmbeddingCall& call) {
  call.pooling = ReadPooling(fields, limits, kEmbeddingPoolings);
  fields.Integer("dimensions", 1, limits.embedding_size, call.dimensions);
  fields.Integer("embd_normalize", -1, 64, call.normalize);
  if (call.dimensions && call.pooling == Pooling::kNone)
    fields.Bad("dimensions",
               "rows of tokens are not cut; leave it out, or ask for another pooling");
  if (call.form == EmbeddingForm::kOpenAi && call.pooling == Pooling::kNone)
    fields.Bad("pooling",
               "'none' gives a row for each token, for which this form has no place; ask for "
               "another pooling, or use /embedding");
}

void ReadQuery(JsonFields& fields, RerankCall& call) {
  if (!fields.Text("query", call.query)) fields.Bad("query", "it is missing; give a text");
}

// Each a text, or an object with one.
void ReadDocument(const Json& value, const std::string& name, JsonFields& fields,
                  RerankCall& call) {
  const Json* const text = &value.at("text", value);
  if (text->is_string())
    call.documents.push_back(text->text());
  else
    fields.Bad(name, "it is neither a text nor an object with a \"text\"; give one");
}

void ReadDocuments(JsonFields& fields, RerankCall& call) {
  const Json* documents = fields.Find("documents");
  if (const Json* const texts = fields.Find("texts"); texts != nullptr) {
    if (documents != nullptr) return fields.Bad("texts", "documents are given too; keep one");
    documents = texts;
    call.field = "texts";
  }
  if (documents == nullptr)
    return fields.Missing({"documents", "texts"}, "it is not a list of texts; give one");
  if (!documents->is_array()) return fields.Bad(call.field, "it is not a list of texts; give one");
  // The query is an input too.
  if (!FewEnough(*documents, kMostInputs - 1, call.field, fields)) return;
  for (std::size_t i = 0; i < documents->size() && !fields.failed(); ++i)
    ReadDocument((*documents)[i], fmt::format("{}[{}]", call.field, i), fields, call);
}

}  // namespace

Parsed<EmbeddingCall> ParseEmbeddingCall(std::string_view body, const ModelLimits& limits,
                                         EmbeddingForm form) {
  return ReadBody<EmbeddingCall>(body, [&](JsonFields& fields, EmbeddingCall& call) {
    ReadModel(fields, limits);
    const Json* const input = fields.Find("input");
    const Json* const content = fields.Find("content");
    if (input != nullptr && content != nullptr)
      fields.Bad("content", "an input is given too; keep one of them");
    call.form = content != nullptr ? EmbeddingForm::kLlama : form;
    if (content != nullptr) call.field = "content";
    if (input == nullptr && content == nullptr)
      fields.Missing({"input", "content"}, "it is missing; give a text, or a list of texts");
    else
      ReadInputs(input != nullptr ? *input : *content, limits.vocabulary_size, fields, call);
    ReadEncoding(fields, call);
    ReadNumbers(fields, limits, call);
    fields.Switch("add_special_tokens", call.add_special);
    fields.Idle("user");
  });
}

Parsed<EmbeddingCall> ParseOllamaEmbedding(std::string_view body, const ModelLimits& limits,
                                           EmbeddingForm form) {
  return ReadBody<EmbeddingCall>(body, [&](JsonFields& fields, EmbeddingCall& call) {
    ReadOllamaModel(fields, limits);
    call.form = form;
    call.field = form == EmbeddingForm::kOllama ? "input" : "prompt";
    call.truncate = true;
    const Json* const input = fields.Find(call.field);
    const bool some = input != nullptr && *input != "" && !(input->is_array() && input->empty());
    if (some && form == EmbeddingForm::kOllamaPrompt && !input->is_string())
      fields.Bad(call.field, JsonFields::Shown(*input) + " is no text; give one");
    else if (some)
      ReadInputs(*input, limits.vocabulary_size, fields, call);
    fields.Switch("truncate", call.truncate);
    for (const char* const name : {"keep_alive", "options"}) fields.Idle(name);
    ReadNumbers(fields, limits, call);
    if (call.pooling == Pooling::kNone)
      fields.Bad("pooling", "'none' gives a row for each token; ask for another pooling");
    // What Ollama's older endpoint gives is not normalised.
    if (form == EmbeddingForm::kOllamaPrompt) call.normalize = -1;
  });
}

Parsed<RerankCall> ParseRerankCall(std::string_view body, const ModelLimits& limits) {
  return ReadBody<RerankCall>(body, [&](JsonFields& fields, RerankCall& call) {
    ReadModel(fields, limits);
    ReadQuery(fields, call);
    ReadDocuments(fields, call);
    std::optional<int> most;
    fields.Integer("top_n", 1, 1 << 24, most);
    if (most) call.most = static_cast<std::size_t>(*most);
    fields.Switch("return_documents", call.with_documents);
    fields.Switch("return_text", call.with_documents);
    fields.Idle("user");
    if (limits.scores_pairs)
      call.pooling = ReadPooling(fields, limits, kRerankPoolings);
    else
      call.pooling = ReadPooling(fields, limits, kEmbeddingPoolings);
    CheckPairs(fields, limits, call);
  });
}

}  // namespace foretoken::server
