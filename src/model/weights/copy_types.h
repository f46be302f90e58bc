// SPDX-License-Identifier: Apache-2.0
// model/weights/copy_types.h: the number types of a copy of a network that has fewer bits.
//
// A copy has the same matrices as its network, some of them in other tiles. All others, and the
// embedding, are the network's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace foretoken::model {

// Stands for the type that a matrix has in the network: nothing takes less than F32 does, and a matrix that
// would not take less is the network's own.
inline constexpr tensor::DType kOwn = tensor::DType::kF32;
inline constexpr std::string_view kOwnType = "own";

// Changes when copies in the same types get other bits: what was kept of them is not used again.
inline constexpr int kCopyVersion = 3;

struct CopyTypes {
  tensor::DType layers = tensor::DType::kQ2_K;  // of matrices in layers
  tensor::DType output = tensor::DType::kQ2_K;  // of the output head
  // Types that some matrices in layers have in place of `layers`. attention: also state spaces and short
  // convolutions. ends: all matrices in the first layer and the last, whatever else they are.
  std::optional<tensor::DType> attention = {}, experts = {}, ends = {};

  bool operator==(const CopyTypes&) const = default;
  bool are_own() const;
  // The type of the tensor of this name in a network whose last layer has this number.
  tensor::DType TypeOf(std::string_view tensor, int last_layer) const;
};

// Bytes of tiles.
struct CopySize {
  std::int64_t own = 0;   // that the copy has for itself
  std::int64_t read = 0;  // of all its matrices, the network's own among them
  std::int64_t reduced =
      0;  // the same with its reduced output in place of the whole one; 0: it has none
  std::int64_t network = 0;  // of all matrices of the network
  double bits = 0;  // of a number that the copy has for itself, as files hold it; 0: it has none

  // What a pass of the copy reads over what a pass of the network reads; with the reduced output, or where
  // there is none, with the whole one.
  double share() const { return Share(read); }
  double reduced_share() const { return Share(reduced > 0 ? reduced : read); }

 private:
  double Share(std::int64_t bytes) const {
    return network > 0 ? static_cast<double>(bytes) / static_cast<double>(network) : 1;
  }
};

// "Q2_K"; "Q2_K,Q4_K", where the output head has another type; "Q2_K,attention=Q4_K,ends=Q6_K"; "own".
// It is what SpeculativeOptions::self_draft takes.
std::string NameOf(const CopyTypes& types);

// The type that a matrix [n_out, k] of this type has in the copy, where that takes less memory: `wanted`,
// or where its blocks do not fit the rows, Q4_0. Empty: the copy uses the network's own tiles.
std::optional<tensor::DType> TypeInCopy(tensor::DType wanted, tensor::TileType own, int k);

}  // namespace foretoken::model
