// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kept_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files/input_file.h"
#include "base/files/own_folder.h"
#include "base/files/text_file.h"

namespace foretoken::calibrate {
namespace {

using Json = nlohmann::json;
using draft_length::LearnedCosts;

constexpr int kVersion = 1;
constexpr std::size_t kMostBytes = 1 << 20, kMostEntries = 64;  // of a file; of a list
constexpr double kMostUs = 1e12, kMostRows = 4096, kMostFirstDraft = 64;
constexpr double kAlike = 1.05;      // times of the same work
constexpr double kSayTheSame = 1.1;  // costs that need not be written again

// The numbers of a list of so many; none where it is anything else, or a number out of range.
template <std::size_t n>
std::optional<std::array<double, n>> NumbersOf(const Json& json) {
  if (!json.is_array() || json.size() != n) return std::nullopt;
  std::array<double, n> numbers;
  for (std::size_t i = 0; i < n; ++i) {
    if (!json[i].is_number()) return std::nullopt;
    numbers[i] = json[i].get<double>();
    if (!(numbers[i] >= 0 && numbers[i] <= kMostUs)) return std::nullopt;
  }
  return numbers;
}

const Json* ListOf(const Json& object, const char* name) {
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array() || list->size() > kMostEntries) return nullptr;
  return &*list;
}

std::optional<LearnedCosts> CostsOf(const Json& engine) {
  const Json *passes = ListOf(engine, "passes"), *drafts = ListOf(engine, "drafts");
  if (passes == nullptr || drafts == nullptr) return std::nullopt;
  LearnedCosts costs;
  for (const Json& json : *passes) {
    const auto pass = NumbersOf<2>(json);
    if (!pass || (*pass)[0] < 1 || (*pass)[0] > kMostRows || (*pass)[1] <= 0) return std::nullopt;
    costs.passes.push_back({static_cast<int>((*pass)[0]), (*pass)[1]});
  }
  for (const Json& json : *drafts) {
    const auto draft = NumbersOf<4>(json);
    if (!draft || (*draft)[3] < 1 || (*draft)[3] > kMostFirstDraft) return std::nullopt;
    costs.drafts.push_back({(*draft)[0], (*draft)[1], (*draft)[2], (*draft)[3]});
  }
  return costs;
}

Json JsonOf(const LearnedCosts& costs, const std::string& key) {
  Json passes = Json::array(), drafts = Json::array();
  for (const auto& pass : costs.passes)
    if (passes.size() < kMostEntries) passes.push_back({pass.rows, pass.us});
  for (const auto& d : costs.drafts) drafts.push_back({d.one_us, d.all_us, d.row_us, d.first});
  return {{"key", key}, {"passes", std::move(passes)}, {"drafts", std::move(drafts)}};
}

// The engines of the file, or an empty list.
Json EnginesOf(const std::string& path) {
  Json none = Json::array();
  auto file = InputFile::Open(path, {.links = false});
  if (!file || !WhyNotOurs(file->status()).empty()) return none;
  const auto text = ReadDescriptor(file->descriptor(), path, {.most_bytes = kMostBytes});
  if (!text) return none;
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("foretoken_costs", Json()) != kVersion) return none;
  const auto engines = json.find("engines");
  if (engines == json.end() || !engines->is_array()) return none;
  return std::move(*engines);
}

bool IsOf(const Json& engine, const std::string& key) {
  return engine.is_object() && engine.value("key", Json()) == key;
}

bool Alike(double a, double b) {
  return std::max(a, b) <= kSayTheSame * std::min(a, b);
}

// Whether all of it is in the kept costs, and no time differs but by the machine's speed.
bool SayTheSame(const LearnedCosts& kept, const LearnedCosts& costs) {
  std::vector<PassCost> passes;
  for (const auto& pass : costs.passes)
    if (passes.size() < kMostEntries) passes.push_back({pass.rows, 0, {pass.us, pass.us, pass.us}});
  const double slower = SlowerThan(kept, passes);
  if (slower == 0 || kept.drafts.size() != costs.drafts.size()) return false;
  for (const PassCost& pass : passes)
    if (std::none_of(kept.passes.begin(), kept.passes.end(), [&](const auto& known) {
          return known.rows == pass.rows && Alike(pass.us.median, slower * known.us);
        }))
      return false;
  return std::equal(costs.drafts.begin(), costs.drafts.end(), kept.drafts.begin(),
                    [slower](const auto& now, const auto& known) {
                      return Alike(now.one_us, slower * known.one_us) &&
                             Alike(now.all_us, slower * known.all_us) &&
                             Alike(now.first, known.first);
                    });
}

}  // namespace

std::optional<LearnedCosts> CostFile::Read() const {
  if (!keeps() || !WhyNotOurFolder(folder_).empty()) return std::nullopt;
  const Json engines = EnginesOf(Path());
  const std::string key = fmt::format("{:016x}", key_);
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [&](const Json& engine) { return IsOf(engine, key); });
  return found == engines.end() ? std::nullopt : CostsOf(*found);
}

void CostFile::Write(const LearnedCosts& costs) const {
  if (!keeps() || costs.passes.empty() || !MakeOurFolder(folder_).empty()) return;
  if (const auto kept = Read(); kept && SayTheSame(*kept, costs)) return;
  const std::string key = fmt::format("{:016x}", key_);
  Json engines = Json::array({JsonOf(costs, key)});
  for (Json& engine : EnginesOf(Path()))
    if (engines.size() < kMostEngines && !IsOf(engine, key)) engines.push_back(std::move(engine));
  const Json json = {{"foretoken_costs", kVersion}, {"engines", std::move(engines)}};
  (void)WriteTextFile(Path(), json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

double SlowerThan(const LearnedCosts& kept, const std::vector<PassCost>& measured) {
  std::vector<double> ratios;
  double of_one_row = 0;
  for (const PassCost& cost : measured)
    for (const auto& pass : kept.passes)
      if (cost.context == 0 && cost.rows == pass.rows && cost.us.median > 0) {
        ratios.push_back(cost.us.median / pass.us);
        if (pass.rows == 1) of_one_row = ratios.back();
      }
  if (ratios.size() < 2) return 0;
  // Where their number is even, the lower one of the middle two: no measurement is too short.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return std::max(*middle, of_one_row);
}

double Believed(double measured_us, double kept_us, double slower) {
  const double most_us = kAlike * slower * kept_us;
  if (most_us <= 0) return measured_us;
  return measured_us > 0 ? std::min(measured_us, most_us) : most_us;
}

}  // namespace foretoken::calibrate
