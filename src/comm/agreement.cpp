// SPDX-License-Identifier: Apache-2.0
#include "comm/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace foretoken::comm {
namespace {

constexpr std::size_t kMostShown = 5;  // differences

std::string Place(const Ranks& ranks, int rank) {
  return fmt::format("rank {} on {}", rank, ranks.host(rank));
}

std::string Written(std::span<const Fact> facts) {
  std::string text;
  for (const Fact& fact : facts)
    for (std::string line : {fact.name, fact.value}) {
      std::replace(line.begin(), line.end(), '\n', ' ');
      text += line + '\n';
    }
  return text;
}

std::vector<Fact> Read(std::string_view text) {
  std::vector<Fact> facts;
  const auto line = [&text] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string taken(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
  };
  while (!text.empty()) {
    Fact& fact = facts.emplace_back();
    fact.name = line();
    fact.value = line();
  }
  return facts;
}

const Fact* Find(std::span<const Fact> facts, const std::string& name) {
  const auto at =
      std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.name == name; });
  return at == facts.end() ? nullptr : &*at;
}

std::string Value(const Fact* fact) {
  return fact == nullptr ? "not given" : fmt::format("'{}'", Shown(fact->value));
}

void Compare(std::span<const Fact> lead, std::span<const Fact> other, const std::string& place,
             std::vector<std::string>& differences) {
  const auto note = [&](const std::string& name) {
    const Fact *of_lead = Find(lead, name), *of_other = Find(other, name);
    if (of_lead != nullptr && of_other != nullptr && of_lead->value == of_other->value) return;
    differences.push_back(fmt::format("{} is {} for {} and {} for rank 0", name, Value(of_other),
                                      place, Value(of_lead)));
  };
  for (const Fact& fact : lead) note(fact.name);
  for (const Fact& fact : other)
    if (Find(lead, fact.name) == nullptr) note(fact.name);
}

}  // namespace

Result<std::vector<std::string>> GatherTexts(Ranks& ranks, std::string_view own) {
  const auto n = static_cast<std::size_t>(ranks.size()),
             rank = static_cast<std::size_t>(ranks.rank());
  std::vector<std::int32_t> sizes(n), begins(n + 1);
  sizes[rank] = static_cast<std::int32_t>(own.size());
  for (std::size_t r = 0; r <= n; ++r)
    begins[r] = static_cast<std::int32_t>(r * sizeof(std::int32_t));
  if (!ranks.Meet() || !ranks.Gather(std::as_writable_bytes(std::span(sizes)).data(), begins))
    return Lost(ranks);
  begins[0] = 0;
  std::partial_sum(sizes.begin(), sizes.end(), begins.begin() + 1);
  std::string all(static_cast<std::size_t>(begins[n]), '\0');
  std::copy(own.begin(), own.end(), all.begin() + begins[rank]);
  if (!ranks.Gather(std::as_writable_bytes(std::span(all)).data(), begins)) return Lost(ranks);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < n; ++r)
    texts.push_back(
        all.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(sizes[r])));
  return texts;
}

Status Agree(Ranks& ranks, std::span<const Fact> facts) {
  FORETOKEN_TRY(const auto texts, GatherTexts(ranks, Written(facts)));
  const std::vector<Fact> lead = Read(texts[0]);
  std::vector<std::string> differences;
  for (int r = 1; r < ranks.size(); ++r)
    Compare(lead, Read(texts[static_cast<std::size_t>(r)]), Place(ranks, r), differences);
  if (differences.empty()) return {};
  const std::size_t hidden = differences.size() - std::min(differences.size(), kMostShown);
  differences.resize(differences.size() - hidden);
  return Fail(ErrorCode::kMismatch,
              fmt::format("ranks: they do not agree: {}{}; start all of them with the same "
                          "program, files and options",
                          fmt::join(differences, "; "),
                          hidden == 0 ? "" : fmt::format("; and {} more", hidden)));
}

Status AllDone(Ranks& ranks, const Status& own) {
  const std::string text =
      own ? "" : fmt::format("{} {}", static_cast<int>(own.error().code), own.error().message);
  FORETOKEN_TRY(const auto texts, GatherTexts(ranks, text));
  if (!own) return own;
  for (int r = 0; r < ranks.size(); ++r) {
    const std::string& failed = texts[static_cast<std::size_t>(r)];
    if (failed.empty()) continue;
    const std::size_t space = failed.find(' ');
    return Fail(static_cast<ErrorCode>(std::stoi(failed.substr(0, space))),
                fmt::format("{}: {}", Place(ranks, r), failed.substr(space + 1)));
  }
  return {};
}

}  // namespace foretoken::comm
