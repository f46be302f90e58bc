// SPDX-License-Identifier: Apache-2.0
#include "model/weights/weights_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>

#include "base/hash.h"
#include "model/weights/piece_hash.h"
#include "tensor/dtype.h"

namespace foretoken::model {

Status WeightsLoader::Fill(ThreadPool& pool, const LoadOptions& options) {
  const TileCache given = options.cache != nullptr ? *options.cache : TileCache(),
                  cache = given.ForRank(plan_.division().rank(), plan_.division().size());
  TakeShared(pool);
  if (network_ == nullptr) NoteWidened(options);
  const std::uint64_t key = Key();
  auto kept = cache.Find(
      plan_.checkpoint().path(), key, plan_.tile_bytes(), pool, [&](std::size_t done_bytes) {
        return Report(options, {"reading kept weights", done_bytes, plan_.tile_bytes()});
      });
  if (kept) {
    weights_.tiles_ = std::move(*kept);
    for (const MatrixJob& job : plan_.jobs())
      if (!IsShared(job)) job.linear->tiles = weights_.tiles_.data() + job.offset;
    // Where experts are paged, the disk is for them: nobody reads the model again.
    for (const MatrixJob& job : plan_.jobs()) {
      if (options.paged) break;
      if (IsShared(job)) continue;
      const auto places = job.tensor->places();
      weights_.sources_.insert(weights_.sources_.end(), places.begin(), places.end());
    }
  } else if (!stopped_) {
    FORETOKEN_CHECK_OK(FillNew(cache, key, pool, options));
  }
  if (stopped_) return Fail(LoadingStopped());
  FORETOKEN_CHECK_OK(plan_.checkpoint().Check());
  for (LayerWeights& layer : weights_.layers)
    if (auto* const experts = std::get_if<ExpertsWeights>(&layer.feed_forward))
      experts->paged = options.paged;
  return {};
}

void WeightsLoader::TakeShared(ThreadPool& pool) {
  if (network_ != nullptr) {
    weights_.embedding_ = network_->embedding_;
    weights_.second_embedding_ = network_->second_embedding_;
    for (const MatrixJob& job : plan_.jobs())
      if (IsShared(job)) job.linear->tiles = network_->tiles_.data() + job.offset;
    return;
  }
  // A head without one of its own has its target's already.
  const auto make = [&](const formats::TensorView* tensor, std::shared_ptr<EmbeddingTable>& table) {
    if (tensor != nullptr)
      table = std::make_shared<EmbeddingTable>(plan_.checkpoint(), *tensor, pool);
  };
  make(plan_.embedding(), weights_.embedding_);
  make(plan_.second_embedding(), weights_.second_embedding_);
  make(plan_.third_embedding(), weights_.third_embedding_);
}

void WeightsLoader::NoteWidened(const LoadOptions& options) const {
  std::set<std::string_view> types;
  std::size_t file_bytes = 0, tile_bytes = 0;
  for (const MatrixJob& job : plan_.jobs()) {
    const tensor::DTypeInfo& info = *tensor::FindDType(job.tensor->ggml_type);
    if (!info.widened) continue;
    types.insert(info.name);
    file_bytes += FileBytes(job);
    tile_bytes += TiledBytes(job);
  }
  if (types.empty() || !options.on_notice) return;
  options.on_notice(fmt::format(
      "number type {}: kept in a wider form with the same values, which takes {:.1f} MiB of "
      "memory in place of {:.1f}; a Q2_K or Q3_K file of the model needs less",
      fmt::join(types, ", "), static_cast<double>(tile_bytes) / (1 << 20),
      static_cast<double>(file_bytes) / (1 << 20)));
}

Status WeightsLoader::FillNew(const TileCache& cache, std::uint64_t key, ThreadPool& pool,
                              const LoadOptions& options) {
  const auto notice = [&](const std::string& what) {
    if (options.on_notice && !what.empty())
      options.on_notice(fmt::format("{}; the next start repacks the weights again", what));
  };
  std::string why_not;
  weights_.tiles_ = cache.Make(plan_.checkpoint().path(), plan_.tile_bytes(), &why_not);
  if (options.paged && !weights_.tiles_.in_file()) return CannotPage(why_not);
  notice(why_not);
  // A copy takes long to make, the tiles of a network do not.
  const bool is_copy = network_ != nullptr;
  Repack(pool, options, is_copy ? cache.TakeUnfinished(weights_.tiles_, key, pool) : 0);
  if (weights_.tiles_.faulted()) {  // the disk refused a page that it had promised
    if (options.paged) return CannotPage("the disk refused a page");
    weights_.tiles_ = TileMemory(plan_.tile_bytes());
    Repack(pool, options);
  }
  // If the file changed meanwhile, the tiles may be a mixture, which is not kept.
  if (!plan_.checkpoint().Check()) return {};
  if (stopped_) {
    if (is_copy) cache.KeepUnfinished(weights_.tiles_, key);
    return {};
  }
  if (const Status kept = cache.Keep(weights_.tiles_, key, HashOf(source_hashes_), pool); !kept)
    notice(kept.error().message);
  return {};
}

Status WeightsLoader::CannotPage(const std::string& why) {
  return Fail(ErrorCode::kTooLarge,
              fmt::format("memory: the experts do not fit, and no file can hold them either: {}; "
                          "name a folder with room for all weights (EngineOptions::repack_cache)",
                          why));
}

void WeightsLoader::Repack(ThreadPool& pool, const LoadOptions& options, std::size_t made) {
  std::size_t done_bytes = 0;
  source_hashes_.clear();
  // Callers lower the threads' priority by this: the first matrix may be the largest.
  if (options.on_progress && !options.on_progress({"repacking", 0, plan_.tile_bytes(), true})) {
    stopped_ = true;
    return;
  }
  for (const MatrixJob& job : plan_.jobs()) {
    if (IsShared(job)) continue;
    std::byte* tiles = weights_.tiles_.data() + job.offset;
    if (job.offset + TiledBytes(job) <= made) {
      job.linear->tiles = tiles;
    } else if (!model::Repack(job, pool, tiles, options.stop)) {
      stopped_ = true;
      return;
    }
    // No file keeps a head's tiles, so nobody asks for the hash of its target's tensor.
    const auto places = job.of_target ? std::span<const std::span<const std::byte>>()
                                      : std::span(job.tensor->places());
    for (const auto place : places) {
      source_hashes_.push_back(PieceHash(place, pool));
      plan_.checkpoint().Release(place);
    }
    done_bytes = job.offset + TiledBytes(job);
    weights_.tiles_.Finish(done_bytes, pool);
    if (options.paged) weights_.tiles_.WriteBack(done_bytes);
    if (!Report(options, {"repacking", done_bytes, plan_.tile_bytes(), true})) return;
  }
}

bool WeightsLoader::Report(const LoadOptions& options, const LoadStep& step) {
  if (options.on_progress && !options.on_progress(step)) stopped_ = true;
  if (options.stop != nullptr && *options.stop) stopped_ = true;
  return !stopped_;
}

std::uint64_t WeightsLoader::Key() const {
  std::vector<std::uint64_t> parts = {plan_.checkpoint().Fingerprint()};
  if (plan_.embedding() != nullptr) parts.push_back(weights_.embedding_->hash());
  if (plan_.second_embedding() != nullptr) parts.push_back(weights_.second_embedding_->hash());
  if (plan_.third_embedding() != nullptr) parts.push_back(weights_.third_embedding_->hash());
  for (const MatrixJob& job : plan_.jobs())
    parts.insert(parts.end(),
                 {HashOf(job.tensor->name), static_cast<std::uint64_t>(job.linear->type),
                  job.offset, static_cast<std::uint64_t>(FirstRow(job, 0)), HashOf(job.rows)});
  if (network_ != nullptr) parts.push_back(kCopyVersion);
  return HashOf(parts);
}

}  // namespace foretoken::model
