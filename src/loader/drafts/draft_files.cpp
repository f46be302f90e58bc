// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/draft_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/comma_list.h"
#include "base/files/file_name.h"
#include "base/files/text_file.h"
#include "draft/methods.h"
#include "loader/drafts/companions.h"
#include "loader/drafts/draft_choice.h"
#include "loader/drafts/own_copy.h"
#include "loader/ranks/rank_group.h"
#include "model/arch/registry.h"
#include "text/frequent_tokens.h"
#include "text/token_map.h"
#include "text/vocabulary_difference.h"

namespace foretoken::loader {
namespace {

using draft::DrafterSpec;

// The tokens of the reduced output of a head or a copy, unless the options say otherwise.
constexpr int kReducedTokens = 32'768;

// search: what came of looking for one.
tl::unexpected<Error> NoFileFor(const DrafterInfo& drafter, const std::string& methods,
                                const std::string& search) {
  return InvalidField("speculative_method", fmt::format("'{}' needs a {}{}; name one with "
                                                        "EngineOptions::draft_model, or use ngram",
                                                        methods, FileOf(drafter), search));
}

// The drafters that can read such a file, the usual one first.
std::vector<const DrafterSpec*> ReadersOf(const model::DraftFile& file) {
  std::vector<const DrafterSpec*> readers;
  for (const DrafterSpec* const spec : draft::Specs())
    if (spec->Reads(file)) readers.push_back(spec);
  return readers;
}

// The usual methods of drafts, each once; n-gram lookup if there are none, and until there is a copy.
std::string MethodsOf(const std::vector<DraftPart>& drafts) {
  std::string methods;
  bool lookup = drafts.empty();
  for (const DraftPart& draft : drafts) {
    lookup |= draft.part.late;
    const DrafterSpec* const spec =
        draft.spec != nullptr ? draft.spec : ReadersOf(model::DraftFileOf(*draft.file)).front();
    if (!UsesMethod(methods, spec->info.name))
      methods += fmt::format("{}{}", methods.empty() ? "" : ",", spec->info.name);
  }
  if (lookup) methods += methods.empty() ? "ngram" : ",ngram";
  return methods;
}

// The rows of a draft's output head that have a counterpart among these tokens of the target's, ascending;
// empty: among all of them.
std::vector<Token> PairedRows(const TokenMap& map, std::span<const Token> tokens) {
  std::vector<Token> rows;
  for (const TokenMap::Pair& pair : map.pairs)
    if (tokens.empty() || std::binary_search(tokens.begin(), tokens.end(), pair.target))
      rows.push_back(pair.draft);
  std::sort(rows.begin(), rows.end());
  return rows;
}

// The file is not what it should be; everything else is no fault of its.
bool ConcernsTheFile(ErrorCode code) {
  constexpr std::array kCodes = {ErrorCode::kInvalidFile, ErrorCode::kUnsupported,
                                 ErrorCode::kMismatch, ErrorCode::kIo, ErrorCode::kNotFound};
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

// Without folder and .gguf, and without commas, which separate the names of methods.
std::string FileName(const std::string& path) {
  std::string name = path.substr(NameStart(path));
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  std::replace(name.begin(), name.end(), ',', '_');
  return name;
}

class DraftFilesOpener {
 public:
  DraftFilesOpener(const EngineOptions& options, const DraftTarget& target)
      : options_(options), target_(target) {
    files_.methods = options.speculative.method;
  }

  Result<DraftFiles> Open() {
    FORETOKEN_CHECK_OK(OpenFiles());
    searched_ = files_.drafts.empty() && Searches();
    if (searched_) Search();
    if (files_.automatic && files_.drafts.empty()) FORETOKEN_CHECK_OK(AddOwnCopy());
    if (files_.methods.empty()) files_.methods = MethodsOf(files_.drafts);
    FORETOKEN_CHECK_OK(FindDrafters());
    for (DraftPart& draft : files_.drafts)
      if (auto described = draft.found ? Status() : Describe(draft); !described)
        return Fail(std::move(described).error().In(draft.file->path()));
    SetNames();
    for (const DraftPart& draft : files_.drafts)
      if (draft.part.copy) files_.self_draft = model::NameOf(*draft.part.copy);
    if (options_.ranks != nullptr)
      for (DraftPart& draft : files_.drafts) options_.ranks->impl().DivideDraft(draft);
    return std::move(files_);
  }

 private:
  bool Wants(std::string_view drafter) const { return UsesMethod(files_.methods, drafter); }

  Status OpenFiles() {
    if (Wants("none")) return {};
    for (const std::string& path : options_.DraftFiles()) {
      FORETOKEN_TRY(auto file, formats::OpenCheckpoint(path));
      files_.drafts.push_back({.file = file.get()});
      files_.checkpoints.push_back(std::move(file));
    }
    return {};
  }

  bool Searches() const {
    const std::string& methods = files_.methods;
    return options_.find_drafters &&
           (methods.empty() || Wants("portfolio") || FileReader(methods) != nullptr);
  }

  // The target's own head, and files beside the target.
  void Search() {
    files_.automatic = files_.methods.empty();
    files_.lenient = files_.automatic && options_.ranks == nullptr;
    std::vector<FoundDraft> found;
    if (model::DraftFileOf(target_.checkpoint).model_with_head())
      Consider({.part = {.file = &target_.checkpoint, .in_target = true}, .checkpoint = {}}, found);
    Companions companions = FindCompanions(target_.checkpoint.path());
    for (const std::string& path : companions.paths) {
      auto file = formats::OpenCheckpoint(path);
      if (file)
        Consider({.part = {.file = file->get()}, .checkpoint = std::move(*file)}, found);
      else
        files_.notices.push_back(PassedOver(file.error().message));
    }
    std::move(companions.notices.begin(), companions.notices.end(),
              std::back_inserter(files_.details));
    ChooseFound(std::move(found), options_, target_, files_);
  }

  // Nothing better is at hand: the model drafts for itself, if that pays.
  Status AddOwnCopy() {
    const SpeculativeOptions& o = options_.speculative;
    // Where the drafts decide the text, it would depend on when the copy is ready.
    const bool follows_drafts =
        options_.verifier != nullptr || o.use_relaxed_acceptance_for_thinking ||
        (o.strategy != VerifyStrategy::kAuto && o.strategy != VerifyStrategy::kSampleMatch &&
         o.strategy != VerifyStrategy::kGreedy);
    if (o.self_draft == kNoCopy || follows_drafts || !options_.kv_cache ||
        options_.ranks != nullptr)
      return {};
    for (const DrafterSpec* const spec : draft::Specs()) {
      if (!spec->info.copies_target) continue;
      DraftPart draft = {.file = &target_.checkpoint, .spec = spec};
      FORETOKEN_CHECK_OK(DescribeCopy(draft));
      if (o.self_draft.empty() && !Pays(draft.offer)) {
        if (IsLarge(draft.part.copy_size)) RefuseCopy(NoGain(draft.offer));
        continue;
      }
      if (std::string why = WhyNoRoom(draft, options_, target_); !why.empty()) {
        RefuseCopy(std::move(why));
        continue;
      }
      draft.part.late = true;
      draft.notice =
          fmt::format("drafts: self, with {} (SpeculativeOptions::self_draft off turns it off)",
                      Described(draft.part));
      draft.found = true;  // it is described
      files_.drafts.push_back(std::move(draft));
    }
    return {};
  }

  static std::string Described(const ModelPart& copy) {
    return copy.copy->are_own()
               ? "the model's own weights"
               : fmt::format(
                     "a copy of the model in {} that is made while the engine works: {} MiB more",
                     model::NameOf(*copy.copy), (copy.copy_size.own >> 20) + 1);
  }

  void RefuseCopy(std::string why) {
    files_.details.push_back("drafts: no copy of the model: " + why);
    files_.no_copy = std::move(why);
  }

  static std::string NoGain(const CopyOffer& copy) {
    return fmt::format(
        "in {0} its passes would cost {1:.2f} of the model's, and its drafts bring about {2:.2f} "
        "times plain decoding if {3:.2f} of them were accepted "
        "(SpeculativeOptions::self_draft {0} makes it, foretoken tune measures it)",
        model::NameOf(copy.types), copy.cost, GainOf(copy), copy.accepted);
  }

  // Adds it, if it fits.
  void Consider(FoundDraft draft, std::vector<FoundDraft>& found) {
    draft.part.found = true;
    if (Status fits = Examine(draft.part); !fits) {
      const bool damaged = fits.error().code == ErrorCode::kInvalidFile;
      (damaged ? files_.notices : files_.details)
          .push_back(PassedOver(std::move(fits).error().In(draft.part.file->path()).message));
      return;
    }
    found.push_back(std::move(draft));
  }

  // For an error message: that the search found nothing, and the first reason.
  std::string SearchResult() const {
    if (!searched_) return "";
    const auto& others = files_.notices.empty() ? files_.details : files_.notices;
    return fmt::format(", and none that fits is beside the model{}",
                       others.empty() ? "" : fmt::format(" ({})", others.front()));
  }

  Status Examine(DraftPart& draft) const {
    FORETOKEN_TRY(draft.spec,
                  draft.in_target ? HeadOfTarget() : SpecFor(model::DraftFileOf(*draft.file)));
    if (!draft.spec->info.reads_features)
      FORETOKEN_CHECK_OK(CheckFoundModel(*draft.file, target_.checkpoint));
    return Describe(draft);
  }

  // Each file gets its drafter, and each drafter that is wanted its file.
  Status FindDrafters() {
    for (DraftPart& draft : files_.drafts) {
      if (draft.found) continue;
      auto spec = SpecFor(model::DraftFileOf(*draft.file));
      if (!spec) return Fail(std::move(spec).error().In(draft.file->path()));
      draft.spec = *spec;
    }
    for (const DrafterSpec* const spec : draft::Specs()) {
      const bool has_file = std::any_of(files_.drafts.begin(), files_.drafts.end(),
                                        [&](const DraftPart& d) { return d.spec == spec; });
      if (spec->info.copies_target && Wants(spec->info.name) && !has_file)
        files_.drafts.push_back({.file = &target_.checkpoint, .spec = spec});
      if (!spec->info.reads_file || has_file || !Wants(spec->info.name)) continue;
      if (!spec->info.in_target) return NoFileFor(spec->info, files_.methods, SearchResult());
      files_.drafts.push_back({.file = &target_.checkpoint, .spec = spec, .in_target = true});
    }
    return {};
  }

  bool MayUse(const DrafterSpec& spec) const {
    return files_.methods.empty() || Wants(spec.info.name) || Wants("portfolio");
  }

  Result<const DrafterSpec*> HeadOfTarget() const {
    for (const DrafterSpec* const spec : draft::Specs())
      if (spec->info.in_target && MayUse(*spec)) return spec;
    return Fail(ErrorCode::kMismatch, "its head was not asked for");
  }

  // The first one that is wanted; without methods the usual one.
  Result<const DrafterSpec*> SpecFor(const model::DraftFile& file) const {
    for (const DrafterSpec* const spec : ReadersOf(file))
      if (MayUse(*spec)) return spec;
    std::vector<std::string_view> wanted;
    for (const DrafterInfo* const drafter : AllDrafters())
      if (drafter->reads_file && Wants(drafter->name)) wanted.push_back(drafter->name);
    return Fail(ErrorCode::kMismatch,
                fmt::format("this is {}, and '{}' was asked for; give another file, or leave "
                            "SpeculativeOptions::method out",
                            file.Noun(), fmt::join(wanted, ",")));
  }

  // A pass has one row for each sequence; everything else is as in the target.
  Status DescribeCopy(DraftPart& draft) const {
    draft.part = target_.part;
    FORETOKEN_CHECK_OK(CheckHeadsAreWhole());
    draft.part.options.max_rows = draft.part.options.max_logit_rows = options_.max_sequences;
    draft.shared = draft::SharedTokens(target_.tokenizer.vocabulary_size());
    const auto& wanted = options_.speculative.draft_vocabulary;
    FORETOKEN_TRY(draft.tokens, FrequentTokens(wanted.value_or(kReducedTokens)));
    std::erase_if(draft.tokens,
                  [&](Token token) { return token >= target_.part.config.vocabulary; });
    FORETOKEN_TRY(draft.offers, CopyOffers(draft.tokens));
    Expect(draft.offers, CopyFileFor(options_).Read());
    draft.offer = BestOf(draft.offers);
    draft.part.copy = draft.offer.types;
    draft.part.copy_size = draft.offer.size;
    if (draft.part.copy_size.reduced == 0) draft.tokens.clear();
    draft.part.options.output_tokens = draft.tokens;
    return {};
  }

  // Blocks are chosen for all queries of a key-value head together, so one rank must have them. Layers with
  // a window choose none (model/memory/key_bounds.h).
  Status CheckHeadsAreWhole() const {
    const int n_ranks = target_.part.options.division.size();
    if (!target_.part.options.cache.key_bounds) return {};
    for (const model::LayerConfig& layer : target_.part.config.layers)
      if (const auto* const attention = std::get_if<model::AttentionConfig>(&layer.mixer);
          attention != nullptr && attention->window == 0 && attention->n_kv_heads < n_ranks)
        return Fail(
            ErrorCode::kUnsupported,
            fmt::format("draft_best_blocks: the {} ranks divide the queries of one of the {} "
                        "key-value heads; use fewer ranks, or leave it out",
                        n_ranks, attention->n_kv_heads));
    return {};
  }

  // The types that the options name, or the usual ones. Copies of equal bytes are one.
  Result<std::vector<CopyOffer>> CopyOffers(std::span<const Token> reduced) const {
    const std::string& names = options_.speculative.self_draft;
    FORETOKEN_TRY(const model::CopyTypes named, CopyTypesFor(names));
    const bool open = names.empty();
    std::vector<CopyOffer> offers;
    const auto add = [&](const model::CopyTypes& types) -> Status {
      CopyOffer offer{.types = types, .size = {}};
      FORETOKEN_TRY(offer.size,
                    model::Weights::SizeOfCopy(target_.checkpoint, target_.part.config, types,
                                               reduced, target_.part.options.division));
      if (offers.empty() || offer.size.own != offers.back().size.own) offers.push_back(offer);
      return {};
    };
    for (const model::CopyTypes& types : open ? UsualCopies() : std::span(&named, 1))
      FORETOKEN_CHECK_OK(add(types));
    if (open && offers.size() == 1) FORETOKEN_CHECK_OK(add(kOfShortRows));
    return offers;
  }

  Status Describe(DraftPart& draft) const {
    if (draft.spec->info.copies_target) return DescribeCopy(draft);
    const formats::Checkpoint& file = *draft.file;
    if (draft.in_target && !model::DraftFileOf(file).model_with_head())
      return Fail(
          ErrorCode::kMismatch,
          fmt::format(
              "the model has no MTP head{}; give one with EngineOptions::draft_model, or use "
              "ngram",
              SearchResult()));
    FORETOKEN_TRY(const auto tokenizer, text::Tokenizer::Load(file.metadata()));
    FORETOKEN_CHECK_OK(CompareVocabularies(draft, *tokenizer));
    if (!draft.spec->info.reads_features) {
      FORETOKEN_TRY(draft.part, DescribeModel(file, *tokenizer));
      FORETOKEN_TRY(draft.tokens, ReducedModel(draft.shared));
    } else {
      FORETOKEN_TRY(draft.part, DescribeHead(draft));
      FORETOKEN_CHECK_OK(ReduceHead(draft));
    }
    // Beyond its own context a draft model would only guess, so it stops there.
    PartSizes sizes = SizesOf(options_);
    sizes.positions = std::min(sizes.positions, draft.part.config.context_length);
    sizes.logit_rows = sizes.sequences * DraftsOfAPass(draft.part);
    sizes.checkpoint_tokens = 0;  // a draft model shares no prefixes
    SetSizes(draft.part, sizes);
    draft.part.options.output_tokens = draft.tokens;
    return {};
  }

  // How many drafts of a sequence a pass of the network gives.
  static int DraftsOfAPass(const ModelPart& part) {
    if (!part.config.head || !part.config.head->drafts_blocks()) return 1;
    return std::min(part.config.head->block_size, kMaxDraft);
  }

  Status CompareVocabularies(DraftPart& draft, const text::Tokenizer& tokenizer) const {
    VocabularyDifference difference = text::CompareVocabularies(target_.tokenizer, tokenizer);
    if (const std::string why = difference.obstacle(); !why.empty()) {
      if (draft.found || draft.spec->info.reads_features)
        return Fail(ErrorCode::kMismatch, fmt::format("{}: {}", FileOf(draft.spec->info), why));
      return MapTokens(draft, tokenizer);
    }
    if (difference.shared() < difference.target)
      draft.notice = fmt::format(
          "draft model: its vocabulary is not quite the target's: {}; the target's other tokens "
          "are "
          "never drafted",
          difference.Describe());
    draft.shared = {difference.target, difference.draft, std::move(difference.differing)};
    return {};
  }

  // A model of another vocabulary drafts the tokens that stand for the same bytes in both.
  Status MapTokens(DraftPart& draft, const text::Tokenizer& tokenizer) const {
    auto map = std::make_shared<const TokenMap>(text::MapTokens(target_.tokenizer, tokenizer));
    if (map->pairs.empty())
      return Fail(ErrorCode::kMismatch,
                  "draft model: its vocabulary shares no token with the target's; use another one");
    draft.notice = fmt::format(
        "draft model: its vocabulary is another one ({} and {} tokens); it drafts the {} tokens "
        "({:.1f} % of the target's) that both have; foretoken check-pair tells what that costs",
        map->target, map->draft, map->pairs.size(),
        100.0 * static_cast<double>(map->pairs.size()) / map->target);
    draft.shared = draft::SharedTokens(std::move(map));
    return {};
  }

  Result<ModelPart> DescribeHead(const DraftPart& draft) const {
    ModelPart part;
    FORETOKEN_TRY(part.config, model::HeadConfigFromFile(*draft.file));
    FORETOKEN_CHECK_OK(model::CheckHeadFits(*draft.file, part.config, target_.part.config));
    if (part.config.vocabulary == 0) part.config.vocabulary = target_.part.config.vocabulary;
    // Without a map of its columns, column i is token i of the head's vocabulary.
    if (part.config.vocabulary < draft.shared.drafter && draft.file->Find("d2t") == nullptr)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("its output head has {} rows, its vocabulary {} tokens, and no "
                              "tensor d2t maps them; give another head",
                              part.config.vocabulary, draft.shared.drafter));
    return part;
  }

  // The n most frequent tokens; none where the vocabulary has no more.
  Result<std::vector<Token>> FrequentTokens(int n) const {
    if (n == 0 || n >= target_.tokenizer.vocabulary_size()) return std::vector<Token>();
    const std::string& path = options_.speculative.draft_vocabulary_sample;
    std::string sample;
    if (!path.empty()) {
      FORETOKEN_TRY(sample, ReadTextFile(path));
    }
    return text::FrequentTokens(target_.tokenizer, n, sample);
  }

  // The tokens that a draft model's output head keeps; none if it keeps all.
  Result<std::vector<Token>> ReducedModel(const draft::SharedTokens& shared) const {
    FORETOKEN_TRY(auto tokens, FrequentTokens(options_.speculative.draft_vocabulary.value_or(0)));
    if (shared.map != nullptr) return PairedRows(*shared.map, tokens);
    std::erase_if(tokens, [&](Token token) { return !shared.Has(token); });
    return tokens;
  }

  // Chooses the tokens of a head's reduced output, if it can have one.
  Status ReduceHead(DraftPart& draft) const {
    const formats::TensorView* const output =
        model::ReducibleOutput(*draft.file, draft.part.config, target_.checkpoint);
    const auto& wanted = options_.speculative.draft_vocabulary;
    if (output == nullptr) {
      if (wanted.value_or(0) > 0)
        draft.notice =
            "draft_vocabulary: this head's output cannot be reduced, because it has tokens or "
            "transitions of its own; it drafts with the whole one";
      return {};
    }
    FORETOKEN_TRY(draft.tokens, FrequentTokens(wanted.value_or(kReducedTokens)));
    std::erase_if(draft.tokens, [&](Token token) {
      return !draft.shared.Has(token) || token >= output->shape[1];
    });
    draft.part.reduced_output_bytes =
        model::BytesOfRows(*output, static_cast<std::int64_t>(draft.tokens.size()));
    return {};
  }

  // If several drafts use one method, their files' names tell them apart, and numbers if those are
  // equal too.
  void SetNames() {
    auto& drafts = files_.drafts;
    for (auto draft = drafts.begin(); draft != drafts.end(); ++draft) {
      const std::string_view method = draft->spec->info.name;
      const std::string plain = fmt::format("{}:{}", method, FileName(draft->file->path()));
      const auto taken = [&] {
        return std::any_of(drafts.begin(), draft, [&](const DraftPart& other) {
          return other.full_name == draft->full_name;
        });
      };
      draft->full_name = plain;
      for (int i = 2; taken(); ++i) draft->full_name = fmt::format("{}-{}", plain, i);
      const auto alike = std::count_if(drafts.begin(), drafts.end(), [&](const DraftPart& other) {
        return other.spec == draft->spec;
      });
      draft->name = alike > 1 ? draft->full_name : method;
    }
  }

  const EngineOptions& options_;
  const DraftTarget target_;
  bool searched_ = false;  // beside the target
  DraftFiles files_;
};

}  // namespace

Status DraftFiles::PassOver(DraftPart& draft, Error error) {
  if (!lenient || !draft.found || !ConcernsTheFile(error.code)) return Fail(std::move(error));
  notices.push_back(PassedOver(error.message));
  draft.passed_over = true;
  return {};
}

std::string DraftFiles::Settle(EngineSummary& summary) {
  std::erase_if(drafts, [](const DraftPart& draft) { return draft.passed_over; });
  if (automatic) methods = MethodsOf(drafts);
  for (DraftPart& draft : drafts)
    if (!draft.notice.empty()) notices.push_back(std::move(draft.notice));
  if (std::string line = FoundLine(drafts); !line.empty()) notices.push_back(std::move(line));
  for (std::string& notice : notices) summary.notices.push_back(std::move(notice));
  summary.details = std::move(details);
  return methods;
}

Status CheckDraftOptions(const EngineOptions& options) {
  FORETOKEN_TRY(const model::CopyTypes types, CopyTypesFor(options.speculative.self_draft));
  if (types.are_own() && options.speculative.draft_window == 0)
    return Fail(
        ErrorCode::kInvalidArgument,
        "self_draft: own: with its own weights a draft costs the model what a token costs; give "
        "SpeculativeOptions::draft_window, with which it reads less of a long text, or types of "
        "fewer bits");
  for (const DrafterInfo* const drafter : AllDrafters())
    if (drafter->copies_target && options.speculative.self_draft == kNoCopy &&
        UsesMethod(options.speculative.method, drafter->name))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("self_draft: off, and the method {} drafts with a copy of the model; "
                              "drop one of them",
                              drafter->name));
  const std::vector<std::string> files = options.DraftFiles();
  const std::string& methods = options.speculative.method;
  const bool reads_file = methods.empty() || UsesMethod(methods, "none") ||
                          UsesMethod(methods, "portfolio") || FileReader(methods) != nullptr;
  if (!reads_file && !files.empty())
    return InvalidField("speculative_method",
                        fmt::format("'{}' does not use the draft model that is given; "
                                    "drop one of them",
                                    Shown(methods)));
  for (auto file = files.begin(); file != files.end(); ++file)
    if (std::find(files.begin(), file, *file) != file)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("draft models: {} is given twice; leave one out", *file));
  return {};
}

Result<DraftFiles> OpenDraftFiles(const EngineOptions& options, const DraftTarget& target) {
  return DraftFilesOpener(options, target).Open();
}

}  // namespace foretoken::loader
