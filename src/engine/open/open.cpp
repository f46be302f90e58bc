// SPDX-License-Identifier: Apache-2.0
// Builds an engine: everything that can be wrong with files, options and their combination is found
// here.
#include <fmt/format.h>

#include <algorithm>

#include "base/argument_checks.h"
#include "base/files/text_file.h"
#include "base/machine/stack.h"
#include "calibrate/copy_comparison.h"
#include "calibrate/initial_costs.h"
#include "calibrate/recommendation.h"
#include "draft/custom_drafter.h"
#include "draft/registry.h"
#include "engine/impl.h"
#include "engine/open/cache_file.h"
#include "engine/slots.h"
#include "foretoken/drafts.h"
#include "foretoken/engine_keys.h"
#include "foretoken/speculative_config.h"
#include "kernels/dispatch.h"
#include "loader/drafts/caller_parts.h"
#include "loader/drafts/draft_files.h"
#include "loader/load_model.h"
#include "loader/model_part.h"
#include "text/tokenizer/unicode.h"
#include "verify/custom_verifier.h"
#include "verify/synthetic.h"

namespace foretoken {
namespace {

constexpr const char* kPairTemplate = "tokenizer.chat_template.rerank";
constexpr int kWorthKeeping = 64;    // passes that taught something about costs
constexpr int kWorthComparing = 96;  // rounds that show how often a copy is right

Status CheckRanges(EngineOptions& options) {
  for (const EngineKey& key : EngineKeys()) {
    const EngineKey::Value value = key.find(options);
    if (const auto* const number = std::get_if<int*>(&value))
      FORETOKEN_CHECK_OK(CheckEngineOption(key.name, **number));
  }
  return {};
}

}  // namespace

class EngineOpener {
 public:
  EngineOpener(EngineOptions options) : impl_(new Engine::Impl) {
    impl_->opened_.options = std::move(options);
  }

  Result<std::unique_ptr<Engine::Impl>> Open() {
    const auto begin = std::chrono::steady_clock::now();
    if (!ReserveStack(kPassStackBytes)) return Fail(NoMemory("engine"));
    FORETOKEN_CHECK_OK(CheckOptions());
    FORETOKEN_CHECK_OK(OpenTarget());
    FORETOKEN_CHECK_OK(OpenDrafts());
    FORETOKEN_CHECK_OK(CheckMemory());
    FORETOKEN_CHECK_OK(LoadTarget());
    FORETOKEN_CHECK_OK(MakeDrafters());
    impl_->speculation_.emplace(options(), impl_->drafters_, MakeVerifiers());
    FORETOKEN_CHECK_OK(CheckStrategy());
    Summarise();
    impl_->MakeParts(target_.options.max_rows, target_.options.max_logit_rows);
    FORETOKEN_CHECK_OK(impl_->recorder_->Open(summary(), opened().vocabulary));
    FORETOKEN_CHECK_OK(LearnCosts());
    summary().load_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    impl_->files_.Begin();
    return std::move(impl_);
  }

 private:
  engine::Opened& opened() const { return impl_->opened_; }
  EngineOptions& options() const { return opened().options; }
  EngineSummary& summary() const { return opened().summary; }
  // Null: this process alone.
  RankGroup::Impl* group() const {
    return options().ranks == nullptr ? nullptr : &options().ranks->impl();
  }
  const verify::Verifiers& verifiers() const { return impl_->speculation_->verifiers(); }

  Status CheckOptions() {
    auto& o = options();
    auto& speculative = o.speculative;
    if (o.model.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "model: none is named; give the path of a GGUF file with EngineOptions::model");
    FORETOKEN_TRY(opened().kernels, kernels::KernelsByName(o.isa));
    FORETOKEN_TRY(opened().pool, loader::MakeTeam(o, *opened().kernels));
    FORETOKEN_CHECK_OK(TakeRecommendation());
    FORETOKEN_TRY(const bool own, loader::TakeOwnMethod(o, speculative.method));
    FORETOKEN_TRY(const auto config, SpeculativeConfig::Create(speculative));
    speculative = config.options();
    if (own) {
      if (!speculative.method.empty()) speculative.method += ',';
      speculative.method += o.drafter->name();
    }
    FORETOKEN_CHECK_OK(loader::CheckOwnVerifier(o));
    if (!speculative.num_speculative_tokens)
      speculative.num_speculative_tokens = draft_length::DefaultCeiling(speculative);
    FORETOKEN_CHECK_OK(loader::CheckDraftOptions(o));
    FORETOKEN_CHECK_OK(CheckRanges(o));
    if (!o.kv_cache && !o.record.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "kv cache: a trace tells what rounds with a cache cost; leave the cache on, or "
                  "record nothing");
    o.prefix_cache &= o.kv_cache;
    return {};
  }

  // REQUIRES: kernels and pool.
  Status TakeRecommendation() {
    FORETOKEN_TRY(std::string told,
                  calibrate::TakeRecommendation(
                      ProfileMachine::This(opened().kernels->isa, options().threads), options()));
    if (!told.empty()) summary().notices.push_back(std::move(told));
    return {};
  }

  Status OpenTarget() {
    FORETOKEN_TRY(opened().checkpoint, formats::OpenCheckpoint(options().model));
    const auto in_file = [&](Error error) { return Fail(std::move(error).In(options().model)); };
    auto tokenizer = text::Tokenizer::Load(opened().checkpoint->metadata());
    if (!tokenizer) return in_file(std::move(tokenizer).error());
    opened().tokenizer = std::move(*tokenizer);
    auto part = loader::DescribeModel(*opened().checkpoint, *opened().tokenizer);
    if (!part) return in_file(std::move(part).error());
    target_ = std::move(*part);
    FORETOKEN_TRY(opened().rerank_head,
                  model::RerankHead::Load(*opened().checkpoint, target_.config.architecture,
                                          target_.config.dim));
    if (options().context_size == 0) options().context_size = target_.config.context_length;
    opened().context = options().context_size;
    opened().vocabulary = opened().tokenizer->vocabulary_size();
    FORETOKEN_CHECK_OK(SetEndTokens());
    FORETOKEN_CHECK_OK(FindThinkingMarks());
    FORETOKEN_CHECK_OK(loader::CheckOwnDrafter(options(), *opened().tokenizer));
    loader::PartSizes sizes = loader::SizesOf(options());
    sizes.cache_positions = options().cache_tokens;
    sizes.logit_rows = sizes.sequences * (1 + kMaxDraft);
    loader::SetSizes(target_, sizes);
    if (group() != nullptr) group()->Divide(target_.options);
    return {};
  }

  Status SetEndTokens() {
    opened().end_tokens =
        options().end_tokens.empty() ? opened().tokenizer->end_tokens() : options().end_tokens;
    return CheckTokens("end tokens", opened().end_tokens, opened().vocabulary);
  }

  Status FindThinkingMarks() {
    const SpeculativeOptions& o = options().speculative;
    if (!o.use_relaxed_acceptance_for_thinking) return {};
    const auto* const program = opened().checkpoint->metadata().String("tokenizer.chat_template");
    auto marks = text::ThinkingMarks::Find(*opened().tokenizer, program ? *program : "",
                                           o.thinking_begin, o.thinking_end);
    if (!marks) return Fail(std::move(marks).error().In(options().model));
    opened().thinking = *std::move(marks);
    return {};
  }

  Status OpenDrafts() {
    FORETOKEN_TRY(drafts_, loader::OpenDraftFiles(
                               options(), {*opened().checkpoint, *opened().tokenizer, target_}));
    opened().draft_checkpoints = std::move(drafts_.checkpoints);
    if (std::string& types = options().speculative.self_draft; types.empty())
      types = drafts_.self_draft;
    return {};
  }

  Status CheckMemory() {
    MemoryNeeds needs = loader::NeedsOf(target_, *opened().checkpoint);
    for (const loader::DraftPart& draft : drafts_.drafts)
      needs.Add(loader::NeedsOf(draft.part, *draft.file));
    FORETOKEN_TRY(memory_,
                  loader::PlanMemory({.needs = needs,
                                      .positions = options().context_size,
                                      .sequences = options().max_sequences,
                                      .may_page = loader::KeepsTiles(options().repack_cache)}));
    if (!memory_.notice.empty()) summary().notices.push_back(memory_.notice);
    if (loader::Report(options(), memory_, opened().checkpoint->path(), {.name = "planning"}))
      return {};
    return Fail(model::LoadingStopped());
  }

  loader::Loading loading() {
    return {options(), memory_, *opened().kernels, *opened().pool, summary().notices, group()};
  }

  Status LoadTarget() {
    FORETOKEN_TRY(target_model_, loader::LoadModel(loading(), target_, *opened().checkpoint));
    scratch_bytes_ += target_model_.own->scratch_bytes();
    impl_->files_.Add(*opened().checkpoint, *target_model_.own);
    if (group() != nullptr) impl_->files_.Add(group()->ranks());
    opened().target = std::move(target_model_.runner);
    opened().cache.emplace(target_.tables);
    if (!options().cache_file.empty() && options().prefix_cache) UseCacheFile();
    return options().slot_folder.empty() ? Status() : UseSlots();
  }

  Status UseSlots() {
    if (!options().prefix_cache)
      return Fail(ErrorCode::kInvalidArgument,
                  "slot folder: a cache without prefixes keeps no text; leave "
                  "EngineOptions::slot_folder out, or prefix_cache on");
    FORETOKEN_CHECK_OK(engine::CheckSlotFolder(options().slot_folder));
    FORETOKEN_TRY(opened().slot_shape, engine::FileShape(opened(), target_));
    if (opened().store) return {};
    opened().store.emplace(engine::StoreOver(kv::BlockFile::None(), opened()));
    opened().cache->Use(*opened().store);
    return {};
  }

  // Without the file the engine runs as well, so that what is wrong with it is a notice.
  void UseCacheFile() {
    auto store = engine::OpenCacheFile(opened(), target_);
    if (!store) {
      summary().notices.push_back(
          fmt::format("cache file: {}; this engine keeps nothing there", store.error().message));
      return;
    }
    opened().store.emplace(*std::move(store));
    opened().cache->Use(*opened().store);
    const kv::BlockFile& file = opened().store->file();
    summary().details.push_back(
        fmt::format("cache file: {} has {} of {} blocks of {} tokens", options().cache_file,
                    file.n_records(kv::BlockFile::kBlock), file.n_places(kv::BlockFile::kBlock),
                    tensor::kKvBlock));
  }

  // All draft models and heads, and all drafters that need no model: a request may choose any of
  // them.
  Status MakeDrafters() {
    for (loader::DraftPart& draft : drafts_.drafts) FORETOKEN_CHECK_OK(MakeModelDrafter(draft));
    if (!drafts_.no_copy.empty())
      impl_->copy_ = {.state = CopyProgress::State::kRefused, .why = drafts_.no_copy};
    options().speculative.method = drafts_.Settle(summary());
    for (const draft::DrafterSpec* const spec : draft::Specs()) {
      if (spec->info.reads_file || spec->info.copies_target) continue;
      FORETOKEN_TRY(auto drafter, spec->make(SettingsOf()));
      AddDrafter(std::move(drafter), spec);
    }
    if (options().drafter) FORETOKEN_CHECK_OK(AddOwnDrafter());
    if (const model::FeatureRequest features = impl_->drafters_.AssignFeatures();
        features.parts() > 0) {
      opened().target->KeepFeatures(features);
      summary().hidden_states = {features.layers, features.normed,
                                 static_cast<int>(opened().target->info().features_width)};
    }
    return impl_->drafters_.SetDefaults(options().speculative.method);
  }

  Status AddOwnDrafter() {
    FORETOKEN_TRY(auto lease, draft::SequenceLease::All(options().drafter));
    auto drafter = std::make_unique<draft::CustomDrafter>(
        options().drafter, draft::CustomSettings{.max_sequences = options().max_sequences,
                                                 .vocabulary = opened().vocabulary,
                                                 .max_draft = kMaxDraft,
                                                 .kernels = opened().kernels,
                                                 .on_fault = Notice()});
    drafter->Use(std::move(lease));
    AddDrafter(std::move(drafter), nullptr);
    return {};
  }

  // Faults of the program's own parts, while the engine lives.
  std::function<void(std::string)> Notice() {
    return [impl = impl_.get()](std::string what) {
      impl->opened_.summary.notices.push_back(std::move(what));
    };
  }

  // One without a file. spec: null for the program's own.
  void AddDrafter(std::unique_ptr<draft::Drafter> drafter, const draft::DrafterSpec* spec) {
    const std::string name(drafter->name());
    impl_->drafters_.Add({.method = name,
                          .name = name,
                          .full_name = name,
                          .drafter = std::move(drafter),
                          .spec = spec,
                          .instant = spec != nullptr && spec->info.lookup_only});
  }

  draft::DrafterSettings SettingsOf() const {
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
  Result<std::vector<Token>> CorpusTokens(const std::string& path) const {
    FORETOKEN_TRY(const std::string text, ReadTextFile(path));
    if (!text::IsText(text))
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("n-gram corpus: {} is not UTF-8 text; give a text file", path));
    return opened().tokenizer->Encode(text, {.add_special = false, .parse_special = false});
  }

  Result<loader::LoadedModel> ModelOf(const loader::DraftPart& draft) {
    if (draft.part.late)
      return loader::LoadLate(loading(), draft.part, *draft.file, *target_model_.own);
    const bool of_target = draft.part.config.head || draft.part.copy;
    return loader::LoadModel(loading(), draft.part, *draft.file,
                             of_target ? &target_model_ : nullptr);
  }

  Status MakeModelDrafter(loader::DraftPart& draft) {
    auto model = ModelOf(draft);
    if (!model) return drafts_.PassOver(draft, std::move(model).error());
    draft_bytes_.push_back(loader::ResidentWeights(memory_, model->runner->info()));
    if (model->late == nullptr) {
      scratch_bytes_ += model->own->scratch_bytes();
      impl_->files_.Add(*draft.file, *model->own);
    } else {
      impl_->files_.Add(*draft.file, *model->late);
    }
    if (draft.part.copy) NoteCopy(draft, *model);
    if (draft.part.copy) FORETOKEN_CHECK_OK(CompareCopy(draft, *model));
    draft::DrafterSettings settings = SettingsOf();
    settings.runner = std::move(model->runner);
    if (draft.part.config.head) settings.head = &*draft.part.config.head;
    settings.tables = draft.part.tables;
    settings.shared = draft.shared;
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
        .late = draft.part.late};
    if (drafter->HasReducedOutput()) {
      impl_->drafters_.Add(
          entry, draft::ViewsOf(std::move(drafter), options().max_sequences),
          options().speculative.synthetic_acceptance_rate ? std::vector<Token>() : draft.tokens);
      return {};
    }
    entry.drafter = std::move(drafter);
    impl_->drafters_.Add(std::move(entry));
    return {};
  }

  void NoteCopy(const loader::DraftPart& draft, const loader::LoadedModel& model) {
    const auto bytes = static_cast<std::int64_t>(draft.part.copy_size.own);
    impl_->late_copy_ = model.late;
    impl_->copy_ = {.types = model::NameOf(*draft.part.copy), .bytes = bytes};
    if (model.late != nullptr)
      impl_->copy_.state = CopyProgress::State::kWaiting;
    else
      impl_->copy_.state = CopyProgress::State::kReady, impl_->copy_.made_bytes = bytes;
  }

  // Once for each model, machine and types, if that is kept. A small model's copy is not made unasked, so
  // nobody would read it. For one that is made while the engine works, its rounds tell.
  Status CompareCopy(const loader::DraftPart& draft, const loader::LoadedModel& copy) {
    // Figures of passes with a window say nothing about those without one, nor those of the model about copies.
    if (draft.part.copy_size.own == 0 || memory_.paged ||
        options().speculative.synthetic_acceptance_rate ||
        options().speculative.draft_window != 0 ||
        (options().repack_cache == "auto" && !loader::IsLarge(draft.part.copy_size)))
      return {};
    impl_->copy_file_ = loader::CopyFileFor(options());
    impl_->copy_types_ = model::NameOf(*draft.part.copy);
    const loader::CopyFile& file = impl_->copy_file_;
    if (copy.late != nullptr || !file.keeps() || file.PositionsOf(impl_->copy_types_) > 0)
      return {};
    std::vector<std::vector<Token>> beginnings;
    for (const char* const text : {"The", "How", "import", "1."}) {
      auto tokens = opened().tokenizer->Encode(text, {.add_special = true});
      if (!tokens.empty()) beginnings.push_back(std::move(tokens));
    }
    bool stopped = false;
    const auto compared = calibrate::CompareCopy(
        engine::SubjectOf(opened()), *copy.runner, beginnings, opened().end_tokens,
        [&](double share) {
          stopped = !loader::Report(options(), memory_, opened().checkpoint->path(),
                                    {.name = "comparing the copy with the model",
                                     .done_bytes = static_cast<std::size_t>(1000 * share),
                                     .total_bytes = 1000});
          return !stopped;
        });
    if (stopped) return Fail(model::LoadingStopped());
    if (compared)
      file.Write({.types = impl_->copy_types_,
                  .agreed = compared->agreed,
                  .positions = compared->positions,
                  .cost = compared->cost});
    return {};
  }

  verify::Verifiers MakeVerifiers() {
    const auto& o = options().speculative;
    verify::Verifiers verifiers(o);
    if (options().verifier)
      verifiers.own = std::make_unique<verify::CustomVerifier>(
          options().verifier,
          verify::CustomSettings{.vocabulary = opened().vocabulary, .on_fault = Notice()});
    if (o.synthetic_acceptance_rate)
      verifiers.synthetic = std::make_unique<verify::Synthetic>(*o.synthetic_acceptance_rate,
                                                                o.synthetic_acceptance_each);
    return verifiers;
  }

  Status LearnCosts() {
    engine::Estimates& estimates = *impl_->estimates_;
    const SpeculativeOptions& speculative = options().speculative;
    if (calibrate::PlansWithCosts(speculative, impl_->drafters_) && speculative.profile.empty())
      impl_->kept_costs_ =
          calibrate::CostFileFor(options(), opened().kernels->isa, impl_->drafters_);
    FORETOKEN_TRY(const std::vector<PassCost> measured,
                  calibrate::LearnInitialCosts({.subject = engine::SubjectOf(opened()),
                                                .options = options(),
                                                .target_bytes = summary().target.file_bytes,
                                                .drafters = impl_->drafters_,
                                                .records = impl_->recorder_->records(),
                                                .kept = impl_->kept_costs_},
                                               {.costs = estimates.costs,
                                                .fixed_costs = estimates.fixed_costs,
                                                .notices = summary().notices}));
    impl_->recorder_->AddCosts(measured);
    return {};
  }

  // A strategy asked for by name must fit the drafters of a request that names none itself.
  Status CheckStrategy() const {
    Request request;
    if (options().speculative.strategy == VerifyStrategy::kGreedy) request.sampling.temperature = 0;
    return impl_->speculation_->Check(request);
  }

  void Summarise() {
    EngineSummary& s = summary();
    loader::Summarise(target_, *opened().checkpoint,
                      loader::ResidentWeights(memory_, opened().target->info()),
                      opened().vocabulary, s.target);
    s.target.end_tokens = opened().end_tokens;
    s.pooling = PoolingOfFile();
    s.scores_pairs = opened().rerank_head != nullptr;
    if (const auto* const text = opened().checkpoint->metadata().String(kPairTemplate))
      s.pair_template = *text;
    for (const loader::DraftPart& draft : drafts_.drafts) {
      DrafterSummary& summary = s.drafters.emplace_back();
      summary.name = draft.name;
      summary.method = draft.spec->info.name;
      loader::Summarise(draft.part, *draft.file, draft_bytes_[s.drafters.size() - 1],
                        draft.shared.drafter, summary.model);
    }
    if (!s.drafters.empty())
      s.draft_model = std::make_unique<ModelSummary>(s.drafters.front().model);
    s.memory = memory_.needs;
    s.memory.scratch = scratch_bytes_;
    s.available_bytes = memory_.available;
    s.experts_paged = memory_.paged;
    s.isa = opened().kernels->isa;
    s.threads = options().threads;
    s.ranks = target_.options.division.size();
    s.max_sequences = options().max_sequences;
    s.method = options().speculative.method;
    s.strategy = Name(options().speculative.strategy);
    if (verifiers().synthetic) s.strategy = verifiers().synthetic->name();
    s.lossless = !verifiers().synthetic && StrategyIsLossless() && !opened().thinking;
    if (verifiers().own && !verifiers().synthetic) {
      s.strategy = verifiers().own->name();
      s.lossless = verifiers().own->Lossless();
    }
    for (const loader::DrafterEntry& entry : impl_->drafters_) s.methods.push_back(entry.name);
    s.methods.insert(s.methods.end(), {"portfolio", "none"});
    s.strategies = impl_->speculation_->StrategyNames();
    s.controller = options().speculative.controller;
    NoteThinking();
    NoteByText();
    s.num_speculative_tokens =
        s.method == "none" ? 0 : *options().speculative.num_speculative_tokens;
  }

  // kLast where the file says nothing, or what is not known here.
  Pooling PoolingOfFile() const {
    const auto type =
        opened().checkpoint->metadata().Int(summary().target.architecture + ".pooling_type");
    const bool known = type && *type >= 0 && *type <= static_cast<int>(Pooling::kRank);
    return known ? static_cast<Pooling>(*type) : Pooling::kLast;
  }

  void NoteThinking() {
    if (!opened().thinking || verifiers().one_for_all()) return;
    summary().notices.push_back(
        fmt::format("parts that think, from '{}' to '{}', are not exact above temperature 0: "
                    "relaxed verifies their drafts",
                    opened().thinking->begin(), opened().thinking->end()));
  }

  // Where a rule is set for all requests whose text depends on the drafts.
  void NoteByText() {
    const auto& o = options().speculative;
    Request warm;
    warm.sampling.temperature = 1;
    const bool set = o.strategy != VerifyStrategy::kAuto || verifiers().own || opened().thinking;
    if (!set || impl_->drafters_.defaults().empty() ||
        !FindController(o.controller)->follows_load ||
        !impl_->speculation_->FollowsDrafts(warm, impl_->speculation_->VerifierFor(warm)))
      return;
    summary().notices.push_back(fmt::format(
        "draft lengths: with {} the text depends on the drafts; above temperature 0 "
        "by-text chooses lengths in place of {}, so that a seed gives the same text "
        "again; a profile (SpeculativeOptions::profile) tells it what passes cost here",
        opened().thinking ? "relaxed acceptance" : "'" + summary().strategy + "'", o.controller));
  }

  // kAuto may choose residual, and else what is lossless in any case.
  bool StrategyIsLossless() const {
    const VerifyStrategy set = options().speculative.strategy;
    return verifiers()
        .Of(set == VerifyStrategy::kAuto ? VerifyStrategy::kResidual : set)
        .Lossless();
  }

  std::unique_ptr<Engine::Impl> impl_;
  loader::ModelPart target_;
  loader::LoadedModel target_model_;  // whose runner the engine owns
  loader::DraftFiles drafts_;
  loader::MemoryPlan memory_;
  std::vector<std::int64_t> draft_bytes_;  // the weights of each, as loaded
  std::int64_t scratch_bytes_ = 0;         // of all models
};

Result<std::unique_ptr<Engine::Impl>> Engine::Impl::Open(EngineOptions options) {
  return EngineOpener(std::move(options)).Open();
}

Engine::Impl::~Impl() {
  if (opened_.cache && files_.status()) opened_.cache->KeepAll();
  if (!estimates_ || !accounting_) return;
  try {
    if (kept_costs_.keeps() && estimates_->costs.n_read() >= kWorthKeeping)
      kept_costs_.Write(estimates_->costs.Learned());
    KeepCopyFigure();
  } catch (const std::bad_alloc&) {  // the next engine measures alone
  }
}

// What rounds have shown of a copy of the model, if that is more than what is known.
void Engine::Impl::KeepCopyFigure() const {
  if (!copy_file_.keeps()) return;
  const draft_length::LearnedCosts costs = estimates_->costs.Learned();
  if (costs.passes.empty() || costs.passes.front().rows != 1) return;
  for (int d = 0; d < drafters_.size(); ++d) {
    const engine::Accounting::FirstDrafts& first = accounting_->first_drafts(d);
    const double draft_us = costs.drafts[static_cast<std::size_t>(d)].one_us;
    const bool is_copy = drafters_[d].spec != nullptr && drafters_[d].spec->info.copies_target;
    if (!is_copy || draft_us <= 0 ||
        first.rounds <= std::max(kWorthComparing, copy_file_.PositionsOf(copy_types_)))
      continue;
    copy_file_.Write({.types = copy_types_,
                      .agreed = first.accepted,
                      .positions = first.rounds,
                      .cost = draft_us / costs.passes.front().us});
  }
}

// Everything that a step writes to gets its memory here.
void Engine::Impl::MakeParts(int max_rows, int max_logit_rows) {
  const EngineOptions& o = opened_.options;
  const std::string& path = opened_.summary.target.path;
  kv::BlockTables& cache = *opened_.cache;
  preparation_.emplace(engine::RequestLimits{.vocabulary = opened_.vocabulary,
                                             .context = opened_.context,
                                             .most_positions = opened_.MostPositions(),
                                             .records = !o.record.empty(),
                                             .scores_pairs = opened_.rerank_head != nullptr,
                                             .slots = o.max_sequences},
                       *opened_.tokenizer, *speculation_, opened_.end_tokens);
  estimates_.emplace(o, max_rows, drafters_.size());
  recorder_.emplace(o, drafters_);
  admission_.emplace(
      engine::AdmissionSettings{.vocabulary = opened_.vocabulary,
                                .dim = opened_.target->info().dim,
                                .context = opened_.context,
                                .end_tokens = opened_.end_tokens,
                                .thinking = opened_.thinking ? &*opened_.thinking : nullptr},
      o, *opened_.tokenizer, *opened_.kernels, *speculation_, drafters_, cache,
      [this](SeqId seq, const engine::Sequence& s) {
        if (s.drafts()) controller().Begin(seq, {s.least_drafts, s.most_drafts, s.follows_drafts});
        recorder_->Begin(seq, s, s.completion.controller);
      });
  scheduler_.emplace(
      engine::SchedulerSettings{
          .max_rows = max_rows,
          .max_sequences = o.max_sequences,
          .most_mixed_drafts = o.speculative.num_speculative_tokens_mixed_batch.value_or(kMaxDraft),
          .kv_cache = o.kv_cache,
          .prefix_cache = o.prefix_cache},
      cache, drafters_, estimates_->costs, estimates_->prompt_rows);
  drafting_.emplace(o.max_sequences, drafters_, *estimates_,
                    [this](std::string what) { Notice(what); });
  verification_.emplace(opened_.vocabulary);
  commit_.emplace(engine::CommitSettings{.vocabulary = opened_.vocabulary,
                                         .dim = opened_.target->info().dim,
                                         .max_rows = max_rows,
                                         .max_sequences = o.max_sequences,
                                         .kv_cache = o.kv_cache,
                                         .prefix_cache = o.prefix_cache,
                                         .target_path = path,
                                         .rerank_head = opened_.rerank_head.get()},
                  cache, drafters_, *opened_.kernels);
  accounting_.emplace(*estimates_, cache, drafters_, max_logit_rows, o.prefix_cache);
  step_.emplace(o.max_sequences, max_rows, commit_->MakeCommits());
  // A trace has probabilities of drafts, which are read from whole rows.
  step_->pass.chooses = opened_.target->info().chooses && o.record.empty();
}

}  // namespace foretoken
