// SPDX-License-Identifier: Apache-2.0
#include "cli/documents/catalogue_json.h"

#include "cli/json_objects.h"
#include "cli/verb.h"
#include "foretoken/catalogue.h"
#include "foretoken/option_keys.h"
#include "foretoken/speculative_config.h"
#ifdef FORETOKEN_SERVER
#include "cli/serve/paths_json.h"
#endif

namespace foretoken::cli {
namespace {

Json JsonOf(const DrafterInfo& row) {
  return {{"name", row.name},
          {"aliases", row.aliases},
          {"help", row.help},
          {"lookup_only", row.lookup_only},
          {"reports_q", row.reports_q},
          {"reads_features", row.reads_features},
          {"reads_file", row.reads_file},
          {"in_target", row.in_target},
          {"copies_target", row.copies_target},
          {"reads_p_min", row.reads_p_min},
          {"drafts_from", row.drafts_from}};
}

Json JsonOf(const StrategyInfo& row) {
  return {{"name", row.name},
          {"aliases", row.aliases},
          {"help", row.help},
          {"accepts_if", row.accepts_if},
          {"else_takes", row.else_takes},
          {"random_numbers", row.random_numbers},
          {"lossless", row.lossless},
          {"needs_q", row.needs_q},
          {"needs_logits", row.needs_logits},
          {"same_text", row.same_text}};
}

Json JsonOf(const ControllerInfo& row) {
  return {{"name", row.name},
          {"aliases", row.aliases},
          {"help", row.help},
          {"length", row.length},
          {"default", row.name == SpeculativeOptions().controller},
          {"default_k", row.default_k},
          {"weighs_costs", row.weighs_costs},
          {"follows_load", row.follows_load}};
}

Json JsonOf(const ArchitectureInfo& row) {
  return {{"name", row.name}, {"networks", row.networks}, {"traits", row.traits}};
}

// What a help says behind "default": "the length; default 128" gives "128". "" where it names none.
std::string DefaultIn(const std::string& help) {
  const std::string text = "; " + help;
  for (const std::string_view mark : {"; default: ", "; default ", ": default "})
    if (const std::size_t at = text.rfind(mark); at != std::string::npos)
      return text.substr(at + mark.size());
  return "";
}

Json JsonOf(const settings::Flag& flag, const std::string& group, bool essential) {
  return {{"name", flag.names.front()},
          {"aliases", std::vector<std::string>(flag.names.begin() + 1, flag.names.end())},
          {"value", flag.value},
          {"default", DefaultIn(flag.help)},
          {"help", flag.help},
          {"group", group},
          {"essential", essential},
          {"repeatable", flag.repeatable},
          {"choices", flag.choices}};
}

Json FlagsJson(const settings::FlagSet& set) {
  Json list = Json::array();
  for (const settings::FlagGroup& group : set.groups())
    for (const settings::Flag& flag : group.flags)
      list.push_back(JsonOf(flag, group.title, set.IsEssential(flag)));
  return list;
}

Json JsonOf(const Verb& row) {
  const settings::FlagSet set = row.describe();
  return {{"name", row.name},
          {"summary", row.summary},
          {"usage", "foretoken " + set.synopsis()},
          {"description", set.description()},
          {"flags", FlagsJson(set)},
          {"examples", set.examples()},
          {"environment", set.environment()}};
}

template <typename Row>
Json ListOf(std::span<const Row* const> rows) {
  Json list = Json::array();
  for (const Row* const row : rows) list.push_back(JsonOf(*row));
  return list;
}

Json TypesJson() {
  Json list = Json::array();
  for (const NumberTypeInfo& row : AllNumberTypes())
    list.push_back({{"name", row.name},
                    {"block_values", row.block_values},
                    {"block_bytes", row.block_bytes},
                    {"products", row.products}});
  return list;
}

const char* NameOf(SpeculativeKey::Type type) {
  using Type = SpeculativeKey::Type;
  switch (type) {
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kSwitch:
      return "switch";
    case Type::kName:
      return "name";
    case Type::kPath:
      return "path";
    case Type::kTable:
      return "table";
    case Type::kList:
      return "list";
    case Type::kText:
      return "text";
  }
  return "";
}

Json SamplingJson() {
  Json list = Json::array();
  for (const SamplingKey& row : SamplingKeys()) {
    const auto [least, most] = row.field_range();
    list.push_back({{"name", row.name},
                    {"flag", row.flag.name},
                    {"field", row.field.name},
                    {"least", least},
                    {"most", most},
                    {"default", row.Of(SamplingParameters())}});
  }
  return list;
}

Json EngineJson() {
  Json list = Json::array();
  for (const EngineKey& row : EngineKeys()) {
    Json json = {{"name", row.name}, {"flag", row.flag.names[0]}, {"in_c", row.in_c}};
    if (row.range.is_set()) json["least"] = row.range.least, json["most"] = row.range.most;
    list.push_back(std::move(json));
  }
  return list;
}

Json SettingsJson() {
  Json list = Json::array();
  for (const SpeculativeKey& row : SpeculativeKeys()) {
    Json json = {{"name", row.name},
                 {"aliases", row.aliases},
                 {"default", row.print(SpeculativeOptions())},
                 {"type", NameOf(row.type)}};
    if (row.least <= row.most) json["least"] = row.least, json["most"] = row.most;
    if (row.words != nullptr) json["words"] = row.words();
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string CatalogueJson() {
  Json json = {{"verbs", ListOf(Verbs())},
               {"drafters", ListOf(AllDrafters())},
               {"strategies", ListOf(AllStrategies())},
               {"controllers", ListOf(AllControllers())},
               {"architectures", ListOf(AllArchitectures())},
               {"types", TypesJson()},
               {"settings", SettingsJson()},
               {"sampling", SamplingJson()},
               {"engine", EngineJson()}};
#ifdef FORETOKEN_SERVER
  json["endpoints"] = EndpointsJson();
#endif
  std::string text = json.dump({.indent = 2});
#ifdef FORETOKEN_SERVER
  text.resize(text.rfind('\n'));  // the document is long, and so on one line
  text += ",\n  \"openapi\": " + OpenApiOfAnyModel() + "\n}";
#endif
  return text + "\n";
}

}  // namespace foretoken::cli
