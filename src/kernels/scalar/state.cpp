// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar/exp.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/log.h"

namespace foretoken::kernels::scalar {

void Softplus(const float* x, int n, float* y) {
  for (int i = 0; i < n; ++i) {
    const float e = Exp(x[i] < 0 ? x[i] : -x[i]), u = 1.0f + e;
    const float l = u == 1.0f ? e : Log(u) * (e / (u - 1.0f));
    y[i] = (x[i] < 0 ? 0.0f : x[i]) + l;
  }
}

void AdvanceState(const StateArgs& args) {
  for (int j = 0; j < args.n_out; ++j) {
    float d = args.v[j];
    if (args.corrects) {
      float known = 0;
      for (int i = 0; i < args.n_in; ++i)
        known = __builtin_fmaf(args.k[i], args.state[i * args.n_out + j] * args.decay, known);
      d = (d - known) * args.beta;
    }
    float out = 0;
    for (int i = 0; i < args.n_in; ++i) {
      float& s = args.state[i * args.n_out + j];
      s = __builtin_fmaf(args.k[i], d, s * args.decay);
      out = __builtin_fmaf(args.q[i], s, out);
    }
    if (args.out != nullptr) args.out[j] = out;
  }
}

}  // namespace foretoken::kernels::scalar
