// SPDX-License-Identifier: Apache-2.0
// The settings of the next answer: the values of the controls, as fields of a request and in words.

const kLengths = [1, 2, 3, 4, 5, 6, 8, 12, 16];
const kExact = "exactly the model's distribution; the text may differ from plain decoding with this seed";
const kSameText = 'exactly the text that plain decoding gives with this seed';
const kLossy = "not the model's own distribution: the text may differ from what it would write alone";

// What a strategy promises about the text.
function promiseOf({ name, lossless, same_text }) {
  if (name === 'greedy') return 'exactly the text of plain decoding';
  if (name === 'auto') return 'an exact rule that suits the drafter';
  if (!lossless) return kLossy;
  return same_text ? kSameText : kExact;
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
    fill(drafter, [['', 'auto'], ...methodsOf(server)]);
    fill(length, [['', 'auto'], ...kLengths.map((k) => [k, `at most ${k}`])]);
    // Greedy is what auto is at temperature 0, and refused at any other.
    const strategies = server.choices.strategies.filter(({ name }) => name !== 'greedy');
    fill(strategy, [['', 'auto'], ...strategies.map(({ name, help }) => [name, name, help])]);
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
    return this.#row(rule).lossless && Number(this.#controls.temperature.value) < 1e-5 ? 'greedy' : rule;
  }

  // What a strategy promises about the text.
  promise(name) {
    return promiseOf(this.#row(name));
  }

  // A strategy's row of the server's choices. Others are auto, and what an engine has for all requests.
  #row(name) {
    const rows = this.#server.choices?.strategies ?? [];
    return rows.find((row) => row.name === name) ?? { name, lossless: name === 'auto' || this.#server.lossless };
  }

  #tell() {
    const { drafter, length } = this.#controls;
    const rule = this.rule();
    if (drafter.value === 'none') this.#rule.textContent = 'Plain decoding: one token a round.';
    if (drafter.value === 'none' || !rule) return;
    const most = length.value ? ` up to ${length.value}` : '';
    this.#rule.textContent = `Drafts by ${drafter.value || this.#server.method}, length by ` +
      `${this.#server.lookahead}${most}, verified by ${rule}: ${this.promise(rule)}.`;
  }
}

// The methods that suit a request of the page, which brings no prediction and no grammar.
function methodsOf({ choices }) {
  return choices.methods.filter((row) => !row.drafts_from)
    .map(({ name, help }) => [name, name === 'none' ? 'none (plain)' : name, help]);
}

function fill(select, options) {
  const chosen = select.value;
  select.replaceChildren(...options.map(([value, words, help]) => {
    const option = new Option(words, value);
    if (help) option.title = help;
    return option;
  }));
  select.value = [...select.options].some((option) => option.value === chosen) ? chosen : '';
}
