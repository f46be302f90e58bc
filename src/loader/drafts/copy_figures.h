// SPDX-License-Identifier: Apache-2.0
// loader/drafts/copy_figures.h: what was measured of the copies of a model with which it drafts for itself
// (own_copy.h), kept in a file between two starts. The types of a copy are chosen by it.
//
// copies.json is a kept list (loader/kept_list.h), the copy that was measured last first: a copy is
//   {"model": 16 hexadecimal digits, "machine": likewise, "types": "Q2_K", "agreed": 83, "positions": 96, "cost": 0.41}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/options.h"

namespace foretoken::loader {

struct CopyFigure {
  std::string types;  // "Q2_K" (model::NameOf)
  // In texts of the model's own making, or in rounds of temperature 0: positions, and those of them at which
  // the most probable token of the copy is the model's.
  int agreed = 0, positions = 0;
  // A pass of the copy of one row, in such passes of the model; 0: not known on this machine.
  double cost = 0;

  bool operator==(const CopyFigure&) const = default;
};

class CopyFile {
 public:
  static constexpr std::size_t kMostCopies = 64;  // in a file; those that were measured first go

  CopyFile() = default;  // keeps nothing
  // The file in this folder, which is made when it is needed. machine: the processor, and whatever else
  // decides about the cost of passes.
  CopyFile(std::string folder, std::uint64_t model, std::uint64_t machine)
      : folder_(std::move(folder)), model_(model), machine_(machine) {}

  bool keeps() const { return !folder_.empty(); }
  // One of each types: where this machine has measured none, that of another one, without its cost. Nothing
  // where others than this user can write the file.
  std::vector<CopyFigure> Read() const;
  // At how many positions a copy in these types was compared on this machine; 0: there was none.
  int PositionsOf(const std::string& types) const;
  // A file that cannot be written stays as it is.
  void Write(const CopyFigure& figure) const;

 private:
  std::string folder_;
  std::uint64_t model_ = 0, machine_ = 0;
};

// That of these options' model in the folder of EngineOptions::repack_cache; none where that is off, and for
// several ranks.
CopyFile CopyFileFor(const EngineOptions& options);

}  // namespace foretoken::loader
