// SPDX-License-Identifier: Apache-2.0
#include "server/api/embedding_replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

using Shared = std::shared_ptr<const Embeddings>;

constexpr const char* kCosines =
    "scores: the model has no head that scores pairs of texts; they are cosines of embeddings";

void WriteRow(std::span<const float> row, std::string& out) {
  out += '[';
  for (const float x : row) {
    if (out.back() != '[') out += ',';
    fmt::format_to(std::back_inserter(out), "{}", x);
  }
  out += ']';
}

// The bytes of the numbers, little-endian, in base64.
void WriteBase64(std::span<const float> row, std::string& out) {
  static_assert(std::endian::native == std::endian::little);
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bytes = std::as_bytes(row);
  const auto at = [&](std::size_t i) {
    return i < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i]) : 0;
  };
  out += '"';
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t bits = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (std::size_t digit = 0; digit < 4; ++digit)
      out += i + digit <= bytes.size() ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
  }
  out += '"';
}

// {"prompt_tokens":5,"total_tokens":5}
std::string UsageText(const Embeddings& embeddings) {
  return fmt::format(R"({{"prompt_tokens":{0},"total_tokens":{0}}})", embeddings.n_tokens);
}

LongText OpenAiEmbeddings(const EmbeddingCall& call, const Shared& all) {
  LongText text;
  text.Add(R"({"object":"list","data":)");
  text.AddList(all->inputs.size(), [all, base64 = call.base64](std::size_t i, std::string& out) {
    fmt::format_to(std::back_inserter(out), R"({{"object":"embedding","index":{},"embedding":)", i);
    (base64 ? WriteBase64 : WriteRow)(all->inputs[i], out);
    out += '}';
  });
  text.Add(fmt::format(R"(,"model":{},"usage":{}}})", QuotedJson(all->model), UsageText(*all)));
  return text;
}

LongText LlamaEmbeddings(const EmbeddingCall& call, const Shared& all) {
  const auto write = call.base64 ? WriteBase64 : WriteRow;
  LongText text;
  for (std::size_t i = 0; i < all->inputs.size(); ++i) {
    text.Add(fmt::format(R"({}{{"index":{},"embedding":)", i > 0 ? "," : "[", i));
    const auto size = static_cast<std::size_t>(call.dimensions.value_or(all->size));
    text.AddList(all->inputs[i].size() / size,
                 [all, write, i, size](std::size_t row, std::string& out) {
                   write(std::span(all->inputs[i]).subspan(row * size, size), out);
                 });
    text.Add("}");
  }
  text.Add("]");
  return text;
}

LongText OllamaEmbeddings(const EmbeddingCall& call, const Shared& all) {
  LongText text;
  const auto write = [all](std::size_t i, std::string& out) { WriteRow(all->inputs[i], out); };
  if (call.form == EmbeddingForm::kOllamaPrompt) {
    text.Add(R"({"embedding":)");
    text.AddEach(all->inputs.size(), write);
    text.Add(all->inputs.empty() ? "[]}" : "}");
    return text;
  }
  text.Add(fmt::format(R"({{"model":{},"embeddings":)", QuotedJson(all->model)));
  text.AddList(all->inputs.size(), write);
  text.Add(fmt::format(R"(,"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})",
                       all->time.count(), all->n_tokens));
  return text;
}

double Product(const std::vector<float>& a, const std::vector<float>& b) {
  return std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                               [](float x, float y) { return double{x} * y; });
}

struct Rank {
  std::size_t document;
  double score;
};

// The best first; equal ones in order.
std::vector<Rank> RanksOf(const RerankCall& call, const Embeddings& embeddings) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < call.documents.size(); ++i)
    ranks.push_back({i, call.pooling == Pooling::kRank
                            ? double{embeddings.inputs[i][0]}
                            : Product(embeddings.inputs[0], embeddings.inputs[i + 1])});
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const Rank& a, const Rank& b) { return a.score > b.score; });
  ranks.resize(std::min(ranks.size(), call.most));
  return ranks;
}

}  // namespace

void ShapeEmbedding(const EmbeddingCall& call, std::vector<float>& row) {
  if (call.dimensions) row.resize(std::min(row.size(), static_cast<std::size_t>(*call.dimensions)));
  const int p = call.normalize;
  if (p < 0) return;
  double norm = 0, largest = 0;
  for (const float x : row) largest = std::max(largest, std::abs(double{x}));
  if (largest == 0) return;
  // Its numbers are at most 1, so that no power is too large.
  for (const float x : row)
    norm += p == 2 ? x / largest * (x / largest) : std::pow(std::abs(double{x}) / largest, p);
  const double scale = p == 0
                           ? 32760 / largest
                           : 1 / ((p == 2 ? std::sqrt(norm) : std::pow(norm, 1.0 / p)) * largest);
  for (float& x : row) x = static_cast<float>(x * scale);
}

LongText EmbeddingsText(const EmbeddingCall& call, Embeddings embeddings) {
  const Shared all = std::make_shared<const Embeddings>(std::move(embeddings));
  if (call.form == EmbeddingForm::kOpenAi) return OpenAiEmbeddings(call, all);
  if (call.form == EmbeddingForm::kLlama) return LlamaEmbeddings(call, all);
  return OllamaEmbeddings(call, all);
}

LongText RanksText(RerankCall call, const Embeddings& embeddings) {
  const bool tei = call.field == "texts";
  const std::size_t n = std::min(call.documents.size(), call.most);
  LongText text;
  if (!tei)
    text.Add(fmt::format(R"({{"model":{},"object":"list","usage":{},"notices":[{}],"results":)",
                         QuotedJson(embeddings.model), UsageText(embeddings),
                         call.pooling == Pooling::kRank ? "" : QuotedJson(kCosines)));
  text.AddList(n, [ranks = RanksOf(call, embeddings), documents = std::move(call.documents),
                   with = call.with_documents, tei](std::size_t i, std::string& out) {
    const auto [document, score] = ranks[i];
    fmt::format_to(std::back_inserter(out), R"({{"index":{},"{}":{})", document,
                   tei ? "score" : "relevance_score", score);
    if (with)
      out += (tei ? R"(,"text":)" : R"(,"document":{"text":)") + QuotedJson(documents[document]) +
             (tei ? "" : "}");
    out += '}';
  });
  if (!tei) text.Add("}");
  return text;
}

}  // namespace foretoken::server
