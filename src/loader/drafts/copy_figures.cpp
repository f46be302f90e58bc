// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/copy_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/files/own_folder.h"
#include "base/hash.h"
#include "base/machine/cpus.h"
#include "kernels/dispatch.h"
#include "loader/file_content.h"
#include "loader/kept_list.h"
#include "model/weights/copy_types.h"

namespace foretoken::loader {
namespace {

constexpr KeptList::Form kForm = {"copies.json", "foretoken_copies", "copies", 1 << 16,
                                  CopyFile::kMostCopies};
constexpr std::size_t kMostTypes = 96;  // bytes of a name
constexpr int kMostPositions = 1 << 20;
constexpr double kMostCost = 1000;

struct KeptCopy {
  std::uint64_t model = 0, machine = 0;
  CopyFigure figure;
};

constexpr auto kCopyFields = [](auto& fields, auto& copy) {
  fields.Hash("model", copy.model);
  fields.Hash("machine", copy.machine);
  fields.Text("types", kMostTypes, copy.figure.types);
  fields.Integer("agreed", 0, kMostPositions, copy.figure.agreed);
  fields.Integer("positions", 1, kMostPositions, copy.figure.positions);
  fields.Number("cost", std::numeric_limits<double>::min(), kMostCost, copy.figure.cost);
};

std::vector<KeptCopy> CopiesIn(const std::string& folder) {
  auto copies = KeptList(folder, kForm).Read<KeptCopy>(kCopyFields);
  std::erase_if(copies, [](const KeptCopy& copy) {
    return copy.figure.types.empty() || copy.figure.agreed > copy.figure.positions;
  });
  return copies;
}

}  // namespace

std::vector<CopyFigure> CopyFile::Read() const {
  std::vector<CopyFigure> figures;
  if (!keeps()) return figures;
  const std::vector<KeptCopy> copies = CopiesIn(folder_);
  for (const bool here : {true, false})
    for (const KeptCopy& copy : copies) {
      if (copy.model != model_ || here != (copy.machine == machine_) ||
          std::any_of(figures.begin(), figures.end(),
                      [&](const CopyFigure& f) { return f.types == copy.figure.types; }))
        continue;
      figures.push_back(copy.figure);
      if (!here) figures.back().cost = 0;
    }
  return figures;
}

int CopyFile::PositionsOf(const std::string& types) const {
  for (const CopyFigure& figure : Read())
    if (figure.types == types && figure.cost > 0) return figure.positions;
  return 0;
}

void CopyFile::Write(const CopyFigure& figure) const {
  if (!keeps()) return;
  std::vector<KeptCopy> copies = CopiesIn(folder_);
  std::erase_if(copies, [&](const KeptCopy& copy) {
    return copy.model == model_ && copy.machine == machine_ && copy.figure.types == figure.types;
  });
  copies.insert(copies.begin(), {model_, machine_, figure});
  KeptList(folder_, kForm).Write(copies, kCopyFields);
}

CopyFile CopyFileFor(const EngineOptions& options) {
  const std::string folder =
      options.repack_cache == "auto" ? UserCacheFolder() : options.repack_cache;
  if (folder.empty() || options.repack_cache == "off" || options.ranks != nullptr) return {};
  const auto kernels = kernels::KernelsByName(options.isa);
  const auto model = ContentOf(options.model);
  if (!kernels || !model) return {};
  return CopyFile(
      folder, HashOf(fmt::format("{}:{:016x}:{}", model->bytes, model->hash, model::kCopyVersion)),
      HashOf(fmt::format("{}|{}|{}", CpuName(), (*kernels)->isa, options.threads)));
}

}  // namespace foretoken::loader
