// SPDX-License-Identifier: Apache-2.0
#include "cli/files/quantization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/json_report.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

std::string FileSize(std::int64_t bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  const auto value = static_cast<double>(bytes);
  if (value >= kGiB) return fmt::format("{:.2f} GiB", value / kGiB);
  return fmt::format("{:.{}f} MiB", value / kMiB, value < 100 * kMiB ? 1 : 0);
}

std::string Member(const char* key, const std::string& json) {
  return fmt::format("\"{}\":{}", key, json);
}

template <typename Number>
std::string Member(const char* key, Number value) {
  return Member(key, fmt::format("{}", value));
}

std::string Object(const std::vector<std::string>& members) {
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

std::string TypeJson(const QuantizedType& type) {
  return Object({Member("type", Quoted(type.type)), Member("tensors", type.tensors),
                 Member("bytes", type.bytes), Member("converted", type.converted),
                 Member("rmse", type.rmse)});
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
  std::vector<std::string> types;
  for (const QuantizedType& type : report.types) types.push_back(TypeJson(type));
  return Object({Member("input", Quoted(input)), Member("output", Quoted(output)),
                 Member("type", Quoted(report.type)), Member("input_bytes", report.input_bytes),
                 Member("output_bytes", report.output_bytes),
                 Member("parameters", report.parameters),
                 Member("bits_per_weight", report.bits_per_weight), Member("rmse", report.rmse),
                 Member("fallbacks", report.fallbacks), Member("seconds", report.seconds),
                 Member("threads", report.threads),
                 Member("tensor_types", fmt::format("[{}]", fmt::join(types, ",")))}) +
         "\n";
}

}  // namespace foretoken::cli
