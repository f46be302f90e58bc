// SPDX-License-Identifier: Apache-2.0
// The library's rules against verification.jsonl, whose results come from another implementation
// (make_vectors.py), on every instruction set that this machine has.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/json/json_reader.h"
#include "foretoken/verification.h"

namespace foretoken {
namespace {

std::vector<float> Rows(const Json& rows) {
  std::vector<float> values;
  for (const Json& row : rows)
    for (const Json& value : row)
      values.push_back(value.is_null() ? -std::numeric_limits<float>::infinity()
                                       : static_cast<float>(value.number()));
  return values;
}

template <typename T>
std::vector<T> List(const Json& json) {
  std::vector<T> values;
  for (const Json& value : json) values.push_back(static_cast<T>(value.number()));
  return values;
}

// Leaves `out` alone where there is no such member.
template <typename T>
void Read(const Json& json, const char* name, T& out) {
  const Json* const value = json.find(name);
  if (value != nullptr) out = static_cast<T>(value->number());
}

VerificationOptions OptionsOf(const Json& json, const char* isa) {
  const Json &settings = json.at("settings"), &sampling = json.at("sampling");
  VerificationOptions options{
      .vocabulary_size = static_cast<int>(json.at("target_logits").front().size()), .isa = isa};
  SpeculativeOptions& s = options.speculative;
  s.strategy = *VerifyStrategy::Named(json.at("strategy").text());
  Read(settings, "acceptance_threshold", s.acceptance_threshold);
  s.skip_sample_adjustment =
      settings.at("skip_sample_adjustment", s.skip_sample_adjustment).boolean();
  Read(settings, "relaxed_top_n", s.relaxed_top_n);
  SamplingParameters& p = options.sampling;
  Read(sampling, "temperature", p.temperature);
  Read(sampling, "top_k", p.top_k);
  Read(sampling, "top_p", p.top_p);
  Read(sampling, "min_p", p.min_p);
  Read(sampling, "presence_penalty", p.presence_penalty);
  return options;
}

std::string_view NameOf(TokenOrigin kind) {
  return kind == TokenOrigin::kPlain   ? "plain"
         : kind == TokenOrigin::kBonus ? "bonus"
                                       : "recovered";
}

void ExpectAsWritten(const Json& json, const char* isa) {
  const VerificationOptions options = OptionsOf(json, isa);
  const auto drafts = List<std::int32_t>(json.at("drafts")),
             text = List<std::int32_t>(json.at("text"));
  const auto logits = Rows(json.at("target_logits"));
  const auto probabilities = Rows(json.at("draft_probabilities")),
             draft_logits = Rows(json.at("draft_logits"));
  const Json& uniforms = json.at("uniforms");
  const auto accept = List<double>(uniforms.at("accept")),
             recover = List<double>(uniforms.at("recover")),
             target = List<double>(uniforms.at("target"));
  const auto verified =
      Verify(options, {.text = text,
                       .n_generated = static_cast<int>(json.at("generated").number()),
                       .drafts = drafts,
                       .draft_probabilities = {probabilities, options.vocabulary_size},
                       .draft_logits = {draft_logits, options.vocabulary_size},
                       .target_logits = {logits, options.vocabulary_size},
                       .uniforms = {.accept = accept, .recover = recover, .target = target}});
  ASSERT_TRUE(verified) << verified.error().message;
  const Json& expected = json.at("expected");
  EXPECT_EQ(expected.at("accepted"), verified->accepted);
  EXPECT_EQ(expected.at("next"), verified->next);
  EXPECT_EQ(expected.at("kind"), NameOf(verified->origin));
}

// Instruction sets that this library or this machine lacks are left out.
TEST(VerificationVectors, AreWhatTheLibraryDoes) {
  int n = 0, n_sets = 0;
  for (const char* isa : {"scalar", "neon", "avx2", "avxvnni", "avx512"}) {
    if (!DraftVerification::Create({.vocabulary_size = 4, .isa = isa})) continue;
    ++n_sets;
    std::ifstream file(FORETOKEN_VECTORS);
    for (std::string line; std::getline(file, line); ++n) {
      const Json json = JsonOrNull(line);
      SCOPED_TRACE(isa + std::string(": ") + json.at("name").text());
      ExpectAsWritten(json, isa);
    }
  }
  EXPECT_GE(n_sets, 2);
  EXPECT_GE(n, 100 * n_sets);
}

}  // namespace
}  // namespace foretoken
