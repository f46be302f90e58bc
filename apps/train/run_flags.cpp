// SPDX-License-Identifier: Apache-2.0
#include "train/run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "settings/help_text.h"
#include "train/run/machine.h"

namespace foretoken::train {
namespace {

using settings::StoreInteger;
using settings::StoreText;
using settings::StoreTrue;

Status CheckRun(const TrainingOptions& o) {
  if (o.out.empty())
    return Fail(ErrorCode::kInvalidArgument, "out: no file is named; give one with --out");
  if ((o.steps > 0) == (o.minutes > 0))
    return Fail(ErrorCode::kInvalidArgument, "length: give either --steps or --minutes");
  return {};
}

}  // namespace

int Report(const Error& error) {
  std::fprintf(stderr, "foretoken-train: %s\n", error.message.c_str());
  return error.code == ErrorCode::kInvalidArgument ? 2 : 1;
}

settings::Setter StoreDouble(double& target, double low, double high) {
  return [&target, low, high](const std::string& text) -> Status {
    FORETOKEN_TRY(const float value,
                  settings::ParseNumber(text, static_cast<float>(low), static_cast<float>(high)));
    target = std::stod(text);
    return value >= 0 ? Status{} : Status{};
  };
}

settings::Setter Append(std::vector<std::string>& list) {
  return [&list](const std::string& text) -> Status {
    list.push_back(text);
    return {};
  };
}

settings::Setter StoreNumbers(std::vector<int>& list) {
  return [&list](const std::string& text) -> Status {
    list.clear();
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      FORETOKEN_TRY(const std::int64_t number, settings::ParseInteger(part, 0, 1 << 20));
      list.push_back(static_cast<int>(number));
    }
    return {};
  };
}

settings::Setter StoreSteps(std::int64_t& target) {
  return [&target](const std::string& text) -> Status {
    FORETOKEN_TRY(target, settings::ParseInteger(text, 1, 1'000'000'000));
    return {};
  };
}

settings::FlagGroup RunFlags(TrainingOptions& o) {
  return {
      "The run",
      {{{"--out"},
        "FILE",
        "the GGUF file to write; FILE.checkpoint keeps the state on the way",
        StoreText(o.out)},
       {{"--steps"},
        "N",
        "length of the run in steps: the same file each time",
        StoreSteps(o.steps)},
       {{"--minutes"},
        "M",
        "length of the run in minutes, instead",
        StoreDouble(o.minutes, 0.01, 100000)},
       {{"--batch"},
        "N",
        fmt::format("rows of a step ({})", o.batch),
        StoreInteger(o.batch, 1, 65536)},
       {{"--window"},
        "N",
        fmt::format("tokens of a row ({})", o.window),
        StoreInteger(o.window, 8, 65536)},
       {{"--rate"},
        "R",
        fmt::format("learning rate of matrices ({})", o.optimizer.rate),
        StoreDouble(o.optimizer.rate, 1e-7, 1)},
       {{"--table-rate"},
        "R",
        fmt::format("learning rate of embeddings, heads and norms ({})", o.optimizer.table_rate),
        StoreDouble(o.optimizer.table_rate, 1e-7, 1)},
       {{"--seed"},
        "N",
        "of fresh weights and of the order of the text (1)",
        [&o](const std::string& text) -> Status {
          FORETOKEN_TRY(o.seed, settings::ParseSeed(text));
          return {};
        }},
       {{"-t", "--threads"}, "N", "threads (the cores)", StoreInteger(o.threads, 1, 512)},
       {{"--checkpoint-seconds"},
        "S",
        fmt::format("between checkpoints ({})", o.checkpoint_seconds),
        StoreDouble(o.checkpoint_seconds, 0, 86400)},
       {{"--restart"}, "", "throw an earlier checkpoint away", StoreTrue(o.restart)},
       {{"--export-only"},
        "",
        "write the file from the checkpoint as it stands",
        StoreTrue(o.export_only)},
       {{"--log"},
        "FILE",
        "append step, seconds, loss, rate factor and tokens per second as CSV",
        StoreText(o.log)}}};
}

std::vector<settings::Flag> ShapeFlags(ModelShape& s) {
  const std::string context = s.context == 0 ? "the target's" : std::to_string(s.context);
  return {
      {{"--layers"}, "N", fmt::format("blocks ({})", s.layers), StoreInteger(s.layers, 1, 1000)},
      {{"--width"},
       "N",
       fmt::format("of the residual stream ({})", s.dim),
       StoreInteger(s.dim, 8, 65536)},
      {{"--heads"}, "N", fmt::format("query heads ({})", s.heads), StoreInteger(s.heads, 1, 1024)},
      {{"--kv-heads"},
       "N",
       fmt::format("key and value heads ({})", s.kv_heads),
       StoreInteger(s.kv_heads, 1, 1024)},
      {{"--ff"},
       "N",
       fmt::format("width of the feed-forward layer ({})", s.ff),
       StoreInteger(s.ff, 8, 1 << 20)},
      {{"--context"},
       "N",
       fmt::format("context length that the file states ({})", context),
       StoreInteger(s.context, 8, 1 << 20)},
      {{"--convolutions"},
       "L0,L1,...",
       "blocks with a gated convolution in place of attention: the model is of LFM 2's kind, not "
       "llama's",
       StoreNumbers(s.convolutions)}};
}

settings::Flag TypeFlag(FileType& type) {
  return {{"--type"},
          "TYPE",
          "of the matrices in the file: f32, f16, q8_0 (q8_0)",
          [&type](const std::string& text) -> Status {
            FORETOKEN_TRY(type, ParseFileType(text));
            return {};
          }};
}

int RunTask(const settings::FlagSet& flags, const Arguments& arguments, TrainingOptions& training,
            const std::function<Result<std::unique_ptr<Task>>()>& make) {
  const auto parsed = flags.Parse(arguments);
  if (!parsed) return Report(parsed.error());
  if (parsed->outcome != settings::ParseOutcome::kRun)
    return std::fputs(settings::HelpText(flags, {}).c_str(), stdout) < 0;
  if (auto status = CheckRun(training); !status) return Report(status.error());
  UseThreads(training.threads > 0
                 ? training.threads
                 : static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  auto task = make();
  if (!task) return Report(task.error());
  std::fprintf(stderr, "%s\n", DescribeMachine().c_str());
  if (auto status = Train(**task, training); !status) return Report(status.error());
  return 0;
}

}  // namespace foretoken::train
