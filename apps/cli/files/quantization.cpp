// SPDX-License-Identifier: Apache-2.0
#include "cli/files/quantization.h"

#include <fmt/format.h>

#include <utility>

#include "cli/json_objects.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

std::string FileSize(std::int64_t bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  const auto value = static_cast<double>(bytes);
  if (value >= kGiB) return fmt::format("{:.2f} GiB", value / kGiB);
  return fmt::format("{:.{}f} MiB", value / kMiB, value < 100 * kMiB ? 1 : 0);
}

}  // namespace

std::string QuantizationLine(const QuantizeReport& report, const std::string& output) {
  std::string line = fmt::format("{}: {}, {} to {}, {:.2f} bits per weight, RMSE {:.3g}, {:.{}f} s",
                                 OnOneLine(output), report.type, FileSize(report.input_bytes),
                                 FileSize(report.output_bytes), report.bits_per_weight, report.rmse,
                                 report.seconds, report.seconds < 10 ? 1 : 0);
  if (report.fallbacks > 0)
    line += fmt::format("; {} {} fell back to a simpler type (rows of no whole blocks)",
                        report.fallbacks, report.fallbacks == 1 ? "tensor" : "tensors");
  return line + "\n";
}

std::string QuantizationJson(const QuantizeReport& report, const std::string& input,
                             const std::string& output) {
  Json types = Json::array();
  for (const QuantizedType& type : report.types)
    types.push_back({{"type", type.type},
                     {"tensors", type.tensors},
                     {"bytes", type.bytes},
                     {"converted", type.converted},
                     {"rmse", type.rmse}});
  return JsonLine({{"input", input},
                   {"output", output},
                   {"type", report.type},
                   {"input_bytes", report.input_bytes},
                   {"output_bytes", report.output_bytes},
                   {"parameters", report.parameters},
                   {"bits_per_weight", report.bits_per_weight},
                   {"rmse", report.rmse},
                   {"fallbacks", report.fallbacks},
                   {"seconds", report.seconds},
                   {"threads", report.threads},
                   {"tensor_types", std::move(types)}});
}

}  // namespace foretoken::cli
