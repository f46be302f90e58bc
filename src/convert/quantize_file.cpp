// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "base/machine/thread_count.h"
#include "base/machine/thread_pool.h"
#include "convert/quantize_plan.h"
#include "foretoken/tools/model_file.h"
#include "formats/gguf_writer.h"
#include "tensor/quantize.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using convert::PlannedTensor;
using convert::QuantizePlan;
using formats::TensorView;
using tensor::DType;

// ---- Input and output --------------------------------------------------------------------------

Status CheckOutput(const std::string& output, const std::vector<std::string>& inputs) {
  const auto bad = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}; name another output",
                                                         output.empty() ? "output" : output, why));
  };
  if (output.empty()) return bad("the name is empty");
  std::error_code ignored;
  for (const std::string& input : inputs)
    if (fs::equivalent(input, output, ignored)) return bad("is the input, too");
  const fs::file_status status = fs::status(output, ignored);
  if (fs::is_directory(status)) return bad("is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) return bad("is not an ordinary file");
  return {};
}

// ---- One tensor --------------------------------------------------------------------------------

// What all tensors of one number type have come to.
struct Tally {
  std::int64_t tensors = 0, bytes = 0, converted = 0;
  double squared_error = 0;
};

class Converter {
 public:
  Converter(const formats::Checkpoint& checkpoint, const QuantizeOptions& options, int threads)
      : checkpoint_(checkpoint), options_(options), pool_(threads), scratch_(threads) {
    for (const TensorView& t : checkpoint.tensors()) total_bytes_ += t.bytes();
  }

  Status Write(const PlannedTensor& planned, const formats::ByteSink& sink) {
    tensor_ = &planned;
    const Status written = planned.converted ? Convert(sink) : Copy(sink);
    // First what was read: a file that was cut short also makes the writing fail.
    FORETOKEN_CHECK_OK(checkpoint_.Check());
    return written;
  }

  const std::map<std::uint32_t, Tally>& tallies() const { return tallies_; }

 private:
  static constexpr std::int64_t kPieceBytes = 8 << 20;   // of the source, copied at once
  static constexpr std::int64_t kPieceValues = 4 << 20;  // converted between two writes
  static constexpr std::int64_t kGrabValues = 1 << 15;   // taken by a thread at once

  struct Scratch {
    std::vector<float> values, back;
  };
  // Some rows of a tensor, and where they go.
  struct Piece {
    DType from, to;
    std::int64_t row_values, first_row, rows;
    std::byte* out;
    std::size_t out_row_bytes;
  };

  const TensorView& view() const { return *tensor_->tensor; }
  Status Copy(const formats::ByteSink& sink);
  Status CopyRun(std::span<const std::byte> bytes, const formats::ByteSink& sink);
  Status Convert(const formats::ByteSink& sink);
  Status ConvertPiece(const Piece& piece);
  double ConvertRow(const Piece& piece, std::int64_t row, Scratch& scratch) const;
  Error Refused(const Piece& piece, std::int64_t row);
  Status Advance(std::size_t source_bytes);

  const formats::Checkpoint& checkpoint_;
  const QuantizeOptions& options_;
  ThreadPool pool_;
  std::vector<Scratch> scratch_;  // one for each thread
  const PlannedTensor* tensor_ = nullptr;
  std::vector<std::byte> out_;
  std::vector<double> errors_;  // squared, of each row of a piece
  std::map<std::uint32_t, Tally> tallies_;
  std::size_t done_bytes_ = 0, total_bytes_ = 0;
};

Status Converter::Copy(const formats::ByteSink& sink) {
  const TensorView& t = view();
  Tally& tally = tallies_[t.ggml_type];
  ++tally.tensors;
  tally.bytes += static_cast<std::int64_t>(t.bytes());
  if (t.pieces.empty()) {
    FORETOKEN_CHECK_OK(CopyRun(t.data, sink));
    checkpoint_.Release(t.data);
    return {};
  }
  const std::int64_t together = t.n_together();
  for (std::int64_t row = 0; row < t.n_rows(); row += together)
    FORETOKEN_CHECK_OK(
        CopyRun({t.Row(row), static_cast<std::size_t>(together) * t.row_bytes()}, sink));
  for (const auto place : t.places()) checkpoint_.Release(place);
  return {};
}

// Copies bytes that lie together.
Status Converter::CopyRun(std::span<const std::byte> bytes, const formats::ByteSink& sink) {
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = bytes.subspan(at, std::min<std::size_t>(kPieceBytes, bytes.size() - at));
    FORETOKEN_CHECK_OK(sink(piece));
    if (piece.size() == kPieceBytes) checkpoint_.Release(piece);
    FORETOKEN_CHECK_OK(Advance(piece.size()));
  }
  return {};
}

Status Converter::Convert(const formats::ByteSink& sink) {
  const TensorView& t = view();
  Piece piece{static_cast<DType>(t.ggml_type), static_cast<DType>(tensor_->ggml_type), t.shape[0]};
  const tensor::DTypeInfo& info = tensor::InfoOf(piece.to);
  piece.out_row_bytes = static_cast<std::size_t>(t.shape[0] / info.block_values * info.block_bytes);
  const std::int64_t n_rows = t.n_values() / t.shape[0];
  const std::int64_t step = std::clamp<std::int64_t>(kPieceValues / t.shape[0], 1, n_rows);
  out_.resize(static_cast<std::size_t>(step) * piece.out_row_bytes);
  errors_.resize(static_cast<std::size_t>(step));
  for (Scratch& scratch : scratch_) {
    scratch.values.resize(static_cast<std::size_t>(t.shape[0]));
    scratch.back.resize(static_cast<std::size_t>(t.shape[0]));
  }
  Tally& tally = tallies_[tensor_->ggml_type];
  ++tally.tensors;
  tally.converted += t.n_values();
  for (std::int64_t row = 0; row < n_rows; row += step) {
    piece.rows = std::min(step, n_rows - row);
    piece.first_row = row;
    piece.out = out_.data();
    FORETOKEN_CHECK_OK(ConvertPiece(piece));
    for (std::int64_t i = 0; i < piece.rows; ++i) tally.squared_error += errors_[i];
    const auto bytes = static_cast<std::size_t>(piece.rows) * piece.out_row_bytes;
    tally.bytes += static_cast<std::int64_t>(bytes);
    FORETOKEN_CHECK_OK(sink(std::span<const std::byte>(out_).first(bytes)));
    const std::size_t source_bytes = static_cast<std::size_t>(piece.rows) * t.row_bytes();
    if (t.pieces.empty()) checkpoint_.Release({t.Row(row), source_bytes});
    FORETOKEN_CHECK_OK(Advance(source_bytes));
  }
  for (const auto place : t.pieces) checkpoint_.Release(place);
  return {};
}

Status Converter::ConvertPiece(const Piece& piece) {
  const std::int64_t grab = std::max<std::int64_t>(1, kGrabValues / piece.row_values);
  std::atomic<std::int64_t> next{0};
  pool_.Run([&](int thread) {
    for (;;) {
      const std::int64_t begin = next.fetch_add(grab, std::memory_order_relaxed);
      if (begin >= piece.rows) return;
      for (std::int64_t row = begin; row < std::min(begin + grab, piece.rows); ++row)
        errors_[row] = ConvertRow(piece, row, scratch_[thread]);
    }
  });
  for (std::int64_t row = 0; row < piece.rows; ++row)
    if (!std::isfinite(errors_[row])) return Fail(Refused(piece, row));
  return {};
}

// The row's squared error; NaN or infinite if a value of the source or of the result is.
double Converter::ConvertRow(const Piece& piece, std::int64_t row, Scratch& scratch) const {
  const std::int64_t n = piece.row_values;
  std::byte* out = piece.out + static_cast<std::size_t>(row) * piece.out_row_bytes;
  tensor::Dequantize(piece.from, view().Row(piece.first_row + row), n, scratch.values.data());
  tensor::Quantize(piece.to, scratch.values.data(), n, out);
  tensor::Dequantize(piece.to, out, n, scratch.back.data());
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double difference = static_cast<double>(scratch.back[i]) - scratch.values[i];
    sum += difference * difference;
  }
  return sum;
}

Error Converter::Refused(const Piece& piece, std::int64_t row) {
  Scratch& scratch = scratch_.front();
  ConvertRow(piece, row, scratch);
  const auto bad = [](float x) { return !std::isfinite(x); };
  const auto& values = scratch.values;
  const std::string place = fmt::format("{}: tensor {}", options_.input, Shown(view().name));
  if (std::any_of(values.begin(), values.begin() + piece.row_values, bad))
    return {ErrorCode::kInvalidFile,
            fmt::format("{}: holds a value that is infinite or no number; fetch or convert the "
                        "model again",
                        place)};
  return {ErrorCode::kInvalidFile,
          fmt::format("{}: holds a value too large for {}; use BF16 or F32", place,
                      tensor::InfoOf(piece.to).name)};
}

Status Converter::Advance(std::size_t source_bytes) {
  done_bytes_ += source_bytes;
  if (!options_.on_progress) return {};
  const double fraction = static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_);
  if (options_.on_progress({view().name, fraction})) return {};
  return Fail(ErrorCode::kIo,
              fmt::format("{}: stopped before the end; nothing was written", options_.output));
}

// ---- The file ----------------------------------------------------------------------------------

Status WriteFile(const formats::Checkpoint& checkpoint, const QuantizePlan& plan,
                 const std::string& output, Converter& converter) {
  formats::GgufWriter writer;
  checkpoint.CopyKeys(writer);
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) writer.Remove(key);
  constexpr std::int64_t kBlocksVersion = 2;  // of ggml's block layouts
  writer.Set("general.quantization_version", kBlocksVersion);
  writer.Set("general.file_type", std::int64_t{plan.recipe->file_type});
  for (const PlannedTensor& planned : plan.tensors) {
    const TensorView& t = *planned.tensor;
    const std::span shape(t.shape.data(), static_cast<std::size_t>(t.n_dims));
    writer.AddTensor(t.name, planned.ggml_type, shape,
                     [&converter, &planned](const formats::ByteSink& sink) {
                       return converter.Write(planned, sink);
                     });
  }
  return writer.Write(output);
}

double Root(double squares, std::int64_t count) {
  return count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
}

// What the converted tensors came to, and the sizes.
QuantizeReport Sum(const formats::Checkpoint& checkpoint, const QuantizePlan& plan,
                   const Converter& converter) {
  QuantizeReport report{.type = std::string(plan.recipe->name)};
  Tally all;
  for (const auto& [ggml_type, tally] : converter.tallies()) {
    report.types.push_back({std::string(tensor::GgmlTypeName(ggml_type)), tally.tensors,
                            tally.bytes, tally.converted,
                            Root(tally.squared_error, tally.converted)});
    all.bytes += tally.bytes;
    all.converted += tally.converted;
    all.squared_error += tally.squared_error;
  }
  std::stable_sort(report.types.begin(), report.types.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  for (const PlannedTensor& planned : plan.tensors) {
    report.parameters += planned.tensor->n_values();
    report.fallbacks += planned.fallback ? 1 : 0;
  }
  report.input_bytes = static_cast<std::int64_t>(checkpoint.file_bytes());
  report.bits_per_weight = 8.0 * static_cast<double>(all.bytes) /
                           static_cast<double>(std::max<std::int64_t>(1, report.parameters));
  report.rmse = Root(all.squared_error, all.converted);
  return report;
}

}  // namespace

Result<QuantizeReport> QuantizeFile(const QuantizeOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  FORETOKEN_TRY(const int threads, ThreadCount(options.threads));
  FORETOKEN_TRY(const auto checkpoint, formats::OpenCheckpoint(options.input));
  FORETOKEN_CHECK_OK(CheckOutput(options.output, checkpoint->files()));
  FORETOKEN_TRY(const QuantizePlan plan, convert::PlanQuantization(*checkpoint, options));
  Converter converter(*checkpoint, options, threads);
  FORETOKEN_CHECK_OK(WriteFile(*checkpoint, plan, options.output, converter));
  QuantizeReport report = Sum(*checkpoint, plan, converter);
  std::error_code ignored;
  report.output_bytes = static_cast<std::int64_t>(fs::file_size(options.output, ignored));
  report.threads = threads;
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

}  // namespace foretoken
