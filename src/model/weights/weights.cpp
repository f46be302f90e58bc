// SPDX-License-Identifier: Apache-2.0
#include "model/weights/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "kernels/repack.h"
#include "model/ranks/division.h"
#include "model/ranks/heads.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

using tensor::TileType;

constexpr int kMostColumn = 1024;  // numbers of a column that RepackColumns reads
// Values of a token for every layer.
constexpr const char* kLayerEmbedding = "per_layer_token_embd.weight";
// Of block drafters.
constexpr const char *kTransitions = "markov_w1.weight", *kBefore = "selector_predecessor.weight",
                     *kBehind = "selector_successor.weight";

std::size_t RowBytes(const tensor::DTypeInfo& info, int k) {
  return static_cast<std::size_t>(k / info.block_values) *
         static_cast<std::size_t>(info.block_bytes);
}

// REQUIRES: the tensor is there.
Result<int> EmbeddingRows(const formats::Checkpoint& checkpoint, const std::string& name) {
  const std::int64_t rows = checkpoint.Find(name)->shape[1];
  if (rows >= 1 && rows <= (1 << 24)) return static_cast<int>(rows);
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("tensor {}: {} rows are out of range", name, rows));
}

std::string HeadOutputName(const ModelConfig& config) {
  if (config.head->kind == HeadKind::kAssistant) return "token_embd.weight";
  if (config.head->kind == HeadKind::kMtp)
    return fmt::format("blk.{}.nextn.shared_head_head.weight", config.layers[0].block);
  return "output.weight";
}

}  // namespace

Error LoadingStopped() {
  return {ErrorCode::kStopped,
          "loading: the program stopped it before the end; open the model again"};
}

// Loads in two passes: plan (find, check, place) and fill.
class WeightsLoader {
 public:
  // division: which outputs this rank computes.
  WeightsLoader(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                const Division& division = {})
      : checkpoint_(checkpoint), config_(config), division_(division) {}

  Status Plan(std::span<const std::int32_t> output_tokens) {
    FORETOKEN_CHECK_OK(Embedding("token_embd.weight", config_.vocabulary));
    FORETOKEN_CHECK_OK(
        Vector(fmt::format("{}.weight", config_.output_norm), config_.dim, weights_.output_norm));
    const bool tied = checkpoint_.Find("output.weight") == nullptr;
    const std::string output = tied ? "token_embd.weight" : "output.weight";
    FORETOKEN_TRY(weights_.output_tensor_, Find(output, config_.dim, config_.vocabulary));
    if (output_tokens.empty())
      FORETOKEN_CHECK_OK(Divided(output, config_.vocabulary, config_.dim, weights_.output));
    else
      SomeRows(*weights_.output_tensor_, output_tokens, weights_.output, weights_.output_tokens);
    FORETOKEN_CHECK_OK(RopeFactors());
    if (config_.layer_input != 0) FORETOKEN_CHECK_OK(LayerInputs());
    return Layers();
  }

  Status PlanHead(const Weights& target, const ModelConfig& target_config,
                  std::span<const std::int32_t> reduced_tokens) {
    HeadTensors names;
    switch (config_.head->kind) {
      case HeadKind::kEagle: {
        FORETOKEN_TRY(names, EagleTensors(target_config.vocabulary));
        break;
      }
      case HeadKind::kMtp: {
        FORETOKEN_TRY(names, MtpTensors(target));
        break;
      }
      case HeadKind::kAssistant: {
        FORETOKEN_TRY(names, AssistantTensors());
        break;
      }
      case HeadKind::kBlock: {
        FORETOKEN_TRY(names, BlockTensors(target_config.vocabulary));
        break;
      }
    }
    FORETOKEN_CHECK_OK(Layers());
    if (names.norm.empty())
      weights_.output_norm = target.output_norm;
    else
      FORETOKEN_CHECK_OK(Vector(names.norm, config_.dim, weights_.output_norm));
    if (names.embedding.empty()) {
      weights_.embedding_ = target.embedding_;
    } else {
      FORETOKEN_TRY(const int rows, EmbeddingRows(checkpoint_, names.embedding));
      FORETOKEN_CHECK_OK(Embedding(names.embedding, rows));
    }
    FORETOKEN_CHECK_OK(HeadOutput(target));
    if (reduced_tokens.empty()) return {};
    SomeRows(*weights_.output_tensor_, reduced_tokens, weights_.reduced_output,
             weights_.reduced_tokens);
    return {};
  }

  // Tells what the types cost that are kept in a wider form.
  void NoteWidened(const LoadOptions& options) const {
    std::set<std::string_view> types;
    std::size_t file_bytes = 0, tile_bytes = 0;
    for (const Job& job : jobs_) {
      const tensor::DTypeInfo& info = *tensor::FindDType(job.tensor->ggml_type);
      if (!info.widened) continue;
      types.insert(info.name);
      file_bytes += RowBytes(info, job.linear->k) * static_cast<std::size_t>(job.linear->n_out) *
                    static_cast<std::size_t>(job.n_parts);
      tile_bytes += TiledBytes(job);
    }
    if (types.empty() || !options.on_notice) return;
    options.on_notice(fmt::format(
        "number type {}: kept in a wider form with the same values, which takes {:.1f} MiB of "
        "memory in place of {:.1f}; a Q2_K or Q3_K file of the model needs less",
        fmt::join(types, ", "), static_cast<double>(tile_bytes) / (1 << 20),
        static_cast<double>(file_bytes) / (1 << 20)));
  }

  // Takes the tiles from the cache, or repacks them and gives them to it. Error: the file changed
  // meanwhile.
  Result<Weights> Fill(ThreadPool& pool, const LoadOptions& options) {
    const TileCache given = options.cache != nullptr ? *options.cache : TileCache(),
                    cache = given.ForRank(division_.rank(), division_.size());
    if (embedding_ != nullptr)
      weights_.embedding_ = std::make_shared<EmbeddingTable>(checkpoint_, *embedding_, pool);
    if (second_embedding_ != nullptr)
      weights_.second_embedding_ =
          std::make_shared<EmbeddingTable>(checkpoint_, *second_embedding_, pool);
    if (third_embedding_ != nullptr)
      weights_.third_embedding_ =
          std::make_shared<EmbeddingTable>(checkpoint_, *third_embedding_, pool);
    NoteWidened(options);
    const std::uint64_t key = Key();
    auto kept =
        cache.Find(checkpoint_.path(), key, total_bytes_, pool, [&](std::size_t done_bytes) {
          return Report(options, "reading kept weights", done_bytes);
        });
    if (kept) {
      weights_.tiles_ = std::move(*kept);
      for (const Job& job : jobs_) job.linear->tiles = weights_.tiles_.data() + job.offset;
      // Where experts are paged, the disk is for them: nobody reads the model again.
      for (const Job& job : jobs_) {
        if (options.paged) break;
        const auto places = job.tensor->places();
        weights_.sources_.insert(weights_.sources_.end(), places.begin(), places.end());
      }
    } else if (!stopped_) {
      FORETOKEN_CHECK_OK(FillNew(cache, key, pool, options));
    }
    if (stopped_) return Fail(LoadingStopped());
    FORETOKEN_CHECK_OK(checkpoint_.Check());
    for (LayerWeights& layer : weights_.layers)
      if (auto* const experts = std::get_if<ExpertsWeights>(&layer.feed_forward))
        experts->paged = options.paged;
    return std::move(weights_);
  }

 private:
  struct Job {
    const formats::TensorView* tensor;
    Linear* linear;  // stays where it is: layers are sized before planning, and moving a vector
                     // keeps its elements
    std::size_t offset;
    std::span<const std::int32_t> rows = {};  // rows to keep; empty: as below
    // The tensor holds parts of part_rows rows, one after another. So many are taken, from first_part
    // on: of each, the linear's n_out rows from first_row on.
    int first_part = 0, n_parts = 1;
    int part_rows = 0, first_row = 0;
    bool columns = false;    // of each part, its rows are the linear's k columns; tiles are F32
    bool of_target = false;  // the tensor is in another file, the target's
  };

  // Names of a head's tensors; empty: the target's is used.
  struct HeadTensors {
    std::string embedding, norm;
  };
  std::string Optional(const std::string& tensor) const {
    return checkpoint_.Find(tensor) == nullptr ? std::string() : tensor;
  }
  // The name of a tensor in the head's first block.
  std::string OfHead(const char* part) const {
    return fmt::format("blk.{}.{}", config_.layers[0].block, part);
  }

  // Each plans what stands before the head's layers.
  Result<HeadTensors> EagleTensors(int target_vocabulary) {
    const int features = config_.head->features_width(), dim = config_.dim;
    HeadWeights& own = weights_.head.emplace();
    FORETOKEN_CHECK_OK(Divided("fc.weight", dim, features, own.mix));
    if (config_.head->norm_before_fc)
      FORETOKEN_CHECK_OK(Vector("enc.output_norm.weight", features, own.features_norm));
    FORETOKEN_CHECK_OK(Vector(OfHead("attn_norm.weight"), dim, own.token_norm));
    FORETOKEN_CHECK_OK(Vector(OfHead("attn_norm_2.weight"), dim, own.feature_norm));
    FORETOKEN_CHECK_OK(RopeFactors());
    FORETOKEN_CHECK_OK(TargetIds(target_vocabulary, weights_.output_tokens));
    return HeadTensors{Optional("token_embd.weight"), "output_norm.weight"};
  }

  Result<HeadTensors> BlockTensors(int target_vocabulary) {
    const HeadConfig& head = *config_.head;
    HeadWeights& own = weights_.head.emplace();
    FORETOKEN_CHECK_OK(Divided("fc.weight", config_.dim, head.features_width(), own.mix));
    FORETOKEN_CHECK_OK(Vector("enc.output_norm.weight", config_.dim, own.feature_norm));
    FORETOKEN_CHECK_OK(RopeFactors());
    FORETOKEN_CHECK_OK(TargetIds(target_vocabulary, weights_.output_tokens));
    if (head.transition_rank != 0) FORETOKEN_CHECK_OK(Transition(own));
    if (head.n_candidates != 0) FORETOKEN_CHECK_OK(Selector(target_vocabulary, own));
    return HeadTensors{Optional("token_embd.weight"), "output_norm.weight"};
  }

  Status Transition(HeadWeights& own) {
    const int rank = config_.head->transition_rank;
    const std::string certainty = "conf_proj.weight";
    FORETOKEN_TRY(const int rows, EmbeddingRows(checkpoint_, kTransitions));
    FORETOKEN_TRY(second_embedding_, Find(kTransitions, rank, rows));
    FORETOKEN_CHECK_OK(Divided("markov_w2.weight", config_.vocabulary, rank, own.transition));
    if (checkpoint_.Find(certainty) == nullptr) return {};
    FORETOKEN_CHECK_OK(Vector(certainty, config_.dim + rank, own.certainty));
    return Bias("conf_proj.bias", 1, false, own.certainty_bias);
  }

  // Both tables have every token of the target, whatever the output head has.
  Status Selector(int target_vocabulary, HeadWeights& own) {
    const int rank = config_.head->selector_rank;
    FORETOKEN_TRY(second_embedding_, Find(kBefore, rank, target_vocabulary));
    FORETOKEN_TRY(third_embedding_, Find(kBehind, rank, target_vocabulary));
    return Matrix("selector_hidden.weight", rank, config_.dim, own.selector);
  }

  // The base is a vector for each tap of each side.
  Status LocalConvolution(const std::string& name, const LocalConvolutionConfig& config,
                          LocalConvolutionWeights& w) {
    const int dim = config_.dim;
    FORETOKEN_TRY(const formats::TensorView* base, Find(name + "_base", dim, config.taps, 2));
    w.base = Values(*base, dim, 2 * config.taps);
    return Divided(name + "_proj.weight", config.coefficients(dim), dim, w.coefficients);
  }

  Result<HeadTensors> MtpTensors(const Weights& target) {
    const int dim = config_.dim;
    HeadWeights& own = weights_.head.emplace();
    FORETOKEN_CHECK_OK(Divided(OfHead("nextn.eh_proj.weight"), dim, 2 * dim, own.mix));
    FORETOKEN_CHECK_OK(Vector(OfHead("nextn.enorm.weight"), dim, own.token_norm));
    FORETOKEN_CHECK_OK(Vector(OfHead("nextn.hnorm.weight"), dim, own.feature_norm));
    weights_.rope_factors_ = target.rope_factors_;
    return HeadTensors{Optional(OfHead("nextn.embed_tokens.weight")),
                       Optional(OfHead("nextn.shared_head_norm.weight"))};
  }

  Result<HeadTensors> AssistantTensors() {
    const int dim = config_.dim, target = config_.head->target_dim;
    HeadWeights& own = weights_.head.emplace();
    FORETOKEN_CHECK_OK(Divided("nextn.pre_projection.weight", dim, 2 * target, own.mix));
    FORETOKEN_CHECK_OK(Matrix("nextn.post_projection.weight", target, dim, own.next));
    FORETOKEN_CHECK_OK(RopeFactors());
    return HeadTensors{"", "output_norm.weight"};
  }

  // False: stop.
  bool Report(const LoadOptions& options, const char* name, std::size_t done_bytes) {
    if (options.on_progress && !options.on_progress({name, done_bytes, total_bytes_}))
      stopped_ = true;
    return !stopped_;
  }

  Status FillNew(const TileCache& cache, std::uint64_t key, ThreadPool& pool,
                 const LoadOptions& options) {
    const auto notice = [&](const std::string& what) {
      if (options.on_notice && !what.empty())
        options.on_notice(fmt::format("{}; the next start repacks the weights again", what));
    };
    std::string why_not;
    weights_.tiles_ = cache.Make(checkpoint_.path(), total_bytes_, &why_not);
    if (options.paged && !weights_.tiles_.in_file()) return CannotPage(why_not);
    notice(why_not);
    Repack(pool, options);
    if (weights_.tiles_.faulted()) {  // the disk refused a page that it had promised
      if (options.paged) return CannotPage("the disk refused a page");
      weights_.tiles_ = TileMemory(total_bytes_);
      Repack(pool, options);
    }
    // If the file changed meanwhile, the tiles may be a mixture, which is not kept.
    if (stopped_ || !checkpoint_.Check()) return {};
    if (const Status kept = cache.Keep(weights_.tiles_, key, HashOf(source_hashes_), pool); !kept)
      notice(kept.error().message);
    return {};
  }

  static Status CannotPage(const std::string& why) {
    return Fail(ErrorCode::kTooLarge,
                fmt::format("memory: the experts do not fit, and no file can hold them either: {}; "
                            "name a folder with room for all weights (--repack-cache)",
                            why));
  }

  // Sets the job's size, and its place after all others.
  void Place(Job& job, int n_out) {
    Linear& linear = *job.linear;
    linear.n_out = n_out;
    linear.n_tiles = kernels::TilesFor(n_out);
    job.offset = total_bytes_;
    total_bytes_ += (TiledBytes(job) + 63) / 64 * 64;
  }

  static std::size_t TiledBytes(const Job& job) {
    const Linear& linear = *job.linear;
    return kernels::TiledBytes(linear.type, linear.n_out, linear.k) *
           static_cast<std::size_t>(job.n_parts);
  }

  static tensor::DType TypeOf(const Job& job) {
    return tensor::FindDType(job.tensor->ggml_type)->type;
  }

  // The bytes that the rows of one tile take in the file's layout.
  static std::size_t GatheredBytes(const Job& job) {
    return RowBytes(*tensor::FindDType(job.tensor->ggml_type), job.linear->k) *
           tensor::kTileOutputs;
  }

  // Whether the rows lie in several places, so that tiles are made of copies of them.
  static bool IsGathered(const Job& job) {
    return !job.rows.empty() || job.tensor->n_together() < job.first_row + job.linear->n_out;
  }

  // Repacks tiles [begin, end) of a job whose rows lie in several places. `gathered` holds the rows
  // of one tile.
  static void RepackRows(const Job& job, int begin, int end, std::span<std::byte> gathered,
                         std::byte* tiles) noexcept {
    const Linear& linear = *job.linear;
    const std::size_t row_bytes = GatheredBytes(job) / tensor::kTileOutputs;
    const std::size_t strip_bytes = kernels::StripBytes(linear.type, linear.k);
    for (int tile = begin; tile < end; ++tile) {
      const int first = tile * tensor::kTileOutputs;
      const int n = std::min(tensor::kTileOutputs, linear.n_out - first);
      for (int i = 0; i < n; ++i) {
        const int row = job.rows.empty() ? job.first_row + first + i
                                         : job.rows[static_cast<std::size_t>(first + i)];
        std::memcpy(gathered.data() + static_cast<std::size_t>(i) * row_bytes, job.tensor->Row(row),
                    row_bytes);
      }
      kernels::Repack(TypeOf(job), gathered.data(), n, linear.k, 0, 1,
                      tiles + static_cast<std::size_t>(tile) * strip_bytes);
    }
  }

  // In the tensor, the first row that is taken of a part.
  static std::int64_t FirstRow(const Job& job, int part) noexcept {
    return std::int64_t{job.first_part + part} * job.part_rows + job.first_row;
  }

  // Repacks the tiles [begin, end) of all parts of a job together.
  static void RepackParts(const Job& job, int begin, int end, std::byte* tiles) noexcept {
    const Linear& linear = *job.linear;
    const std::size_t part_bytes = kernels::TiledBytes(linear.type, linear.n_out, linear.k);
    for (int part = begin / linear.n_tiles; part < job.n_parts; ++part) {
      const int first = part * linear.n_tiles;
      if (first >= end) return;
      const std::int64_t row = FirstRow(job, part);
      kernels::Repack(TypeOf(job), job.tensor->Row(row), linear.n_out, linear.k,
                      std::max(begin - first, 0), std::min(end - first, linear.n_tiles),
                      tiles + static_cast<std::size_t>(part) * part_bytes);
    }
  }

  // The same for parts [begin, end) whose rows are columns. A row of a strip holds 16 numbers of one
  // column.
  static void RepackColumns(const Job& job, int begin, int end, std::byte* tiles) noexcept {
    const Linear& linear = *job.linear;
    float column[kMostColumn];
    for (int part = begin; part < end; ++part) {
      float* const strips =
          reinterpret_cast<float*>(tiles) + std::int64_t{part} * linear.n_out * linear.k;
      for (int k = 0; k < linear.k; ++k) {
        const std::int64_t row = FirstRow(job, part) + k;
        tensor::Dequantize(TypeOf(job), job.tensor->Row(row), linear.n_out, column);
        for (int tile = 0; tile < linear.n_tiles; ++tile)
          std::copy_n(column + tile * tensor::kTileOutputs, tensor::kTileOutputs,
                      strips + (std::int64_t{tile} * linear.k + k) * tensor::kTileOutputs);
      }
    }
  }

  void Repack(ThreadPool& pool, const LoadOptions& options) {
    std::size_t done_bytes = 0;
    source_hashes_.clear();
    for (const Job& job : jobs_) {
      std::byte* tiles = weights_.tiles_.data() + job.offset;
      const Linear& linear = *job.linear;
      // The memory is taken here, because the pool's threads must not allocate.
      const std::size_t room = IsGathered(job) && !job.columns ? GatheredBytes(job) : 0;
      std::vector<std::byte> gathered(room * static_cast<std::size_t>(pool.size()));
      pool.Run([&](int thread) {
        if (job.columns) {
          const auto parts = pool.ShareOf(job.n_parts, thread);
          return RepackColumns(job, parts.begin, parts.end, tiles);
        }
        const auto share = pool.ShareOf(job.n_parts * linear.n_tiles, thread);
        if (room != 0)
          return RepackRows(
              job, share.begin, share.end,
              std::span(gathered).subspan(room * static_cast<std::size_t>(thread), room), tiles);
        RepackParts(job, share.begin, share.end, tiles);
      });
      job.linear->tiles = tiles;
      // No file keeps a head's tiles, so nobody asks for the hash of its target's tensor.
      const auto places = job.of_target ? std::span<const std::span<const std::byte>>()
                                        : std::span(job.tensor->places());
      for (const auto place : places) {
        source_hashes_.push_back(PieceHash(place, pool));
        checkpoint_.Release(place);
      }
      done_bytes = job.offset + TiledBytes(job);
      weights_.tiles_.Finish(done_bytes, pool);
      if (options.paged) weights_.tiles_.WriteBack(done_bytes);
      if (!Report(options, "repacking", done_bytes)) return;
    }
  }

  // A hash of all that decides what the tiles are: the file, and which tensor lies where.
  std::uint64_t Key() const {
    std::vector<std::uint64_t> parts = {checkpoint_.Fingerprint()};
    if (embedding_ != nullptr) parts.push_back(weights_.embedding_->hash());
    if (second_embedding_ != nullptr) parts.push_back(weights_.second_embedding_->hash());
    if (third_embedding_ != nullptr) parts.push_back(weights_.third_embedding_->hash());
    for (const Job& job : jobs_)
      parts.insert(parts.end(),
                   {HashOf(job.tensor->name), static_cast<std::uint64_t>(job.linear->type),
                    job.offset, static_cast<std::uint64_t>(FirstRow(job, 0)), HashOf(job.rows)});
    return HashOf(parts);
  }

  Status Embedding(const std::string& name, int vocabulary) {
    FORETOKEN_TRY(embedding_, Find(name, config_.dim, vocabulary));
    return {};
  }

  // The table and the product that give every layer its input.
  Status LayerInputs() {
    const int width = config_.layer_input, all = width * config_.n_layers();
    PerLayerInputsWeights& w = weights_.layer_inputs.emplace();
    FORETOKEN_TRY(second_embedding_, Find(kLayerEmbedding, all, config_.vocabulary));
    FORETOKEN_CHECK_OK(Divided("per_layer_model_proj.weight", all, config_.dim, w.projection));
    return Vector("per_layer_proj_norm.weight", width, w.norm);
  }

  Status LayerInput(const std::string& prefix, PerLayerInputWeights& w) {
    const int width = config_.layer_input, dim = config_.dim;
    FORETOKEN_CHECK_OK(Matrix(prefix + "inp_gate.weight", width, dim, w.gate));
    FORETOKEN_CHECK_OK(Matrix(prefix + "proj.weight", dim, width, w.projection));
    return Vector(prefix + "post_norm.weight", dim, w.post_norm);
  }

  Status Layers() {
    weights_.layers.resize(config_.layers.size());
    for (std::size_t i = 0; i < config_.layers.size(); ++i)
      FORETOKEN_CHECK_OK(Layer(config_.layers[i], weights_.layers[i]));
    return {};
  }

  Status Layer(const LayerConfig& config, LayerWeights& layer) {
    const std::string prefix = fmt::format("blk.{}.", config.block);
    if (config.output_scale)
      FORETOKEN_CHECK_OK(Vector(prefix + "layer_output_scale.weight", 1, layer.output_scale));
    if (config_.layer_input != 0) FORETOKEN_CHECK_OK(LayerInput(prefix, layer.input.emplace()));
    FORETOKEN_CHECK_OK(
        std::visit([&](const auto& part) { return Mixer(prefix, part, layer); }, config.mixer));
    if (config.beside) FORETOKEN_CHECK_OK(Mamba2(prefix, *config.beside, layer.beside.emplace()));
    if (config.convolution) {
      FORETOKEN_CHECK_OK(LocalConvolution(prefix + "attn_conv", *config.convolution,
                                          layer.around_mixer.emplace()));
      FORETOKEN_CHECK_OK(LocalConvolution(prefix + "ffn_conv", *config.convolution,
                                          layer.around_feed_forward.emplace()));
    }
    if (config.dense_part) {
      FORETOKEN_CHECK_OK(GatedFfn(prefix, *config.dense_part, layer.dense_part.emplace()));
      FORETOKEN_CHECK_OK(Norm(prefix, config.sum_norm, config_.dim, layer.sum_norm));
    }
    return std::visit([&](const auto& part) { return FeedForward(prefix, part, layer); },
                      config.feed_forward);
  }

  Status Mixer(const std::string& prefix, const AttentionConfig& config, LayerWeights& layer) {
    auto& w = layer.mixer.emplace<AttentionWeights>();
    const int dim = config_.dim, q_dim = config.n_heads * config.head_dim,
              kv_dim = config.n_kv_heads * config.head_dim;
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    FORETOKEN_CHECK_OK(QueriesKeysValues(prefix, config, q_dim, kv_dim, w));
    FORETOKEN_CHECK_OK(Divided(prefix + "attn_output.weight", dim, q_dim, w.o));
    FORETOKEN_CHECK_OK(Bias(prefix + "attn_output.bias", dim, config.output_bias, w.o_bias));
    FORETOKEN_CHECK_OK(Norm(prefix, config.post_norm, dim, w.post_norm));
    if (config.sinks)
      FORETOKEN_CHECK_OK(Vector(prefix + "attn_sinks.weight", config.n_heads, w.sinks));
    if (config.v_norm)
      w.v_norm =
          weights_.vectors_.emplace_back(static_cast<std::size_t>(config.head_dim), 1.0f).data();
    if (config.qk_norm == QkNorm::kNone) return {};
    if (config.qk_norm_optional && checkpoint_.Find(prefix + "attn_q_norm.weight") == nullptr)
      return {};
    const bool by_head = config.qk_norm == QkNorm::kHead;
    FORETOKEN_CHECK_OK(
        Vector(prefix + "attn_q_norm.weight", by_head ? config.head_dim : q_dim, w.q_norm));
    if (config.cache_layer >= 0) return {};
    return Vector(prefix + "attn_k_norm.weight", by_head ? config.head_dim : kv_dim, w.k_norm);
  }

  Status Mixer(const std::string& prefix, const LatentAttentionConfig& config,
               LayerWeights& layer) {
    auto& w = layer.mixer.emplace<LatentAttentionWeights>();
    const int dim = config_.dim, n = config.n_heads;
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    FORETOKEN_CHECK_OK(LatentQueries(prefix, config, w));
    FORETOKEN_CHECK_OK(Matrix(prefix + "attn_kv_a_mqa.weight", config.key_dim(), dim, w.kv));
    FORETOKEN_CHECK_OK(Vector(prefix + "attn_kv_a_norm.weight", config.rank, w.latent_norm));
    FORETOKEN_CHECK_OK(Divided(prefix + "attn_output.weight", dim, n * config.value_dim, w.o));
    if (checkpoint_.Find(prefix + "attn_kv_b.weight") != nullptr)
      return LatentMatricesTogether(prefix + "attn_kv_b.weight", config, w);
    const OutputRange heads = OwnHeads(config, division_);
    FORETOKEN_CHECK_OK(Parts({prefix + "attn_k_b.weight", n, config.rank, heads, {0, config.rank}},
                             config.head_dim, w.k));
    return Parts({prefix + "attn_v_b.weight", n, config.value_dim, heads, {0, config.value_dim}},
                 config.rank, w.v);
  }

  // One matrix, or the product of two. Each rank has the rows of its heads.
  Status LatentQueries(const std::string& prefix, const LatentAttentionConfig& config,
                       LatentAttentionWeights& w) {
    const int each = config.query_dim(), dim = config_.dim;
    const OutputRange heads = OwnHeads(config, division_),
                      rows = {heads.begin * each, heads.end * each};
    if (config.q_rank == 0)
      return Rows({prefix + "attn_q.weight", config.n_heads * each}, 0, rows, dim, w.q);
    FORETOKEN_CHECK_OK(Matrix(prefix + "attn_q_a.weight", config.q_rank, dim, w.q_a));
    FORETOKEN_CHECK_OK(Vector(prefix + "attn_q_a_norm.weight", config.q_rank, w.q_a_norm));
    return Rows({prefix + "attn_q_b.weight", config.n_heads * each}, 0, rows, config.q_rank, w.q);
  }

  Status Mixer(const std::string& prefix, const ShortConvConfig& config, LayerWeights& layer) {
    auto& w = layer.mixer.emplace<ShortConvWeights>();
    const int dim = config_.dim;
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    const std::string in = prefix + "shortconv.in_proj.weight";
    FORETOKEN_CHECK_OK(Rows({in, 3 * dim}, 0, Own(dim), dim, w.b));
    FORETOKEN_CHECK_OK(Rows({in, 3 * dim}, dim, Own(dim), dim, w.c));
    FORETOKEN_CHECK_OK(Rows({in, 3 * dim}, 2 * dim, Own(dim), dim, w.u));
    FORETOKEN_CHECK_OK(Taps(prefix + "shortconv.conv.weight", config.taps, dim, w.taps));
    return Divided(prefix + "shortconv.out_proj.weight", dim, dim, w.out);
  }

  Status Mixer(const std::string& prefix, const DeltaNetConfig& config, LayerWeights& layer) {
    auto& w = layer.mixer.emplace<DeltaNetWeights>();
    const int dim = config_.dim, n = config.head_dim, heads = config.n_value_heads,
              values = config.value_dim(), columns = config.convolved();
    const OutputRange own = division_.Own(heads, 1);
    const std::string z = prefix + "attn_gate.weight";
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    FORETOKEN_CHECK_OK(Divided(prefix + "attn_qkv.weight", columns, dim, w.c));
    FORETOKEN_CHECK_OK(Rows({z, values}, 0, {own.begin * n, own.end * n}, dim, w.z));
    FORETOKEN_CHECK_OK(AlphaBeta(prefix, config, w));
    FORETOKEN_CHECK_OK(Taps(prefix + "ssm_conv1d.weight", config.taps, columns, w.taps));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_dt.bias", heads, w.dt));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_a", heads, w.a));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_norm.weight", n, w.head_norm));
    w.q_scale = Constants(n, 1.0f / static_cast<float>(n));
    w.k_scale = Constants(n, static_cast<float>(std::sqrt(1.0 / n)));
    return Divided(prefix + "ssm_out.weight", dim, values, w.out);
  }

  Status Mixer(const std::string& prefix, const Mamba2Config& config, LayerWeights& layer) {
    return Mamba2(prefix, config, layer.mixer.emplace<Mamba2Weights>());
  }

  Status Mamba2(const std::string& prefix, const Mamba2Config& config, Mamba2Weights& w) {
    const int dim = config_.dim, inner = config.inner(), heads = config.n_heads,
              columns = config.convolved(), all = inner + columns + heads;
    const OutputRange own = division_.Own(heads, 1);
    const OutputRange values = {own.begin * config.head_dim, own.end * config.head_dim};
    const std::string in = prefix + "ssm_in.weight";
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    FORETOKEN_CHECK_OK(Rows({in, all}, 0, values, dim, w.z));
    FORETOKEN_CHECK_OK(Rows({in, all}, inner, Own(columns), dim, w.c));
    FORETOKEN_CHECK_OK(Rows({in, all}, inner + columns, {0, heads}, dim, w.dt));
    FORETOKEN_CHECK_OK(Taps(prefix + "ssm_conv1d.weight", config.taps, columns, w.taps));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_conv1d.bias", columns, w.tap_bias));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_dt.bias", heads, w.dt_bias));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_a", 1, w.a, heads));
    FORETOKEN_CHECK_OK(Vector(prefix + "ssm_d", 1, w.d, heads));
    if (checkpoint_.Find(prefix + "ssm_norm.weight") != nullptr)
      FORETOKEN_CHECK_OK(Vector(prefix + "ssm_norm.weight", inner / config.n_groups, w.group_norm,
                                config.n_groups));
    return Divided(prefix + "ssm_out.weight", dim, inner, w.out);
  }

  // Two matrices, or one that holds for each key head the rows of beta, then those of alpha.
  Status AlphaBeta(const std::string& prefix, const DeltaNetConfig& config, DeltaNetWeights& w) {
    const int dim = config_.dim, heads = config.n_value_heads;
    if (!config.grouped) {
      FORETOKEN_CHECK_OK(Matrix(prefix + "ssm_alpha.weight", heads, dim, w.alpha));
      return Matrix(prefix + "ssm_beta.weight", heads, dim, w.beta);
    }
    const std::string both = prefix + "ssm_ba.weight";
    const int group = heads / config.n_key_heads;
    FORETOKEN_CHECK_OK(EverySecond({both, 2 * heads}, group, 0, {0, heads}, dim, w.beta));
    return EverySecond({both, 2 * heads}, group, group, {0, heads}, dim, w.alpha);
  }

  const float* Constants(int n, float value) {
    return weights_.vectors_.emplace_back(static_cast<std::size_t>(n), value).data();
  }

  // The taps of each channel lie together in the file, and the channels of each tap in memory.
  Status Taps(const std::string& name, int taps, int channels, const float*& out) {
    FORETOKEN_CHECK_OK(Vector(name, taps, out, channels));
    const std::vector<float> by_channel = weights_.vectors_.back();
    float* to = weights_.vectors_.back().data();
    for (int tap = 0; tap < taps; ++tap)
      for (int channel = 0; channel < channels; ++channel)
        *to++ = by_channel[static_cast<std::size_t>(channel * taps + tap)];
    return {};
  }

  // The tensor holds for each head the columns of its matrix k, then the rows of its matrix v.
  Status LatentMatricesTogether(const std::string& name, const LatentAttentionConfig& config,
                                LatentAttentionWeights& w) {
    const int part_rows = config.head_dim + config.value_dim;
    const OutputRange heads = OwnHeads(config, division_);
    FORETOKEN_TRY(const formats::TensorView* t,
                  Find(name, config.rank, config.n_heads * part_rows));
    const auto place = [&](ExpertLinear& out, TileType type, int n_out, int k, int first_row,
                           bool columns) {
      out.first.type = type;
      out.first.k = k;
      if (heads.n() == 0) return;
      out.expert_bytes = kernels::TiledBytes(type, n_out, k);
      jobs_.push_back({.tensor = t,
                       .linear = &out.first,
                       .offset = 0,
                       .first_part = heads.begin,
                       .n_parts = heads.n(),
                       .part_rows = part_rows,
                       .first_row = first_row,
                       .columns = columns});
      Place(jobs_.back(), n_out);
    };
    place(w.k, TileType::kF32, config.rank, config.head_dim, 0, true);
    place(w.v, tensor::FindDType(t->ggml_type)->tile, config.value_dim, config.rank,
          config.head_dim, false);
    return {};
  }

  // Three matrices, or one that holds the rows of all three in this order. Where the layer reads the
  // cache of another, only the first is needed; w.k and w.v have no tiles then.
  Status QueriesKeysValues(const std::string& prefix, const AttentionConfig& config, int q_dim,
                           int kv_dim, AttentionWeights& w) {
    const int width = config.reads_pair ? 2 * config_.dim : config_.dim;
    const HeadRange own = OwnHeads(config, division_);
    const auto columns = [&](OutputRange heads) -> OutputRange {
      return {heads.begin * config.head_dim, heads.end * config.head_dim};
    };
    // One norm for all keys of a row needs them all: they are gathered, so no rank has any twice.
    const OutputRange queries = columns(own.queries), values = columns(own.keys),
                      keys = config.qk_norm == QkNorm::kRow ? Own(kv_dim) : values;
    if (checkpoint_.Find(prefix + "attn_qkv.weight") == nullptr) {
      FORETOKEN_CHECK_OK(Queries(prefix + "attn_q.weight", config, queries, width, w));
      if (config.cache_layer >= 0)
        return Bias(prefix + "attn_q.bias", q_dim, config.qkv_bias, w.q_bias);
      FORETOKEN_CHECK_OK(Rows({prefix + "attn_k.weight", kv_dim}, 0, keys, width, w.k));
      // Without the matrix, w.v has no tiles.
      const bool has_v = checkpoint_.Find(prefix + "attn_v.weight") != nullptr;
      if (has_v || !config.keys_may_be_values)
        FORETOKEN_CHECK_OK(Rows({prefix + "attn_v.weight", kv_dim}, 0, values, width, w.v));
      FORETOKEN_CHECK_OK(Bias(prefix + "attn_q.bias", q_dim, config.qkv_bias, w.q_bias));
      FORETOKEN_CHECK_OK(Bias(prefix + "attn_k.bias", kv_dim, config.qkv_bias, w.k_bias));
      return Bias(prefix + "attn_v.bias", kv_dim, config.qkv_bias, w.v_bias);
    }
    const int all = q_dim + 2 * kv_dim;
    const std::string qkv = prefix + "attn_qkv.weight";
    FORETOKEN_CHECK_OK(Rows({qkv, all}, 0, queries, width, w.q));
    FORETOKEN_CHECK_OK(Rows({qkv, all}, q_dim, keys, width, w.k));
    FORETOKEN_CHECK_OK(Rows({qkv, all}, q_dim + kv_dim, values, width, w.v));
    FORETOKEN_CHECK_OK(Bias(prefix + "attn_qkv.bias", all, config.qkv_bias, w.q_bias));
    if (w.q_bias != nullptr) w.k_bias = w.q_bias + q_dim, w.v_bias = w.k_bias + kv_dim;
    return {};
  }

  Status Queries(const std::string& name, const AttentionConfig& config, OutputRange own, int width,
                 AttentionWeights& w) {
    const int n = config.head_dim, all = config.n_heads * n;
    if (!config.output_gate) return Rows({name, all}, 0, own, width, w.q);
    FORETOKEN_CHECK_OK(EverySecond({name, 2 * all}, n, 0, own, width, w.q));
    return EverySecond({name, 2 * all}, n, n, own, width, w.gate);
  }

  static Status Mixer(const std::string&, const NoPart&, LayerWeights&) { return {}; }
  static Status FeedForward(const std::string&, const NoPart&, LayerWeights&) { return {}; }

  Status FeedForward(const std::string& prefix, const GatedFfnConfig& config, LayerWeights& layer) {
    return GatedFfn(prefix, config, layer.feed_forward.emplace<GatedFfnWeights>());
  }

  Status GatedFfn(const std::string& prefix, const GatedFfnConfig& config, GatedFfnWeights& w) {
    const int dim = config_.dim, width = config.width;
    if (config.bare_norm)
      FORETOKEN_CHECK_OK(Vector(fmt::format("{}{}", prefix, config.norm), dim, w.norm));
    else
      FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    if (!config.gated) {  // w.up has no tiles
      FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up.weight", width, dim, w.gate));
    } else if (config.gate_in_up) {
      const std::string both = prefix + "ffn_up.weight";
      FORETOKEN_CHECK_OK(Rows({both, 2 * width}, 0, Own(width), dim, w.gate));
      FORETOKEN_CHECK_OK(Rows({both, 2 * width}, width, Own(width), dim, w.up));
    } else {
      FORETOKEN_CHECK_OK(Divided(prefix + "ffn_gate.weight", width, dim, w.gate));
      FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up.weight", width, dim, w.up));
    }
    FORETOKEN_CHECK_OK(Divided(prefix + "ffn_down.weight", dim, width, w.down));
    return Norm(prefix, config.post_norm, dim, w.post_norm);
  }

  Status FeedForward(const std::string& prefix, const ExpertsConfig& config, LayerWeights& layer) {
    auto& w = layer.feed_forward.emplace<ExpertsWeights>();
    const int dim = config_.dim, n = config.n_experts, width = config.width;
    FORETOKEN_CHECK_OK(Norm(prefix, config.norm, dim, w.norm));
    FORETOKEN_CHECK_OK(Norm(prefix, config.post_norm, dim, w.post_norm));
    FORETOKEN_CHECK_OK(Matrix(prefix + "ffn_gate_inp.weight", n, dim, w.router));
    if (config.router_norm) FORETOKEN_CHECK_OK(RouterNorm(prefix, w.router_norm));
    if (config.scales) FORETOKEN_CHECK_OK(Vector(prefix + "ffn_down_exps.scale", n, w.scales));
    if (config.selection_bias)
      FORETOKEN_CHECK_OK(Bias(prefix + "exp_probs_b.bias", n, false, w.selection_bias));
    const std::string fused = prefix + "ffn_gate_up_exps.weight";
    if (!config.gated) {  // w.up has no tiles
      FORETOKEN_CHECK_OK(Experts(prefix + "ffn_up_exps.weight", n, {width, dim}, w.gate, width));
    } else if (checkpoint_.Find(fused) != nullptr) {  // the rows of gate come first
      FORETOKEN_CHECK_OK(Experts(fused, n, {width, dim}, w.gate, 2 * width, 0));
      FORETOKEN_CHECK_OK(Experts(fused, n, {width, dim}, w.up, 2 * width, width));
    } else {
      FORETOKEN_CHECK_OK(Experts(prefix + "ffn_gate_exps.weight", n, {width, dim}, w.gate, width));
      FORETOKEN_CHECK_OK(Experts(prefix + "ffn_up_exps.weight", n, {width, dim}, w.up, width));
    }
    FORETOKEN_CHECK_OK(Experts(prefix + "ffn_down_exps.weight", n, {dim, width}, w.down, dim));
    if (config.biases) {
      FORETOKEN_CHECK_OK(Vector(prefix + "ffn_gate_inp.bias", n, w.router_bias));
      FORETOKEN_CHECK_OK(Vector(prefix + "ffn_gate_exps.bias", width, w.gate_bias, n));
      FORETOKEN_CHECK_OK(Vector(prefix + "ffn_up_exps.bias", width, w.up_bias, n));
      FORETOKEN_CHECK_OK(Vector(prefix + "ffn_down_exps.bias", dim, w.down_bias, n));
    }
    if (config.shared_width == 0) return {};
    const int shared = config.shared_width;
    if (config.shared_gate)
      FORETOKEN_CHECK_OK(Matrix(prefix + "ffn_gate_inp_shexp.weight", 1, dim, w.shared_router));
    if (config.gated) {
      FORETOKEN_CHECK_OK(Divided(prefix + "ffn_gate_shexp.weight", shared, dim, w.shared.gate));
      FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up_shexp.weight", shared, dim, w.shared.up));
    } else {
      FORETOKEN_CHECK_OK(Divided(prefix + "ffn_up_shexp.weight", shared, dim, w.shared.gate));
    }
    return Divided(prefix + "ffn_down_shexp.weight", dim, shared, w.shared.down);
  }

  Status RouterNorm(const std::string& prefix, const float*& out) {
    FORETOKEN_CHECK_OK(Vector(prefix + "ffn_gate_inp.scale", config_.dim, out));
    for (float& x : weights_.vectors_.back()) x *= static_cast<float>(std::sqrt(1.0 / config_.dim));
    return {};
  }

  // The tensor d2t holds the target's id of each of the head's tokens, as int64.
  Status TargetIds(int target_vocabulary, std::vector<std::int32_t>& ids) const {
    constexpr std::uint32_t kInt64 = 27;  // ggml's type number
    const auto refuse = [](std::string why) {
      return Fail(ErrorCode::kInvalidFile, fmt::format("tensor d2t: {}; the head is damaged", why));
    };
    const formats::TensorView* t = checkpoint_.Find("d2t");
    if (t == nullptr) return {};
    if (t->ggml_type != kInt64 || t->n_dims != 1 || t->shape[0] != config_.vocabulary ||
        checkpoint_.Find("output.weight") == nullptr)
      return refuse(fmt::format("it must hold one int64 for each of the {} rows of output.weight",
                                config_.vocabulary));
    std::vector<bool> seen(static_cast<std::size_t>(target_vocabulary));
    for (int i = 0; i < config_.vocabulary; ++i) {
      std::int64_t id = 0;
      std::memcpy(&id, t->Row(0) + 8 * static_cast<std::size_t>(i), 8);
      if (id < 0 || id >= target_vocabulary)
        return refuse(fmt::format("{} is not a token of the target's {}", id, target_vocabulary));
      if (seen[static_cast<std::size_t>(id)])
        return refuse(fmt::format("token {} comes twice", id));
      seen[static_cast<std::size_t>(id)] = true;
      ids.push_back(static_cast<std::int32_t>(id));
    }
    return {};
  }

  // n_parts: 0: the tensor is one matrix.
  Result<const formats::TensorView*> Find(const std::string& name, int k, int n_out,
                                          int n_parts = 0) const {
    const formats::TensorView* t = checkpoint_.Find(name);
    if (t == nullptr)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("tensor {}: missing; this is not a complete model file", name));
    if (t->shape != std::array<std::int64_t, 4>{k, n_out, std::max(n_parts, 1), 1})
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("tensor {}: its shape is [{}], the metadata ask for [{}, {}{}]", name,
                              fmt::join(t->shape.begin(), t->shape.begin() + t->n_dims, ", "), k,
                              n_out, n_parts == 0 ? "" : fmt::format(", {}", n_parts)));
    if (tensor::FindDType(t->ggml_type) == nullptr)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("tensor {}: type {} is not supported; convert the file to F16, BF16, "
                              "Q8_0, Q4_0 to Q5_1 or Q4_K to Q6_K",
                              name, tensor::GgmlTypeName(t->ggml_type)));
    return t;
  }

  // n_rows vectors of n numbers, one after another.
  Status Vector(const std::string& name, int n, const float*& out, int n_rows = 1) {
    FORETOKEN_TRY(const formats::TensorView* t, Find(name, n, n_rows));
    out = Values(*t, n, n_rows);
    return {};
  }

  // The rows of a tensor as numbers.
  const float* Values(const formats::TensorView& t, int n, int n_rows) {
    const auto size = static_cast<std::size_t>(n);
    auto& values = weights_.vectors_.emplace_back(size * static_cast<std::size_t>(n_rows));
    for (int row = 0; row < n_rows; ++row)
      tensor::Dequantize(tensor::FindDType(t.ggml_type)->type, t.Row(row), n,
                         values.data() + size * static_cast<std::size_t>(row));
    return values.data();
  }

  Status Bias(const std::string& name, int n, bool needed, const float*& out) {
    if (!needed && checkpoint_.Find(name) == nullptr) return {};
    return Vector(name, n, out);
  }

  // A layer may lack a norm: then it has no name.
  Status Norm(const std::string& prefix, std::string_view name, int n, const float*& out) {
    if (name.empty()) return {};
    return Vector(fmt::format("{}{}.weight", prefix, name), n, out);
  }

  Status RopeFactors() {
    for (const LayerConfig& layer : config_.layers) {
      const RopeConfig* rope = layer.rope();
      if (rope == nullptr) continue;
      for (const std::string_view name : {rope->factors, rope->long_factors})
        FORETOKEN_CHECK_OK(RopeFactors(name, rope->n_rot / 2));
    }
    return {};
  }

  Status RopeFactors(std::string_view name, int n) {
    const std::string tensor = fmt::format("{}.weight", name);
    if (name.empty() || checkpoint_.Find(tensor) == nullptr) return {};
    for (const auto& known : weights_.rope_factors_) {
      if (known.name != name) continue;
      if (known.values.size() == static_cast<std::size_t>(n)) return {};
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("tensor {}: layers rotate different numbers of dimensions, which is "
                              "not supported yet",
                              tensor));
    }
    const float* factors = nullptr;
    FORETOKEN_CHECK_OK(Vector(tensor, n, factors));
    for (int i = 0; i < n; ++i)
      if (!(factors[i] > 0))
        return Fail(ErrorCode::kInvalidFile,
                    fmt::format("tensor {}: {} is not positive", tensor, factors[i]));
    weights_.rope_factors_.push_back({std::string(name), {factors, static_cast<std::size_t>(n)}});
    return {};
  }

  // A matrix that each rank computes with whole.
  Status Matrix(const std::string& name, int n_out, int k, Linear& out) {
    return Rows({name, n_out}, 0, {0, n_out}, k, out);
  }
  // A matrix whose outputs the ranks divide.
  Status Divided(const std::string& name, int n_out, int k, Linear& out) {
    return Rows({name, n_out}, 0, Own(n_out), k, out);
  }
  // Without one of its own, a head uses its target's.
  Status HeadOutput(const Weights& target) {
    const std::string name = HeadOutputName(config_);
    if (checkpoint_.Find(name) == nullptr) {
      weights_.output = target.output;
      weights_.output_tensor_ = target.output_tensor_;
      return {};
    }
    FORETOKEN_TRY(weights_.output_tensor_, Find(name, config_.dim, config_.vocabulary));
    return Divided(name, config_.vocabulary, config_.dim, weights_.output);
  }

  // The rows of an output head that are to be kept, which the ranks divide.
  void SomeRows(const formats::TensorView& tensor, std::span<const std::int32_t> rows, Linear& out,
                std::vector<std::int32_t>& kept) {
    FORETOKEN_CHECK(rows.front() >= 0 && rows.back() < tensor.shape[1]);
    kept.assign(rows.begin(), rows.end());
    const OutputRange own = Own(static_cast<int>(rows.size()));
    PlaceRows(tensor, static_cast<int>(tensor.shape[1]), 0, own, out);
    if (own.n() == 0) return;
    jobs_.back().rows =
        rows.subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.n()));
    jobs_.back().of_target = checkpoint_.Find(tensor.name) != &tensor;
  }
  // Whole blocks of the int8 form.
  OutputRange Own(int n_out) const { return division_.Own(n_out, tensor::kBlock); }

  struct RowsTensor {
    const std::string& name;
    int n_rows;
  };
  // The outputs `own` of a matrix that begins at row `first` of a tensor.
  Status Rows(const RowsTensor& tensor, int first, OutputRange own, int k, Linear& out) {
    FORETOKEN_TRY(const formats::TensorView* t, Find(tensor.name, k, tensor.n_rows));
    PlaceRows(*t, tensor.n_rows, first, own, out);
    return {};
  }
  void PlaceRows(const formats::TensorView& t, int part_rows, int first, OutputRange own,
                 Linear& out) {
    out.type = tensor::FindDType(t.ggml_type)->tile;
    out.k = static_cast<int>(t.shape[0]);
    own.begin = own.begin / tensor::kTileOutputs * tensor::kTileOutputs;
    out.first_tile = own.begin / tensor::kTileOutputs;
    if (own.n() == 0) return;
    jobs_.push_back({.tensor = &t,
                     .linear = &out,
                     .offset = 0,
                     .part_rows = part_rows,
                     .first_row = first + own.begin});
    Place(jobs_.back(), own.n());
  }

  // The tensor holds two matrices, of which groups of `group` rows take turns; `first`: 0 or `group`.
  Status EverySecond(const RowsTensor& tensor, int group, int first, OutputRange own, int k,
                     Linear& out) {
    FORETOKEN_CHECK_OK(Rows(tensor, 0, own, k, out));
    if (own.n() == 0) return {};
    std::vector<std::int32_t>& rows = row_lists_.emplace_back();
    for (int i = out.first_tile * tensor::kTileOutputs; i < own.end; ++i)
      rows.push_back(i / group * 2 * group + first + i % group);
    jobs_.back().rows = rows;
    return {};
  }

  struct MatrixShape {
    int n_out, k;
  };
  // A matrix of each expert: the outputs `own` of the rows from first_row on of its part_rows rows in
  // the tensor.
  Status Experts(const std::string& name, int n_experts, MatrixShape shape, ExpertLinear& out,
                 int part_rows, int first_row = 0) {
    return Parts({name, n_experts, part_rows, {0, n_experts}, Own(shape.n_out), first_row}, shape.k,
                 out);
  }
  struct PartsTensor {
    const std::string& name;
    int n_parts, part_rows;
    OutputRange parts, outputs;  // that are taken: of the parts, and of the matrix in each
    int first_row = 0;           // of that matrix in its part
  };
  Status Parts(const PartsTensor& tensor, int k, ExpertLinear& out) {
    const OutputRange own = tensor.outputs;
    FORETOKEN_TRY(const formats::TensorView* t,
                  Find(tensor.name, k, tensor.part_rows, tensor.n_parts));
    out.first.type = tensor::FindDType(t->ggml_type)->tile;
    out.first.k = k;
    out.first.first_tile = own.begin / tensor::kTileOutputs;
    if (own.n() == 0 || tensor.parts.n() == 0) return {};
    out.expert_bytes = kernels::TiledBytes(out.first.type, own.n(), k);
    jobs_.push_back({.tensor = t,
                     .linear = &out.first,
                     .offset = 0,
                     .first_part = tensor.parts.begin,
                     .n_parts = tensor.parts.n(),
                     .part_rows = tensor.part_rows,
                     .first_row = tensor.first_row + own.begin});
    Place(jobs_.back(), own.n());
    return {};
  }

  const formats::Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const Division division_;
  Weights weights_;
  const formats::TensorView* embedding_ = nullptr;  // in this file; null: the target's is used
  const formats::TensorView *second_embedding_ = nullptr,
                            *third_embedding_ = nullptr;  // null: there is none
  std::vector<Job> jobs_;
  std::deque<std::vector<std::int32_t>> row_lists_;  // that jobs refer to
  std::size_t total_bytes_ = 0;
  bool stopped_ = false;
  std::vector<std::uint64_t> source_hashes_;  // of the places of each job's tensor
};

Result<Weights> Weights::Load(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                              std::span<const std::int32_t> output_tokens, const Division& division,
                              ThreadPool& pool, const LoadOptions& options) {
  WeightsLoader loader(checkpoint, config, division);
  FORETOKEN_CHECK_OK(loader.Plan(output_tokens));
  return loader.Fill(pool, options);
}

Result<Weights> Weights::LoadHead(const formats::Checkpoint& checkpoint, const ModelConfig& config,
                                  const Weights& target, const ModelConfig& target_config,
                                  std::span<const std::int32_t> reduced_tokens,
                                  const Division& division, ThreadPool& pool) {
  WeightsLoader loader(checkpoint, config, division);
  FORETOKEN_CHECK_OK(loader.PlanHead(target, target_config, reduced_tokens));
  return loader.Fill(pool, {});
}

Status Weights::Check(const formats::Checkpoint& checkpoint, const ModelConfig& config) {
  return WeightsLoader(checkpoint, config).Plan({});
}

std::span<const float> Weights::FactorsOf(const RopeConfig& rope, int max_positions) const {
  const bool is_long = !rope.long_factors.empty() && max_positions > rope.original_context;
  const std::string_view name = is_long ? rope.long_factors : rope.factors;
  for (const RopeFactors& factors : rope_factors_)
    if (factors.name == name) return factors.values;
  return {};
}

Status Weights::CheckEmbeddings() const {
  for (const auto& table : {embedding_, second_embedding_, third_embedding_})
    if (table != nullptr) FORETOKEN_CHECK_OK(table->Check());
  return {};
}

Status Weights::CheckFiles(ThreadPool& pool) {
  FORETOKEN_CHECK_OK(CheckEmbeddings());
  return tiles_.Check(pool);
}

Status Weights::QuickCheckFiles() const {
  FORETOKEN_CHECK_OK(CheckEmbeddings());
  return tiles_.QuickCheck();
}

namespace {

std::int64_t TileBytesOf(const formats::TensorView& t) {
  const tensor::DTypeInfo* info = tensor::FindDType(t.ggml_type);
  if (info == nullptr) return static_cast<std::int64_t>(t.bytes());
  constexpr int kValues = tensor::kSuperBlock;  // whole blocks of every type
  const auto strip_bytes = static_cast<std::int64_t>(kernels::StripBytes(info->tile, kValues));
  return t.n_values() * (strip_bytes / tensor::kTileOutputs) / kValues;
}

}  // namespace

const formats::TensorView* ReducibleOutput(const formats::Checkpoint& checkpoint,
                                           const ModelConfig& config,
                                           const formats::Checkpoint& target) {
  const HeadConfig& head = *config.head;
  if (checkpoint.Find("d2t") != nullptr || head.transition_rank != 0 || head.n_candidates != 0)
    return nullptr;
  for (const auto& [file, name] : {std::pair(&checkpoint, HeadOutputName(config)),
                                   std::pair(&target, std::string("output.weight")),
                                   std::pair(&target, std::string("token_embd.weight"))})
    if (const formats::TensorView* output = file->Find(name)) return output;
  return nullptr;
}

std::int64_t BytesOfRows(const formats::TensorView& matrix, std::int64_t n_rows) {
  return TileBytesOf(matrix) / std::max<std::int64_t>(1, matrix.shape[1]) * n_rows;
}

WeightBytes WeightBytesOf(const formats::Checkpoint& checkpoint) {
  constexpr std::array<std::string_view, 4> kTables = {kLayerEmbedding, kTransitions, kBefore,
                                                       kBehind};
  WeightBytes bytes;
  const bool tied = checkpoint.Find("output.weight") == nullptr;
  for (const formats::TensorView& t : checkpoint.tensors()) {
    const bool is_table = std::find(kTables.begin(), kTables.end(), t.name) != kTables.end(),
               of_tokens = t.name == "token_embd.weight";
    if (is_table || of_tokens) bytes.embedding += static_cast<std::int64_t>(t.bytes());
    if (is_table || (of_tokens && !tied)) continue;
    (t.name.ends_with("_exps.weight") ? bytes.experts : bytes.dense) += TileBytesOf(t);
  }
  return bytes;
}

WeightBytes WeightBytes::PartOf(const Division& division) const {
  return {
      .dense = division.PartOf(dense), .experts = division.PartOf(experts), .embedding = embedding};
}

Result<int> VocabularyRows(const formats::Checkpoint& checkpoint) {
  constexpr const char* kName = "token_embd.weight";
  if (checkpoint.Find(kName) == nullptr)
    return Fail(ErrorCode::kInvalidFile,
                "tensor token_embd.weight: missing; a vocabulary-only file cannot generate, only "
                "`tokenize` and `inspect` read it");
  return EmbeddingRows(checkpoint, kName);
}

}  // namespace foretoken::model
