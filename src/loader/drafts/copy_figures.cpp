// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/copy_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files/input_file.h"
#include "base/files/own_folder.h"
#include "base/files/text_file.h"
#include "base/hash.h"
#include "base/machine/cpus.h"
#include "kernels/dispatch.h"
#include "loader/file_content.h"

namespace foretoken::loader {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMostBytes = 1 << 16, kMostTypes = 32;  // of a file; of a name
constexpr int kMostPositions = 1 << 20;
constexpr double kMostCost = 1000;

std::string Digits(std::uint64_t key) {
  return fmt::format("{:016x}", key);
}

bool Holds(const Json& copy, const char* name, const std::string& text) {
  const auto found = copy.find(name);
  return found != copy.end() && found->is_string() && *found == text;
}

std::optional<int> Count(const Json& copy, const char* name, int most) {
  const auto found = copy.find(name);
  if (found == copy.end() || !found->is_number_integer()) return std::nullopt;
  const auto n = found->get<std::int64_t>();
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > kMostPositions)
    return std::nullopt;
  if (n < 0 || n > most) return std::nullopt;
  return static_cast<int>(n);
}

std::optional<CopyFigure> FigureOf(const Json& copy) {
  CopyFigure figure;
  const auto types = copy.find("types"), cost = copy.find("cost");
  const auto positions = Count(copy, "positions", kMostPositions);
  if (types == copy.end() || !types->is_string() || cost == copy.end() || !cost->is_number() ||
      !positions || *positions == 0)
    return std::nullopt;
  const auto agreed = Count(copy, "agreed", *positions);
  figure.types = types->get<std::string>();
  figure.cost = cost->get<double>();
  if (!agreed || figure.types.empty() || figure.types.size() > kMostTypes ||
      !(figure.cost > 0 && figure.cost <= kMostCost))
    return std::nullopt;
  figure.agreed = *agreed, figure.positions = *positions;
  return figure;
}

// The copies of the file, or an empty list.
Json CopiesOf(const std::string& path) {
  Json none = Json::array();
  auto file = InputFile::Open(path, {.links = false});
  if (!file || !WhyNotOurs(file->status()).empty()) return none;
  const auto text = ReadDescriptor(file->descriptor(), path, {.most_bytes = kMostBytes});
  if (!text) return none;
  Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("foretoken_copies", Json()) != kVersion) return none;
  const auto copies = json.find("copies");
  if (copies == json.end() || !copies->is_array()) return none;
  return std::move(*copies);
}

}  // namespace

std::vector<CopyFigure> CopyFile::Read() const {
  std::vector<CopyFigure> figures;
  if (!keeps() || !WhyNotOurFolder(folder_).empty()) return figures;
  const Json copies = CopiesOf(Path());
  for (const bool here : {true, false})
    for (const Json& copy : copies) {
      if (!copy.is_object() || !Holds(copy, "model", Digits(model_))) continue;
      if (here != Holds(copy, "machine", Digits(machine_))) continue;
      auto figure = FigureOf(copy);
      if (!figure || std::any_of(figures.begin(), figures.end(),
                                 [&](const CopyFigure& f) { return f.types == figure->types; }))
        continue;
      if (!here) figure->cost = 0;
      figures.push_back(std::move(*figure));
    }
  return figures;
}

int CopyFile::PositionsOf(const std::string& types) const {
  for (const CopyFigure& figure : Read())
    if (figure.types == types && figure.cost > 0) return figure.positions;
  return 0;
}

void CopyFile::Write(const CopyFigure& figure) const {
  if (!keeps() || !MakeOurFolder(folder_).empty()) return;
  const std::string model = Digits(model_), machine = Digits(machine_);
  Json copies = Json::array({{{"model", model},
                              {"machine", machine},
                              {"types", figure.types},
                              {"agreed", figure.agreed},
                              {"positions", figure.positions},
                              {"cost", figure.cost}}});
  for (Json& copy : CopiesOf(Path()))
    if (copies.size() < kMostCopies && copy.is_object() && FigureOf(copy) &&
        !(Holds(copy, "model", model) && Holds(copy, "machine", machine) &&
          Holds(copy, "types", figure.types)))
      copies.push_back(std::move(copy));
  const Json json = {{"foretoken_copies", kVersion}, {"copies", std::move(copies)}};
  (void)WriteTextFile(Path(), json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

CopyFile CopyFileFor(const EngineOptions& options) {
  const std::string folder =
      options.repack_cache == "auto" ? UserCacheFolder() : options.repack_cache;
  if (folder.empty() || options.repack_cache == "off" || options.ranks != nullptr) return {};
  const auto kernels = kernels::KernelsByName(options.isa);
  const auto model = ContentOf(options.model);
  if (!kernels || !model) return {};
  return CopyFile(folder, HashOf(fmt::format("{}:{:016x}", model->bytes, model->hash)),
                  HashOf(fmt::format("{}|{}|{}", CpuName(), (*kernels)->isa, options.threads)));
}

}  // namespace foretoken::loader
