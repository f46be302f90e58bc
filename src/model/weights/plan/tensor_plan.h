// SPDX-License-Identifier: Apache-2.0
// model/weights/plan/tensor_plan.h: the tensors of a file that a network asks for, found, checked and placed.
// Vectors are read at once. Matrices become jobs, whose tiles lie one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/ranks/division.h"
#include "model/weights/copy_types.h"
#include "model/weights/plan/matrix_job.h"

namespace foretoken::model {

class TensorPlan {
 public:
  const formats::Checkpoint& checkpoint() const { return checkpoint_; }
  const Division& division() const { return division_; }
  std::span<const MatrixJob> jobs() const { return jobs_; }
  std::size_t tile_bytes() const {
    return tile_bytes_;
  }  // of all jobs; of a copy: of its own tiles
  CopySize copy_size() const;

 protected:
  // division: which outputs this rank computes. vectors: where vectors are kept. copy: the types of a
  // copy of the network, whose last layer has this number; empty: the plan is of the network itself.
  TensorPlan(const formats::Checkpoint& checkpoint, const Division& division,
             std::vector<std::vector<float>>& vectors, const std::optional<CopyTypes>& copy,
             int last_layer)
      : checkpoint_(checkpoint),
        division_(division),
        vectors_(vectors),
        copy_(copy),
        last_layer_(last_layer) {}

  // n_parts: 0: the tensor is one matrix.
  Result<const formats::TensorView*> Find(const std::string& name, int k, int n_out,
                                          int n_parts = 0) const;
  // n_rows vectors of n numbers, one after another.
  Status Vector(const std::string& name, int n, const float*& out, int n_rows = 1);
  // The tensor's values, row behind row.
  const float* Values(const formats::TensorView& t, int n, int n_rows);
  Status Bias(const std::string& name, int n, bool needed, const float*& out);
  // A layer may lack a norm: then it has no name.
  Status Norm(const std::string& prefix, std::string_view name, int n, const float*& out);
  const float* Constants(int n, float value);
  // A matrix that each rank computes with whole.
  Status Matrix(const std::string& name, int n_out, int k, Linear& out);
  // A matrix whose outputs the ranks divide.
  Status Divided(const std::string& name, int n_out, int k, Linear& out);
  struct RowsTensor {
    const std::string& name;
    int n_rows;
  };
  // The outputs `own` of a matrix that begins at row `first` of a tensor.
  Status Rows(const RowsTensor& tensor, int first, OutputRange own, int k, Linear& out);
  void PlaceRows(const formats::TensorView& t, int part_rows, int first, OutputRange own,
                 Linear& out, bool beside = false);
  // The rows of an output head that are to be kept, which the ranks divide. beside: in a copy whose network
  // lacks them. REQUIRES then: IsConverted.
  void SomeRows(const formats::TensorView& tensor, std::span<const std::int32_t> rows, Linear& out,
                std::vector<std::int32_t>& kept, bool beside = false);
  // Whether a copy has tiles of its own of this matrix. REQUIRES: the plan is of a copy.
  bool IsConverted(const formats::TensorView& tensor) const;
  // The tensor holds two matrices, of which groups of `group` rows take turns; `first`: 0 or `group`.
  Status EverySecond(const RowsTensor& tensor, int group, int first, OutputRange own, int k,
                     Linear& out);
  struct MatrixShape {
    int n_out, k;
  };
  // A matrix of each expert: the outputs `own` of the rows from first_row on of its part_rows rows in
  // the tensor.
  Status Experts(const std::string& name, int n_experts, MatrixShape shape, ExpertLinear& out,
                 int part_rows, int first_row = 0);
  struct PartsTensor {
    const std::string& name;
    int n_parts, part_rows;
    OutputRange parts, outputs;  // that are taken: of the parts, and of the matrix in each
    int first_row = 0;           // of that matrix in its part
  };
  Status Parts(const PartsTensor& tensor, int k, ExpertLinear& out);
  // Whole blocks of the int8 form.
  OutputRange Own(int n_out) const;
  // Sets the job's size, and its place after all others.
  void Place(MatrixJob& job, int n_out);

  const formats::Checkpoint& checkpoint_;
  const Division division_;
  std::vector<std::vector<float>>& vectors_;
  std::vector<MatrixJob> jobs_;

 private:
  std::deque<std::vector<std::int32_t>> row_lists_;  // that jobs refer to
  void PlaceInCopy(MatrixJob& job);
  std::optional<tensor::DType> TypeOfCopy(const formats::TensorView& tensor) const;
  // The type of a matrix on the ranks that have a share. One that has none must know it: ranks exchange what a
  // product reads in the form that its type asks for.
  tensor::TileType SharedType(const formats::TensorView& tensor) const;

  const std::optional<CopyTypes> copy_;
  const int last_layer_;
  // The jobs' own tiles. In a copy also all tiles of the network, and those of them that it does not use.
  std::size_t tile_bytes_ = 0, network_bytes_ = 0, replaced_bytes_ = 0;
  double copied_numbers_ = 0, copied_bits_ = 0;  // in the copy's own tiles, as files hold them
};

}  // namespace foretoken::model
