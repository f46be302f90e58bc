// SPDX-License-Identifier: Apache-2.0
// Every tensor of every architecture: one that is missing, has another shape, or holds a type that
// is not read is an error with its name.
#include <fmt/format.h>

#include <cctype>
#include <functional>
#include <set>

#include "fixtures/tiny_family.h"
#include "fixtures/tiny_model.h"
#include "model/arch/registry.h"
#include "model/damaged_file_testing.h"
#include "model/weights/weights.h"

namespace foretoken::model {
namespace {

using formats::TensorView;

std::vector<std::string> HostileNames() {
  std::vector<std::string> names = {"mixtral"};
  for (const ArchitectureInfo* info : AllArchitectures()) names.emplace_back(info->name);
  return names;
}

// "ffn_up.weight" of "blk.1.ffn_up.weight".
std::string PartOf(const std::string& tensor) {
  return tensor.starts_with("blk.") ? tensor.substr(tensor.find('.', 4) + 1) : tensor;
}

// The tensor that is asked for where this one is missing: without a matrix of several, one of each.
std::string FirstOf(const std::string& tensor, const std::string& architecture) {
  const auto shortened = [&](std::string_view end, std::string_view to) {
    return tensor.substr(0, tensor.size() - end.size()) + std::string(to);
  };
  const bool delta = fixtures::FamilyOf(architecture).delta != fixtures::TinyFamily::kNoDelta;
  if (PartOf(tensor) == "attn_qkv.weight" && !delta) return shortened("kv.weight", ".weight");
  if (PartOf(tensor) == "ffn_gate_up_exps.weight")
    return shortened("up_exps.weight", "exps.weight");
  return tensor;
}

// Tensors that a file of the architecture may lack.
std::set<std::string> OptionalIn(const std::string& name) {
  std::set<std::string> all = {"output.weight"};  // then token_embd serves
  if (name == "glm4" || name == "seed_oss")
    all.insert({"attn_q.bias", "attn_k.bias", "attn_v.bias"});
  if (name == "phi3") all.insert({"rope_factors_short.weight", "rope_factors_long.weight"});
  if (name == "gemma4") all.insert({"rope_freqs.weight", "attn_v.weight"});
  if (name == "glm4moe") all.insert({"exp_probs_b.bias", "attn_q_norm.weight"});
  if (name == "granitehybrid" || name == "falcon-h1" || name.starts_with("nemotron"))
    all.insert("ssm_norm.weight");
  if (name == "nemotron_h_moe") all.insert("exp_probs_b.bias");
  if (name == "deepseek2" || name == "lfm2moe") all.insert("exp_probs_b.bias");
  return all;
}

class HostileTensors : public testing::TestWithParam<std::string> {
 protected:
  HostileTensors() : file_(fixtures::TinyModelBytes(fixtures::SmallestOf(GetParam()))) {}

  // What loading says of the file as it is now.
  std::string Error() const {
    auto config = ConfigFromMetadata(file_.metadata());
    if (!config) return config.error().message;
    const auto rows = VocabularyRows(file_);
    if (!rows) return rows.error().message;
    config->vocabulary = *rows;
    const Status status = Weights::Check(file_, *config);
    return status ? "" : status.error().message;
  }

  // Changes each tensor in turn and expects an error that begins with its name.
  void ExpectErrors(const char* change, const std::function<bool(TensorView&)>& damage) {
    for (TensorView& tensor : file_.file.tensors) {
      const TensorView whole = tensor;
      if (!damage(tensor)) {
        tensor = whole;
        continue;
      }
      const std::string message = Error();
      EXPECT_TRUE(message.starts_with("tensor " + whole.name + ": "))
          << change << ": " << whole.name << ": " << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      tensor = whole;
    }
  }

  DamagedFile file_;
};

TEST_P(HostileTensors, AreMissed) {
  const std::set<std::string> optional = OptionalIn(GetParam());
  ASSERT_EQ(Error(), "");
  auto& tensors = file_.file.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = tensors[i].name;
    const std::string missed = FirstOf(name, GetParam());
    tensors[i].name = "?";
    const std::string message = Error();
    if (optional.contains(PartOf(name)))
      EXPECT_EQ(message, "") << name;
    else
      EXPECT_TRUE(message.starts_with("tensor " + missed + ": missing; "))
          << name << ": " << message;
    tensors[i].name = name;
  }
}

TEST_P(HostileTensors, HaveAnotherShape) {
  // Whether the size of a dimension could be changed.
  const auto set = [](TensorView& t, int dimension, std::int64_t size) {
    const auto at = static_cast<std::size_t>(dimension);
    if (size < 1 || size == t.shape[at]) return false;
    if (dimension == 1 && t.name == "token_embd.weight") return false;  // see the next test
    t.shape[at] = size;
    t.n_dims = std::max(t.n_dims, dimension + 1);
    return true;
  };
  for (int dimension = 0; dimension < 4; ++dimension)
    for (const double factor : {0.5, 1.0, 2.0})
      for (const int more : {-1, 0, 1})
        ExpectErrors("shape", [&](TensorView& t) {
          const auto size = static_cast<double>(t.shape[static_cast<std::size_t>(dimension)]);
          return set(t, dimension, static_cast<std::int64_t>(size * factor) + more);
        });
  ExpectErrors("rows and columns exchanged", [](TensorView& t) {
    std::swap(t.shape[0], t.shape[1]);
    t.n_dims = std::max(t.n_dims, 2);
    return t.shape[0] != t.shape[1];
  });
}

// All tensors' rows hang together by the vocabulary: the first that differs is named.
TEST_P(HostileTensors, HaveAnotherVocabulary) {
  for (TensorView& tensor : file_.file.tensors) {
    if (tensor.name != "token_embd.weight") continue;
    for (const std::int64_t rows :
         {std::int64_t{299}, std::int64_t{1} << 25, std::int64_t{1} << 40}) {
      tensor.shape[1] = rows;
      EXPECT_TRUE(Error().starts_with("tensor ")) << rows << ": " << Error();
    }
  }
}

TEST_P(HostileTensors, HaveATypeThatIsNotRead) {
  for (const std::uint32_t type : {9u, 15u, 24u, 26u, 27u, 28u, 36u, 40u, 77u, 0xFFFFFFFFu})
    ExpectErrors("type", [type](TensorView& t) { return t.ggml_type = type, true; });
}

INSTANTIATE_TEST_SUITE_P(Files, HostileTensors, testing::ValuesIn(HostileNames()),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace foretoken::model
