// SPDX-License-Identifier: Apache-2.0
#include "sampling/filters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "base/ids.h"

namespace foretoken::sampling {
namespace {

constexpr int kMaximaBlock = 64;  // of kernels.block_max
constexpr int kFewKeys = 32;      // sorted rather than halved

// Floats as integers of the same order. Zeros must be +0.
std::uint32_t Ordered(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
float FromOrdered(std::uint32_t ordered) {
  return std::bit_cast<float>(ordered >> 31 != 0 ? ordered & 0x7fffffffu : ~ordered);
}

// Weight in the upper half, the complement of the id in the lower half: of equal weights the lowest
// id is largest.
std::uint64_t MakeKey(float x, Token id) {
  return std::uint64_t{Ordered(x + 0.0f)} << 32 | (0xffffffffu - static_cast<std::uint32_t>(id));
}
float ValueOf(std::uint64_t key) {
  return FromOrdered(static_cast<std::uint32_t>(key >> 32));
}
Token IdOf(std::uint64_t key) {
  return static_cast<Token>(0xffffffffu - static_cast<std::uint32_t>(key));
}

double MassOf(const std::uint64_t* begin, const std::uint64_t* end) {
  double mass = 0;
  for (; begin != end; ++begin) mass += static_cast<double>(ValueOf(*begin));
  return mass;
}

// The entropy, in nats, of the distribution given by weights with the total `mass`.
double EntropyOf(const std::uint64_t* begin, const std::uint64_t* end, double mass) {
  double entropy = 0;
  for (; begin != end; ++begin) {
    const double p = static_cast<double>(ValueOf(*begin)) / mass;
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

class Filters::Chain {
 public:
  Chain(const SamplingParameters& s, int vocabulary, const kernels::Kernels& kernels);
  void Apply(const float* x, float* p) noexcept;
  bool any() const noexcept { return keys_ != nullptr; }
  float inverse_temperature() const noexcept { return inv_temperature_; }

 private:
  // A token and its weight as one number; in descending order the best comes first.
  using Key = std::uint64_t;

  void TakeTopK(const float* x) noexcept;
  float TopKThreshold(const float* x) noexcept;
  void TakeHead(const float* p, double sum) noexcept;
  int Collect(const float* x, float threshold) noexcept;
  void CutTopP() noexcept;
  void CutTypical() noexcept;
  void CutMinP() noexcept;
  void CutEta() noexcept;
  void TakeEta(const float* p, double sum) noexcept;
  double EtaThreshold(double entropy) const noexcept;

  const kernels::Kernels* kernels_;
  int vocabulary_, top_k_;
  float inv_temperature_, top_p_, min_p_, typical_p_, eta_;
  bool only_eta_ = false;

  // The set: keys_[0, n_), with total weight mass_. Buffers hold [vocabulary], or nothing if no
  // filter is on. They start unwritten, so they only take the memory that is used.
  std::unique_ptr<Key[]> keys_;
  int n_ = 0;
  double mass_ = 0;
  std::unique_ptr<std::int32_t[]> ids_;  // the result of collect_at_least
  std::unique_ptr<float[]> values_;      // maxima of blocks; logits and weights of the k best
  std::unique_ptr<Key[]> distances_;     // typical-p only
};

Filters::Filters(const SamplingParameters& parameters, int vocabulary,
                 const kernels::Kernels& kernels)
    : chain_(std::make_unique<Chain>(parameters, vocabulary, kernels)) {}
Filters::Filters(Filters&&) noexcept = default;
Filters& Filters::operator=(Filters&&) noexcept = default;
Filters::~Filters() = default;

void Filters::Apply(const float* x, float* p) noexcept {
  chain_->Apply(x, p);
}

bool Filters::any() const noexcept {
  return chain_->any();
}

float Filters::inverse_temperature() const noexcept {
  return chain_->inverse_temperature();
}

Filters::Chain::Chain(const SamplingParameters& s, int vocabulary, const kernels::Kernels& kernels)
    : kernels_(&kernels),
      vocabulary_(vocabulary),
      top_k_(s.top_k > 0 && s.top_k < vocabulary ? s.top_k : 0),
      inv_temperature_(s.greedy() ? 1.0f : 1.0f / s.temperature),
      top_p_(s.top_p),
      min_p_(s.min_p),
      typical_p_(s.typical_p),
      eta_(s.eta) {
  const bool before_eta = top_k_ > 0 || top_p_ < 1 || min_p_ > 0 || typical_p_ < 1;
  only_eta_ = eta_ > 0 && !before_eta;
  if (s.greedy() || !(before_eta || only_eta_)) return;
  const auto n = static_cast<std::size_t>(vocabulary);
  keys_ = std::make_unique_for_overwrite<Key[]>(n);
  ids_ = std::make_unique_for_overwrite<std::int32_t[]>(n);
  values_ = std::make_unique_for_overwrite<float[]>(n);
  if (typical_p_ < 1) distances_ = std::make_unique_for_overwrite<Key[]>(n);
}

void Filters::Chain::Apply(const float* x, float* p) noexcept {
  if (top_k_ > 0) {
    TakeTopK(x);
  } else {
    double sum =
        kernels_->exp_sum(x, vocabulary_, kernels_->max(x, vocabulary_), inv_temperature_, p);
    if (!(sum < std::numeric_limits<double>::infinity())) {  // a NaN among the logits
      std::replace_if(
          p, p + vocabulary_, [](float w) { return std::isnan(w); }, 0.0f);
      sum = kernels_->sum(p, vocabulary_);
    }
    if (keys_ == nullptr) return kernels_->scale(p, vocabulary_, static_cast<float>(1.0 / sum));
    only_eta_ ? TakeEta(p, sum) : TakeHead(p, sum);
  }
  if (top_p_ < 1) CutTopP();
  if (typical_p_ < 1) CutTypical();
  if (min_p_ > 0) CutMinP();
  if (eta_ > 0 && !only_eta_) CutEta();
  std::fill(p, p + vocabulary_, 0.0f);
  for (int i = 0; i < n_; ++i)
    p[IdOf(keys_[i])] = static_cast<float>(static_cast<double>(ValueOf(keys_[i])) / mass_);
}

int Filters::Chain::Collect(const float* x, float threshold) noexcept {
  const int found = kernels_->collect_at_least(x, vocabulary_, threshold, ids_.get(), vocabulary_);
  for (int i = 0; i < found; ++i) keys_[i] = MakeKey(x[ids_[i]], ids_[i]);
  return found;
}

// A logit that at least k tokens reach, and not many more; if fewer than k are finite, one that all
// finite ones reach.
float Filters::Chain::TopKThreshold(const float* x) noexcept {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const int n_blocks = (vocabulary_ + kMaximaBlock - 1) / kMaximaBlock;
  if (top_k_ <=
      n_blocks) {  // the k best blocks hold k values of at least the worst of their maxima
    kernels_->block_max(x, vocabulary_, values_.get());
    float* const kth = values_.get() + (top_k_ - 1);
    std::nth_element(values_.get(), kth, values_.get() + n_blocks, std::greater<>());
    return std::max(*kth, kLowest);
  }
  // A large k: bisection over the floats, which are at most 2^32.
  std::uint32_t low = Ordered(kLowest), high = Ordered(kernels_->max(x, vocabulary_));
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2 + 1;
    const int found =
        kernels_->collect_at_least(x, vocabulary_, FromOrdered(middle), ids_.get(), 0);
    if (found < top_k_) {
      high = middle - 1;
    } else {
      low = middle;
      if (found <= top_k_ + top_k_ / 4) break;
    }
  }
  return FromOrdered(low);
}

// Exactly the k best logits (fewer where fewer are above -inf), as weights relative to the largest.
void Filters::Chain::TakeTopK(const float* x) noexcept {
  n_ = Collect(x, TopKThreshold(x));
  if (n_ > top_k_) {
    std::nth_element(keys_.get(), keys_.get() + top_k_, keys_.get() + n_, std::greater<>());
    n_ = top_k_;
  }
  for (int i = 0; i < n_; ++i) values_[i] = ValueOf(keys_[i]);
  const float best = kernels_->max(values_.get(), n_);
  mass_ = kernels_->exp_sum(values_.get(), n_, best, inv_temperature_, values_.get());
  for (int i = 0; i < n_; ++i) keys_[i] = MakeKey(values_[i], IdOf(keys_[i]));
}

// Every token that the filters to come could keep, from weights p of the whole vocabulary. What a filter
// behind another one would leave out must stay here, because the one before may need its mass.
void Filters::Chain::TakeHead(const float* p, double sum) noexcept {
  mass_ = sum;
  double lowest = 0;
  if (top_p_ < 1) {
    // Tokens of less weight than this hold less than 1 - top_p together, so the tokens better than
    // any of them exceed top_p. The factor leaves room for rounding.
    lowest = (1.0 - static_cast<double>(top_p_)) * sum / vocabulary_ * 0.999;
    // In a peaked distribution few of them matter, so try higher thresholds first, each a cheap
    // pass. A set that exceeds top_p by more than rounding contains the cut.
    const double enough = static_cast<double>(top_p_) * sum * (1 + 1e-9);
    for (double threshold = sum / 1024; threshold > lowest; threshold /= 32) {
      n_ = Collect(p, static_cast<float>(threshold));
      if (MassOf(keys_.get(), keys_.get() + n_) > enough) return;
    }
  } else if (typical_p_ < 1) {
    // What is left out holds less than 1e-9, which no float below 1 can ask for. It is also further
    // from the entropy (at most ln V) than all the rest, because its surprise is above ln V + 20.
    lowest = sum / vocabulary_ * 1e-9;
  } else {
    lowest = static_cast<double>(min_p_);  // the best has weight 1
  }
  n_ = Collect(p, std::max(static_cast<float>(lowest), std::numeric_limits<float>::min()));
}

// Keeps a token while the mass of better ones is at most top_p. Halves the span that contains the
// cut: keys before `low` are kept, those from `high` on are not.
void Filters::Chain::CutTopP() noexcept {
  const double limit = static_cast<double>(top_p_) * mass_;
  Key *const begin = keys_.get(), *low = begin, *high = begin + n_;
  double better = 0;  // the mass before low
  while (high - low > kFewKeys) {
    Key* const middle = low + (high - low) / 2;
    std::nth_element(low, middle, high, std::greater<>());
    const double mass = better + MassOf(low, middle);
    if (mass > limit) {
      high = middle;
    } else {
      low = middle, better = mass;
    }
  }
  std::sort(low, high, std::greater<>());
  for (; low != high && (low == begin || better <= limit); ++low)
    better += static_cast<double>(ValueOf(*low));
  n_ = static_cast<int>(low - begin);
  mass_ = better;
}

// Meister et al. 2022: the tokens whose surprise -ln p is nearest to the entropy, as few as hold
// typical_p of the mass.
void Filters::Chain::CutTypical() noexcept {
  std::sort(keys_.get(), keys_.get() + n_, std::greater<>());
  const double mass = MassOf(keys_.get(), keys_.get() + n_);
  const double entropy = EntropyOf(keys_.get(), keys_.get() + n_, mass);
  for (int i = 0; i < n_; ++i) {
    const double surprise = -std::log(static_cast<double>(ValueOf(keys_[i])) / mass);
    values_[i] = ValueOf(keys_[i]);
    distances_[i] = MakeKey(-static_cast<float>(std::fabs(surprise - entropy)), i);
    ids_[i] = IdOf(keys_[i]);
  }
  std::sort(distances_.get(), distances_.get() + n_, std::greater<>());
  double kept = 0;
  int n = 0;
  while (n < n_ && (n == 0 || kept < static_cast<double>(typical_p_) * mass)) {
    const int i = IdOf(distances_[n]);  // the rank by weight takes the place of an id
    keys_[n++] = MakeKey(values_[i], ids_[i]);
    kept += static_cast<double>(values_[i]);
  }
  n_ = n, mass_ = kept;
}

void Filters::Chain::CutMinP() noexcept {
  const Key best = *std::max_element(keys_.get(), keys_.get() + n_);
  const float least = ValueOf(best) * min_p_;
  Key* const end = std::partition(keys_.get(), keys_.get() + n_,
                                  [least](Key key) { return ValueOf(key) >= least; });
  n_ = static_cast<int>(end - keys_.get());
  mass_ = MassOf(keys_.get(), end);
}

// Hewitt et al. 2022: the least probability that stays.
double Filters::Chain::EtaThreshold(double entropy) const noexcept {
  const double eta = static_cast<double>(eta_);
  return std::min(eta, std::sqrt(eta) * std::exp(-entropy));
}

// Eta as the only filter: the entropy of the whole vocabulary takes a pass of its own.
void Filters::Chain::TakeEta(const float* p, double sum) noexcept {
  const double entropy = kernels_->entropy(p, vocabulary_) / sum + std::log(sum);
  const double least = std::min(EtaThreshold(entropy) * sum, 1.0);  // the best has weight 1
  n_ = Collect(p, std::max(static_cast<float>(least), std::numeric_limits<float>::min()));
  mass_ = MassOf(keys_.get(), keys_.get() + n_);
}

void Filters::Chain::CutEta() noexcept {
  const double mass = MassOf(keys_.get(), keys_.get() + n_);
  const double threshold = EtaThreshold(EntropyOf(keys_.get(), keys_.get() + n_, mass)) * mass;
  const Key best = *std::max_element(keys_.get(), keys_.get() + n_);
  const double least = std::min(threshold, static_cast<double>(ValueOf(best)));
  Key* const end = std::partition(keys_.get(), keys_.get() + n_, [least](Key key) {
    return static_cast<double>(ValueOf(key)) >= least;
  });
  n_ = static_cast<int>(end - keys_.get());
  mass_ = MassOf(keys_.get(), end);
}

}  // namespace foretoken::sampling
