// SPDX-License-Identifier: Apache-2.0
// draft_length/context_costs.h: what a pass costs by the positions before its rows.
//
//   time = context * (bytes * sequences + arithmetic * rows)      microseconds, at the speed of the start
//
// A sequence's cache is read once for all its rows, and each row is multiplied with it: two prices of a
// position, which no file tells and which a short text does not show. They are fitted to readings by
// recursive least squares (a Kalman filter of two states). While the prices are in doubt, a pass that takes
// longer than expected behind a long context makes the context dearer. Once they are known, it says that the
// machine has become slower, or that its rows cost more. The doubt grows slowly, because layers with
// windows make far positions cheaper than near ones.
//
// RoundCosts starts it with what was measured when the engine opened, and lets it learn from each pass.
#pragma once

namespace foretoken::draft_length {

struct ContextPass {
  int rows = 0;
  int sequences = 1;
  int context = 0;  // positions before a row, in the mean
};

class ContextCosts {
 public:
  struct Prices {  // microseconds a position
    double bytes = 0, arithmetic = 0;
  };

  // Forgets what it learned. row_us: of a pass of one row without context, the scale of what is not known.
  void Start(double row_us) noexcept;
  // What passes take beyond those without context was measured at the start.
  void Measured(const ContextPass& pass, double beyond_us, double noise_us) noexcept;

  // What another one had learned at this speed; nothing where both prices are 0.
  void Known(const Prices& prices) noexcept;

  const Prices& prices() const noexcept { return prices_; }
  double Us(const ContextPass& pass) const noexcept;  // >= 0
  // How far that may be off: one standard deviation.
  double DoubtUs(const ContextPass& pass) const noexcept;
  // A pass took so much more than was expected, in which chance and other causes have the standard
  // deviation noise_us. Returns which part of it the context explains.
  double Learn(const ContextPass& pass, double more_us, double noise_us) noexcept;

 private:
  static Prices Weights(const ContextPass& pass) noexcept;
  double Variance(const Prices& weights) const noexcept;
  void SetDoubt(double arithmetic) noexcept;

  Prices prices_;
  Prices first_;                                                // the variances at the start
  double var_bytes_ = 0, covariance_ = 0, var_arithmetic_ = 0;  // of the prices
};

}  // namespace foretoken::draft_length
