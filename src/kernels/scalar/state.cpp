// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/log.h"

namespace foretoken::kernels::scalar {

constexpr int kTile = 16;  // columns of a state that lie together

void Softplus(const float* x, int n, float* y) {
  for (int i = 0; i < n; ++i) {
    const float e = Exp(x[i] < 0 ? x[i] : -x[i]), u = 1.0f + e;
    const float l = u == 1.0f ? e : Log(u) * (e / (u - 1.0f));
    y[i] = (x[i] < 0 ? 0.0f : x[i]) + l;
  }
}

void Convolve(const ConvolutionArgs& args) {
  for (int t = 0; t < args.n_steps; ++t)
    for (int i = 0; i < args.n; ++i) {
      const int column = args.column + i;
      float y = args.bias == nullptr ? 0.0f : args.bias[column];
      for (int j = 0; j < args.n_taps; ++j)
        if (args.x[t + j] != nullptr)
          y += args.weights[j * args.weights_stride + column] * args.x[t + j][column];
      args.y[t * args.y_stride + i] = args.activates ? y / (1.0f + Exp(-y)) : y;
    }
}

void AdvanceState(const StateArgs& args) {
  for (int step = 0; step < args.n_steps; ++step) {
    if (step == args.n_kept) std::copy_n(args.state, args.n_in * args.n_out, args.work);
    float* const state = step < args.n_kept ? args.state : args.work;
    const float *const q = args.q + step * args.n_in, *const k = args.k + step * args.n_in;
    for (int j = 0; j < args.n_out; ++j) {
      float* const column = state + j / kTile * kTile * args.n_in + j % kTile;
      float d = args.v[step * args.n_out + j];
      if (args.beta != nullptr) {
        float known = 0;
        for (int i = 0; i < args.n_in; ++i)
          known = __builtin_fmaf(k[i], column[i * kTile] * args.decay[step], known);
        d = (d - known) * args.beta[step];
      }
      float out = 0;
      for (int i = 0; i < args.n_in; ++i) {
        float& s = column[i * kTile];
        s = __builtin_fmaf(k[i], d, s * args.decay[step]);
        out = __builtin_fmaf(q[i], s, out);
      }
      if (step >= args.n_silent) args.out[(step - args.n_silent) * args.out_stride + j] = out;
    }
  }
}

}  // namespace foretoken::kernels::scalar
