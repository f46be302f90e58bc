// SPDX-License-Identifier: Apache-2.0
#include "cli/json_objects.h"
#include "cli/replay/replay_report.h"

namespace foretoken::cli {
namespace {

void PutTally(Json& object, const ReplayTally& tally) {
  object["rounds"] = tally.rounds;
  object["draft_rounds"] = tally.draft_rounds;
  object["drafted"] = tally.drafted;
  object["accepted"] = tally.accepted;
  if (const auto rate = tally.acceptance_rate()) object["acceptance_rate"] = *rate;
  object["tokens"] = tally.tokens;
  object["tokens_per_round"] = tally.tokens_per_round();
  object["tokens_per_second"] = tally.tokens_per_second();
  object["k_histogram"] = tally.k_histogram;
}

Json MeasuredJson(const MeasuredSetting& measured) {
  Json json = {{"method", measured.method},
               {"lookahead", measured.controller},
               {"num_speculative_tokens", measured.num_speculative_tokens},
               {"requests", measured.requests}};
  PutTally(json, measured.tally);
  return json;
}

Json RowJson(const ReplayReport& report, const ReplayRow& row) {
  const ReplayResult& result = row.result;
  Json json = {{"lookahead", row.options.controller},
               {"num_speculative_tokens", row.options.num_speculative_tokens}};
  PutTally(json, result.tally);
  json["speedup"] = result.tally.tokens_per_second() / report.plain;
  json["judged"] = result.verified;
  json["by_lot"] = result.at_random;
  json["recorded_over_fit"] = result.recorded_over_fit;
  if (result.measured) json["measured_tokens_per_second"] = result.measured->tokens_per_second();
  return json;
}

}  // namespace

std::string ReplayJson(const ReplayReport& report) {
  const TraceHeader& header = report.trace->header;
  Json json = {{"model", header.model},     {"draft_model", header.draft_model},
               {"cpu", header.cpu},         {"isa", header.isa},
               {"threads", header.threads}, {"method", header.method}};
  json["measured"] = Json::array();
  for (const MeasuredSetting& measured : report.measured)
    json["measured"].push_back(MeasuredJson(measured));
  json["replayed"] = Json::array();
  for (const ReplayRow& row : report.rows) json["replayed"].push_back(RowJson(report, row));
  return JsonLine(json);
}

}  // namespace foretoken::cli
