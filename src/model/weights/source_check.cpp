// SPDX-License-Identifier: Apache-2.0
#include "model/weights/source_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace foretoken::model {

SourceCheck::SourceCheck(const formats::Checkpoint& checkpoint, const Weights& weights)
    : checkpoint_(checkpoint), weights_(weights) {}

bool SourceCheck::Step() {
  const auto sources = weights_.sources();
  if (source_ == sources.size()) return false;
  const auto source = sources[source_];
  const auto piece = source.subspan(at_, std::min(kHashPieceBytes, source.size() - at_));
  pieces_.push_back(Hash(piece));
  checkpoint_.Release(piece);
  at_ += piece.size();
  if (at_ == source.size()) {
    hashes_.push_back(HashOf(pieces_));
    pieces_.clear();
    at_ = 0;
    ++source_;
  }
  return source_ < sources.size();
}

Status SourceCheck::Finish() const {
  if (weights_.sources().empty() || HashOf(hashes_) == weights_.tiles().source_hash()) return {};
  TileCache::Drop(weights_.tiles());
  return Fail(ErrorCode::kIo,
              fmt::format("{}: its data are not those that the kept weights in {} were made of, "
                          "though its time and size are; the kept file was taken away, start again",
                          checkpoint_.path(), weights_.tiles().path()));
}

}  // namespace foretoken::model
