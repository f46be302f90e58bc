// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>

#include "base/json/json.h"
#include "cli/files/inspection.h"
#include "cli/json_report.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/bundled_models.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

struct InspectSettings {
  std::string model, argument;
  bool tensors = false, metadata = false, json = false;
  int context_size = 0;
};

Status SecondModel(const std::string& second, const std::string& first) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: a second model beside {}; name one", second, first));
}

settings::FlagSet InspectFlags(InspectSettings& s) {
  using settings::StoreTrue;
  settings::FlagSet flags(
      "inspect [MODEL] [flags]",
      "Shows what is in a model file, and whether foretoken can run it. Nothing is loaded. Without "
      "MODEL it shows the bundled model.");
  flags.SetPositional("MODEL", [&s](const std::string& path) -> Status {
    if (!s.argument.empty() && s.argument != path) return SecondModel(path, s.argument);
    s.argument = path;
    return {};
  });
  flags.Add({"Flags",
             {{{"-m", "--model"},
               "PATH",
               "the model, if it is not given as MODEL",
               settings::StorePath(s.model)},
              {{"-c", "--ctx-size"},
               "N",
               "tokens of the text whose memory is shown; default: the model's",
               settings::StoreInteger(s.context_size, 1, kMaxTextTokens)},
              {{"--tensors"}, "", "list every tensor", StoreTrue(s.tensors)},
              {{"--metadata"}, "", "list every key of the metadata", StoreTrue(s.metadata)},
              {{"--json"}, "", "print one JSON object on standard output", StoreTrue(s.json)}}});
  flags.SetExamples({"foretoken inspect model.gguf --tensors"});
  return flags;
}

Status ChooseModel(InspectSettings& s) {
  if (!s.argument.empty()) {
    if (!s.model.empty() && s.model != s.argument) return SecondModel(s.model, s.argument);
    s.model = s.argument;
  }
  return settings::FillInModel(s.model);
}

std::string SizeText(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 100 ? 1 : 0, kUnits[unit]);
}

std::string Count(std::int64_t n) {
  constexpr std::array<const char*, 4> kUnits = {"thousand", "million", "billion", "trillion"};
  if (n < 1000) return fmt::format("{}", n);
  double value = static_cast<double>(n) / 1000;
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, value < 100 ? 2 : 0, kUnits[unit]);
}

void Row(std::string& out, const char* label, const std::string& value) {
  if (!value.empty()) out += fmt::format("  {:<14}{}\n", label, OnOneLine(value));
}

// "64 wide, 5 layers, 8 heads (4 for keys and values), feed-forward 172"; parts that the file does
// not give are left out.
std::string Shape(const Inspection& inspection) {
  const auto value = [&](const char* key) {
    return inspection.Metadata(inspection.architecture + "." + key);
  };
  const std::string kv_heads = value("attention.head_count_kv");
  const std::array<std::pair<const char*, std::string>, 4> parts = {{
      {"{} wide", value("embedding_length")},
      {"{} layers", value("block_count")},
      {"{} heads", value("attention.head_count")},
      {"feed-forward {}", value("feed_forward_length")},
  }};
  std::vector<std::string> shown;
  for (const auto& [format, number] : parts) {
    if (!number.empty()) shown.push_back(fmt::format(fmt::runtime(format), number));
    const bool heads = std::string_view(format) == "{} heads";
    if (heads && !number.empty() && !kv_heads.empty() && kv_heads != number) {
      shown.back() += fmt::format(" ({} for keys and values)", kv_heads);
    }
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string Memory(const ModelMemory& memory) {
  const MemoryNeeds& needs = memory.needs;
  std::string text = "weights " + SizeText(needs.dense + needs.experts);
  if (needs.experts != 0) text += fmt::format(" ({} experts)", SizeText(needs.experts));
  text += fmt::format(", cache of {} tokens {}", memory.context_size, SizeText(needs.cache));
  if (needs.checkpoints != 0)
    text += fmt::format(" ({} for checkpoints of states)", SizeText(needs.checkpoints));
  text += fmt::format(", up to {} for passes; {} available", SizeText(needs.scratch),
                      SizeText(memory.available_bytes));
  if (!memory.obstacle.empty()) text += ": too little; lower --ctx-size";
  if (memory.experts_paged) text += ": experts would be read from a file as tokens need them";
  return text;
}

std::string Summary(const Inspection& inspection) {
  std::string out = fmt::format("{}\n", OnOneLine(inspection.path));
  Row(out, "format", fmt::format("{}, {}", inspection.format, SizeText(inspection.file_bytes)));
  Row(out, "name", inspection.name);
  Row(out, "architecture", inspection.architecture);
  Row(out, "shape", Shape(inspection));
  Row(out, "parameters", Count(inspection.parameters));
  Row(out, "type", inspection.type);
  Row(out, "context",
      inspection.context_length.empty() ? "" : inspection.context_length + " tokens");
  Row(out, "tokenizer",
      inspection.tokenizer.empty() ? "none: " + inspection.tokenizer_obstacle
                                   : inspection.tokenizer);
  const std::string runs =
      inspection.whole_model
          ? "yes"
          : fmt::format("yes, as the drafter of its target (--spec-type {})", inspection.drafts_as);
  if (inspection.memory) Row(out, "memory", Memory(*inspection.memory));
  Row(out, "runs here", inspection.obstacle.empty() ? runs : "no: " + inspection.obstacle);
  out += fmt::format("\n  {} tensors\n", inspection.tensors.size());
  for (const TypeTotal& total : inspection.types) {
    const char* note = !total.supported           ? "  (not supported)"
                       : !total.has_vector_kernel ? "  (slow here: no vector kernel for this type)"
                                                  : "";
    out += fmt::format("    {:<8} {:>6}  {:>10}{}\n", total.type, total.count,
                       SizeText(total.bytes), note);
  }
  return out;
}

std::string TensorList(const Inspection& inspection) {
  std::size_t width = 0;
  for (const TensorSummary& tensor : inspection.tensors)
    width = std::max(width, tensor.name.size());
  std::string out = "\ntensors (shape: row length first)\n";
  for (const TensorSummary& tensor : inspection.tensors) {
    out += fmt::format("  {:<{}}  {:<8} {:>10}  {}\n", OnOneLine(tensor.name), width, tensor.type,
                       SizeText(tensor.bytes), fmt::join(tensor.shape, " x "));
  }
  return out;
}

std::string MetadataList(const Inspection& inspection) {
  std::string out = "\nmetadata\n";
  for (const auto& [key, value] : inspection.metadata) {
    // Quoted if the value contains line breaks, as chat templates do.
    const std::string quoted = QuotedJson(value);
    const bool plain = quoted.size() == value.size() + 2;
    out += fmt::format("  {} = {}\n", OnOneLine(key), plain ? value : quoted);
  }
  return out;
}

Result<int> RunInspect(InspectSettings& settings) {
  FORETOKEN_CHECK_OK(ChooseModel(settings));
  FORETOKEN_TRY(const auto file, ModelFile::Open(settings.model));
  const Inspection inspection = Inspect(*file, settings.model, settings.context_size);
  std::string text;
  if (settings.json) {
    text = InspectionJson(inspection, settings.tensors, settings.metadata);
  } else {
    text = Summary(inspection);
    if (settings.metadata) text += MetadataList(inspection);
    if (settings.tensors) text += TensorList(inspection);
  }
  return WriteOutput(text);
}

}  // namespace

extern const Verb kInspectVerb = MakeVerb<InspectFlags, RunInspect>(
    "inspect", "shows what is in a model file, and whether it runs here");

}  // namespace foretoken::cli
