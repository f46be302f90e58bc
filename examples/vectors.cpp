// SPDX-License-Identifier: Apache-2.0
// vectors FILE: checks a verifier with the test vectors (docs/verification-vectors.md). Here it is the
// library's own; yours takes its place in Accepts.
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "foretoken/verification.h"

namespace {

using Json = nlohmann::json;

std::vector<float> Rows(const Json& json, const char* name) {
  std::vector<float> values;
  for (const Json& row : json.value(name, Json::array()))
    for (const Json& value : row)
      values.push_back(value.is_null() ? -std::numeric_limits<float>::infinity()
                                       : value.get<float>());
  return values;
}

template <typename T>
std::vector<T> List(const Json& json, const char* name) {
  return json.at(name).get<std::vector<T>>();
}

foretoken::VerificationOptions OptionsOf(const Json& round, int vocabulary) {
  const Json &settings = round.at("settings"), &sampling = round.at("sampling");
  foretoken::VerificationOptions options{.vocabulary_size = vocabulary};
  auto& speculative = options.speculative;
  speculative.strategy =
      foretoken::VerifyStrategy::Named(round.at("strategy").get<std::string>()).value();
  speculative.acceptance_threshold = settings.value("acceptance_threshold", 0.0f);
  speculative.skip_sample_adjustment = settings.value("skip_sample_adjustment", false);
  speculative.relaxed_top_n = settings.value("relaxed_top_n", speculative.relaxed_top_n);
  options.sampling.temperature = sampling.at("temperature").get<float>();
  options.sampling.top_k = sampling.value("top_k", 0);
  options.sampling.top_p = sampling.value("top_p", 1.0f);
  options.sampling.min_p = sampling.value("min_p", 0.0f);
  options.sampling.presence_penalty = sampling.value("presence_penalty", 0.0f);
  return options;
}

foretoken::Result<foretoken::VerifiedDrafts> Accepts(const Json& round) {
  const int n = static_cast<int>(round.at("target_logits").at(0).size());
  const auto drafts = List<std::int32_t>(round, "drafts"), text = List<std::int32_t>(round, "text");
  const auto logits = Rows(round, "target_logits"), q = Rows(round, "draft_probabilities"),
             draft_logits = Rows(round, "draft_logits");
  const Json& uniforms = round.at("uniforms");
  const auto accept = List<double>(uniforms, "accept"), recover = List<double>(uniforms, "recover"),
             target = List<double>(uniforms, "target");
  return foretoken::Verify(OptionsOf(round, n),
                           {.text = text,
                            .n_generated = round.at("generated").get<int>(),
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
    const Json round = Json::parse(line), &expected = round.at("expected");
    const auto verified = Accepts(round);
    const bool same = verified && verified->accepted == expected.at("accepted").get<int>() &&
                      verified->next == expected.at("next").get<std::int32_t>();
    ++(same ? right : wrong);
    if (!same) std::cerr << "vectors: " << round.at("name") << ": another result\n";
  }
  std::cout << right << " of " << right + wrong << " rounds\n";
  return wrong > 0 || right == 0;
}
