// SPDX-License-Identifier: Apache-2.0
// vectors FILE: checks a verifier with the test vectors (docs/verification-vectors.md). Here it is the
// library's own; yours takes its place in Accepts.
#include <rapidjson/document.h>

#include <fstream>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "foretoken/verification.h"

namespace {

using Json = rapidjson::Value;

std::vector<float> Rows(const Json& json, const char* name) {
  std::vector<float> values;
  if (!json.HasMember(name)) return values;
  for (const Json& row : json[name].GetArray())
    for (const Json& value : row.GetArray())
      values.push_back(value.IsNull() ? -std::numeric_limits<float>::infinity() : value.GetFloat());
  return values;
}

template <typename T>
std::vector<T> List(const Json& json, const char* name) {
  std::vector<T> values;
  for (const Json& value : json[name].GetArray()) values.push_back(value.Get<T>());
  return values;
}

// Leaves `out` alone where there is no such member.
template <typename T>
void Read(const Json& json, const char* name, T& out) {
  if (json.HasMember(name)) out = json[name].Get<T>();
}

foretoken::VerificationOptions OptionsOf(const Json& round, int vocabulary) {
  const Json &settings = round["settings"], &sampling = round["sampling"];
  foretoken::VerificationOptions options{.vocabulary_size = vocabulary};
  auto& speculative = options.speculative;
  speculative.strategy = foretoken::VerifyStrategy::Named(round["strategy"].GetString()).value();
  Read(settings, "acceptance_threshold", speculative.acceptance_threshold);
  Read(settings, "skip_sample_adjustment", speculative.skip_sample_adjustment);
  Read(settings, "relaxed_top_n", speculative.relaxed_top_n);
  Read(sampling, "temperature", options.sampling.temperature);
  Read(sampling, "top_k", options.sampling.top_k);
  Read(sampling, "top_p", options.sampling.top_p);
  Read(sampling, "min_p", options.sampling.min_p);
  Read(sampling, "presence_penalty", options.sampling.presence_penalty);
  return options;
}

foretoken::Result<foretoken::VerifiedDrafts> Accepts(const Json& round) {
  const int n = static_cast<int>(round["target_logits"][0].Size());
  const auto drafts = List<std::int32_t>(round, "drafts"), text = List<std::int32_t>(round, "text");
  const auto logits = Rows(round, "target_logits"), q = Rows(round, "draft_probabilities"),
             draft_logits = Rows(round, "draft_logits");
  const Json& uniforms = round["uniforms"];
  const auto accept = List<double>(uniforms, "accept"), recover = List<double>(uniforms, "recover"),
             target = List<double>(uniforms, "target");
  return foretoken::Verify(OptionsOf(round, n),
                           {.text = text,
                            .n_generated = round["generated"].GetInt(),
                            .drafts = drafts,
                            .draft_probabilities = {q, n},
                            .draft_logits = {draft_logits, n},
                            .target_logits = {logits, n},
                            .uniforms = {.accept = accept, .recover = recover, .target = target}});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: vectors FILE\n", 2;
  std::ifstream file(argv[1]);
  int right = 0, wrong = 0;
  for (std::string line; std::getline(file, line);) {
    rapidjson::Document round;
    round.Parse<rapidjson::kParseFullPrecisionFlag>(line.data(), line.size());
    const Json& expected = round["expected"];
    const auto verified = Accepts(round);
    const bool same = verified && verified->accepted == expected["accepted"].GetInt() &&
                      verified->next == expected["next"].GetInt();
    ++(same ? right : wrong);
    if (!same) std::cerr << "vectors: " << round["name"].GetString() << ": another result\n";
  }
  std::cout << right << " of " << right + wrong << " rounds\n";
  return wrong > 0 || right == 0;
}
