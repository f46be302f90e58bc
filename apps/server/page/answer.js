// SPDX-License-Identifier: Apache-2.0
// An answer as it arrives: its tokens, one tab stop for all of them, and what it came to.
import { count, percent, speedText } from './figures.js';
import { kOrigins, rejectedElement, tokenElement, tokensOf } from './token.js';

export class Answer {
  text = '';
  tokens = [];
  element = document.createElement('div');
  #text = document.createElement('div');
  #summary = document.createElement('p');
  #inspector;
  #elements = [];
  #waiting = []; // tokens that the next frame shows
  #current = -1;

  constructor(inspector, label) {
    this.#inspector = inspector;
    this.element.className = 'answer running';
    this.#text.className = 'text';
    this.#text.tabIndex = 0;
    this.#text.setAttribute('role', 'group');
    this.#text.setAttribute('aria-label', `${label}: arrow keys go from token to token`);
    this.#summary.className = 'summary';
    this.#summary.textContent = 'Reading the prompt …';
    this.element.append(this.#text, this.#summary);
    this.#listen();
  }

  // Adds a round; it is drawn with the next frame, for rounds may come by the thousand.
  add(round, content) {
    const tokens = tokensOf(round, content);
    this.text += content;
    if (tokens.length === 0) return;
    this.tokens.push(...tokens);
    if (this.#waiting.length === 0) requestAnimationFrame(() => this.#draw());
    this.#waiting.push(...tokens);
  }

  // Text that was held back while it could have become a stop text.
  addRest(content) {
    if (content === '') return;
    this.#draw();
    this.text += content;
    this.#text.append(content);
  }

  // words: how it went, in place of the running count.
  finish(words) {
    this.#draw();
    this.element.classList.remove('running');
    this.#summary.textContent = words;
  }

  fail(message) {
    this.finish(this.tokens.length === 0 ? '' : this.countsText());
    const note = document.createElement('p');
    note.className = 'error';
    note.textContent = message;
    this.element.append(note);
  }

  countsText() {
    const parts = [count(this.tokens.length, 'token')];
    for (const origin of Object.keys(kOrigins)) {
      const n = this.tokens.filter((token) => token.origin === origin).length;
      if (n > 0 && n < this.tokens.length) parts.push(`${n} ${kOrigins[origin].name}`);
    }
    return parts.join(' · ');
  }

  // Marks the token at `index` as the place where two answers part.
  markDifference(index) {
    this.#elements[index]?.classList.add('difference');
    this.#elements[index]?.scrollIntoView({ block: 'nearest' });
  }

  keepEndInSight() {
    this.#summary.scrollIntoView({ block: 'nearest' });
  }

  #draw() {
    if (this.#waiting.length === 0) return;
    const fragment = document.createDocumentFragment();
    for (const token of this.#waiting) {
      const element = tokenElement(token);
      if (token.origin === 'recovered' && token.round.rejected?.length) {
        fragment.append(rejectedElement(token.round));
      }
      if (this.#elements.length === 0) element.firstChild.remove(); // the blank before the text
      this.#elements.push(element);
      fragment.append(element);
    }
    this.#text.append(fragment);
    this.#summary.textContent = this.countsText();
    this.#waiting = [];
  }

  #listen() {
    const text = this.#text;
    const showAt = ({ target }) => {
      const index = this.#indexOf(target);
      if (index >= 0) this.#show(index, false);
    };
    text.addEventListener('mouseover', showAt);
    text.addEventListener('click', showAt); // a finger does not hover
    text.addEventListener('mouseleave', () => this.#inspector.hide());
    text.addEventListener('blur', () => this.#inspector.hide());
    text.addEventListener('keydown', (event) => this.#step(event));
  }

  #indexOf(node) {
    return this.#elements.indexOf(node.closest('.token'));
  }

  #step(event) {
    const last = this.#elements.length - 1;
    const to = {
      ArrowRight: this.#current + 1,
      ArrowLeft: this.#current - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === 'Escape') this.#inspector.hide();
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#show(Math.min(Math.max(to, 0), last), true);
  }

  #show(index, byKey) {
    this.#current = index;
    if (byKey) this.#elements[index].scrollIntoView({ block: 'nearest' });
    const show = () =>
      this.#inspector.show(this.tokens[index], this.#elements[index], { speak: byKey });
    // Scrolling hides the card, and its event comes with the next frame.
    if (byKey) requestAnimationFrame(() => requestAnimationFrame(show));
    else show();
  }
}

// "128 tokens · 64 accepted · 1,234 tokens/s"
export function outcomeText(answer, { speed, drafted, reason, strategy }) {
  const parts = [answer.countsText()];
  if (drafted > 0) {
    const accepted = answer.tokens.filter((token) => token.origin === 'accepted').length;
    parts.push(`${percent(accepted / drafted)} of ${count(drafted, 'draft')}`);
  }
  if (drafted > 0 && strategy) parts.push(`verified by ${strategy}`);
  if (speed) parts.push(`${speedText(speed)} tokens/s`);
  const ends = { length: 'cut at the length limit', cancelled: 'stopped' };
  if (ends[reason]) parts.push(ends[reason]);
  return parts.join(' · ');
}
