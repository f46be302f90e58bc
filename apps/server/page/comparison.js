// SPDX-License-Identifier: Apache-2.0
// One prompt and seed, first decoded plainly, then speculatively, and whether that gave the
// same tokens. One after the other, so that neither takes the other's time.
import { Answer } from './answer.js';
import { runAnswer } from './answering.js';
import { count, quoted, rounded, speedText } from './figures.js';
import { firstDifference } from './rounds.js';

export class Comparison {
  #page;
  #verdict;
  #plain;
  #speculative;

  constructor(page, panel) {
    this.#page = page;
    this.#verdict = panel.querySelector('#verdict');
    this.#plain = panel.querySelector('#plain');
    this.#speculative = panel.querySelector('#speculative');
  }

  clear() {
    this.#plain.replaceChildren();
    this.#speculative.replaceChildren();
    this.#show('', 'The same prompt and seed, decoded plainly and then speculatively.',
      'The two answers are compared token by token.');
  }

  // Throws what went wrong, shown already.
  async send(prompt, signal) {
    this.clear();
    const turns = [{ role: 'user', content: prompt }];
    const { settings } = this.#page;
    const fields = { plain: settings.fields({ plain: true }), speculative: settings.fields() };
    const { seed } = fields.plain;
    this.#show('', 'Decoding plainly …', `Seed ${seed}.`);
    try {
      const plain = await this.#side(this.#plain, 'Plain answer', turns, fields.plain, signal);
      if (signal.aborted) return this.#stopped();
      this.#show('', 'Decoding speculatively …', `Seed ${seed}.`);
      const speculative = await this.#side(this.#speculative, 'Speculative answer', turns,
        fields.speculative, signal);
      if (signal.aborted) return this.#stopped();
      this.#compare(plain, speculative);
    } catch (error) {
      this.#show('', 'Not compared', 'One of the two answers did not come to its end.');
      throw error;
    }
  }

  async #side(place, label, turns, fields, signal) {
    const answer = new Answer(this.#page.inspector, label);
    place.replaceChildren(answer.element);
    const outcome = await runAnswer(this.#page, { turns, fields, answer, signal });
    return { answer, ...outcome };
  }

  #stopped() {
    this.#show('', 'Not compared', 'Stopped before both answers were there.');
  }

  #compare(plain, speculative) {
    const at = firstDifference(plain.answer.tokens, speculative.answer.tokens);
    if (at < 0) {
      const tokens = count(plain.answer.tokens.length, 'token');
      this.#show('same', `Identical: ${tokens}`, speedsText(plain, speculative));
      return;
    }
    this.#page.follow(null);
    plain.answer.markDifference(at);
    speculative.answer.markDifference(at);
    const words = ({ answer }) => {
      return answer.tokens[at] ? quoted(answer.tokens[at].text) : 'the end';
    };
    const { length } = plain.answer.tokens.slice(0, at).map((token) => token.shown).join('');
    this.#show('differ', `First difference at token ${at + 1}, character ${length + 1}`,
      `Plain has ${words(plain)}, speculative ${words(speculative)}. ` +
      `The rule is ${speculative.strategy}: ${this.#page.settings.promise(speculative.strategy)}. ` +
      speedsText(plain, speculative));
  }

  #show(kind, lead, detail) {
    this.#verdict.className = kind;
    this.#verdict.querySelector('.lead').textContent = lead;
    this.#verdict.querySelector('.detail').textContent = detail;
  }
}

function speedsText(plain, speculative) {
  if (!plain.speed || !speculative.speed) return '';
  const ratio = rounded(speculative.speed / plain.speed, 2);
  return `Plain ${speedText(plain.speed)}, speculative ${speedText(speculative.speed)} tokens/s: ` +
    `${ratio} times as fast.`;
}
