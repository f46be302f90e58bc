// SPDX-License-Identifier: Apache-2.0
// Builds an engine: everything that can be wrong with files, options and their combination is found
// here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/machine/cpus.h"
#include "base/machine/stack.h"
#include "base/machine/thread_count.h"
#include "calibrate/initial_costs.h"
#include "draft/custom_drafter.h"
#include "draft/registry.h"
#include "engine/impl.h"
#include "foretoken/drafter.h"
#include "foretoken/limits.h"
#include "foretoken/methods.h"
#include "foretoken/speculative_config.h"
#include "foretoken/text_file.h"
#include "foretoken/verifier.h"
#include "kernels/dispatch.h"
#include "loader/model_part.h"
#include "loader/opened_drafter.h"
#include "model/arch/registry.h"
#include "text/frequent_tokens.h"
#include "text/tokenizer/unicode.h"
#include "text/vocabulary_difference.h"
#include "verify/custom_verifier.h"
#include "verify/strategies/synthetic.h"

namespace foretoken {
namespace {

Status CheckRange(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} is out of range; use {} to {}", name, value, least, most));
}

constexpr std::size_t kStackBytes = 1 << 20;  // a pass needs up to 700 KiB (AMX)
constexpr int kLeastCacheTokens = 128;        // a whole draft fits, and a little text

}  // namespace

class EngineOpener {
 public:
  EngineOpener(EngineOptions options) : impl_(new Engine::Impl) {
    impl_->opened_.options = std::move(options);
  }

  Result<std::unique_ptr<Engine::Impl>> Open() {
    const auto begin = std::chrono::steady_clock::now();
    if (!ReserveStack(kStackBytes)) return Fail(NoMemory("engine"));
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
  // A model or head that drafts, while the engine is being opened.
  struct Draft {
    const formats::Checkpoint* file = nullptr;  // the engine owns it; its target's own for some
    const draft::DrafterSpec* spec = nullptr;   // what drafts with it
    std::string name = {}, full_name = {};      // as in DrafterEntry
    loader::ModelPart part = {};
    draft::SharedTokens shared = 0;  // of its vocabulary and the target's
    std::vector<Token> tokens = {};  // of its reduced output head
    std::int64_t weight_bytes = 0;
  };

  engine::Opened& opened() const { return impl_->opened_; }
  EngineOptions& options() const { return opened().options; }
  EngineSummary& summary() const { return opened().summary; }
  const engine::Verifiers& verifiers() const { return impl_->speculation_->verifiers(); }

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
      speculative.num_speculative_tokens = draft_length::DefaultCeiling(speculative);
    FORETOKEN_CHECK_OK(CheckDraftFiles());
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
    FORETOKEN_TRY(o.threads, ThreadCount(o.threads));
    FORETOKEN_TRY(opened().kernels, kernels::KernelsByName(o.isa));
    opened().pool =
        std::make_unique<ThreadPool>(o.threads, o.pin_threads ? UsableCpus() : std::vector<int>());
    return {};
  }

  // By the options alone, before a file is opened.
  Status CheckDraftFiles() {
    const std::vector<std::string> files = options().DraftFiles();
    const std::string& method = options().speculative.method;
    if (const DrafterInfo* const reader = FileReader(method, true); reader && files.empty())
      return NoFileFor(*reader);
    const bool reads_file =
        method.empty() || Wants("none") || Wants("portfolio") || FileReader(method) != nullptr;
    if (!reads_file && !files.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("speculative method: '{}' does not use the draft model that is "
                              "given; drop one of them",
                              Shown(method)));
    for (auto file = files.begin(); file != files.end(); ++file)
      if (std::find(files.begin(), file, *file) != file)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("draft models: {} is given twice; leave one out", *file));
    return {};
  }

  tl::unexpected<Error> NoFileFor(const DrafterInfo& drafter) const {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("speculative method: '{}' needs a {}; give one with --model-draft, or "
                            "use ngram",
                            options().speculative.method, FileOf(drafter)));
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
    if (options().context_size == 0) options().context_size = target_.config.context_length;
    opened().context = options().context_size;
    opened().vocabulary = opened().tokenizer->vocabulary_size();
    FORETOKEN_CHECK_OK(SetEndTokens());
    FORETOKEN_CHECK_OK(CheckOwnDrafter());
    Size(target_, options().context_size, options().max_sequences * (1 + kMaxDraft),
         options().cache_tokens);
    return {};
  }

  Status SetEndTokens() {
    opened().end_tokens =
        options().end_tokens.empty() ? opened().tokenizer->end_tokens() : options().end_tokens;
    for (const Token id : opened().end_tokens)
      if (id < 0 || id >= opened().vocabulary)
        return Fail(ErrorCode::kInvalidArgument,
                    fmt::format("end tokens: {} is not in the vocabulary; use 0 to {}", id,
                                opened().vocabulary - 1));
    return {};
  }

  // Whether the program's own drafter is among the methods; it is then taken out of them, for
  // SpeculativeConfig knows foretoken's alone.
  Result<bool> TakeOwnMethod() {
    if (!options().drafter) return false;
    const std::string name(options().drafter->name());
    FORETOKEN_CHECK_OK(CheckOwnName("drafter", name));
    constexpr std::array<std::string_view, 5> kTaken = {"auto", "caller", "none", "null",
                                                        "portfolio"};
    if (FindDrafter(name) != nullptr ||
        std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("drafter: '{}' is the name of a method of foretoken's; use another",
                              Shown(name)));
    std::string& methods = options().speculative.method;
    bool found = methods.empty();
    std::string others;
    for (const std::string_view method : MethodItems(methods)) {
      found |= method == name;
      if (method != name) others += fmt::format("{}{}", others.empty() ? "" : ",", method);
    }
    methods = others;
    return found;
  }

  // Whether the program's own drafter can serve this target and so many requests.
  Status CheckOwnDrafter() const {
    const auto& own = options().drafter;
    if (!own) return {};
    const auto [sequences, vocabulary] = own->limits();
    const auto in_drafter = [&](std::string why) {
      return Fail(ErrorCode::kMismatch, fmt::format("drafter '{}': {}", Shown(own->name()), why));
    };
    if (sequences > 0 && sequences < options().max_sequences)
      return in_drafter(
          fmt::format("it drafts for {} text(s) at a time, and the engine runs {}; "
                      "make it for as many",
                      sequences, options().max_sequences));
    if (const auto* const model = dynamic_cast<const OpenedDrafter*>(own.get())) {
      const VocabularyDifference difference =
          text::CompareVocabularies(*opened().tokenizer, model->tokenizer());
      if (!difference.same())
        return in_drafter(
            fmt::format("its vocabulary is not the target's: {}; give its file as "
                        "the draft model, which takes the tokens that both share",
                        difference.Describe()));
    }
    if (vocabulary > 0 && vocabulary != opened().vocabulary)
      return in_drafter(
          fmt::format("it drafts from {} tokens, and the target has {}; use one for "
                      "this vocabulary",
                      vocabulary, opened().vocabulary));
    return {};
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
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: '{}' is not a name; use letters, digits, '-' and '_'", what, Shown(name)));
  }

  bool Wants(std::string_view drafter) const {
    return UsesMethod(options().speculative.method, drafter);
  }

  // Opens what drafts: models, heads, the head in the target's own file.
  Status OpenDrafts() {
    std::vector<std::string> paths = options().DraftFiles();
    if (Wants("none")) paths.clear();
    for (const std::string& path : paths) {
      FORETOKEN_TRY(auto file, formats::OpenCheckpoint(path));
      drafts_.push_back({.file = file.get()});
      opened().draft_checkpoints.push_back(std::move(file));
    }
    if (options().speculative.method.empty()) ChooseMethods();
    for (Draft& draft : drafts_) {
      auto spec = SpecFor(model::KindOfDraft(*draft.file));
      if (!spec) return Fail(std::move(spec).error().In(draft.file->path()));
      draft.spec = *spec;
    }
    for (const draft::DrafterSpec* const spec : draft::Specs()) {
      const bool has_file = std::any_of(drafts_.begin(), drafts_.end(),
                                        [&](const Draft& draft) { return draft.spec == spec; });
      if (!spec->info.reads_file || has_file || !Wants(spec->info.name)) continue;
      if (!spec->info.in_target) return NoFileFor(spec->info);
      drafts_.push_back({.file = opened().checkpoint.get(), .spec = spec});
    }
    for (Draft& draft : drafts_)
      if (auto opened = OpenDraftPart(draft); !opened)
        return Fail(std::move(opened).error().In(draft.file->path()));
    NameDrafts();
    return {};
  }

  // The methods where none is named: what the drafts' files are, else n-gram lookup.
  void ChooseMethods() {
    std::string& methods = options().speculative.method;
    for (const Draft& draft : drafts_) {
      const auto readers = ReadersOf(model::KindOfDraft(*draft.file));
      const std::string_view usual = readers.front()->info.name;
      if (!UsesMethod(methods, usual))
        methods += fmt::format("{}{}", methods.empty() ? "" : ",", usual);
    }
    if (methods.empty()) methods = "ngram";
  }

  // The drafters that can read a file of this kind, the usual one first.
  static std::vector<const draft::DrafterSpec*> ReadersOf(model::DraftFile kind) {
    std::vector<const draft::DrafterSpec*> readers;
    for (const draft::DrafterSpec* const spec : draft::Specs())
      if (spec->ReadsA(kind)) readers.push_back(spec);
    return readers;
  }

  // The first one that is wanted.
  Result<const draft::DrafterSpec*> SpecFor(model::DraftFile kind) const {
    for (const draft::DrafterSpec* const spec : ReadersOf(kind))
      if (Wants(spec->info.name) || Wants("portfolio")) return spec;
    constexpr std::array kKinds = {"a whole model", "an EAGLE-3 head", "an MTP head",
                                   "a model with an MTP head"};
    std::vector<std::string_view> wanted;
    for (const DrafterInfo* const drafter : AllDrafters())
      if (drafter->reads_file && Wants(drafter->name)) wanted.push_back(drafter->name);
    return Fail(ErrorCode::kMismatch,
                fmt::format("this is {}, and '{}' was asked for; give another file, or leave "
                            "--spec-type out",
                            kKinds[static_cast<std::size_t>(kind)], fmt::join(wanted, ",")));
  }

  // Where several draft by one method their files' names tell them apart, and numbers where those
  // are equal too.
  void NameDrafts() {
    for (auto draft = drafts_.begin(); draft != drafts_.end(); ++draft) {
      const std::string_view method = draft->spec->info.name;
      const std::string plain = fmt::format("{}:{}", method, FileName(draft->file->path()));
      const auto taken = [&] {
        return std::any_of(drafts_.begin(), draft,
                           [&](const Draft& other) { return other.full_name == draft->full_name; });
      };
      draft->full_name = plain;
      for (int i = 2; taken(); ++i) draft->full_name = fmt::format("{}-{}", plain, i);
      const auto alike = std::count_if(drafts_.begin(), drafts_.end(), [&](const Draft& other) {
        return other.spec == draft->spec;
      });
      draft->name = alike > 1 ? draft->full_name : method;
    }
  }

  // Without folder and .gguf, and without commas, which part the names of methods.
  static std::string FileName(const std::string& path) {
    std::string name = path.substr(path.rfind('/') + 1);
    if (name.ends_with(".gguf")) name.resize(name.size() - 5);
    std::replace(name.begin(), name.end(), ',', '_');
    return name;
  }

  Status OpenDraftPart(Draft& draft) {
    const formats::Checkpoint& file = *draft.file;
    if (&file == opened().checkpoint.get() &&
        model::KindOfDraft(file) != model::DraftFile::kModelWithMtpHead)
      return Fail(ErrorCode::kMismatch,
                  "the model has no MTP head; give one with --model-draft, or use ngram");
    FORETOKEN_TRY(const auto tokenizer, text::Tokenizer::Load(file.metadata()));
    FORETOKEN_CHECK_OK(CompareVocabularies(draft, *tokenizer));
    loader::ModelPart& part = draft.part;
    if (!draft.spec->info.reads_features) {
      FORETOKEN_TRY(part, loader::DescribeModel(file, *tokenizer));
      FORETOKEN_TRY(draft.tokens, DraftTokens(draft.shared));
    } else {
      FORETOKEN_TRY(part, DescribeHead(draft));
    }
    // A draft of a shorter context stops drafting there; beyond its own it would only guess.
    Size(part, std::min(options().context_size, part.config.context_length),
         options().max_sequences);
    part.options.output_tokens = draft.tokens;
    return {};
  }

  // What of the target's vocabulary the draft shares.
  Status CompareVocabularies(Draft& draft, const text::Tokenizer& tokenizer) {
    VocabularyDifference difference = text::CompareVocabularies(*opened().tokenizer, tokenizer);
    if (const std::string why = difference.obstacle(); !why.empty())
      return Fail(ErrorCode::kMismatch, "draft model: " + why);
    if (difference.shared() < difference.target)
      summary().notices.push_back(
          fmt::format("draft model: its vocabulary is not quite the target's: {}; the target's "
                      "other tokens are never drafted",
                      difference.Describe()));
    draft.shared = {difference.target, difference.draft, std::move(difference.differing)};
    return {};
  }

  Result<loader::ModelPart> DescribeHead(const Draft& draft) const {
    loader::ModelPart part;
    FORETOKEN_TRY(part.config, model::HeadConfigFromFile(*draft.file));
    if (part.config.vocabulary == 0) part.config.vocabulary = target_.config.vocabulary;
    // Without a map of its columns, column i is token i of the head's vocabulary.
    if (part.config.vocabulary < draft.shared.drafter && draft.file->Find("d2t") == nullptr)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("its output head has {} rows, its vocabulary {} tokens, and no "
                              "tensor d2t maps them; give another head",
                              part.config.vocabulary, draft.shared.drafter));
    return part;
  }

  // The tokens of the draft's reduced output head; none where it keeps all.
  Result<std::vector<Token>> DraftTokens(const draft::SharedTokens& shared) const {
    const auto& o = options().speculative;
    if (o.draft_vocabulary == 0 || o.draft_vocabulary >= opened().vocabulary)
      return std::vector<Token>();
    std::vector<Token> tokens;
    if (o.draft_vocabulary_sample.empty()) {
      tokens = text::FrequentTokens(*opened().tokenizer, o.draft_vocabulary, "");
    } else {
      FORETOKEN_TRY(const std::string sample, ReadTextFile(o.draft_vocabulary_sample));
      tokens = text::FrequentTokens(*opened().tokenizer, o.draft_vocabulary, sample);
    }
    std::erase_if(tokens, [&](Token token) { return !shared.Has(token); });
    return tokens;
  }

  void Size(loader::ModelPart& part, int positions, int logit_rows, int cache_positions = 0) {
    const auto& o = options();
    loader::SetSizes(part, {.positions = positions,
                            .sequences = o.max_sequences,
                            .cache_positions = cache_positions,
                            .rows = std::max(o.prefill_rows, o.max_sequences * (1 + kMaxDraft)),
                            .logit_rows = logit_rows,
                            .k = o.cache_type_k,
                            .v = o.cache_type_v});
  }

  Status CheckMemory() {
    std::int64_t needed = loader::BytesOf(target_, *opened().checkpoint);
    for (const Draft& draft : drafts_) needed += loader::BytesOf(draft.part, *draft.file);
    return loader::CheckFits(needed, options().context_size, options().max_sequences);
  }

  Result<std::unique_ptr<model::LocalRunner>> Load(const loader::ModelPart& part,
                                                   const formats::Checkpoint& checkpoint) {
    const auto progress = [&](double fraction) {
      if (options().on_load_progress) options().on_load_progress({checkpoint.path(), fraction});
    };
    const model::TileCache cache = loader::TileCacheFor(options().repack_cache, checkpoint);
    auto loaded = model::LocalRunner::Load(
        checkpoint, part.config, part.options, *opened().kernels, *opened().pool,
        {.cache = &cache, .on_progress = progress, .on_notice = [&](std::string what) {
           summary().notices.push_back(std::move(what));
         }});
    if (!loaded) return Fail(std::move(loaded).error().In(checkpoint.path()));
    return loaded;
  }

  Status LoadTarget() {
    FORETOKEN_TRY(auto runner, Load(target_, *opened().checkpoint));
    target_runner_ = runner.get();
    impl_->files_.Add(*opened().checkpoint, *runner);
    opened().target = std::move(runner);
    opened().cache.emplace(target_.tables);
    return {};
  }

  // All draft models and heads, and all drafters that need no model: a request may choose any of
  // them.
  Status MakeDrafters() {
    const auto& o = options();
    for (Draft& draft : drafts_) FORETOKEN_CHECK_OK(MakeModelDrafter(draft));
    KeepFeatures();
    for (const draft::DrafterSpec* const spec : draft::Specs()) {
      if (spec->info.reads_file) continue;
      FORETOKEN_TRY(auto drafter, spec->make(SettingsOf()));
      AddDrafter(std::move(drafter), spec);
    }
    if (o.drafter) AddOwnDrafter();
    return impl_->drafters_.SetDefaults(o.speculative.method);
  }

  void AddOwnDrafter() {
    auto drafter = std::make_unique<draft::CustomDrafter>(
        options().drafter, draft::CustomSettings{.max_sequences = options().max_sequences,
                                                 .vocabulary = opened().vocabulary,
                                                 .max_draft = kMaxDraft,
                                                 .kernels = opened().kernels,
                                                 .on_fault = Notice()});
    AddDrafter(std::move(drafter), nullptr);
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
                          .file = {},
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

  Status MakeModelDrafter(Draft& draft) {
    FORETOKEN_TRY(auto runner, LoadDraft(draft));
    draft.weight_bytes = runner->info().weight_bytes;
    impl_->files_.Add(*draft.file, *runner);
    draft::DrafterSettings settings = SettingsOf();
    settings.runner = std::move(runner);
    if (draft.part.config.head) settings.head = &*draft.part.config.head;
    settings.tables = draft.part.tables;
    settings.shared = draft.shared;
    FORETOKEN_TRY(auto drafter, draft.spec->make(std::move(settings)));
    impl_->drafters_.Add({.method = std::string(draft.spec->info.name),
                          .name = draft.name,
                          .full_name = draft.full_name,
                          .file = draft.file->path(),
                          .file_bytes = static_cast<std::int64_t>(draft.file->file_bytes()),
                          .drafter = std::move(drafter),
                          .spec = draft.spec,
                          .instant = draft.spec->info.lookup_only});
    return {};
  }

  // What all heads read of the target's hidden states, each part once.
  void KeepFeatures() {
    model::FeatureRequest all;
    for (const auto& entry : impl_->drafters_) {
      const model::FeatureRequest needs = entry.drafter->Needs();
      for (const int layer : needs.layers)
        if (std::find(all.layers.begin(), all.layers.end(), layer) == all.layers.end())
          all.layers.push_back(layer);
      all.normed |= needs.normed;
    }
    if (all.parts() == 0) return;
    opened().target->KeepFeatures(all);
    for (auto& entry : impl_->drafters_) {
      const model::FeatureRequest needs = entry.drafter->Needs();
      for (const int layer : needs.layers)
        entry.feature_parts.push_back(static_cast<int>(
            std::find(all.layers.begin(), all.layers.end(), layer) - all.layers.begin()));
      if (needs.normed) entry.feature_parts.push_back(all.parts() - 1);
    }
  }

  Result<std::unique_ptr<model::LocalRunner>> LoadDraft(const Draft& draft) {
    if (!draft.part.config.head) return Load(draft.part, *draft.file);
    auto loaded = model::LocalRunner::LoadHead(*draft.file, draft.part.config, draft.part.options,
                                               *opened().kernels, *opened().pool, *target_runner_);
    if (!loaded) return Fail(std::move(loaded).error().In(draft.file->path()));
    return loaded;
  }

  engine::Verifiers MakeVerifiers() {
    const auto& o = options().speculative;
    engine::Verifiers verifiers(o);
    if (options().verifier)
      verifiers.own = std::make_unique<verify::CustomVerifier>(
          options().verifier,
          verify::CustomSettings{.vocabulary = opened().vocabulary, .on_fault = Notice()});
    if (o.synthetic_acceptance_rate)
      verifiers.synthetic = std::make_unique<verify::Synthetic>(*o.synthetic_acceptance_rate);
    return verifiers;
  }

  Status LearnCosts() {
    engine::Estimates& estimates = *impl_->estimates_;
    FORETOKEN_TRY(const std::vector<PassCost> measured,
                  calibrate::LearnInitialCosts({.subject = engine::SubjectOf(opened()),
                                                .options = options(),
                                                .target_bytes = summary().target.file_bytes,
                                                .drafters = impl_->drafters_,
                                                .records = impl_->recorder_->records()},
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
    loader::Summarise(target_, *opened().checkpoint, opened().target->info().weight_bytes,
                      opened().vocabulary, s.target);
    for (const Draft& draft : drafts_) {
      DrafterSummary& summary = s.drafts.emplace_back();
      summary.name = draft.name;
      summary.method = draft.spec->info.name;
      loader::Summarise(draft.part, *draft.file, draft.weight_bytes, draft.shared.drafter,
                        summary.model);
    }
    if (!s.drafts.empty()) s.draft = std::make_unique<ModelSummary>(s.drafts.front().model);
    s.isa = opened().kernels->isa;
    s.threads = options().threads;
    s.method = options().speculative.method;
    s.strategy = Name(options().speculative.strategy);
    if (verifiers().synthetic) s.strategy = verifiers().synthetic->name();
    s.lossless = !verifiers().synthetic && StrategyIsLossless();
    if (verifiers().own && !verifiers().synthetic) {
      s.strategy = verifiers().own->name();
      s.lossless = verifiers().own->Lossless();
    }
    for (const loader::DrafterEntry& entry : impl_->drafters_) s.methods.push_back(entry.name);
    s.methods.insert(s.methods.end(), {"portfolio", "none"});
    s.strategies = impl_->speculation_->StrategyNames();
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
    const bool set = o.strategy != VerifyStrategy::kAuto || verifiers().own;
    if (!set || impl_->drafters_.defaults().empty() || !FindController(o.lookahead)->follows_load ||
        !impl_->speculation_->FollowsDrafts(warm, impl_->speculation_->VerifierFor(warm)))
      return;
    summary().notices.push_back(
        fmt::format("draft lengths: with '{}' the text depends on the drafts; above temperature 0 "
                    "by-text chooses lengths in place of {}, so that a seed gives the same text "
                    "again; a profile (--profile) tells it what passes cost here",
                    summary().strategy, o.lookahead));
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
  const model::LocalRunner* target_runner_ = nullptr;  // that the engine owns
  std::vector<Draft> drafts_;
};

Result<std::unique_ptr<Engine::Impl>> Engine::Impl::Open(EngineOptions options) {
  return EngineOpener(std::move(options)).Open();
}

// Everything that a step writes to gets its memory here.
void Engine::Impl::MakeParts(int max_rows, int max_logit_rows) {
  const EngineOptions& o = opened_.options;
  const std::string& path = opened_.summary.target.path;
  kv::BlockTables& cache = *opened_.cache;
  preparation_.emplace(engine::RequestLimits{.vocabulary = opened_.vocabulary,
                                             .context = opened_.context,
                                             .most_positions = opened_.MostPositions(),
                                             .records = !o.record.empty()},
                       *opened_.tokenizer, *speculation_, opened_.end_tokens);
  estimates_.emplace(o, max_rows, drafters_.size());
  recorder_.emplace(o, drafters_);
  admission_.emplace(engine::AdmissionSettings{.vocabulary = opened_.vocabulary,
                                               .context = opened_.context,
                                               .end_tokens = opened_.end_tokens},
                     o, *opened_.tokenizer, *opened_.kernels, *speculation_, drafters_, cache,
                     [this](SeqId seq, const engine::Sequence& s) {
                       if (s.drafts())
                         controller().Begin(seq, {s.least_drafts, s.most_drafts, s.follows_drafts});
                       recorder_->Begin(seq, s, s.completion.lookahead);
                     });
  scheduler_.emplace(engine::SchedulerSettings{.max_rows = max_rows,
                                               .max_sequences = o.max_sequences,
                                               .kv_cache = o.kv_cache,
                                               .prefix_cache = o.prefix_cache},
                     cache, drafters_, estimates_->costs, estimates_->prompt_rows);
  drafting_.emplace(o.max_sequences, drafters_, *estimates_,
                    [this](std::string what) { Notice(what); });
  verification_.emplace(opened_.vocabulary);
  commit_.emplace(engine::CommitSettings{.vocabulary = opened_.vocabulary,
                                         .max_rows = max_rows,
                                         .max_sequences = o.max_sequences,
                                         .kv_cache = o.kv_cache,
                                         .prefix_cache = o.prefix_cache,
                                         .target_path = path},
                  cache, drafters_, *opened_.kernels);
  accounting_.emplace(*estimates_, cache, max_logit_rows, o.prefix_cache);
  step_.emplace(o.max_sequences, max_rows, commit_->MakeCommits());
}

}  // namespace foretoken
