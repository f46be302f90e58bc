// SPDX-License-Identifier: Apache-2.0
#include "train/run/optimizer.h"

#include <cmath>

#include "train/run/machine.h"

namespace foretoken::train {

using torch::Tensor;

Optimizer::Optimizer(const Parameters& parameters, const OptimizerOptions& options)
    : options_(options) {
  for (const Parameter& p : parameters.all()) {
    first_.push_back(torch::zeros_like(p.value));
    second_.push_back(p.kind == ParameterKind::kMatrix ? torch::empty({0})
                                                       : torch::zeros_like(p.value));
  }
}

Tensor Orthogonal(const Tensor& matrix, torch::Dtype compute) {
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = (tall ? matrix.t() : matrix).to(compute);
  x = x / (x.to(torch::kFloat).norm().item<double>() + 1e-7);
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;  // Jordan et al.
  for (int i = 0; i < 5; ++i) {
    const Tensor square = torch::mm(x, x.t());
    const Tensor polynomial = b * square + c * torch::mm(square, square);
    x = a * x + torch::mm(polynomial, x);
  }
  return (tall ? x.t() : x).to(matrix.scalar_type());
}

namespace {

// A parameter of three dimensions is a stack of matrices, one a head.
Tensor OrthogonalStack(const Tensor& x, torch::Dtype compute) {
  if (x.dim() == 2) return Orthogonal(x, compute);
  std::vector<Tensor> parts;
  for (const Tensor& matrix : x.unbind()) parts.push_back(Orthogonal(matrix, compute));
  return torch::stack(parts);
}

}  // namespace

double Optimizer::Step(Parameters& parameters, std::vector<Tensor> gradients, double scale) {
  torch::NoGradGuard no_gradients;
  ++steps_;
  double square = 0;
  for (const Tensor& g : gradients) square += g.square().sum().item<double>();
  const double norm = std::sqrt(square), clip = std::min(1.0, options_.clip / (norm + 1e-12));
  const auto n = static_cast<double>(steps_);
  const double correct1 = 1 - std::pow(options_.beta1, n),
               correct2 = 1 - std::pow(options_.beta2, n);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& p = parameters.all()[i];
    const Tensor g = gradients[i].mul_(clip);
    if (p.kind == ParameterKind::kMatrix) {
      first_[i].mul_(options_.momentum).add_(g);
      const Tensor update =
          OrthogonalStack(torch::add(g, first_[i], options_.momentum), FastType(p.value));
      const double size = 0.2 * std::sqrt(static_cast<double>(std::max(g.size(-2), g.size(-1))));
      p.value.mul_(1 - scale * options_.rate * options_.decay)
          .sub_(update, scale * options_.rate * size);
    } else {
      first_[i].mul_(options_.beta1).add_(g, 1 - options_.beta1);
      second_[i].mul_(options_.beta2).addcmul_(g, g, 1 - options_.beta2);
      const Tensor spread = (second_[i] / correct2).sqrt_().add_(1e-8);
      p.value.addcdiv_(first_[i], spread, -scale * options_.table_rate / correct1);
    }
  }
  return norm;
}

}  // namespace foretoken::train
