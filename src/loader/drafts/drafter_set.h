// SPDX-License-Identifier: Apache-2.0
// loader/drafts/drafter_set.h: the drafters of an engine, by index. They are added while the engine is
// opened; after that any thread may read which drafters there are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft/networks/output_views.h"
#include "draft/registry.h"
#include "foretoken/result.h"

namespace foretoken::loader {

// If several files use one method, their drafters have different names. A head with two outputs makes two
// drafters, "mtp:subset" and "mtp:whole", and a copy of the model a third one for long texts, "self:window". They
// answer to the names of the head or copy as well.
struct DrafterEntry {
  std::string method;     // "standalone"
  std::string name;       // in statistics: "standalone", or "standalone:tales-1m" if several
  std::string full_name;  // "standalone:tales-1m"; the method if there is no file
  std::string file = {};  // of its model or head; empty: it has none
  std::int64_t file_bytes = 0;
  // What the passes of a copy of the target read over what the target's read, with the copy's whole output and
  // with its reduced one. 0: it is no copy.
  double pass_share = 0, reduced_pass_share = 0;
  std::unique_ptr<draft::Drafter> drafter;
  const draft::DrafterSpec* spec = nullptr;  // its row; null: the program's own drafter
  // Its drafts cost next to nothing and are certain. They are made before the draft lengths are
  // chosen.
  bool instant = false;
  // Its network is made while the engine works, and it drafts only when that is done.
  bool late = false;
  std::string_view output =
      {};                 // of several, which its names end with: "subset", "whole", "window"
  int least_context = 0;  // it drafts only behind so many positions
  int costs_like = -1;    // a drafter whose drafts cost the same behind short texts; -1: none
  // The parts of a row of the target's features that it reads, by position in the row; empty: none.
  std::vector<int> feature_parts = {};

  bool reads_features() const { return !feature_parts.empty(); }
  bool Answers(std::string_view asked) const {
    return asked == "portfolio" || asked == method || IsName(asked, name) ||
           IsName(asked, full_name);
  }

 private:
  // Whether it is the name, with the output's or without.
  bool IsName(std::string_view asked, std::string_view own) const {
    if (asked == own) return true;
    return !output.empty() && own.starts_with(asked) &&
           own.size() == asked.size() + 1 + output.size();
  }
};

class DrafterSet {
 public:
  int size() const { return static_cast<int>(entries_.size()); }
  DrafterEntry& operator[](int d) { return entries_[static_cast<std::size_t>(d)]; }
  const DrafterEntry& operator[](int d) const { return entries_[static_cast<std::size_t>(d)]; }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  void Add(DrafterEntry entry) { entries_.push_back(std::move(entry)); }
  // Adds the views of a drafter. `entry`: of its network, without a drafter; its least_context is that of the
  // view with a window. subset: the tokens of the reduced output, ascending; empty: a round with one output
  // tells nothing about the other, because acceptance is synthetic.
  void Add(const DrafterEntry& entry, draft::OutputViews views, std::vector<Token> subset);

  // What drafter d's round tells about the other output of its head, which draws the same token wherever
  // it has that token: the other drafter, its drafts of which this is known, and those accepted.
  struct OtherOutcome {
    int drafter = -1, drafted = 0, accepted = 0;  // -1: d's head has one output
  };
  // drafts: of the round, of which so many were accepted, and then `next` was committed.
  OtherOutcome OtherOutput(int d, std::span<const Token> drafts, int accepted,
                           Token next) const noexcept;

  // Chooses which parts of the target's hidden states are kept, each of them once, and tells each
  // drafter where those that it reads are. Call it once, when all drafters are added.
  model::FeatureRequest AssignFeatures();

  // Indices of the drafters of a method: one, several with commas between them, "portfolio" or
  // "none". Errors: kInvalidArgument (a method that no drafter has).
  [[nodiscard]] Result<std::vector<int>> Find(std::string_view methods) const;

  // The drafters of requests that name no method.
  const std::vector<int>& defaults() const { return defaults_; }
  [[nodiscard]] Status SetDefaults(std::string_view methods) {
    FORETOKEN_TRY(defaults_, Find(methods));
    return {};
  }

 private:
  struct Subset {
    int drafter;  // that uses the reduced output; the next one uses the whole one
    std::vector<Token> tokens;
  };

  std::vector<DrafterEntry> entries_;
  std::vector<Subset> subsets_;
  std::vector<int> defaults_;
};

}  // namespace foretoken::loader
