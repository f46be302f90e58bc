// SPDX-License-Identifier: Apache-2.0
// model/arch/heads/head_kind.h: what sets one kind of heads apart from the others.
//
// A kind is one file in this folder and one name in ../registry.cpp. Its file says how a file of it is read,
// which tensors stand before its layers and how a pass begins, and ends with its row. What it needs later
// is data in HeadConfig (model/config.h). Its layers are those of any network.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/arch/metadata_reader.h"
#include "model/config.h"

namespace foretoken::model {

class Block;
class HeadPlan;
class Weights;
struct Workspace;

// Names of a head's tensors; empty: the target's is used.
struct HeadTensors {
  std::string embedding, norm;
};

struct HeadKind {
  // `general.architecture` of its files; empty: it stands in a model's file, or in one with a model's name.
  std::string_view architecture;
  std::string_view noun;     // in messages, with its article
  std::string_view drafter;  // which one drafts with it, by its name in draft/registry.h
  // Sets also `head`. A `vocabulary` of 0 is the target's. Errors: those of ReadCommonConfig; kInvalidFile
  // (a key that is missing or out of range), kUnsupported.
  Result<ModelConfig> (*read)(const MetadataReader& read, const formats::Checkpoint& file);
  // The tensor of its own output matrix, which its file may lack.
  std::string (*output)(const ModelConfig& config);
  // Plans what stands before the layers. Errors: as Weights::LoadHead.
  Result<HeadTensors> (*plan)(HeadPlan& plan, const Weights& target, int target_vocabulary);
  // Adds the blocks with which its passes begin.
  void (*add_entry)(const Workspace& space, const ModelConfig& config, const Weights& weights,
                    std::vector<std::unique_ptr<Block>>& blocks);
};

// The usual `output` and `add_entry`.
inline std::string UsualOutput(const ModelConfig&) {
  return "output.weight";
}
template <typename Entry>
void AddEntry(const Workspace& space, const ModelConfig& config, const Weights& weights,
              std::vector<std::unique_ptr<Block>>& blocks) {
  blocks.push_back(std::make_unique<Entry>(space, config, weights));
}

}  // namespace foretoken::model
