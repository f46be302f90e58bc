// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/draft_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "foretoken/methods.h"
#include "foretoken/text_file.h"
#include "model/arch/registry.h"
#include "text/frequent_tokens.h"
#include "text/vocabulary_difference.h"

namespace foretoken::loader {
namespace {

using draft::DrafterSpec;

tl::unexpected<Error> NoFileFor(const DrafterInfo& drafter, const std::string& methods) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("speculative method: '{}' needs a {}; give one with --model-draft, or "
                          "use ngram",
                          methods, FileOf(drafter)));
}

// The drafters that can read a file of this kind, the usual one first.
std::vector<const DrafterSpec*> ReadersOf(model::DraftFile kind) {
  std::vector<const DrafterSpec*> readers;
  for (const DrafterSpec* const spec : draft::Specs())
    if (spec->ReadsA(kind)) readers.push_back(spec);
  return readers;
}

// Without folder and .gguf, and without commas, which separate the names of methods.
std::string FileName(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
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
    if (files_.methods.empty()) ChooseMethods();
    FORETOKEN_CHECK_OK(FindDrafters());
    for (DraftPart& draft : files_.drafts)
      if (auto described = Describe(draft); !described)
        return Fail(std::move(described).error().In(draft.file->path()));
    SetNames();
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

  // The usual methods of the files; n-gram lookup if there are none.
  void ChooseMethods() {
    std::string& methods = files_.methods;
    for (const DraftPart& draft : files_.drafts) {
      const auto readers = ReadersOf(model::KindOfDraft(*draft.file));
      const std::string_view usual = readers.front()->info.name;
      if (!UsesMethod(methods, usual))
        methods += fmt::format("{}{}", methods.empty() ? "" : ",", usual);
    }
    if (methods.empty()) methods = "ngram";
  }

  // Each file gets its drafter, and each drafter that is wanted its file.
  Status FindDrafters() {
    for (DraftPart& draft : files_.drafts) {
      auto spec = SpecFor(model::KindOfDraft(*draft.file));
      if (!spec) return Fail(std::move(spec).error().In(draft.file->path()));
      draft.spec = *spec;
    }
    for (const DrafterSpec* const spec : draft::Specs()) {
      const bool has_file = std::any_of(files_.drafts.begin(), files_.drafts.end(),
                                        [&](const DraftPart& d) { return d.spec == spec; });
      if (!spec->info.reads_file || has_file || !Wants(spec->info.name)) continue;
      if (!spec->info.in_target) return NoFileFor(spec->info, files_.methods);
      files_.drafts.push_back({.file = &target_.checkpoint, .spec = spec});
    }
    return {};
  }

  // The first one that is wanted.
  Result<const DrafterSpec*> SpecFor(model::DraftFile kind) const {
    for (const DrafterSpec* const spec : ReadersOf(kind))
      if (Wants(spec->info.name) || Wants("portfolio")) return spec;
    std::vector<std::string_view> wanted;
    for (const DrafterInfo* const drafter : AllDrafters())
      if (drafter->reads_file && Wants(drafter->name)) wanted.push_back(drafter->name);
    return Fail(ErrorCode::kMismatch,
                fmt::format("this is {}, and '{}' was asked for; give another file, or leave "
                            "--spec-type out",
                            model::NameOf(kind), fmt::join(wanted, ",")));
  }

  Status Describe(DraftPart& draft) {
    const formats::Checkpoint& file = *draft.file;
    if (&file == &target_.checkpoint &&
        model::KindOfDraft(file) != model::DraftFile::kModelWithMtpHead)
      return Fail(ErrorCode::kMismatch,
                  "the model has no MTP head; give one with --model-draft, or use ngram");
    FORETOKEN_TRY(const auto tokenizer, text::Tokenizer::Load(file.metadata()));
    FORETOKEN_CHECK_OK(CompareVocabularies(draft, *tokenizer));
    if (!draft.spec->info.reads_features) {
      FORETOKEN_TRY(draft.part, DescribeModel(file, *tokenizer));
      FORETOKEN_TRY(draft.tokens, ReducedHead(draft.shared));
    } else {
      FORETOKEN_TRY(draft.part, DescribeHead(draft));
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
    if (!part.config.head || part.config.head->kind != model::HeadKind::kBlock) return 1;
    return std::min(part.config.head->block_size, kMaxDraft);
  }

  Status CompareVocabularies(DraftPart& draft, const text::Tokenizer& tokenizer) {
    VocabularyDifference difference = text::CompareVocabularies(target_.tokenizer, tokenizer);
    if (const std::string why = difference.obstacle(); !why.empty())
      return Fail(ErrorCode::kMismatch, "draft model: " + why);
    if (difference.shared() < difference.target)
      files_.notices.push_back(
          fmt::format("draft model: its vocabulary is not quite the target's: {}; the target's "
                      "other tokens are never drafted",
                      difference.Describe()));
    draft.shared = {difference.target, difference.draft, std::move(difference.differing)};
    return {};
  }

  Result<ModelPart> DescribeHead(const DraftPart& draft) const {
    ModelPart part;
    FORETOKEN_TRY(part.config, model::HeadConfigFromFile(*draft.file));
    if (part.config.vocabulary == 0) part.config.vocabulary = target_.vocabulary;
    // Without a map of its columns, column i is token i of the head's vocabulary.
    if (part.config.vocabulary < draft.shared.drafter && draft.file->Find("d2t") == nullptr)
      return Fail(ErrorCode::kMismatch,
                  fmt::format("its output head has {} rows, its vocabulary {} tokens, and no "
                              "tensor d2t maps them; give another head",
                              part.config.vocabulary, draft.shared.drafter));
    return part;
  }

  // The tokens that the draft's output head keeps; none if it keeps all.
  Result<std::vector<Token>> ReducedHead(const draft::SharedTokens& shared) const {
    const auto& o = options_.speculative;
    if (o.draft_vocabulary == 0 || o.draft_vocabulary >= target_.tokenizer.vocabulary_size())
      return std::vector<Token>();
    std::string sample;
    if (!o.draft_vocabulary_sample.empty()) {
      FORETOKEN_TRY(sample, ReadTextFile(o.draft_vocabulary_sample));
    }
    std::vector<Token> tokens = text::FrequentTokens(target_.tokenizer, o.draft_vocabulary, sample);
    std::erase_if(tokens, [&](Token token) { return !shared.Has(token); });
    return tokens;
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
  DraftFiles files_;
};

}  // namespace

Status CheckDraftOptions(const EngineOptions& options) {
  const std::vector<std::string> files = options.DraftFiles();
  const std::string& methods = options.speculative.method;
  if (const DrafterInfo* const reader = FileReader(methods, true); reader && files.empty())
    return NoFileFor(*reader, methods);
  const bool reads_file = methods.empty() || UsesMethod(methods, "none") ||
                          UsesMethod(methods, "portfolio") || FileReader(methods) != nullptr;
  if (!reads_file && !files.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("speculative method: '{}' does not use the draft model that is given; "
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
