#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes verification.jsonl: rounds of speculative decoding and what each rule must do with them.

The rules are written here a second time, in double precision and by the definitions of
docs/speculation.md and the papers, without a line of the engine. A case is only kept if its result stays the
same when every uniform number and every probability moves by a ten-thousandth, so that an engine that computes
in single precision must give it too.

usage: make_vectors.py > verification.jsonl
       make_vectors.py --check verification.jsonl   exit code 1 if that is not what is made, or if a wrong rule
                                                     would pass
"""
import json
import math
import random
import sys

MARGIN = 1e-4


# ---- Distributions ------------------------------------------------------------------------------------------

def softmax(logits):
    best = max(logits)
    weights = [math.exp(x - best) if x > -math.inf else 0.0 for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


def argmax(values):
    return max(range(len(values)), key=lambda i: (values[i], -i))


def target_distribution(logits, sampling, text, generated):
    """The distribution that the target's token is drawn from: penalties, temperature, top-k, top-p, min-p."""
    logits = list(logits)
    output = text[len(text) - generated:]
    for token in range(len(logits)):
        count = output.count(token)
        if count:
            logits[token] -= sampling.get("presence_penalty", 0) + count * sampling.get("frequency_penalty", 0)
    if sampling["temperature"] < 1e-5:
        return [float(i == argmax(logits)) for i in range(len(logits))]
    distribution = softmax([x / sampling["temperature"] for x in logits])
    order = sorted(range(len(distribution)), key=lambda i: (-distribution[i], i))
    k = sampling.get("top_k", 0)
    kept = order[:k] if k > 0 else order
    distribution = normalised([distribution[i] if i in kept else 0 for i in range(len(distribution))])
    # A token stays while the mass of strictly better ones is at most top_p.
    top_p = sampling.get("top_p", 1)
    distribution = normalised([p if sum(x for x in distribution if x > p) <= top_p else 0 for p in distribution])
    least = sampling.get("min_p", 0) * max(distribution)
    return normalised([p if p >= least else 0 for p in distribution])


def normalised(weights):
    total = sum(weights)
    return [w / total for w in weights]


def draw(weights, u):
    """The first token at which the running sum of the weights exceeds u of their sum."""
    left = u * sum(weights)
    for token, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return token
    return max(i for i, w in enumerate(weights) if w > 0)


def residual(p, q):
    r = [max(0.0, a - b) for a, b in zip(p, q)]
    return r if sum(r) > 0 else p


# ---- Rules --------------------------------------------------------------------------------------------------

class Round:
    """Distributions of the target (n + 1) and of the drafts (n), the drafts, uniform numbers, and the settings."""

    def __init__(self, case, shift=0.0):
        self.case = case
        self.drafts = case["drafts"]
        self.settings = case.get("settings", {})
        moved = lambda us: [min(max(u + shift, 0.0), 1 - 1e-9) for u in us]
        self.accept, self.recover, self.target = (moved(case["uniforms"][name]) for name in
                                                  ("accept", "recover", "target"))
        self.logits = [[-math.inf if x is None else x for x in row] for row in case["target_logits"]]
        text, generated = list(case["text"]), case["generated"]
        self.p = []
        for i in range(len(self.drafts) + 1):
            self.p.append(target_distribution(self.logits[i], case["sampling"], text + self.drafts[:i], generated + i))
        size = len(self.logits[0])
        one_hot = lambda d: [float(i == d) for i in range(size)]
        self.q = case.get("draft_probabilities") or [one_hot(d) for d in self.drafts]

    def own(self, i):
        """The target's own token at position i."""
        return draw(self.p[i], self.target[i])

    def walk(self, accepts, otherwise):
        for i, d in enumerate(self.drafts):
            if not accepts(i, d):
                return i, otherwise(i, d)
        n = len(self.drafts)
        return n, self.own(n)


def greedy(r):
    return r.walk(lambda i, d: d == argmax(r.p[i]), lambda i, d: argmax(r.p[i]))


def residual_rule(r):
    t, plain = r.settings.get("acceptance_threshold", 0), r.settings.get("skip_sample_adjustment", False)
    return r.walk(lambda i, d: r.accept[i] + t < 1 and (r.accept[i] + t) * r.q[i][d] < r.p[i][d],
                  lambda i, d: draw(r.p[i] if plain else residual(r.p[i], r.q[i]), r.recover[i]))


def sample_match(r):
    return r.walk(lambda i, d: d == r.own(i), lambda i, d: r.own(i))


def typical_acceptance(r):
    epsilon, delta = r.settings.get("typical_epsilon", .09), r.settings.get("typical_delta", .3)

    def accepts(i, d):
        entropy = -sum(x * math.log(x) for x in r.p[i] if x > 0)
        return r.p[i][d] > min(epsilon, delta * math.exp(-entropy))
    return r.walk(accepts, lambda i, d: r.own(i))


def target_probability(r):
    return r.walk(lambda i, d: r.accept[i] < r.p[i][d],
                  lambda i, d: draw([0 if x == d else p for x, p in enumerate(r.p[i])], r.recover[i]))


def logit_comparison(r):
    logits = r.case["draft_logits"]
    return r.walk(lambda i, d: r.logits[i][d] > -math.inf and logits[i][d] <= r.logits[i][d] + 1e-5,
                  lambda i, d: argmax(r.logits[i]))


def block(r):
    """Block verification (Sun et al. 2024, "Block verification accelerates speculative decoding")."""
    n, joint, accepted, token = len(r.drafts), 1.0, 0, None
    for i in range(n):
        mass = [max(0.0, joint * p - q) for p, q in zip(r.p[i], r.q[i])]
        if i == 0 or r.accept[i - 1] * (sum(mass) + 1 - joint) < sum(mass):
            accepted, token = i, draw(mass if sum(mass) > 0 else r.p[i], r.recover[i])
        d = r.drafts[i]
        joint = min(1.0, joint * r.p[i][d] / r.q[i][d])
        if joint == 0:
            return accepted, token
    if n == 0 or r.accept[n - 1] < joint:
        return n, r.own(n)
    return accepted, token


def relaxed(r):
    top_n, delta = r.settings.get("relaxed_top_n", 10), r.settings.get("relaxed_delta", .6)

    def accepts(i, d):
        p = r.p[i]
        better = sum(1 for x, y in enumerate(p) if y > p[d] or (y == p[d] and x < d))
        return p[d] > 0 and p[d] >= max(p) - delta and better < top_n
    return r.walk(accepts, lambda i, d: argmax(r.p[i]))


RULES = {"greedy": greedy, "residual": residual_rule, "sample-match": sample_match,
         "typical-acceptance": typical_acceptance, "target-probability": target_probability,
         "logit-comparison": logit_comparison, "block": block, "relaxed": relaxed}


# Mistakes that implementations make. Each must fail in some case.
def recovers_from_all_of_p(r):
    return r.walk(lambda i, d: r.accept[i] * r.q[i][d] < r.p[i][d], lambda i, d: draw(r.p[i], r.recover[i]))


def accepts_by_p_alone(r):
    return r.walk(lambda i, d: r.accept[i] < r.p[i][d], lambda i, d: draw(residual(r.p[i], r.q[i]), r.recover[i]))


def bonus_is_the_best(r):
    n, token = residual_rule(r)
    return n, argmax(r.p[n]) if n == len(r.drafts) else token


def draws_again_after_a_mismatch(r):
    return r.walk(lambda i, d: d == r.own(i), lambda i, d: draw(r.p[i], r.recover[i]))


def takes_the_last_of_equal_tokens(r):
    last = lambda p: max(range(len(p)), key=lambda i: (p[i], i))
    return r.walk(lambda i, d: d == last(r.logits[i]), lambda i, d: last(r.logits[i]))


def stops_the_block_at_the_first_rejection(r):
    return residual_rule(r)


def recovers_what_was_rejected(r):
    return r.walk(lambda i, d: r.accept[i] < r.p[i][d], lambda i, d: draw(r.p[i], r.recover[i]))


def forgets_the_drafts_in_the_text(r):
    text, generated = list(r.case["text"]), r.case["generated"]
    p = [target_distribution(row, r.case["sampling"], text, generated) for row in r.logits]
    return r.walk(lambda i, d: d == argmax(p[i]), lambda i, d: argmax(p[i]))


def entropy_in_bits(r):
    def accepts(i, d):
        entropy = -sum(x * math.log2(x) for x in r.p[i] if x > 0)
        return r.p[i][d] > min(.09, .3 * math.exp(-entropy))
    return r.walk(accepts, lambda i, d: r.own(i))


MISTAKES = [("residual", recovers_from_all_of_p), ("residual", accepts_by_p_alone), ("residual", bonus_is_the_best),
            ("sample-match", draws_again_after_a_mismatch), ("greedy", takes_the_last_of_equal_tokens),
            ("greedy", forgets_the_drafts_in_the_text), ("block", stops_the_block_at_the_first_rejection),
            ("target-probability", recovers_what_was_rejected), ("typical-acceptance", entropy_in_bits)]


# ---- Cases --------------------------------------------------------------------------------------------------

def result(case, rule=None, shift=0.0):
    accepted, token = (rule or RULES[case["strategy"]])(Round(case, shift))
    kind = "plain" if not case["drafts"] else "bonus" if accepted == len(case["drafts"]) else "recovered"
    return {"accepted": accepted, "next": token, "kind": kind}


def with_moved_numbers(case, generator):
    moved = json.loads(json.dumps(case))
    move = lambda x: x if x is None or x == 0 else x + generator.uniform(-MARGIN, MARGIN)
    moved["target_logits"] = [[move(x) for x in row] for row in case["target_logits"]]
    if case["sampling"]["temperature"] < 1e-5:
        moved["target_logits"] = case["target_logits"]  # equal logits must stay equal
    if case.get("draft_probabilities"):
        moved["draft_probabilities"] = [normalised([max(0, move(x)) for x in row])
                                        for row in case["draft_probabilities"]]
    return moved


def is_clear(case):
    """Whether small errors of arithmetic leave the result as it is."""
    expected, generator = result(case), random.Random(5)
    for shift in (-MARGIN, MARGIN):
        if result(case, shift=shift) != expected:
            return False
        for _ in range(8):
            if result(with_moved_numbers(case, generator), shift=shift) != expected:
                return False
    return True


def rounded(values, digits=4):
    return [None if v == -math.inf else round(v, digits) for v in values]


def a_distribution(generator, size):
    weights = [round(generator.random() ** 3, 3) for _ in range(size)]
    weights[generator.randrange(size)] += .5
    total = sum(weights)
    distribution = [round(w / total, 4) for w in weights]
    distribution[argmax(distribution)] = round(distribution[argmax(distribution)] + 1 - sum(distribution), 4)
    return distribution


def a_case(name, strategy, generator, n, size=8, certain=False, **settings):
    sampling = {"temperature": generator.choice([.7, 1.0, 1.0, 1.3])}
    if strategy == "greedy":
        sampling = {"temperature": 0.0}
    elif generator.random() < .4:
        sampling.update(generator.choice([{"top_k": 4}, {"top_p": .9}, {"min_p": .05}]))
    rows = []
    for _ in range(n + 1):
        logits = [math.log(x) if x > 0 else -math.inf for x in a_distribution(generator, size)]
        rows.append(rounded([x + .5 for x in logits]))
    # A drafter that is near the target, so that rounds of all lengths are among the cases.
    near = lambda row: [.8 * p + .2 * q for p, q in zip(softmax([-99 if x is None else x for x in row]),
                                                        a_distribution(generator, size))]
    distributions = [rounded(normalised(near(rows[i]))) for i in range(n)]
    for distribution in distributions:
        distribution[argmax(distribution)] = round(distribution[argmax(distribution)] + 1 - sum(distribution), 4)
    drafts = [draw(q, generator.random()) for q in distributions]
    if strategy in ("greedy", "sample-match", "typical-acceptance", "relaxed", "logit-comparison"):
        for i in range(n):
            if generator.random() < .6:
                drafts[i] = argmax([-99 if x is None else x for x in rows[i]])
    uniforms = lambda k: [round(generator.random(), 4) for _ in range(k)]
    case = {"name": name, "strategy": strategy, "settings": settings, "sampling": sampling,
            "text": [generator.randrange(size) for _ in range(3)], "generated": 1, "drafts": drafts,
            "target_logits": rows}
    if strategy == "logit-comparison":
        case["draft_logits"] = [rounded([generator.gauss(-1, 1) for _ in range(size)]) for _ in range(n)]
    elif strategy in ("residual", "block", "target-probability") and not certain:
        case["draft_probabilities"] = distributions
    case["uniforms"] = {"accept": uniforms(n), "recover": uniforms(n), "target": uniforms(n + 1)}
    return case


def given(name, strategy, drafts, target, probabilities=None, accept=(), recover=(), bonus=(), **more):
    n = len(drafts)
    fill = lambda us, k: (list(us) + [.5] * k)[:k]
    logits = [rounded([math.log(x) if x > 0 else -math.inf for x in row], 6) for row in target]
    case = {"name": name, "strategy": strategy, "settings": {}, "sampling": {"temperature": 1.0}, "text": [0],
            "generated": 0, "drafts": drafts, "target_logits": logits}
    if probabilities:
        case["draft_probabilities"] = probabilities
    case["uniforms"] = {"accept": fill(accept, n), "recover": fill(recover, n), "target": fill(bonus, n + 1)}
    case.update(more)
    return case


def edges():
    p, far, cold = [.5, .3, .2, 0], [.1, .1, .1, .7], {"temperature": 0.0}
    yield given("a drafter that equals the target is always accepted", "residual", [1, 0], [p, p, p], [p, p],
                accept=[.9997, .9997], bonus=[.5, .5, .6])
    yield given("what the target excludes is never accepted", "residual", [3], [p, p], [far], accept=[.0002],
                recover=[.4])
    yield given("the residual leaves out what the drafter has too much of", "residual", [0], [p, p],
                [[.8, .1, .1, 0]], accept=[.9], recover=[.6])
    yield given("a certain draft is replaced from the other tokens", "residual", [0], [p, p], accept=[.9],
                recover=[.3])
    yield given("without drafts one token is drawn from the target", "residual", [], [p], bonus=[.55])
    yield given("a threshold of 0.4 makes acceptance rarer", "residual", [1], [p, p], [[.2, .3, .5, 0]],
                accept=[.7], recover=[.1], settings={"acceptance_threshold": .4})
    yield given("without adjustment a rejected draft may come again", "residual", [0], [p, p], [[.9, .05, .05, 0]],
                accept=[.8], recover=[.2], settings={"skip_sample_adjustment": True})
    yield given("the token that differs is the target's own", "sample-match", [0, 1], [p, p, p],
                bonus=[.3, .9, .1])
    yield given("all drafts match, and one more token follows", "sample-match", [0, 1], [p, p, p],
                bonus=[.3, .6, .9])
    yield given("of equal tokens the lowest is the best", "greedy", [1, 1], [[.2, .4, .4, 0]] * 3, sampling=cold)
    yield given("the higher of two equal tokens is rejected", "greedy", [2], [[.2, .4, .4, 0]] * 2, sampling=cold)
    yield given("a draft before it counts for the penalty of the next", "greedy", [1, 1], [[.2, .42, .38, 0]] * 3,
                sampling={"temperature": 0.0, "presence_penalty": .5})
    yield given("the text before counts for the penalty too", "greedy", [2], [[.2, .42, .38, 0]] * 2,
                text=[0, 1], generated=1, sampling={"temperature": 0.0, "presence_penalty": .5})
    yield given("a prompt has no presence penalty", "greedy", [1], [[.2, .42, .38, 0]] * 2, text=[0, 1],
                generated=0, sampling={"temperature": 0.0, "presence_penalty": .5})
    yield given("a flat target accepts rare tokens", "typical-acceptance", [7], [[.125] * 8] * 2, bonus=[.3, .3])
    yield given("the entropy is in nats", "typical-acceptance", [4], [[.3, .25, .2, .1, .045, .045, .03, .03]] * 2,
                bonus=[.4, .4])
    yield given("a sharp target rejects them", "typical-acceptance", [1], [[.95, .03, .02, 0]] * 2, bonus=[.97, .3])
    yield given("the rejected token is removed, whatever the drafter thinks", "target-probability", [0], [p, p],
                [far], accept=[.8], recover=[.7])
    yield given("a block may accept what single drafts would reject", "block", [0, 0],
                [[.5, .5], [.9, .1], [.5, .5]], [[.8, .2], [.5, .5]], accept=[.7, .8], recover=[.5, .5],
                bonus=[.5, .5, .2])
    yield given("a block whose second draft fails keeps the first", "block", [0, 1], [[.7, .3], [.9, .1], [.5, .5]],
                [[.5, .5], [.2, .8]], accept=[.1, .9], recover=[.5, .5])
    yield given("an impossible draft ends a block", "block", [3, 0], [p, p, p], [far, p], accept=[.1, .1],
                recover=[.4, .4])
    yield given("a probability within 0.6 of the best is enough", "relaxed", [1, 2], [p, p, p], bonus=[.5, .5, .9])
    yield given("not among the two best", "relaxed", [1, 2], [p, p, p], settings={"relaxed_top_n": 2})
    yield given("what was filtered out stays out", "relaxed", [2], [p, p],
                sampling={"temperature": 1.0, "top_k": 2})
    yield given("a drafter's logit that is no higher is enough", "logit-comparison", [1], [p, p],
                draft_logits=[[-1.0, -1.2045, -1.0, -9.0]], bonus=[.5, .4])
    yield given("a higher one is not", "logit-comparison", [1], [p, p], draft_logits=[[-1.0, -1.1, -1.0, -9.0]])


def cases():
    made = [case for case in edges()]
    generator = random.Random(29)
    for strategy in RULES:
        for n in (0, 1, 2, 3, 4, 4, 5, 5, 8, 8):
            for certain in (False, True) if strategy in ("residual", "target-probability") else (False,):
                while True:
                    name = f"{strategy}, {n} drafts" + (", certain" if certain else "")
                    case = a_case(name, strategy, generator, n, generator.choice([4, 8, 16]), certain)
                    if is_clear(case):
                        break
                made.append(case)
    for case in made:
        if not is_clear(case):
            raise SystemExit(f"make_vectors.py: {case['name']}: the result is not clear")
        case["expected"] = result(case)
    return made


def text_of(made):
    return "".join(json.dumps(case, separators=(", ", ": ")) + "\n" for case in made)


def missed(made):
    """The mistakes that no case shows."""
    for strategy, wrong in MISTAKES:
        if all(result(case, wrong) == case["expected"] for case in made
               if case["strategy"] == strategy and not case["settings"]):
            yield f"{strategy}: {wrong.__name__}"


def main():
    made = cases()
    if sys.argv[1:2] != ["--check"]:
        sys.stdout.write(text_of(made))
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        if file.read() != text_of(made):
            sys.exit(f"{sys.argv[2]} is not what make_vectors.py makes; run it again")
    for mistake in missed(made):
        sys.exit(f"no case shows this mistake: {mistake}")


if __name__ == "__main__":
    main()
