// SPDX-License-Identifier: Apache-2.0
// GELU in F32 for llama.cpp 0.7.0, whose CPU code rounds GELU's argument and result to F16. Preloaded into its programs
// (gelu.py does so), these two functions take the place of ggml's and build the same function of other operations:
// gelu(x) = x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)).
struct ggml_context;
struct ggml_tensor;

struct ggml_tensor* ggml_cont(struct ggml_context*, struct ggml_tensor*);
struct ggml_tensor* ggml_sqr(struct ggml_context*, struct ggml_tensor*);
struct ggml_tensor* ggml_mul(struct ggml_context*, struct ggml_tensor*, struct ggml_tensor*);
struct ggml_tensor* ggml_sigmoid(struct ggml_context*, struct ggml_tensor*);
struct ggml_tensor* ggml_scale_bias(struct ggml_context*, struct ggml_tensor*, float, float);

struct ggml_tensor* ggml_gelu(struct ggml_context* context, struct ggml_tensor* x) {
  const float slope = 1.5957691216057308f;
  x = ggml_cont(context, x);
  struct ggml_tensor* factor =
      ggml_scale_bias(context, ggml_sqr(context, x), slope * 0.044715f, slope);
  return ggml_mul(context, x, ggml_sigmoid(context, ggml_mul(context, x, factor)));
}

struct ggml_tensor* ggml_geglu_split(struct ggml_context* context, struct ggml_tensor* gate,
                                     struct ggml_tensor* up) {
  return ggml_mul(context, ggml_gelu(context, gate), up);
}
