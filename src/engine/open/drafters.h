// SPDX-License-Identifier: Apache-2.0
// engine/open/drafters.h: makes the drafters of an engine: those that its draft files describe, those that
// need no file, and the caller's own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "draft/registry.h"
#include "engine/open/opened.h"
#include "loader/drafts/copy_figures.h"
#include "loader/drafts/draft_files.h"
#include "loader/drafts/drafter_set.h"
#include "loader/file_watch.h"
#include "loader/load_model.h"
#include "model/late_runner.h"

namespace foretoken::engine {

// The copy of the model that drafts, or is to draft, if there is one.
struct OwnCopy {
  CopyProgress progress;                    // as it was at Open
  const model::LateRunner* late = nullptr;  // a drafter's; null: no copy is made later
  loader::CopyFile file;                    // keeps nothing where there is no copy
  std::string types;
};

class DrafterMaker {
 public:
  // What the drafters are made from. All of it must outlive the maker.
  struct Sources {
    Opened& opened;
    const loader::Loading& loading;
    const loader::LoadedModel& target;
    loader::DraftFiles& files;
    std::function<void(std::string)> on_fault;  // of the caller's drafter; it may outlive the maker
  };
  // What it fills.
  struct Made {
    loader::DrafterSet& drafters;
    loader::FileWatch& watch;
    OwnCopy& copy;
    std::vector<std::int64_t>& draft_bytes;  // the weights of each file's drafter, as loaded
    std::int64_t& scratch_bytes;             // those of the drafters are added
  };
  DrafterMaker(Sources from, Made made) : from_(std::move(from)), made_(made) {}

  // A request may choose any of the drafters. Errors: those of the files and of the caller's drafter.
  [[nodiscard]] Status MakeAll();

 private:
  Opened& opened() const { return from_.opened; }
  EngineOptions& options() const { return opened().options; }
  Status MakeFromFile(loader::DraftPart& draft);
  Status MakeCallers();
  void Add(std::unique_ptr<draft::Drafter> drafter, const draft::DrafterSpec* spec);
  draft::DrafterSettings SettingsOf() const;
  Result<std::vector<Token>> CorpusTokens(const std::string& path) const;
  Result<loader::LoadedModel> ModelOf(const loader::DraftPart& draft);
  int NarrowWindow(const model::ModelConfig& config) const;
  void NoteCopy(const loader::DraftPart& draft, const loader::LoadedModel& model);
  Status CompareCopy(const loader::DraftPart& draft, const loader::LoadedModel& copy);

  const Sources from_;
  const Made made_;
};

}  // namespace foretoken::engine
