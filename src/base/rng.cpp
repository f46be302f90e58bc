// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

namespace foretoken {
namespace {

constexpr int kStreamBits = 3, kPositionBits = 29;  // contexts end at 2^24 (kMaxTextTokens)

std::uint32_t Low(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x);
}

std::uint32_t High(std::uint64_t x) noexcept {
  return static_cast<std::uint32_t>(x >> 32);
}

std::span<const double> Given(const GivenUniforms& given, Stream stream) noexcept {
  switch (stream) {
    case Stream::kCoin:
    case Stream::kSynthetic:
      return given.coins;
    case Stream::kResidual:
      return given.residuals;
    case Stream::kTarget:
      return given.targets;
    default:
      return {};
  }
}

}  // namespace

std::array<std::uint32_t, 4> Philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> k) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

// Three words hold the position, the stream and all 64 bits of the request's id. The id's low 56
// bits are above the stream's 8. Its high byte uses bits that are otherwise 0: the 5 above the
// stream's own 3, and the 3 above the position's 29. So ids below 2^56 keep their old noise, and no
// two ids share a block.
std::array<std::uint32_t, 3> Noise::Counter(Stream stream, Pos position) const noexcept {
  const std::uint32_t byte = High(request_) >> 24;
  return {
      static_cast<std::uint32_t>(position) ^ ((byte >> 5) << kPositionBits), Low(request_),
      (High(request_) << 8) | ((byte & 31) << kStreamBits) | static_cast<std::uint32_t>(stream)};
}

std::array<std::uint32_t, 2> Noise::Key() const noexcept {
  return {Low(seed_), High(seed_)};
}

double Noise::Uniform(Stream stream, Pos position, std::uint32_t index) const noexcept {
  if (given_ != nullptr) {
    const std::span<const double> own = Given(*given_, stream);
    const auto at = static_cast<std::size_t>(position - given_->first);
    if (position >= given_->first && at < own.size()) return own[at];
  }
  const auto [first, second, third] = Counter(stream, position);
  const auto block = Philox({first, second, third, index}, Key());
  const std::uint64_t bits = (std::uint64_t{block[0]} << 32) | block[1];
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace foretoken
