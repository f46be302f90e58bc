// SPDX-License-Identifier: Apache-2.0
#include "engine/open/drafters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/files/text_file.h"
#include "calibrate/copy_comparison.h"
#include "draft/custom_drafter.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::engine {
namespace {

// A copy of the model may see this window of the texts that are so long, and a draft model that lacks so much of a
// text reads this window of it.
constexpr int kNarrowWindow = 1024, kLongText = 4 * kNarrowWindow;

}  // namespace

Status DrafterMaker::MakeAll() {
  for (loader::DraftPart& draft : from_.files.drafts) FORETOKEN_CHECK_OK(MakeFromFile(draft));
  if (!from_.files.no_copy.empty())
    made_.copy.progress = {.state = CopyProgress::State::kRefused, .why = from_.files.no_copy};
  options().speculative.method = from_.files.Settle(opened().summary);
  for (const draft::DrafterSpec* const spec : draft::Specs()) {
    if (spec->info.reads_file || spec->info.copies_target) continue;
    FORETOKEN_TRY(auto drafter, spec->make(SettingsOf()));
    Add(std::move(drafter), spec);
  }
  if (options().drafter) FORETOKEN_CHECK_OK(MakeCallers());
  if (const model::FeatureRequest features = made_.drafters.AssignFeatures();
      features.parts() > 0) {
    opened().target->KeepFeatures(features);
    opened().summary.hidden_states = {features.layers, features.normed,
                                      static_cast<int>(opened().target->info().features_width)};
  }
  return made_.drafters.SetDefaults(options().speculative.method);
}

Status DrafterMaker::MakeCallers() {
  FORETOKEN_TRY(auto lease, draft::SequenceLease::All(options().drafter));
  auto drafter = std::make_unique<draft::CustomDrafter>(
      options().drafter, draft::CustomSettings{.max_sequences = options().max_sequences,
                                               .vocabulary = opened().vocabulary,
                                               .max_draft = kMaxDraft,
                                               .kernels = opened().kernels,
                                               .on_fault = from_.on_fault});
  drafter->Use(std::move(lease));
  Add(std::move(drafter), nullptr);
  return {};
}

// One without a file. spec: null for the program's own.
void DrafterMaker::Add(std::unique_ptr<draft::Drafter> drafter, const draft::DrafterSpec* spec) {
  const std::string name(drafter->name());
  made_.drafters.Add({.method = name,
                      .name = name,
                      .full_name = name,
                      .drafter = std::move(drafter),
                      .spec = spec,
                      .instant = spec != nullptr && spec->info.lookup_only});
}

draft::DrafterSettings DrafterMaker::SettingsOf() const {
  return {.options = options().speculative,
          .max_sequences = options().max_sequences,
          .max_context = options().context_size,
          .max_draft = kMaxDraft,
          .kv_cache = options().kv_cache,
          .target_cache = &*opened().cache,
          .kernels = opened().kernels,
          .read_text = [this](const std::string& path) { return CorpusTokens(path); }};
}

// The n-gram drafter's text.
Result<std::vector<Token>> DrafterMaker::CorpusTokens(const std::string& path) const {
  FORETOKEN_TRY(const std::string text, ReadTextFile(path));
  if (!text::IsText(text))
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("n-gram corpus: {} is not UTF-8 text; give a text file", path));
  return opened().tokenizer->Encode(text, {.add_special = false, .parse_special = false});
}

Result<loader::LoadedModel> DrafterMaker::ModelOf(const loader::DraftPart& draft) {
  if (draft.part.late)
    return loader::LoadLate(from_.loading, draft.part, *draft.file, *from_.target.own);
  const bool of_target = draft.part.config.head || draft.part.copy;
  return loader::LoadModel(from_.loading, draft.part, *draft.file,
                           of_target ? &from_.target : nullptr);
}

Status DrafterMaker::MakeFromFile(loader::DraftPart& draft) {
  auto model = ModelOf(draft);
  if (!model) return from_.files.PassOver(draft, std::move(model).error());
  made_.draft_bytes.push_back(loader::ResidentWeights(from_.loading.memory, model->runner->info()));
  if (model->late == nullptr) {
    made_.scratch_bytes += model->own->scratch_bytes();
    made_.watch.Add(*draft.file, *model->own);
  } else {
    made_.watch.Add(*draft.file, *model->late);
  }
  if (draft.part.copy) NoteCopy(draft, *model);
  if (draft.part.copy) FORETOKEN_CHECK_OK(CompareCopy(draft, *model));
  draft::DrafterSettings settings = SettingsOf();
  settings.runner = std::move(model->runner);
  if (draft.part.config.head) settings.head = &*draft.part.config.head;
  settings.tables = draft.part.tables;
  settings.shared = draft.shared;
  if (draft.part.copy || draft.spec->reads_models)
    settings.narrow_window = NarrowWindow(draft.part.config), settings.long_text = kLongText;
  FORETOKEN_TRY(auto drafter, draft.spec->make(std::move(settings)));
  loader::DrafterEntry entry = {
      .method = std::string(draft.spec->info.name),
      .name = draft.name,
      .full_name = draft.full_name,
      .file = draft.file->path(),
      .file_bytes = static_cast<std::int64_t>(draft.file->file_bytes()),
      .pass_share = draft.part.copy ? draft.part.copy_size.share() : 0,
      .reduced_pass_share = draft.part.copy ? draft.part.copy_size.reduced_share() : 0,
      .spec = draft.spec,
      .instant = draft.spec->info.lookup_only,
      .late = draft.part.late,
      .least_context = kLongText};
  if (drafter->HasReducedOutput() || drafter->NarrowWindow() > 0) {
    made_.drafters.Add(
        entry, draft::ViewsOf(std::move(drafter), options().max_sequences),
        options().speculative.synthetic_acceptance_rate ? std::vector<Token>() : draft.tokens);
    return {};
  }
  entry.drafter = std::move(drafter), entry.least_context = 0;
  made_.drafters.Add(std::move(entry));
  return {};
}

// Where no window was asked for, texts may be long, and a layer sees all of them.
int DrafterMaker::NarrowWindow(const model::ModelConfig& config) const {
  const bool sees_all =
      std::any_of(config.layers.begin(), config.layers.end(),
                  [](const model::LayerConfig& layer) { return layer.sees_all(); });
  const bool asked = options().speculative.draft_window != 0;
  return !asked && sees_all && options().context_size > kLongText ? kNarrowWindow : 0;
}

void DrafterMaker::NoteCopy(const loader::DraftPart& draft, const loader::LoadedModel& model) {
  const auto bytes = static_cast<std::int64_t>(draft.part.copy_size.own);
  made_.copy.late = model.late;
  made_.copy.progress = {.types = model::NameOf(*draft.part.copy), .bytes = bytes};
  if (model.late != nullptr)
    made_.copy.progress.state = CopyProgress::State::kWaiting;
  else
    made_.copy.progress.state = CopyProgress::State::kReady, made_.copy.progress.made_bytes = bytes;
}

// Once for each model, machine and types, if that is kept. A small model's copy is not made unasked, so
// nobody would read it. For one that is made while the engine works, its rounds tell.
Status DrafterMaker::CompareCopy(const loader::DraftPart& draft, const loader::LoadedModel& copy) {
  // Figures of passes with a window say nothing about those without one, nor those of the model about copies.
  if (draft.part.copy_size.own == 0 || from_.loading.memory.paged ||
      options().speculative.synthetic_acceptance_rate || options().speculative.draft_window != 0 ||
      (options().repack_cache == "auto" && !loader::IsLarge(draft.part.copy_size)))
    return {};
  made_.copy.file = loader::CopyFileFor(options());
  made_.copy.types = model::NameOf(*draft.part.copy);
  const loader::CopyFile& file = made_.copy.file;
  if (copy.late != nullptr || !file.keeps() || file.PositionsOf(made_.copy.types) > 0) return {};
  std::vector<std::vector<Token>> beginnings;
  for (const char* const text : {"The", "How", "import", "1."}) {
    auto tokens = opened().tokenizer->Encode(text, {.add_special = true});
    if (!tokens.empty()) beginnings.push_back(std::move(tokens));
  }
  bool stopped = false;
  const auto compared = calibrate::CompareCopy(
      engine::SubjectOf(opened()), *copy.runner, beginnings, opened().end_tokens,
      [&](double share) {
        stopped = !loader::Report(options(), from_.loading.memory, opened().checkpoint->path(),
                                  {.name = "comparing the copy with the model",
                                   .done_bytes = static_cast<std::size_t>(1000 * share),
                                   .total_bytes = 1000});
        return !stopped;
      });
  if (stopped) return Fail(model::LoadingStopped());
  if (compared)
    file.Write({.types = made_.copy.types,
                .agreed = compared->agreed,
                .positions = compared->positions,
                .cost = compared->cost});
  return {};
}

}  // namespace foretoken::engine
