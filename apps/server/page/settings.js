// SPDX-License-Identifier: Apache-2.0
// The settings of the next answer: the values of the controls, as fields of a request and in words.

const kLengths = [1, 2, 3, 4, 5, 6, 8, 12, 16];
const kRules = {
  auto: 'an exact rule that suits the drafter',
  greedy: 'exactly the text of plain decoding',
  'sample-match': 'exactly the text that plain decoding gives with this seed',
  residual: "exactly the model's distribution; the text may differ from plain decoding with this seed",
  'target-probability': "exactly the model's distribution; the text may differ from plain decoding with this seed",
  block: "exactly the model's distribution; the text may differ from plain decoding with this seed",
};
const kLossy = "not the model's own distribution: the text may differ from what it would write alone";

// What a rule promises about the text.
export function promiseOf(rule) {
  return kRules[rule] ?? kLossy;
}

export class Settings {
  #form;
  #controls;
  #rule;
  #server = {};

  constructor(form) {
    this.#form = form;
    this.#controls = {
      drafter: form.querySelector('#drafter'),
      length: form.querySelector('#length'),
      strategy: form.querySelector('#strategy'),
      temperature: form.querySelector('#temperature'),
      maxTokens: form.querySelector('#max-tokens'),
      seed: form.querySelector('#seed'),
    };
    this.#rule = form.querySelector('#rule');
    form.addEventListener('input', () => this.#tell());
    form.addEventListener('submit', (event) => event.preventDefault());
  }

  // What the server was started with and can do: the answer of /v1/speculation.
  offer(server) {
    this.#server = server;
    const { drafter, length, strategy } = this.#controls;
    fill(drafter, [['', 'auto'], ...named(drafterNames(server)), ['none', 'none (plain)']]);
    fill(length, [['', 'auto'], ...kLengths.map((k) => [k, `at most ${k}`])]);
    // Greedy is what auto is at temperature 0, and refused at any other.
    const rules = (server.strategies ?? []).filter((name) => name !== 'greedy');
    fill(strategy, [['', 'auto'], ...named(rules)]);
    strategy.disabled = strategy.options.length === 1;
    this.#tell();
  }

  // Whether all fields hold what they may; where not, the browser shows which.
  valid() {
    return this.#form.reportValidity();
  }

  // The fields of a request. plain: without speculation, all else alike.
  fields({ plain = false } = {}) {
    const { drafter, length, strategy, temperature, maxTokens, seed } = this.#controls;
    const speculative = { trace: true, enabled: !plain && drafter.value !== 'none' };
    if (speculative.enabled) {
      if (drafter.value) speculative.type = drafter.value;
      if (length.value) speculative.num_speculative_tokens = Number(length.value);
      if (strategy.value) speculative.strategy = strategy.value;
    }
    return {
      temperature: Number(temperature.value),
      max_tokens: Number(maxTokens.value),
      seed: Number(seed.value),
      speculative,
    };
  }

  // The rule that will verify the drafts.
  rule() {
    const rule = this.#controls.strategy.value || this.#server.strategy;
    const exact = rule in kRules;
    return exact && Number(this.#controls.temperature.value) < 1e-5 ? 'greedy' : rule;
  }

  #tell() {
    const { drafter, length } = this.#controls;
    const rule = this.rule();
    if (drafter.value === 'none') this.#rule.textContent = 'Plain decoding: one token a round.';
    if (drafter.value === 'none' || !rule) return;
    const most = length.value ? ` up to ${length.value}` : '';
    this.#rule.textContent = `Drafts by ${drafter.value || this.#server.method}, length by ` +
      `${this.#server.lookahead}${most}, verified by ${rule}: ${promiseOf(rule)}.`;
  }
}

// The server's own drafters, and those that every server has.
function drafterNames({ method }) {
  const own = method.split(',').filter((name) => name !== 'none');
  return [...new Set([...own, 'ngram', 'suffix', 'portfolio'])];
}

function named(names) {
  return names.map((name) => [name, name]);
}

function fill(select, options) {
  const chosen = select.value;
  select.replaceChildren(...options.map(([value, words]) => new Option(words, value)));
  select.value = [...select.options].some((option) => option.value === chosen) ? chosen : '';
}
