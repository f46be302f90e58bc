// SPDX-License-Identifier: Apache-2.0
// Builds an engine: everything that can be wrong with files, options and their combination is found
// here.
#include <fmt/format.h>

#include <algorithm>

#include "base/argument_checks.h"
#include "base/machine/stack.h"
#include "calibrate/initial_costs.h"
#include "calibrate/recommendation.h"
#include "engine/impl.h"
#include "engine/open/cache_file.h"
#include "engine/open/drafters.h"
#include "engine/open/summary.h"
#include "engine/slots.h"
#include "foretoken/drafts.h"
#include "foretoken/option_keys.h"
#include "foretoken/speculative_config.h"
#include "kernels/dispatch.h"
#include "loader/drafts/caller_parts.h"
#include "loader/drafts/draft_files.h"
#include "loader/load_model.h"
#include "loader/model_part.h"
#include "verify/custom_verifier.h"
#include "verify/synthetic.h"

namespace foretoken {
namespace {

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
    engine::Summarise(opened(), {.target = target_,
                                 .files = drafts_,
                                 .memory = memory_,
                                 .draft_bytes = draft_bytes_,
                                 .scratch_bytes = scratch_bytes_,
                                 .drafters = impl_->drafters_,
                                 .rules = *impl_->speculation_});
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
    sizes.key_bounds =
        options().speculative.draft_best_blocks > 0 && options().speculative.draft_window > 0;
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
    if (group() != nullptr) impl_->ranks_ = &group()->ranks();
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

  Status MakeDrafters() {
    const loader::Loading loading = this->loading();
    return engine::DrafterMaker({.opened = opened(),
                                 .loading = loading,
                                 .target = target_model_,
                                 .files = drafts_,
                                 .on_fault = Notice()},
                                {.drafters = impl_->drafters_,
                                 .watch = impl_->files_,
                                 .copy = impl_->copy_,
                                 .draft_bytes = draft_bytes_,
                                 .scratch_bytes = scratch_bytes_})
        .MakeAll();
  }

  // Faults of the program's own parts, while the engine lives.
  std::function<void(std::string)> Notice() {
    return [impl = impl_.get()](std::string what) {
      impl->opened_.summary.notices.push_back(std::move(what));
    };
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
    const calibrate::KeptFigures kept =
        impl_->kept_costs_.Read().value_or(calibrate::KeptFigures());
    estimates.controller->Start(kept.verdicts);
    FORETOKEN_TRY(const std::vector<PassCost> measured,
                  calibrate::LearnInitialCosts({.subject = engine::SubjectOf(opened()),
                                                .options = options(),
                                                .target_bytes = summary().target.file_bytes,
                                                .drafters = impl_->drafters_,
                                                .records = impl_->recorder_->records(),
                                                .kept = kept.costs,
                                                .kept_agree = kept.agreed > 0},
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

}  // namespace foretoken
