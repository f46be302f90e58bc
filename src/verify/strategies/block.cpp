// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/block.h"

#include "verify/strategies/greedy.h"

namespace foretoken::verify {
namespace {

// P_(i+1) from P_i. No division where p is the larger one: p = q keeps P exactly.
double Joint(double joint, double pd, double qd) {
  if (joint * pd >= qd) return 1;
  // As a float, so that the residual is computed with exactly this number.
  return static_cast<double>(static_cast<float>(joint * pd / qd));
}

}  // namespace

round::Verdict Block::Verify(const round::Proposal& proposal, LogitsView logits,
                             sampling::Sampler& sampler, float* scratch) const noexcept {
  if (sampler.greedy()) return VerifyGreedy(proposal, logits, sampler);
  const int m = proposal.length();
  const Noise& noise = sampler.noise();
  const Pos begin = sampler.position();
  const auto coin = [&](int i) {  // u_i
    return noise.Uniform(Stream::kCoin, begin + i - 1, static_cast<std::uint32_t>(begin));
  };
  float *p = scratch, *r = scratch + sampler.vocabulary();
  double joint = 1;
  int verified = 0, accepted = 0;
  Token next = kNoToken;
  // Once P_i is 0 it stays 0, and nothing more is accepted.
  for (; verified < m && joint > 0; ++verified) {
    const Token d = proposal.tokens[static_cast<std::size_t>(verified)];
    const float* q = proposal.Distribution(verified);
    sampler.Distribution(logits.Row(verified), p);
    const double mass = sampler.Residual(p, static_cast<float>(joint), q, d, r);
    if (verified == 0 || coin(verified) * (mass + 1 - joint) < mass) {
      accepted = verified;
      next = sampler.Draw(mass > 0 ? r : p, noise.Uniform(Stream::kResidual, begin + verified));
    }
    const double pd = sampler.Knows(d) ? static_cast<double>(p[d]) : 0.0;
    const double qd = q != nullptr && sampler.Knows(d) ? static_cast<double>(q[d]) : 1.0;
    joint = pd > 0 ? Joint(joint, pd, qd) : 0;
    if (joint > 0) sampler.Push(d);
  }
  if (verified == m && (m == 0 || coin(m) < joint)) {
    accepted = m;
    next = sampler.Sample(logits.Row(m), p);
  }
  sampler.Pop(sampler.position() - begin - accepted);
  return EndWalk(proposal, accepted, next, sampler);
}

extern const VerifierSpec kBlockSpec = {
    .info = {.name = "block",
             .help = "verifies the drafts of a round together; accepts no fewer than residual",
             .accepts_if = "jointly, see below",
             .else_takes = "from max(0, P p(x) − q(x)), normalised",
             .random_numbers = "coin of the round; residual",
             .lossless = true,
             .needs_q = true},
    .make = Make<Block>};

}  // namespace foretoken::verify
