// SPDX-License-Identifier: Apache-2.0
// Builds an engine: everything that can be wrong with files, options and their combination is found
// here.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/cpus.h"
#include "base/mapped_file.h"
#include "draft/draft_model.h"
#include "draft/head_drafter.h"
#include "draft/ngram.h"
#include "draft/none.h"
#include "engine/impl.h"
#include "engine/thread_count.h"
#include "engine/weight_type.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "text/frequent_tokens.h"
#include "verify/synthetic.h"

namespace foretoken {
namespace {

Status CheckRange(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} is out of range; use {} to {}", name, value, least, most));
}

tensor::KvType KvTypeOf(CacheType type) {
  constexpr std::array kTypes = {tensor::KvType::kF32, tensor::KvType::kF16, tensor::KvType::kBF16,
                                 tensor::KvType::kQ8_0};
  return kTypes[static_cast<std::size_t>(type)];
}

// Counts the ids whose text differs and shows the first ones.
Status CheckSameVocabulary(const text::Tokenizer& target, const text::Tokenizer& draft) {
  const int n = target.vocabulary_size(), m = draft.vocabulary_size();
  int differing = 0;
  std::vector<std::string> first;
  for (int i = 0; i < std::min(n, m); ++i) {
    if (target.TokenText(i) == draft.TokenText(i)) continue;
    if (++differing <= 3)
      first.push_back(fmt::format("{}: '{}' / '{}'", i, target.TokenText(i), draft.TokenText(i)));
  }
  if (n == m && differing == 0) return {};
  const std::string sizes =
      n == m ? fmt::format("{} of {} tokens differ", differing, n)
             : fmt::format("{} and {} tokens, {} of the common ids differ", n, m, differing);
  return Fail(ErrorCode::kMismatch,
              fmt::format("draft model: its vocabulary is not the target's: {}{}{}; use a draft of "
                          "the same model family",
                          sizes, first.empty() ? "" : ", first ", fmt::join(first, ", ")));
}

std::int64_t PhysicalMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? std::int64_t{pages} * page : INT64_MAX;
}

}  // namespace

class EngineOpener {
 public:
  EngineOpener(EngineOptions options) : impl_(new Engine::Impl) {
    impl_->options_ = std::move(options);
  }

  Result<std::unique_ptr<Engine::Impl>> Open() {
    const auto begin = std::chrono::steady_clock::now();
    FORETOKEN_CHECK_OK(CheckOptions());
    FORETOKEN_CHECK_OK(OpenTarget());
    FORETOKEN_CHECK_OK(OpenDraft());
    FORETOKEN_CHECK_OK(CheckMemory());
    MakeVerifiers();
    FORETOKEN_CHECK_OK(LoadTarget());
    FORETOKEN_CHECK_OK(MakeDrafter());
    FORETOKEN_CHECK_OK(CheckStrategy());
    MakeRoom();
    Summarise();
    summary().load_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return std::move(impl_);
  }

 private:
  // One model of the engine while it is being opened.
  struct Part {
    model::ModelConfig config;
    model::ModelOptions options;
    kv::CacheShape cache;
  };

  EngineOptions& options() { return impl_->options_; }
  EngineSummary& summary() { return impl_->summary_; }

  Status CheckOptions() {
    auto& o = options();
    auto& speculative = o.speculative;
    if (o.model.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "model: none is named; give the path of a GGUF file with --model");
    const auto lookaheads = engine::LookaheadNames();
    if (std::find(lookaheads.begin(), lookaheads.end(), speculative.lookahead) == lookaheads.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("lookahead: '{}' does not exist here; use {}", speculative.lookahead,
                              fmt::join(lookaheads, ", ")));
    if (!speculative.num_speculative_tokens)
      speculative.num_speculative_tokens = engine::DefaultCeiling(speculative.lookahead);
    constexpr std::array<std::string_view, 5> kMethods = {"none", "standalone", "eagle", "mtp",
                                                          "ngram"};
    if (!speculative.method.empty() &&
        std::find(kMethods.begin(), kMethods.end(), speculative.method) == kMethods.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("speculative method: '{}' does not exist here; use {}",
                              speculative.method, fmt::join(kMethods, ", ")));
    if ((speculative.method == "standalone" || speculative.method == "eagle") &&
        o.draft_model.empty())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("speculative method: '{}' needs a {}; give one with --model-draft, or "
                      "use ngram",
                      speculative.method, speculative.method == "eagle" ? "head" : "draft model"));
    if (speculative.method == "ngram" && !o.draft_model.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "speculative method: 'ngram' does not use the draft model that is given; drop "
                  "one of them");
    FORETOKEN_CHECK_OK(
        CheckRange("speculative tokens", *speculative.num_speculative_tokens, 0, kMaxDraft));
    if (!(speculative.draft_p_min >= 0 && speculative.draft_p_min <= 1))
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("draft p-min: {} is out of range; use 0 to 1", speculative.draft_p_min));
    FORETOKEN_CHECK_OK(CheckRange("draft vocabulary", speculative.draft_vocabulary, 0, 1 << 24));
    if (speculative.draft_vocabulary > 0 && !speculative.method.empty() &&
        speculative.method != "standalone")
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("draft vocabulary: '{}' drafts without a draft model's output head; "
                              "leave it out, or use standalone",
                              speculative.method));
    if (const auto rate = speculative.synthetic_acceptance_rate;
        rate && !(*rate >= 0 && *rate <= 1))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("synthetic acceptance rate: {} is out of range; use 0 to 1", *rate));
    FORETOKEN_CHECK_OK(CheckRange("n-gram size", speculative.ngram_max, 1, 16));
    FORETOKEN_CHECK_OK(
        CheckRange("smallest n-gram size", speculative.ngram_min, 1, speculative.ngram_max));
    FORETOKEN_CHECK_OK(CheckRange("context size", o.context_size, 0, 1 << 24));
    FORETOKEN_CHECK_OK(CheckRange("sequences", o.max_sequences, 1, 1024));
    FORETOKEN_CHECK_OK(CheckRange("prefill rows", o.prefill_rows, 1, 4096));
    FORETOKEN_TRY(o.threads, engine::ThreadCount(o.threads));
    if (o.isa.empty()) {
      FORETOKEN_TRY(impl_->kernels_, kernels::KernelsFromEnvironment());
    } else {
      FORETOKEN_TRY(const kernels::Isa cap, kernels::ParseIsa(o.isa));
      impl_->kernels_ = &kernels::KernelsFor(cap);
    }
    impl_->pool_ =
        std::make_unique<ThreadPool>(o.threads, o.pin_threads ? UsableCpus() : std::vector<int>());
    return {};
  }

  Status OpenTarget() {
    FORETOKEN_TRY(impl_->checkpoint_, formats::OpenCheckpoint(options().model));
    const auto in_file = [&](Error error) { return Fail(std::move(error).In(options().model)); };
    auto tokenizer = text::Tokenizer::Load(impl_->checkpoint_->metadata());
    if (!tokenizer) return in_file(std::move(tokenizer).error());
    impl_->tokenizer_ = std::move(*tokenizer);
    auto part = Describe(*impl_->checkpoint_, *impl_->tokenizer_);
    if (!part) return in_file(std::move(part).error());
    target_ = std::move(*part);
    if (options().context_size == 0) options().context_size = target_.config.context_length;
    impl_->context_size_ = options().context_size;
    impl_->vocabulary_ = impl_->tokenizer_->vocabulary_size();
    impl_->end_tokens_ = impl_->tokenizer_->end_tokens();
    Size(target_, options().context_size, options().max_sequences * (1 + kMaxDraft));
    return {};
  }

  // Opens what drafts: a model, a head, or the head in the target's own file.
  Status OpenDraft() {
    std::string& method = options().speculative.method;
    if (!options().draft_model.empty() && method != "none") {
      FORETOKEN_TRY(impl_->draft_checkpoint_, formats::OpenCheckpoint(options().draft_model));
    }
    const formats::Checkpoint& file =
        impl_->draft_checkpoint_ ? *impl_->draft_checkpoint_ : *impl_->checkpoint_;
    const model::DraftFile kind = model::KindOfDraft(file);
    if (method.empty()) method = MethodFor(kind);
    if (method == "none" || method == "ngram") return {};
    auto opened = OpenDraftPart(file, kind);
    if (!opened) return Fail(std::move(opened).error().In(file.path()));
    return {};
  }

  // The method where none is named: what the draft's file is, else n-gram lookup.
  std::string MethodFor(model::DraftFile kind) const {
    if (!impl_->draft_checkpoint_) return "ngram";
    if (kind == model::DraftFile::kEagleHead) return "eagle";
    return kind == model::DraftFile::kMtpHead ? "mtp" : "standalone";
  }

  Status OpenDraftPart(const formats::Checkpoint& file, model::DraftFile kind) {
    using model::DraftFile;
    const std::string& method = options().speculative.method;
    const bool fits = method == "eagle" ? kind == DraftFile::kEagleHead
                      : method == "mtp"
                          ? kind == DraftFile::kMtpHead || kind == DraftFile::kModelWithMtpHead
                          : kind == DraftFile::kModel || kind == DraftFile::kModelWithMtpHead;
    constexpr std::array kKinds = {"a whole model", "an EAGLE-3 head", "an MTP head",
                                   "a model with an MTP head"};
    if (!fits && &file == impl_->checkpoint_.get())
      return Fail(ErrorCode::kMismatch,
                  "the model has no MTP head; give one with --model-draft, or use ngram");
    if (!fits)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("this is {}, and '{}' was asked for; give another file, or leave "
                              "--spec-type out",
                              kKinds[static_cast<std::size_t>(kind)], method));
    FORETOKEN_TRY(const auto tokenizer, text::Tokenizer::Load(file.metadata()));
    FORETOKEN_CHECK_OK(CheckSameVocabulary(*impl_->tokenizer_, *tokenizer));
    if (method == "standalone") {
      FORETOKEN_TRY(draft_, Describe(file, *tokenizer));
      FORETOKEN_TRY(draft_tokens_, DraftTokens());
    } else {
      draft_.emplace();
      FORETOKEN_TRY(draft_->config, model::HeadConfigFromFile(file));
      if (draft_->config.vocabulary == 0) draft_->config.vocabulary = target_.config.vocabulary;
    }
    // A draft of a shorter context stops drafting there; beyond its own it would only guess.
    Size(*draft_, std::min(options().context_size, draft_->config.context_length),
         options().max_sequences);
    draft_->options.output_tokens = std::move(draft_tokens_);
    return {};
  }

  // The tokens of the draft's reduced output head; none where it keeps all.
  Result<std::vector<Token>> DraftTokens() const {
    const auto& o = impl_->options_.speculative;
    if (o.draft_vocabulary == 0 || o.draft_vocabulary >= impl_->vocabulary_)
      return std::vector<Token>();
    if (o.draft_vocabulary_sample.empty())
      return text::FrequentTokens(*impl_->tokenizer_, o.draft_vocabulary, "");
    FORETOKEN_TRY(const MappedFile sample, MappedFile::Open(o.draft_vocabulary_sample));
    const auto bytes = sample.bytes();
    return text::FrequentTokens(*impl_->tokenizer_, o.draft_vocabulary,
                                {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  static Result<Part> Describe(const formats::Checkpoint& checkpoint,
                               const text::Tokenizer& tokenizer) {
    Part part;
    FORETOKEN_TRY(part.config, model::ConfigFromMetadata(checkpoint.metadata()));
    FORETOKEN_TRY(part.config.vocabulary, model::VocabularyRows(checkpoint));
    if (tokenizer.vocabulary_size() > part.config.vocabulary)
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format(
              "tokenizer: it has {} tokens, the embedding only {} rows; the file is inconsistent",
              tokenizer.vocabulary_size(), part.config.vocabulary));
    return part;
  }

  void Size(Part& part, int positions, int logit_rows) {
    const auto& o = options();
    part.options = {.max_rows = std::max(o.prefill_rows, o.max_sequences * (1 + kMaxDraft)),
                    .max_logit_rows = logit_rows,
                    .max_positions = positions};
    part.cache = {.n_layers = part.config.n_layers,
                  .n_kv_heads = part.config.n_kv_heads,
                  .head_dim = part.config.head_dim,
                  .k_type = KvTypeOf(o.cache_type_k),
                  .v_type = KvTypeOf(o.cache_type_v),
                  .n_sequences = o.max_sequences,
                  .max_positions = positions};
  }

  Status CheckMemory() {
    const auto bytes = [](const Part& p, const formats::Checkpoint& c) {
      return static_cast<std::int64_t>(kv::Cache::Bytes(p.cache)) + model::ResidentBytes(c);
    };
    const std::int64_t needed =
        bytes(target_, *impl_->checkpoint_) + (draft_ ? bytes(*draft_, DraftFile()) : 0);
    if (needed <= PhysicalMemory()) return {};
    // Scratch and logits are small beside these and only take pages once used.
    constexpr double kGiB = 1 << 30;
    return Fail(ErrorCode::kTooLarge,
                fmt::format("memory: weights and a cache of {} positions for {} sequence(s) need "
                            "{:.1f} GiB, this machine has {:.1f}; lower --ctx-size",
                            options().context_size, options().max_sequences,
                            static_cast<double>(needed) / kGiB,
                            static_cast<double>(PhysicalMemory()) / kGiB));
  }

  Result<std::unique_ptr<model::Model>> Load(const Part& part,
                                             const formats::Checkpoint& checkpoint) {
    const auto progress = [&](double fraction) {
      if (options().on_load_progress) options().on_load_progress({checkpoint.path(), fraction});
    };
    const model::TileCache cache = CacheFor(checkpoint);
    auto loaded = model::Model::Load(
        checkpoint, part.config, part.options, *impl_->kernels_, *impl_->pool_,
        {.cache = &cache, .on_progress = progress, .on_notice = [&](std::string what) {
           summary().notices.push_back(std::move(what));
         }});
    if (!loaded) return Fail(std::move(loaded).error().In(checkpoint.path()));
    return loaded;
  }

  model::TileCache CacheFor(const formats::Checkpoint& checkpoint) {
    const std::string& where = options().repack_cache;
    if (where == "off") return {};
    if (where != "auto") return model::TileCache(where);
    constexpr std::int64_t kWorthKeeping = 64'000'000;
    if (model::ResidentBytes(checkpoint) < kWorthKeeping) return {};
    return model::TileCache(model::TileCache::UserFolder());
  }

  Result<kv::Cache> MakeCache(const Part& part, const formats::Checkpoint& checkpoint) {
    auto cache = kv::Cache::Create(part.cache);
    if (!cache) return Fail(std::move(cache).error().In(checkpoint.path()));
    return cache;
  }

  Status LoadTarget() {
    FORETOKEN_TRY(auto cache, MakeCache(target_, *impl_->checkpoint_));
    impl_->cache_.emplace(std::move(cache));
    FORETOKEN_TRY(impl_->target_, Load(target_, *impl_->checkpoint_));
    return {};
  }

  const formats::Checkpoint& DraftFile() const {
    return impl_->draft_checkpoint_ ? *impl_->draft_checkpoint_ : *impl_->checkpoint_;
  }

  Status MakeDrafter() {
    const auto& o = options();
    if (o.speculative.method == "none") {
      impl_->drafter_ = std::make_unique<draft::NoneDrafter>();
      return {};
    }
    if (o.speculative.method == "ngram") {
      impl_->drafter_ = std::make_unique<draft::NgramDrafter>(
          o.max_sequences, o.speculative.ngram_max, o.speculative.ngram_min, o.context_size);
      return {};
    }
    FORETOKEN_TRY(auto cache, MakeCache(*draft_, DraftFile()));
    FORETOKEN_TRY(auto model, LoadDraft());
    draft_weight_bytes_ = model->weight_bytes();
    const bool head = draft_->config.head.has_value();
    if (head)
      impl_->drafter_ = std::make_unique<draft::HeadDrafter>(
          std::move(model), std::move(cache), impl_->vocabulary_, kMaxDraft, *impl_->kernels_);
    else
      impl_->drafter_ = std::make_unique<draft::DraftModel>(
          std::move(model), std::move(cache), impl_->vocabulary_, kMaxDraft, *impl_->kernels_);
    if (const auto needs = impl_->drafter_->Needs(); needs.parts() > 0)
      impl_->target_->KeepFeatures(needs);
    return {};
  }

  Result<std::unique_ptr<model::Model>> LoadDraft() {
    if (!draft_->config.head) return Load(*draft_, DraftFile());
    auto loaded = model::Model::LoadHead(DraftFile(), draft_->config, draft_->options,
                                         *impl_->kernels_, *impl_->pool_, *impl_->target_);
    if (!loaded) return Fail(std::move(loaded).error().In(DraftFile().path()));
    return loaded;
  }

  void MakeVerifiers() {
    const auto make = [](const char* name) { return std::move(*verify::MakeVerifier(name)); };
    impl_->greedy_ = make("greedy");
    impl_->residual_ = make("residual");
    impl_->sample_match_ = make("sample-match");
    const auto& o = options().speculative;
    if (o.synthetic_acceptance_rate)
      impl_->synthetic_ = std::make_unique<verify::Synthetic>(
          *o.synthetic_acceptance_rate, std::max(1, *o.num_speculative_tokens));
  }

  // A strategy asked for by name that judges by the drafter's law needs a drafter that reports one.
  Status CheckStrategy() const {
    const draft::Drafter& drafter = *impl_->drafter_;
    const verify::Verifier& residual = *impl_->residual_;
    const bool asked = impl_->options_.speculative.strategy == VerifyStrategy::kResidual;
    if (!asked || !residual.NeedsLaws() || drafter.ReportsLaws() || drafter.name() == "none")
      return {};
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("verify: '{}' needs a drafter that reports its law, and {} reports "
                            "none; use sample-match",
                            residual.name(), drafter.name()));
  }

  // Everything a step writes gets its memory now.
  void MakeRoom() {
    Engine::Impl& i = *impl_;
    const auto n = static_cast<std::size_t>(options().max_sequences),
               rows = static_cast<std::size_t>(target_.options.max_rows);
    i.sequences_.resize(n);
    i.work_.reserve(n), i.asks_.reserve(n), i.proposals_.reserve(n), i.segments_.reserve(n),
        i.rows_.reserve(n), i.kept_.reserve(n);
    i.verdicts_.reserve(n), i.observations_.reserve(n);
    i.tokens_.reserve(rows), i.logit_rows_.reserve(rows);
    i.events_.resize(kMaxDraft + 1);
    i.judge_scratch_ =
        AlignedBuffer<float>(2 * static_cast<std::size_t>((i.vocabulary_ + 15) / 16 * 16));
    i.logprobs_.emplace(i.vocabulary_, *i.kernels_);
    const double draft_share =
        static_cast<double>(draft_weight_bytes_) / static_cast<double>(i.target_->weight_bytes());
    i.costs_.emplace(target_.options.max_rows, draft_share);
  }

  static void SummarisePart(const Part& part, const formats::Checkpoint& checkpoint,
                            std::int64_t weight_bytes, int vocabulary, ModelSummary& out) {
    out.path = checkpoint.path();
    if (const auto* name = checkpoint.metadata().String("general.name")) out.name = *name;
    out.architecture = part.config.architecture;
    out.type = engine::WeightType(checkpoint);
    out.parameters = engine::ParameterCount(checkpoint);
    out.file_bytes = static_cast<std::int64_t>(checkpoint.file_bytes());
    out.weight_bytes = weight_bytes;
    out.cache_bytes = static_cast<std::int64_t>(kv::Cache::Bytes(part.cache));
    out.vocabulary_size = vocabulary;
    out.context_length = part.config.context_length;
    out.context_size = part.cache.max_positions;
  }

  void Summarise() {
    EngineSummary& s = summary();
    SummarisePart(target_, *impl_->checkpoint_, impl_->target_->weight_bytes(), impl_->vocabulary_,
                  s.target);
    if (draft_) {
      s.draft = std::make_unique<ModelSummary>();
      SummarisePart(*draft_, DraftFile(), draft_weight_bytes_, impl_->vocabulary_, *s.draft);
    }
    s.isa = impl_->kernels_->isa;
    s.threads = options().threads;
    s.method = options().speculative.method;
    constexpr std::array<const char*, 4> kStrategies = {"auto", "greedy", "residual",
                                                        "sample-match"};
    s.strategy = kStrategies[static_cast<std::size_t>(options().speculative.strategy)];
    if (impl_->synthetic_) {
      s.strategy = impl_->synthetic_->name();
      s.lossless = false;
    }
    s.lookahead = options().speculative.lookahead;
    s.num_speculative_tokens =
        s.method == "none" ? 0 : *options().speculative.num_speculative_tokens;
  }

  std::unique_ptr<Engine::Impl> impl_;
  Part target_;
  std::optional<Part> draft_;
  std::vector<Token> draft_tokens_;  // of its reduced output head
  std::int64_t draft_weight_bytes_ = 0;
};

Result<std::unique_ptr<Engine::Impl>> Engine::Impl::Open(EngineOptions options) {
  return EngineOpener(std::move(options)).Open();
}

}  // namespace foretoken
