// SPDX-License-Identifier: Apache-2.0
#include "attack/model_mutator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "attack/json_mutator.h"
#include "base/check.h"

namespace foretoken::attack {
namespace {

// ---- A file in parts ---------------------------------------------------------------------------

struct Key {
  std::string name;
  std::uint32_t type = 0;
  std::uint32_t element = 0;       // of an array
  std::vector<std::string> texts;  // of a string, or of an array of strings
  Bytes numbers;                   // of all other values
  std::uint64_t count = 0;         // of an array
};

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint32_t type = 0;
  Bytes data;
};

struct Model {
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
};

constexpr std::uint32_t kString = 8, kArray = 9;
constexpr std::array<std::size_t, 13> kWidths = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// 0: texts, arrays, and types that an earlier change made up.
std::size_t WidthOf(std::uint32_t type) {
  return type < kWidths.size() ? kWidths[type] : 0;
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T Number() {
    T value;
    std::memcpy(&value, Take(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> Take(std::size_t size) {
    FORETOKEN_CHECK(size <= bytes_.size() - at_);
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }
  std::string Text() {
    const auto part = Take(static_cast<std::size_t>(Number<std::uint64_t>()));
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::size_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

Key ReadKey(Reader& in) {
  Key key;
  key.name = in.Text();
  key.type = in.Number<std::uint32_t>();
  std::uint32_t element = key.type;
  std::uint64_t n = 1;
  if (key.type == kArray) {
    element = key.element = in.Number<std::uint32_t>();
    n = key.count = in.Number<std::uint64_t>();
  }
  FORETOKEN_CHECK(element < kWidths.size() && element != kArray);
  if (element == kString) {
    for (std::uint64_t i = 0; i < n; ++i) key.texts.push_back(in.Text());
  } else {
    const auto part = in.Take(static_cast<std::size_t>(n) * kWidths[element]);
    key.numbers.assign(part.begin(), part.end());
  }
  return key;
}

Model ReadModel(std::span<const std::byte> bytes) {
  Reader in(bytes);
  FORETOKEN_CHECK(in.Number<std::uint32_t>() == 0x46554747 && in.Number<std::uint32_t>() == 3);
  const auto n_tensors = in.Number<std::uint64_t>();
  const auto n_keys = in.Number<std::uint64_t>();
  Model model;
  for (std::uint64_t i = 0; i < n_keys; ++i) model.keys.push_back(ReadKey(in));
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    Tensor tensor;
    tensor.name = in.Text();
    tensor.shape.resize(in.Number<std::uint32_t>());
    for (std::uint64_t& size : tensor.shape) size = in.Number<std::uint64_t>();
    tensor.type = in.Number<std::uint32_t>();
    offsets.push_back(in.Number<std::uint64_t>());
    model.tensors.push_back(std::move(tensor));
  }
  const std::size_t data = (in.at() + 31) / 32 * 32;
  // Each tensor's bytes reach to the next one, padding included.
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::size_t begin = data + static_cast<std::size_t>(offsets[i]);
    std::size_t end = bytes.size();
    for (const std::uint64_t other : offsets)
      if (other > offsets[i]) end = std::min(end, data + static_cast<std::size_t>(other));
    const auto part = bytes.subspan(begin, end - begin);
    model.tensors[i].data.assign(part.begin(), part.end());
  }
  return model;
}

// ---- Writing, with the places of the numbers ----------------------------------------------------

struct Place {
  std::size_t at = 0, width = 0;
};

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    places.push_back({bytes.size(), sizeof value});
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof value);
  }
  void Text(const std::string& text) {
    Number<std::uint64_t>(text.size());
    Raw(std::as_bytes(std::span(text)));
  }
  void Raw(std::span<const std::byte> part) { bytes.insert(bytes.end(), part.begin(), part.end()); }
  void Values(const Key& key, std::uint32_t element) {
    if (element == kString)
      for (const std::string& text : key.texts) Text(text);
    const std::size_t width = WidthOf(element);
    if (width != 0 && key.numbers.size() == width) places.push_back({bytes.size(), width});
    Raw(key.numbers);
  }

  Bytes bytes;
  std::vector<Place> places;
  std::vector<std::size_t> edges;  // where keys, tensors and their data begin
};

void WriteKey(Writer& out, const Key& key) {
  out.edges.push_back(out.bytes.size());
  out.Text(key.name);
  out.Number(key.type);
  if (key.type == kArray) {
    out.Number(key.element);
    out.Number(key.count);
    out.Values(key, key.element);
  } else {
    out.Values(key, key.type);
  }
}

Writer Write(const Model& model) {
  Writer out;
  out.Number<std::uint32_t>(0x46554747);
  out.Number<std::uint32_t>(3);
  out.Number<std::uint64_t>(model.tensors.size());
  out.Number<std::uint64_t>(model.keys.size());
  for (const Key& key : model.keys) WriteKey(out, key);
  std::uint64_t offset = 0;
  for (const Tensor& tensor : model.tensors) {
    out.edges.push_back(out.bytes.size());
    out.Text(tensor.name);
    out.Number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::uint64_t size : tensor.shape) out.Number(size);
    out.Number(tensor.type);
    out.Number(offset);
    offset += (tensor.data.size() + 31) / 32 * 32;
  }
  const auto pad = [&out] { out.bytes.resize((out.bytes.size() + 31) / 32 * 32); };
  pad();
  for (const Tensor& tensor : model.tensors) {
    out.edges.push_back(out.bytes.size());
    out.Raw(tensor.data);
    pad();
  }
  return out;
}

// ---- Hostile values -----------------------------------------------------------------------------

// A number that a reader of `width` bytes may stumble over; `now` is the one that is there.
std::uint64_t HostileNumber(Random& random, std::uint64_t now) {
  static const auto kFixed = Words(
      "0 1 2 3 7 8 31 33 63 64 65 127 128 255 256 1023 1024 1025 4095 4096 4097 32767 32768 "
      "65535 65536 0x20000 0x80000 0x80001 0x100000 0x1000000 0x8000000 0x40000000 0x7FFFFFFF "
      "0x80000000 0xFFFFFFFE 0xFFFFFFFF 0x100000000 0x100000001 0x7FFFFFFFFFFFFFFF "
      "0x8000000000000000 0xFFFFFFFFFFFFFFE0 0xFFFFFFFFFFFFFFFF");
  const std::uint64_t near[] = {
      now + 1, now - 1, now * 2, now / 2, std::uint64_t{1} << random.Below(64), random.Next()};
  return random.OneIn(4) ? std::stoull(random.Pick(kFixed), nullptr, 0) : random.Pick(near);
}

double HostileFloat(Random& random) {
  using Limits = std::numeric_limits<double>;
  static constexpr double kInfinity = Limits::infinity(), kNan = Limits::quiet_NaN();
  static constexpr double kFixed[] = {0,    -0.0, 1,     -1,        1e-30,      1e-45, 1e11,
                                      1e13, 3e38, 1e300, kInfinity, -kInfinity, kNan};
  return random.Pick(kFixed);
}

std::string HostileText(Random& random) {
  static const auto kFixed = [] {
    auto texts = Words(
        "llama qwen2 qwen3 eagle3 dflash gpt2 bert gpt-2 ? %s%n{} {0}{1}{:9999999} "
        "../../etc/passwd yarn linear longrope none default tekken <0x41> <0xZZ> <|im_start|> ▁");
    for (const char* odd : {"", "no\nline", "\x1b[31mred", "\xff\xfe", "\xed\xa0\x80",
                            "\xe2\x80\xae", "{% for m in messages %}{{ m }}{% endfor %}"})
      texts.emplace_back(odd);
    return texts;
  }();
  switch (random.Below(12)) {
    case 0:
      return std::string(static_cast<std::size_t>(random.Below(70'000)), 'a');
    case 1:
      return std::string(5, '\0');
    case 2: {
      std::string text(static_cast<std::size_t>(random.Below(64)), ' ');
      for (char& c : text) c = static_cast<char>(random.Next());
      return text;
    }
    default:
      return random.Pick(kFixed);
  }
}

Key TextKey(std::string name, std::string text) {
  return {.name = std::move(name), .type = kString, .texts = {std::move(text)}, .numbers = {}};
}

Key NumberKey(std::string name, std::uint32_t type, std::uint64_t value) {
  Key key{.name = std::move(name), .type = type, .element = 0, .texts = {}, .numbers = {}};
  key.numbers.resize(kWidths[type]);
  std::memcpy(key.numbers.data(), &value, key.numbers.size());
  return key;
}

// Another value of the type that the key has.
void ChangeValue(Random& random, Key& key) {
  const std::uint32_t element = key.type == kArray ? key.element : key.type;
  if (element == kString) {
    if (!key.texts.empty()) random.Pick(key.texts) = HostileText(random);
    return;
  }
  const std::size_t width = WidthOf(element);
  if (width == 0 || key.numbers.size() < width) return;
  const std::size_t at = static_cast<std::size_t>(random.Below(key.numbers.size() / width)) * width;
  if (element == 6 || element == 12) {
    const double wide = HostileFloat(random);
    const auto narrow = static_cast<float>(wide);
    std::memcpy(&key.numbers[at], element == 6 ? static_cast<const void*>(&narrow) : &wide, width);
    return;
  }
  std::uint64_t now = 0;
  std::memcpy(&now, &key.numbers[at], width);
  now = HostileNumber(random, now);
  std::memcpy(&key.numbers[at], &now, width);
}

// ---- Changes of the parts -----------------------------------------------------------------------

// A list that became longer or shorter than its partners.
void ChangeLength(Random& random, Key& key) {
  if (key.type != kArray) return;
  const std::size_t n = static_cast<std::size_t>(key.count);
  const std::size_t lengths[] = {0, n - std::min<std::size_t>(n, 1), n + 1,
                                 static_cast<std::size_t>(random.Below(2 * n + 2))};
  const std::size_t now = random.Pick(lengths);
  key.count = now;
  if (key.element == kString) key.texts.resize(now);
  if (key.element < kWidths.size()) key.numbers.resize(now * WidthOf(key.element));
}

// Its name with another type: its bytes are kept or made anew.
void ChangeType(Random& random, Key& key) {
  switch (random.Below(5)) {
    case 0:
      key.type = static_cast<std::uint32_t>(random.Below(15));
      return;
    case 1:
      key = TextKey(key.name, HostileText(random));
      return;
    case 2:
      key = {.name = key.name, .type = kArray, .element = kString, .texts = {}, .numbers = {}};
      return;
    case 3: {
      const std::uint64_t n = random.Below(5);
      key = {.name = key.name,
             .type = kArray,
             .element = 5,
             .texts = {},
             .numbers = Bytes(static_cast<std::size_t>(4 * n)),
             .count = n};
      return;
    }
    default: {
      static constexpr std::uint32_t kTypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12};
      key = NumberKey(key.name, random.Pick(kTypes), random.Next());
    }
  }
}

// A key that readers know and that the file need not have.
Key KnownKey(Random& random, const Model& model) {
  static const auto kNames = Words(
      "general.alignment split.count split.no split.tensors.count general.file_type "
      "tokenizer.ggml.add_bos_token tokenizer.ggml.pre tokenizer.ggml.merges "
      "tokenizer.chat_template tokenizer.ggml.padding_token_id tokenizer.ggml.eot_token_id "
      "tokenizer.ggml.add_space_prefix tokenizer.ggml.remove_extra_whitespaces "
      "tokenizer.ggml.precompiled_charsmap A.rope.scaling.type A.rope.scaling.factor "
      "A.rope.scaling.original_context_length A.rope.scale_linear A.rope.dimension_sections "
      "A.nextn_predict_layers A.attention.key_length A.attention.value_length A.expert_count "
      "A.expert_used_count A.expert_feed_forward_length A.leading_dense_block_count "
      "A.attention.sliding_window A.target_layers A.target_hidden_size A.norm_before_residual "
      "A.vocab_size A.rope.scaling.attn_factor A.rope.scaling.yarn_beta_fast A.rope.freq_base "
      "A.rope.freq_base_swa A.rope.dimension_count_swa A.rope.scaling.yarn_log_multiplier "
      "A.rope.scaling.finetuned A.attention.key_length_swa A.attention.value_length_swa "
      "A.attention.shared_kv_layers A.attention.sliding_window_pattern A.attention.scale "
      "A.attention.temperature_scale A.attn_logit_softcapping A.final_logit_softcapping "
      "A.embedding_length_per_layer_input A.embedding_scale A.residual_scale A.logit_scale "
      "A.expert_gating_func A.expert_weights_norm A.expert_weights_scale A.expert_group_count "
      "A.expert_group_used_count A.expert_shared_count A.expert_shared_feed_forward_length "
      "tokenizer.ggml.suppress_tokens");
  std::string name = random.Pick(kNames);
  if (name.starts_with("A.")) {
    std::string architecture = "llama";
    for (const Key& key : model.keys)
      if (key.name == "general.architecture" && !key.texts.empty()) architecture = key.texts[0];
    name.replace(0, 1, architecture);
  }
  switch (random.Below(3)) {
    case 0:
      return TextKey(std::move(name), HostileText(random));
    case 1: {
      const auto value = static_cast<float>(HostileFloat(random));
      return NumberKey(std::move(name), 6, std::bit_cast<std::uint32_t>(value));
    }
    default:
      return NumberKey(std::move(name), 4, HostileNumber(random, 8));
  }
}

std::string ChangeKeys(Random& random, Model& model) {
  auto& keys = model.keys;
  if (keys.empty()) return "no keys";
  const auto at = static_cast<std::size_t>(random.Below(keys.size()));
  const std::string name = keys[at].name;
  switch (random.Below(8)) {
    case 0:
      keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(at));
      return name + " removed";
    case 1: {
      Key twin = keys[at];
      if (random.OneIn(2)) ChangeValue(random, twin);
      keys.push_back(std::move(twin));
      return name + " twice";
    }
    case 2:
      ChangeType(random, keys[at]);
      return name + " of another type";
    case 3:
      ChangeLength(random, keys[at]);
      return name + " of another length";
    case 4:
      keys[at].name = HostileText(random);
      return name + " renamed";
    case 5:
      keys.push_back(KnownKey(random, model));
      return keys.back().name + " added";
    default:
      ChangeValue(random, keys[at]);
      return name + " of another value";
  }
}

std::string ChangeData(Random& random, Tensor& tensor) {
  if (tensor.data.empty()) return tensor.name + " without data";
  auto& data = tensor.data;
  const auto at = static_cast<std::size_t>(random.Below(data.size()));
  switch (random.Below(5)) {
    case 0:
      std::fill(data.begin(), data.end(), std::byte{0});
      return tensor.name + " all zero";
    case 1:
      std::fill(data.begin(), data.end(), std::byte{0xFF});
      return tensor.name + " all ones";
    case 2: {  // as F32: NaN, infinities, huge
      static constexpr std::uint32_t kValues[] = {0x7FC00000, 0x7F800000, 0xFF800000,
                                                  0x7F7FFFFF, 0x00000001, 0x80000000};
      const std::uint32_t value = random.Pick(kValues);
      if (data.size() >= 4)
        std::memcpy(&data[at / 4 * 4 < data.size() - 3 ? at / 4 * 4 : 0], &value, 4);
      return tensor.name + " with a value that is not finite";
    }
    case 3:
      for (std::uint64_t i = 0, n = 1 + random.Below(64); i < n; ++i)
        random.Pick(data) = static_cast<std::byte>(random.Next());
      return tensor.name + " with other bytes";
    default:
      data[at] ^= static_cast<std::byte>(1u << random.Below(8));
      return tensor.name + " with a flipped bit";
  }
}

std::string ChangeShape(Random& random, Tensor& tensor) {
  auto& shape = tensor.shape;
  switch (random.Below(5)) {
    case 0:
      if (shape.size() > 1) std::swap(shape[0], shape[1]);
      break;
    case 1:
      shape.push_back(HostileNumber(random, 1));
      break;
    case 2:
      if (!shape.empty()) shape.pop_back();
      break;
    case 3:  // the same number of values, or nearly
      if (shape.size() > 1) shape[0] *= 2, shape[1] /= 2;
      break;
    default:
      if (!shape.empty()) {
        auto& size = random.Pick(shape);
        size = HostileNumber(random, size);
      }
  }
  return tensor.name + " of another shape";
}

std::string ChangeTensors(Random& random, Model& model) {
  auto& tensors = model.tensors;
  if (tensors.empty()) return "no tensors";
  const auto at = static_cast<std::size_t>(random.Below(tensors.size()));
  const std::string name = tensors[at].name;
  switch (random.Below(9)) {
    case 0:
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(at));
      return name + " removed";
    case 1:
      tensors.push_back(tensors[at]);
      return name + " twice";
    case 2:
      tensors[at].name = HostileText(random);
      return name + " renamed";
    case 3: {
      const auto other = static_cast<std::size_t>(random.Below(tensors.size()));
      std::swap(tensors[at].name, tensors[other].name);
      return name + " and " + tensors[at].name + " exchanged";
    }
    case 4:
      tensors[at].type = static_cast<std::uint32_t>(random.Below(42));
      return name + " of another number type";
    case 5:
      tensors[at].data.resize(
          static_cast<std::size_t>(random.Below(2 * tensors[at].data.size() + 1)));
      return name + " with more or fewer bytes";
    case 6:
      return ChangeShape(random, tensors[at]);
    default:
      return ChangeData(random, tensors[at]);
  }
}

// ---- Changes of the written bytes ---------------------------------------------------------------

std::string ChangeBytes(Random& random, Writer& out, std::span<const GoodFile> files) {
  Bytes& bytes = out.bytes;
  if (bytes.empty()) return "empty";
  switch (random.Below(7)) {
    case 0:
    case 1: {  // a count, length, size, type or offset
      const Place place = random.Pick(out.places);
      if (place.at + place.width > bytes.size()) return "no place";
      std::uint64_t value = 0;
      std::memcpy(&value, &bytes[place.at], place.width);
      value = HostileNumber(random, value);
      std::memcpy(&bytes[place.at], &value, place.width);
      return fmt::format("{} at byte {}", value, place.at);
    }
    case 2: {  // cut at an edge, inside of a number, or anywhere
      std::size_t at = static_cast<std::size_t>(random.Below(bytes.size()));
      if (random.OneIn(2))
        at = random.Pick(out.places).at + static_cast<std::size_t>(random.Below(9));
      else if (random.OneIn(2))
        at = random.Pick(out.edges);
      bytes.resize(std::min(bytes.size(), at));
      return fmt::format("cut to {} bytes", bytes.size());
    }
    case 3: {
      const std::size_t header =
          out.edges.empty() ? bytes.size() : std::min(bytes.size(), out.edges.back());
      for (std::uint64_t i = 0, n = 1 + random.Below(4); i < n; ++i)
        bytes[static_cast<std::size_t>(random.Below(header))] ^=
            static_cast<std::byte>(1u << random.Below(8));
      return "flipped bits";
    }
    case 4: {  // the beginning of this file and the end of another
      const Bytes& other = random.Pick(files).bytes;
      if (other.empty()) return "spliced with a folder";
      const auto at = static_cast<std::size_t>(random.Below(bytes.size()));
      const auto from = random.OneIn(2) ? std::min(at, other.size())
                                        : static_cast<std::size_t>(random.Below(other.size()));
      bytes.resize(at);
      bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      return fmt::format("spliced at byte {}", at);
    }
    case 5: {  // bytes put in or taken out, which moves all that follows
      const auto at = static_cast<std::size_t>(random.Below(bytes.size()));
      const auto n =
          std::min<std::size_t>(1 + static_cast<std::size_t>(random.Below(40)), bytes.size() - at);
      const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      if (random.OneIn(2))
        bytes.erase(where, where + static_cast<std::ptrdiff_t>(n));
      else
        bytes.insert(where, n, static_cast<std::byte>(random.Next()));
      return fmt::format("{} bytes moved at byte {}", n, at);
    }
    default:
      bytes.insert(bytes.end(), static_cast<std::size_t>(random.Below(5000)), std::byte{0x41});
      return "longer";
  }
}

}  // namespace

Mutated Mutate(std::span<const GoodFile> files, std::uint64_t seed, std::uint64_t number) {
  Random random = RandomOf(seed, number);
  Mutated mutated;
  mutated.good = static_cast<std::size_t>(random.Below(files.size()));
  const GoodFile& good = files[mutated.good];
  mutated.what = good.name + ":";
  const auto note = [&mutated](const std::string& what) {
    mutated.what += " " + what.substr(0, 120) + ";";
  };
  // Half of the files have one change only: the others hide what the second would find.
  const std::uint64_t changes = random.OneIn(2) ? 1 : 1 + random.Below(4);
  if (good.role == Role::kFolder) {
    mutated.files = good.files;
    for (std::uint64_t i = 0; i < changes; ++i) note(ChangeFolder(random, mutated.files));
    return mutated;
  }
  Model model = ReadModel(good.bytes);
  const bool bytes_too = random.OneIn(3);
  for (std::uint64_t i = bytes_too ? 1 : 0; i < changes; ++i)
    note(random.OneIn(2) ? ChangeKeys(random, model) : ChangeTensors(random, model));
  Writer out = Write(model);
  if (bytes_too) note(ChangeBytes(random, out, files));
  mutated.bytes = std::move(out.bytes);
  return mutated;
}

}  // namespace foretoken::attack
