// SPDX-License-Identifier: Apache-2.0
#include "foretoken/tools/model_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/files/quantization.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/flag_set.h"
#include "settings/option_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

constexpr int kMostThreads = 512;

struct QuantizeSettings {
  QuantizeOptions options;
  int positionals = 0;
  bool json = false, quiet = false;
};

// IN, OUT, TYPE and, as in llama-quantize, the number of threads.
Status TakePositional(QuantizeSettings& s, const std::string& argument) {
  switch (s.positionals++) {
    case 0:
      s.options.input = argument;
      return {};
    case 1:
      s.options.output = argument;
      return {};
    case 2:
      s.options.type = argument;
      return {};
    case 3:
      if (Status status = settings::StoreInteger(s.options.threads, 1, kMostThreads)(argument);
          !status)
        return Fail(std::move(status).error().In("threads"));
      return {};
    default:
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: one argument too many; give IN OUT TYPE", argument));
  }
}

settings::FlagSet QuantizeFlags(QuantizeSettings& s) {
  using settings::Sets;
  using settings::StoreText;
  using settings::StoreTrue;
  settings::FlagSet flags(
      "quantize IN OUT TYPE [flags]",
      fmt::format(
          "Writes a model file in another number type. Types: {}. The _M and _S mixes give some "
          "tensors more bits; Q4_K and Q5_K are the _M mixes. Start from F16, BF16 or F32. OUT is "
          "replaced when the new file is complete.",
          fmt::join(QuantizeTypes(), ", ")));
  flags.SetPositional("IN OUT TYPE",
                      [&s](const std::string& argument) { return TakePositional(s, argument); });
  flags.Add(
      {"Flags",
       {{{"-t", "--threads"},
         "N",
         "number of threads; default: $FORETOKEN_THREADS, or else the number of cores",
         settings::StoreInteger(s.options.threads, 1, kMostThreads)},
        Sets("QuantizeOptions::allow_requantize",
             {{"--allow-requantize"},
              "",
              "also quantise tensors that are already quantised; they lose more than from F16",
              StoreTrue(s.options.allow_requantize)}),
        {{"--pure"},
         "",
         "write all matrices in TYPE itself, not in a mix of types",
         StoreTrue(s.options.pure)},
        {{"--output-tensor-type"},
         "TYPE",
         "number type of the output head",
         StoreText(s.options.output_tensor_type)},
        {{"--token-embedding-type"},
         "TYPE",
         "number type of the token embedding",
         StoreText(s.options.token_embedding_type)},
        {{"--json"}, "", "one JSON object on standard output", StoreTrue(s.json)},
        {{"-q", "--quiet"}, "", "print no progress and no summary", StoreTrue(s.quiet)}}});
  flags.AddAbsent("--imatrix", "files are quantised without an importance matrix");
  flags.AddAbsent("--tensor-type", "see --output-tensor-type and --token-embedding-type");
  flags.AddAbsent("--leave-output-tensor", "name its type with --output-tensor-type");
  flags.AddAbsent("--keep-split", "the output is one file");
  flags.SetExamples({"foretoken quantize model-F16.gguf model-Q4_K_M.gguf Q4_K_M"});
  return flags;
}

Status CheckComplete(const QuantizeSettings& s) {
  constexpr int kNeeded = 3;
  if (s.positionals >= kNeeded) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("IN OUT TYPE: {} of 3 given; as in foretoken quantize model-F16.gguf "
                          "model-Q4_K_M.gguf Q4_K_M",
                          s.positionals));
}

Result<QuantizeReport> Quantize(QuantizeSettings& s) {
  ProgressLine line(!s.quiet);
  s.options.on_progress = [&line](const QuantizeProgress& progress) {
    line.Show(fmt::format("quantising {:3.0f} %  {}", 100 * progress.fraction,
                          OnOneLine(progress.tensor)));
    return !InterruptGuard::interrupted();
  };
  return QuantizeFile(s.options);
}

Result<int> RunQuantize(QuantizeSettings& settings) {
  FORETOKEN_CHECK_OK(CheckComplete(settings));
  const InterruptGuard guard;
  const auto report = Quantize(settings);
  if (!report && InterruptGuard::interrupted()) return kInterrupted;
  if (!report)
    return Fail(report.error().code,
                settings::InFlags(report.error().message, QuantizeFlags(settings)));
  const QuantizeOptions& options = settings.options;
  if (settings.json) return WriteOutput(QuantizationJson(*report, options.input, options.output));
  return settings.quiet ? kDone : WriteOutput(QuantizationLine(*report, options.output));
}

}  // namespace

extern const Verb kQuantizeVerb = MakeVerb<QuantizeFlags, RunQuantize>(
    "quantize", "writes a model file in another number type: smaller, nearly as good");

}  // namespace foretoken::cli
