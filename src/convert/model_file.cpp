// SPDX-License-Identifier: Apache-2.0
#include "foretoken/tools/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/argument_checks.h"
#include "base/machine/memory_limit.h"
#include "base/machine/thread_count.h"
#include "foretoken/drafts.h"
#include "foretoken/options.h"
#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "formats/weight_type.h"
#include "kernels/dispatch.h"
#include "loader/memory_plan.h"
#include "loader/model_part.h"
#include "model/arch/heads/head_kind.h"
#include "model/arch/registry.h"
#include "model/local_runner.h"
#include "model/weights/weights.h"
#include "tensor/dtype.h"
#include "text/token_map.h"
#include "text/tokenizer/tokenizer.h"
#include "text/vocabulary_difference.h"

namespace foretoken {
namespace {

std::string Shortened(const std::string& s, std::size_t most) {
  if (s.size() <= most) return s;
  std::size_t n = most;
  while (n > 0 && (static_cast<unsigned char>(s[n]) & 0xC0) == 0x80)
    --n;  // not in the middle of a character
  return s.substr(0, n) + "...";
}

template <typename T>
std::string ShowList(const std::vector<T>& list, const char* kind) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < std::min(kShown, list.size()); ++i) {
    if constexpr (std::is_same_v<T, std::string>)
      first.push_back(Shortened(list[i], 40));
    else
      first.push_back(fmt::format("{}", list[i]));
  }
  return fmt::format("[{} {}: {}{}]", list.size(), kind, fmt::join(first, ", "),
                     list.size() > kShown ? ", ..." : "");
}

struct Shower {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{:.9g}", v); }
  std::string operator()(const std::string& v) const { return Shortened(v, 2000); }
  std::string operator()(const std::vector<std::int64_t>& v) const {
    return ShowList(v, "integers");
  }
  std::string operator()(const std::vector<double>& v) const { return ShowList(v, "numbers"); }
  std::string operator()(const std::vector<std::string>& v) const { return ShowList(v, "strings"); }
};

}  // namespace

class ModelFile::Impl {
 public:
  explicit Impl(std::unique_ptr<formats::Checkpoint> c) : checkpoint(std::move(c)) {}

  Result<const text::Tokenizer*> Tokenizer() {
    if (tokenizer_ == nullptr) {
      auto loaded = text::Tokenizer::Load(checkpoint->metadata());
      if (!loaded) return Fail(std::move(loaded).error().In(checkpoint->path()));
      tokenizer_ = std::move(*loaded);
    }
    return tokenizer_.get();
  }

  Result<ModelMemory> Memory(bool whole_model, int context_size);

  std::unique_ptr<formats::Checkpoint> checkpoint;

 private:
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

ModelFile::ModelFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelFile::~ModelFile() = default;

Result<std::unique_ptr<ModelFile>> ModelFile::Open(const std::string& path) {
  FORETOKEN_TRY(auto checkpoint, formats::OpenCheckpoint(path));
  return std::unique_ptr<ModelFile>(new ModelFile(std::make_unique<Impl>(std::move(checkpoint))));
}

std::string ModelFile::format() const {
  return impl_->checkpoint->format();
}
std::int64_t ModelFile::file_bytes() const {
  return static_cast<std::int64_t>(impl_->checkpoint->file_bytes());
}
std::int64_t ModelFile::parameters() const {
  return formats::ParameterCount(*impl_->checkpoint);
}
std::string ModelFile::type() const {
  return formats::WeightType(*impl_->checkpoint);
}

std::vector<std::pair<std::string, std::string>> ModelFile::metadata() const {
  std::vector<std::pair<std::string, std::string>> shown;
  for (const auto& [key, value] : impl_->checkpoint->metadata().all())
    shown.emplace_back(key, std::visit(Shower{}, value));
  return shown;
}

std::vector<TensorSummary> ModelFile::tensors() const {
  const Result<const kernels::Kernels*> chosen = kernels::KernelsFromEnvironment();
  const kernels::Kernels& here = chosen ? **chosen : kernels::KernelsFor(kernels::kBestIsa);
  const kernels::Kernels& scalar = kernels::KernelsFor(kernels::Isa::kScalar);
  std::vector<TensorSummary> summaries;
  for (const auto& t : impl_->checkpoint->tensors()) {
    const tensor::DTypeInfo* type = tensor::FindDType(t.ggml_type);
    const auto tile =
        static_cast<std::size_t>(type == nullptr ? tensor::TileType::kF32 : type->tile);
    summaries.push_back(
        {.name = t.name,
         .type = std::string(tensor::GgmlTypeName(t.ggml_type)),
         .shape = {t.shape.begin(), t.shape.begin() + t.n_dims},
         .bytes = static_cast<std::int64_t>(t.bytes()),
         .supported = type != nullptr || t.name == "d2t",
         .has_vector_kernel = type == nullptr || here.matmul[tile] != scalar.matmul[tile]});
  }
  return summaries;
}

std::string ModelFile::obstacle() const {
  const formats::Checkpoint& file = *impl_->checkpoint;
  const bool head = !is_whole_model();
  const auto config =
      head ? model::HeadConfigFromFile(file) : model::ConfigFromMetadata(file.metadata());
  if (!config) return config.error().message;
  if (!head)
    if (const auto rows = model::VocabularyRows(file); !rows) return rows.error().message;
  if (const auto tokenizer = impl_->Tokenizer(); !tokenizer) return tokenizer.error().message;
  for (const auto& t : file.tensors())
    if (tensor::FindDType(t.ggml_type) == nullptr && t.name != "d2t")
      return fmt::format("tensor {}: type {} is not supported", Shown(t.name),
                         tensor::GgmlTypeName(t.ggml_type));
  return "";
}

std::string ModelFile::drafts_as() const {
  const model::HeadKind* const head = model::DraftFileOf(*impl_->checkpoint).head;
  return head == nullptr ? "standalone" : std::string(head->drafter);
}

bool ModelFile::is_whole_model() const {
  return model::DraftFileOf(*impl_->checkpoint).model;
}

Result<ModelMemory> ModelFile::Memory(int context_size) {
  return CatchNoMemory("memory", [&] { return impl_->Memory(is_whole_model(), context_size); });
}

Result<ModelMemory> ModelFile::Impl::Memory(bool whole_model, int context_size) {
  const formats::Checkpoint& file = *checkpoint;
  if (!whole_model)
    return Fail(ErrorCode::kMismatch, "memory: a head needs its target; name the target's file");
  FORETOKEN_TRY(const text::Tokenizer* tokenizer, Tokenizer());
  FORETOKEN_TRY(loader::ModelPart part, loader::DescribeModel(file, *tokenizer));
  FORETOKEN_TRY(const int threads, ThreadCount(0));
  EngineOptions options;
  options.context_size = context_size == 0 ? part.config.context_length : context_size;
  loader::PartSizes sizes = loader::SizesOf(options);
  sizes.logit_rows = 1 + kMaxDraft;
  loader::SetSizes(part, sizes);
  ModelMemory memory{.needs = loader::NeedsOf(part, file), .context_size = options.context_size};
  const auto plan = loader::PlanMemory({.needs = memory.needs,
                                        .positions = options.context_size,
                                        .may_page = loader::KeepsTiles(options.repack_cache)});
  memory.available_bytes = AvailableMemory();
  if (plan)
    memory.experts_paged = plan->paged;
  else
    memory.obstacle = plan.error().message;
  memory.needs.scratch = model::ScratchBytes(part.config, part.options, threads);
  return memory;
}

Result<std::string> ModelFile::DescribeTokenizer() {
  FORETOKEN_TRY(const text::Tokenizer* tokenizer, impl_->Tokenizer());
  return tokenizer->description();
}

Result<std::vector<std::int32_t>> ModelFile::Tokenize(const std::string& text, bool add_special,
                                                      bool parse_special) {
  FORETOKEN_TRY(const text::Tokenizer* tokenizer, impl_->Tokenizer());
  return CatchNoMemory("tokens", [&]() -> Result<std::vector<std::int32_t>> {
    return tokenizer->Encode(text, {.add_special = add_special, .parse_special = parse_special});
  });
}

Result<std::string> ModelFile::Detokenize(std::span<const std::int32_t> tokens, bool special) {
  FORETOKEN_TRY(const text::Tokenizer* tokenizer, impl_->Tokenizer());
  FORETOKEN_CHECK_OK(CheckTokens("tokens", tokens, tokenizer->vocabulary_size()));
  return tokenizer->Decode(tokens, special);
}

Result<std::vector<std::string>> ModelFile::Pieces(std::span<const std::int32_t> tokens) {
  FORETOKEN_TRY(const text::Tokenizer* tokenizer, impl_->Tokenizer());
  std::vector<std::string> pieces;
  for (const auto id : tokens) pieces.push_back(tokenizer->TokenText(id));
  return pieces;
}

Result<VocabularyDifference> ModelFile::CompareVocabulary(ModelFile& draft) {
  FORETOKEN_TRY(const text::Tokenizer* own, impl_->Tokenizer());
  FORETOKEN_TRY(const text::Tokenizer* other, draft.impl_->Tokenizer());
  return text::CompareVocabularies(*own, *other);
}

Result<TokenMap> ModelFile::MapTokens(ModelFile& draft) {
  FORETOKEN_TRY(const text::Tokenizer* own, impl_->Tokenizer());
  FORETOKEN_TRY(const text::Tokenizer* other, draft.impl_->Tokenizer());
  return text::MapTokens(*own, *other);
}

}  // namespace foretoken
