// SPDX-License-Identifier: Apache-2.0
// formats/gguf_writer.h: writes a GGUF v3 file.
//
//   GgufWriter writer;
//   writer.Set("general.architecture", std::string("llama"));
//   writer.AddTensor("token_embd.weight", ggml_type, shape, bytes);
//   FORETOKEN_CHECK_OK(writer.Write("model.gguf"));
//
// Keys and tensors are written in the order in which they were first given. The writer refuses what
// ParseGguf would refuse: Set, CopyKeys and AddTensor keep the first error, and Write returns it.
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/result.h"
#include "formats/gguf.h"
#include "formats/metadata.h"

namespace foretoken::formats {

// Receives the bytes of a file, in order.
using ByteSink = std::function<Status(std::span<const std::byte>)>;
using Producer = std::function<Status(const ByteSink&)>;

class GgufWriter {
 public:
  // Sets a key, replacing an earlier value. Value types as real files use them: an integer is a u32
  // if it fits, else an i32 or i64; a float is an f32 (rounded); the elements of an array are i32
  // (or i64), f32 or string. general.alignment may only be 32: leave it out of a copy.
  void Set(const std::string& key, MetadataValue value);
  // Sets a key with a given value type, which for arrays is the type of the elements. Error: a value
  // that does not fit the type.
  void SetAs(const std::string& key, GgufType type, MetadataValue value);

  // Copies every key of a GGUF file with its value and its type, except general.alignment. Error:
  // bytes that do not begin as ParseGguf accepts them.
  void CopyKeys(std::span<const std::byte> file);
  // Removes a key, if it was given.
  void Remove(const std::string& key);

  // Adds a tensor. Its bytes are not copied: the caller keeps them until the last Write or Bytes.
  // shape[0] is the row length; 1 to 4 dimensions. Error: a bad or repeated name, an unknown type,
  // bytes that are not exactly the tensor's.
  void AddTensor(std::string name, std::uint32_t ggml_type, std::span<const std::int64_t> shape,
                 std::span<const std::byte> bytes);
  // Adds a tensor whose bytes are produced while the file is written, so that they are never all in
  // memory. Each Write (or Bytes) calls `produce` once, at the tensor's turn, and `produce` gives
  // the bytes to the sink in pieces of any size. Its errors, and the sink's, end the Write.
  // REQUIRES: exactly the tensor's bytes.
  void AddTensor(std::string name, std::uint32_t ggml_type, std::span<const std::int64_t> shape,
                 Producer produce);

  // Writes all of it, or nothing: into a nameless temporary file in the folder of `path`, which
  // replaces `path` when it is complete and on disk. If the program ends in between, nothing is
  // left (if the file system does not support nameless files: a file PATH.PID-N.part). The space is
  // reserved first, so a full disk is noticed at once. Errors: kInvalidArgument (from Set,
  // CopyKeys, AddTensor), kIo.
  [[nodiscard]] Status Write(const std::string& path) const;
  // The file in memory.
  [[nodiscard]] Result<std::vector<std::byte>> Bytes() const;

 private:
  struct Entry {
    std::string key;
    std::vector<std::byte> value;  // as in the file: type and value
  };
  struct Tensor {
    std::string name;
    std::uint32_t ggml_type;
    std::vector<std::int64_t> shape;
    std::uint64_t size;
    Producer produce;
  };

  void Reject(std::string message);
  // The bytes of a tensor that may be added; nullopt after Reject.
  std::optional<std::uint64_t> SizeOf(const std::string& name, std::uint32_t ggml_type,
                                      std::span<const std::int64_t> shape);
  void Put(const std::string& key, std::vector<std::byte> value);
  std::vector<std::byte> Header() const;
  Status Emit(const ByteSink& sink) const;

  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
  std::optional<Error> error_;
};

}  // namespace foretoken::formats
