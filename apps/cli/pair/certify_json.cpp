// SPDX-License-Identifier: Apache-2.0
#include "cli/json_objects.h"
#include "cli/pair/certify_report.h"
#include "server/api/stats_json.h"

namespace foretoken::cli {
namespace {

Json RowJson(const EqualityRow& row) {
  return {{"text", row.text},
          {"batch", row.batch},
          {"k", row.k},
          {"texts", row.prompts},
          {"tokens", row.tokens},
          {"drafted", row.stats.drafted},
          {"accepted", row.stats.accepted},
          {"differing", row.differing}};
}

Json TokenJson(const std::optional<std::int32_t>& token, float logprob) {
  if (!token) return nullptr;
  return {{"id", *token}, {"logprob", logprob}};
}

Json DifferenceJson(const Difference& d) {
  return {{"prompt", d.origin},
          {"text", d.text},
          {"k", d.k},
          {"batch", d.batch},
          {"what", d.what},
          {"position", d.position},
          {"plain", TokenJson(d.plain, d.plain_logprob)},
          {"speculative", TokenJson(d.speculative, d.speculative_logprob)}};
}

Json TestJson(const lab::Comparability& test) {
  return {{"chi_square", test.statistic}, {"degrees", test.degrees}, {"p", test.p}};
}

Json DistributionJson(const DistributionVerdict& distribution) {
  Json tests = Json::array();
  for (const DistributionTest& test : distribution.tests)
    tests.push_back({{"prompt", test.origin},
                     {"tokens", test.tokens},
                     {"speculation", TestJson(test.speculation)},
                     {"control", TestJson(test.control)}});
  return {{"strategy", distribution.strategy},
          {"control", distribution.control},
          {"samples", distribution.samples},
          {"acceptance_rate", distribution.acceptance_rate},
          {"level", distribution.level},
          {"passed", distribution.passed()},
          {"control_failed", distribution.control_failed()},
          {"tests", std::move(tests)}};
}

}  // namespace

std::string CertificationJson(const Certification& c) {
  const EngineSummary& engine = *c.engine;
  Json rows = Json::array();
  for (const EqualityRow& row : c.equality.rows) rows.push_back(RowJson(row));
  Json json = {{"certificate", Name(c.certificate())},
               {"proved", c.proved()},
               {"not_proved", c.not_proved()},
               {"strategy", c.strategy},
               {"model", ModelJson(engine.target)},
               {"draft_model", DraftModelJson(engine)},
               {"draft_models", DraftsJson(engine)},
               {"method", engine.method},
               {"isa", engine.isa},
               {"threads", engine.threads},
               {"prompts", c.prompts},
               {"tokens", c.request->max_new_tokens},
               {"temperature", c.request->sampling.temperature},
               {"seed", c.request->seed},
               {"runs", std::move(rows)}};
  json["drafters"] = server::DrafterCountsJson(c.equality.drafters);
  json["first_difference"] = c.equality.first ? DifferenceJson(*c.equality.first) : Json(nullptr);
  json["sampled_left_out"] = c.equality.sampled_left_out;
  json["law"] = c.distribution ? DistributionJson(*c.distribution) : Json(nullptr);
  return JsonLine(json);
}

}  // namespace foretoken::cli
