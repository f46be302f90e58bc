// SPDX-License-Identifier: Apache-2.0
// The card that tells where a token came from: by pointer, and by arrow keys within an answer.
import { quoted } from './figures.js';
import { kOrigins, tokenFacts } from './token.js';

const kGap = 8; // pixels between token and card

export class Inspector {
  #card;
  #spoken;
  #element = null;

  // card: the floating element; spoken: a live region that says the same to screen readers.
  constructor(card, spoken) {
    this.#card = card;
    this.#spoken = spoken;
    addEventListener('scroll', () => this.hide(), { capture: true, passive: true });
    addEventListener('resize', () => this.hide());
    addEventListener('pointerdown', () => this.hide());
  }

  show(token, element, { speak = false } = {}) {
    this.hide();
    this.#element = element;
    element.classList.add('current');
    this.#card.replaceChildren(...cardParts(token));
    this.#card.hidden = false;
    this.#place(element);
    if (speak) this.#spoken.textContent = spokenText(token);
  }

  hide() {
    this.#element?.classList.remove('current');
    this.#element = null;
    this.#card.hidden = true;
  }

  #place(element) {
    const token = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const card = this.#card.getBoundingClientRect();
    const left = Math.min(Math.max(kGap, token.left), innerWidth - card.width - kGap);
    const above = token.top - card.height - kGap;
    this.#card.style.left = `${left}px`;
    this.#card.style.top = `${above >= kGap ? above : token.bottom + kGap}px`;
  }
}

function cardParts(token) {
  const title = document.createElement('p');
  title.className = `title ${token.origin}`;
  const mark = document.createElement('span');
  mark.className = 'mark';
  mark.textContent = kOrigins[token.origin].name;
  title.append(mark, ` ${token.text === '' ? 'no text' : quoted(token.text)}`);
  const what = document.createElement('p');
  what.textContent = kOrigins[token.origin].what;
  const list = document.createElement('dl');
  for (const [term, words] of tokenFacts(token)) {
    const dt = document.createElement('dt');
    const dd = document.createElement('dd');
    dt.textContent = term;
    dd.textContent = words;
    list.append(dt, dd);
  }
  return [title, what, list];
}

function spokenText(token) {
  const facts = tokenFacts(token).map(([term, words]) => `${term}: ${words}`);
  return `${quoted(token.text)}: ${kOrigins[token.origin].name}. ${facts.join('. ')}.`;
}
