// SPDX-License-Identifier: Apache-2.0
// formats/huggingface/tensor_map.h: a folder's tensors under GGUF's names, in its order of dimensions
// and of rows. Matrices stay where they are; vectors become F32 in memory of their own.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "formats/huggingface/family.h"
#include "formats/huggingface/safetensors.h"

namespace foretoken::formats::huggingface {

class TensorMap {
 public:
  // The configuration must outlive it. `folder` is for messages.
  TensorMap(const Configuration& configuration, std::string folder)
      : configuration_(configuration), folder_(std::move(folder)) {}

  // Takes a tensor. Errors, with the tensor's name: kUnsupported (one that the network does not
  // have, a dtype that cannot be computed with), kInvalidFile (a shape that cannot be).
  Status Add(const SafeTensor& tensor);

  // The views, once all are added, and the memory that some of them point into. Error: kInvalidFile
  // (an expert is missing).
  struct Views {
    std::vector<TensorView> tensors;
    std::vector<std::vector<float>> vectors;
  };
  Result<Views> Take();

 private:
  struct Expert {
    std::size_t index = 0;  // of the tensor in views_
    std::int64_t count = 0;
  };

  Status AddVector(const SafeTensor& tensor, std::string name);
  Status AddMatrix(const SafeTensor& tensor, std::string name);
  Status AddExpert(const SafeTensor& tensor, const std::string& name, std::int64_t expert);
  void AddOwn(std::string name, std::vector<float> values);
  Result<std::uint32_t> TypeOf(const SafeTensor& tensor) const;
  tl::unexpected<Error> Bad(const SafeTensor& tensor, std::string_view why) const;

  const Configuration& configuration_;
  std::string folder_;
  Views views_;
  std::map<std::string, Expert, std::less<>> experts_;  // by GGUF's name
};

}  // namespace foretoken::formats::huggingface
