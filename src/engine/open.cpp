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
#include "draft/custom_drafter.h"
#include "draft/draft_model.h"
#include "draft/grammar_drafter.h"
#include "draft/head_drafter.h"
#include "draft/ngram.h"
#include "draft/prediction.h"
#include "draft/suffix.h"
#include "engine/impl.h"
#include "engine/thread_count.h"
#include "engine/vocabulary_difference.h"
#include "engine/weight_type.h"
#include "foretoken/drafter.h"
#include "foretoken/speculative_config.h"
#include "foretoken/verifier.h"
#include "kernels/dispatch.h"
#include "model/arch/registry.h"
#include "text/frequent_tokens.h"
#include "text/unicode.h"
#include "verify/custom_verifier.h"
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

static_assert(verify::Synthetic::kMaxDraft == kMaxDraft);
constexpr int kLeastCacheTokens = 128;  // a whole draft fits, and a little text

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
    FORETOKEN_CHECK_OK(MakeDrafters());
    FORETOKEN_CHECK_OK(CheckStrategy());
    MakeRoom();
    Summarise();
    FORETOKEN_CHECK_OK(impl_->OpenRecord());
    FORETOKEN_CHECK_OK(impl_->LearnCostsAtStart());
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
    FORETOKEN_TRY(const bool own, TakeOwnMethod());
    FORETOKEN_TRY(const auto config, SpeculativeConfig::Create(speculative));
    speculative = config.options();
    if (own) {
      if (!speculative.method.empty()) speculative.method += ',';
      speculative.method += o.drafter->name();
    }
    FORETOKEN_CHECK_OK(CheckOwnVerifier());
    if (!speculative.num_speculative_tokens)
      speculative.num_speculative_tokens = engine::DefaultCeiling(speculative);
    SplitMethods();
    if ((Wants("standalone") || Wants("eagle")) && o.draft_model.empty())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("speculative method: '{}' needs a {}; give one with --model-draft, or "
                      "use ngram",
                      speculative.method, Wants("eagle") ? "head" : "draft model"));
    const bool reads_file = speculative.method.empty() || Wants("none") || Wants("portfolio") ||
                            Wants("standalone") || Wants("eagle") || Wants("mtp");
    if (!reads_file && !o.draft_model.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("speculative method: '{}' does not use the draft model that is "
                              "given; drop one of them",
                              speculative.method));
    FORETOKEN_CHECK_OK(CheckRange("context size", o.context_size, 0, 1 << 24));
    FORETOKEN_CHECK_OK(CheckRange("sequences", o.max_sequences, 1, 1024));
    FORETOKEN_CHECK_OK(CheckRange("prefill rows", o.prefill_rows, 1, 4096));
    if (o.cache_tokens != 0)
      FORETOKEN_CHECK_OK(CheckRange("cache tokens", o.cache_tokens, kLeastCacheTokens, 1 << 30));
    if (!o.kv_cache && !o.record.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "kv cache: a trace tells what rounds with a cache cost; leave the cache on, or "
                  "record nothing");
    o.prefix_cache &= o.kv_cache;
    FORETOKEN_TRY(o.threads, engine::ThreadCount(o.threads));
    FORETOKEN_TRY(impl_->kernels_, kernels::KernelsByName(o.isa));
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
    FORETOKEN_CHECK_OK(SetEndTokens());
    Size(target_, options().context_size, options().max_sequences * (1 + kMaxDraft));
    target_.cache.n_positions = options().cache_tokens;
    return {};
  }

  Status SetEndTokens() {
    impl_->end_tokens_ =
        options().end_tokens.empty() ? impl_->tokenizer_->end_tokens() : options().end_tokens;
    for (const Token id : impl_->end_tokens_)
      if (id < 0 || id >= impl_->vocabulary_)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("end tokens: {} is not in the vocabulary; use 0 to {}", id,
                                impl_->vocabulary_ - 1));
    return {};
  }

  // Whether the program's own drafter is among the methods; it is then taken out of them, for
  // SpeculativeConfig knows foretoken's alone.
  Result<bool> TakeOwnMethod() {
    if (!options().drafter) return false;
    const std::string name(options().drafter->name());
    FORETOKEN_CHECK_OK(CheckOwnName("drafter", name));
    constexpr std::array<std::string_view, 13> kTaken = {
        "auto",  "caller", "draft",  "draft-simple", "eagle",      "mtp",       "grammar",
        "ngram", "none",   "suffix", "portfolio",    "prediction", "standalone"};
    if (std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("drafter: '{}' is the name of a method of foretoken's; use another", name));
    std::string& methods = options().speculative.method;
    bool found = methods.empty();
    std::string others;
    for (std::size_t at = 0; at < methods.size();) {
      const std::size_t comma = std::min(methods.find(',', at), methods.size());
      const std::string method = methods.substr(at, comma - at);
      at = comma + 1;
      found |= method == name;
      if (method != name) others += (others.empty() ? "" : ",") + method;
    }
    methods = others;
    return found;
  }

  Status CheckOwnVerifier() {
    if (!options().verifier) return {};
    FORETOKEN_CHECK_OK(CheckOwnName("verifier", std::string(options().verifier->name())));
    if (options().speculative.strategy == VerifyStrategy::kAuto) return {};
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("verifier: '{}' is given, and the strategy '{}' too; drop one of them",
                            options().verifier->name(), Name(options().speculative.strategy)));
  }

  static Status CheckOwnName(const char* what, const std::string& name) {
    const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    });
    if (good) return {};
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: '{}' is no name; use letters, digits, '-' and '_'", what, name));
  }

  void SplitMethods() {
    const std::string& all = options().speculative.method;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t comma = std::min(all.find(',', at), all.size());
      methods_.push_back(all.substr(at, comma - at));
      at = comma + 1;
    }
  }
  bool Wants(std::string_view method) const {
    return std::find(methods_.begin(), methods_.end(), method) != methods_.end();
  }

  // Opens what drafts: a model, a head, or the head in the target's own file.
  Status OpenDraft() {
    if (!options().draft_model.empty() && !Wants("none")) {
      FORETOKEN_TRY(impl_->draft_checkpoint_, formats::OpenCheckpoint(options().draft_model));
    }
    const formats::Checkpoint& file =
        impl_->draft_checkpoint_ ? *impl_->draft_checkpoint_ : *impl_->checkpoint_;
    const model::DraftFile kind = model::KindOfDraft(file);
    std::string& method = options().speculative.method;
    if (method.empty()) {
      method = MethodFor(kind);
      SplitMethods();
    }
    for (const char* name : {"standalone", "eagle", "mtp"})
      if (Wants(name)) draft_method_ = name;
    if (Wants("portfolio") && draft_method_.empty() && impl_->draft_checkpoint_)
      draft_method_ = MethodFor(kind);
    if (draft_method_.empty()) return {};
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
    const std::string& method = draft_method_;
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
    FORETOKEN_CHECK_OK(CompareVocabularies(*tokenizer));
    if (method == "standalone") {
      FORETOKEN_TRY(draft_, Describe(file, *tokenizer));
      FORETOKEN_TRY(draft_tokens_, DraftTokens());
    } else {
      FORETOKEN_TRY(draft_, DescribeHead(file));
    }
    // A draft of a shorter context stops drafting there; beyond its own it would only guess.
    Size(*draft_, std::min(options().context_size, draft_->config.context_length),
         options().max_sequences);
    draft_->options.output_tokens = std::move(draft_tokens_);
    return {};
  }

  // What of the target's vocabulary the draft shares.
  Status CompareVocabularies(const text::Tokenizer& draft) {
    VocabularyDifference difference = engine::CompareVocabularies(*impl_->tokenizer_, draft);
    if (const std::string why = difference.obstacle(); !why.empty())
      return Fail(ErrorCode::kMismatch, "draft model: " + why);
    if (difference.shared() < difference.target)
      summary().notices.push_back(
          fmt::format("draft model: its vocabulary is not quite the target's: {}; the target's "
                      "other tokens are never drafted",
                      difference.Describe()));
    shared_ = {difference.target, difference.draft, std::move(difference.differing)};
    return {};
  }

  Result<Part> DescribeHead(const formats::Checkpoint& file) {
    Part part;
    FORETOKEN_TRY(part.config, model::HeadConfigFromFile(file));
    if (part.config.vocabulary == 0) part.config.vocabulary = target_.config.vocabulary;
    // Without a map of its columns, column i is token i of the head's vocabulary.
    if (part.config.vocabulary < shared_.drafter && file.Find("d2t") == nullptr)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("its output head has {} rows, its vocabulary {} tokens, and no "
                              "tensor d2t maps them; give another head",
                              part.config.vocabulary, shared_.drafter));
    return part;
  }

  // The tokens of the draft's reduced output head; none where it keeps all.
  Result<std::vector<Token>> DraftTokens() const {
    const auto& o = impl_->options_.speculative;
    if (o.draft_vocabulary == 0 || o.draft_vocabulary >= impl_->vocabulary_)
      return std::vector<Token>();
    std::vector<Token> tokens;
    if (o.draft_vocabulary_sample.empty()) {
      tokens = text::FrequentTokens(*impl_->tokenizer_, o.draft_vocabulary, "");
    } else {
      FORETOKEN_TRY(const MappedFile sample, MappedFile::Open(o.draft_vocabulary_sample));
      const auto bytes = sample.bytes();
      tokens = text::FrequentTokens(*impl_->tokenizer_, o.draft_vocabulary,
                                    {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    std::erase_if(tokens, [this](Token token) { return !shared_.Has(token); });
    return tokens;
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

  // A draft model or head where there is one, and all drafters that need no model: a request may
  // choose any of them.
  Status MakeDrafters() {
    const auto& o = options();
    if (draft_) FORETOKEN_CHECK_OK(MakeModelDrafter());
    FORETOKEN_TRY(const std::vector<Token> corpus, CorpusTokens());
    AddInstant(std::make_unique<draft::NgramDrafter>(
        draft::NgramSettings{.max_sequences = o.max_sequences,
                             .max_context = o.context_size,
                             .ngram_max = o.speculative.ngram_max,
                             .ngram_min = o.speculative.ngram_min,
                             .storage = o.speculative.ngram_storage,
                             .filler_top_k = o.speculative.ngram_filler_top_k,
                             .keep = o.speculative.ngram_keep,
                             .corpus = corpus}));
    AddInstant(std::make_unique<draft::SuffixDrafter>(
        draft::SuffixSettings{.max_sequences = o.max_sequences,
                              .max_context = o.context_size,
                              .max_tokens = o.speculative.suffix_max_tokens}));
    AddInstant(std::make_unique<draft::PredictionDrafter>(o.max_sequences, o.context_size));
    AddInstant(std::make_unique<draft::GrammarDrafter>(o.max_sequences));
    if (o.drafter) AddOwnDrafter();
    for (auto& entry : impl_->drafters_) entry.reads_features = entry.drafter->Needs().parts() > 0;
    FORETOKEN_TRY(impl_->default_drafters_, impl_->DraftersOf(o.speculative.method));
    return {};
  }

  void AddOwnDrafter() {
    auto drafter = std::make_unique<draft::CustomDrafter>(
        options().drafter, draft::CustomSettings{.max_sequences = options().max_sequences,
                                                 .vocabulary = impl_->vocabulary_,
                                                 .max_draft = kMaxDraft,
                                                 .kernels = impl_->kernels_,
                                                 .on_fault = Notice()});
    const std::string_view method = drafter->name();
    impl_->drafters_.push_back({method, std::move(drafter), false});
  }

  // Faults of the program's own parts, while the engine lives.
  std::function<void(std::string)> Notice() {
    return [impl = impl_.get()](std::string what) {
      impl->summary_.notices.push_back(std::move(what));
    };
  }

  void AddInstant(std::unique_ptr<draft::Drafter> drafter) {
    const std::string_view method = drafter->name();
    impl_->drafters_.push_back({method, std::move(drafter), true});
  }

  // The n-gram drafter's text.
  Result<std::vector<Token>> CorpusTokens() const {
    const std::string& path = impl_->options_.speculative.ngram_corpus;
    if (path.empty()) return std::vector<Token>();
    FORETOKEN_TRY(const MappedFile file, MappedFile::Open(path));
    const auto bytes = file.bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!text::IsText(text))
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("n-gram corpus: {} is not UTF-8 text; give a text file", path));
    return impl_->tokenizer_->Encode(text, {.add_special = false, .parse_special = false});
  }

  Status MakeModelDrafter() {
    FORETOKEN_TRY(auto cache, MakeCache(*draft_, DraftFile()));
    FORETOKEN_TRY(auto model, LoadDraft());
    draft_weight_bytes_ = model->weight_bytes();
    std::unique_ptr<draft::Drafter> drafter;
    if (draft_->config.head)
      drafter = std::make_unique<draft::HeadDrafter>(std::move(model), std::move(cache), shared_,
                                                     kMaxDraft, *impl_->kernels_);
    else
      drafter =
          std::make_unique<draft::DraftModel>(std::move(model), std::move(cache), shared_,
                                              kMaxDraft, *impl_->kernels_, options().kv_cache);
    if (const auto needs = drafter->Needs(); needs.parts() > 0) impl_->target_->KeepFeatures(needs);
    const std::string_view method = drafter->name();
    impl_->drafters_.push_back({method, std::move(drafter), false});
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
    const auto& o = options().speculative;
    impl_->rules_.emplace(o);
    if (options().verifier)
      impl_->own_verifier_ = std::make_unique<verify::CustomVerifier>(
          options().verifier,
          verify::CustomSettings{.vocabulary = impl_->vocabulary_, .on_fault = Notice()});
    if (o.synthetic_acceptance_rate)
      impl_->synthetic_ = std::make_unique<verify::Synthetic>(*o.synthetic_acceptance_rate);
  }

  // A strategy asked for by name must fit the drafters of a request that names none itself.
  Status CheckStrategy() const {
    Request request;
    if (impl_->options_.speculative.strategy == VerifyStrategy::kGreedy)
      request.sampling.temperature = 0;
    return impl_->CheckSpeculation(request);
  }

  // Everything a step writes gets its memory now.
  void MakeRoom() {
    Engine::Impl& i = *impl_;
    const auto n = static_cast<std::size_t>(options().max_sequences),
               rows = static_cast<std::size_t>(target_.options.max_rows);
    i.sequences_.resize(n);
    i.order_.reserve(n), i.prompts_.reserve(n);
    i.work_.reserve(n), i.asks_.reserve(n), i.proposals_.reserve(n), i.segments_.reserve(n),
        i.rows_.reserve(n), i.kept_.reserve(n);
    i.verdicts_.reserve(n), i.plans_.reserve(n), i.asked_.reserve(n);
    i.offers_.reserve(n * i.drafters_.size()), i.offered_.reserve(n * i.drafters_.size());
    i.observations_.resize(i.drafters_.size());
    for (auto& observations : i.observations_) observations.reserve(n);
    i.tokens_.reserve(rows), i.logit_rows_.reserve(rows);
    i.events_.resize(kMaxDraft + 1);
    i.judge_scratch_ =
        AlignedBuffer<float>(2 * static_cast<std::size_t>((i.vocabulary_ + 15) / 16 * 16));
    i.logprobs_.emplace(i.vocabulary_, *i.kernels_);
    for (const auto& entry : i.drafters_)
      i.n_likely_ = std::max(i.n_likely_, entry.drafter->LikelyTokens());
    i.likely_.resize(rows * static_cast<std::size_t>(i.n_likely_));
    i.prompt_rows_.emplace(options().prefill_rows);
    i.costs_.emplace(target_.options.max_rows, static_cast<int>(i.drafters_.size()),
                     static_cast<int>(i.sequences_.size()));
    i.fixed_costs_.emplace(target_.options.max_rows, static_cast<int>(i.drafters_.size()));
    i.lookahead_ = engine::MakeLookahead(
        {.name = options().speculative.lookahead,
         .max_sequences = options().max_sequences,
         .n_drafters = static_cast<int>(i.drafters_.size()),
         .ewma = options().speculative.ewma,
         .batch_sizes = options().speculative.num_speculative_tokens_per_batch_size,
         .costs = &*i.costs_,
         .fixed_costs = &*i.fixed_costs_});
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
      SummarisePart(*draft_, DraftFile(), draft_weight_bytes_, shared_.drafter, *s.draft);
    }
    s.isa = impl_->kernels_->isa;
    s.threads = options().threads;
    s.method = options().speculative.method;
    s.strategy = Name(options().speculative.strategy);
    if (impl_->synthetic_) s.strategy = impl_->synthetic_->name();
    s.lossless = !impl_->synthetic_ && StrategyIsLossless();
    if (impl_->own_verifier_ && !impl_->synthetic_) {
      s.strategy = impl_->own_verifier_->name();
      s.lossless = impl_->own_verifier_->Lossless();
    }
    s.strategies = impl_->StrategyNames();
    s.lookahead = options().speculative.lookahead;
    NoteByText();
    s.num_speculative_tokens =
        s.method == "none" ? 0 : *options().speculative.num_speculative_tokens;
  }

  // Where a rule is set for all requests whose text depends on the drafts.
  void NoteByText() {
    const auto& o = options().speculative;
    Request warm;
    warm.sampling.temperature = 1;
    const bool set = o.strategy != VerifyStrategy::kAuto || impl_->own_verifier_;
    if (!set || impl_->default_drafters_.empty() ||
        (o.lookahead != "cost-model" && o.lookahead != "batch-size") ||
        !impl_->FollowsDrafts(warm, impl_->VerifierFor(warm)))
      return;
    summary().notices.push_back(
        fmt::format("draft lengths: with '{}' the text depends on the drafts; above temperature 0 "
                    "by-text chooses lengths in place of {}, so that a seed gives the same text "
                    "again; a profile (--profile) tells it what passes cost here",
                    summary().strategy, o.lookahead));
  }

  // kAuto may choose residual, and else what is lossless in any case.
  bool StrategyIsLossless() const {
    const VerifyStrategy set = impl_->options_.speculative.strategy;
    return impl_->VerifierOf(set == VerifyStrategy::kAuto ? VerifyStrategy::kResidual : set)
        .Lossless();
  }

  std::unique_ptr<Engine::Impl> impl_;
  std::vector<std::string> methods_;  // of the options
  std::string draft_method_;          // of them, the one that reads a model's or head's file
  Part target_;
  std::optional<Part> draft_;
  draft::SharedTokens shared_ = 0;   // of the draft's vocabulary and the target's
  std::vector<Token> draft_tokens_;  // of its reduced output head
  std::int64_t draft_weight_bytes_ = 0;
};

Result<std::unique_ptr<Engine::Impl>> Engine::Impl::Open(EngineOptions options) {
  return EngineOpener(std::move(options)).Open();
}

}  // namespace foretoken
