// SPDX-License-Identifier: Apache-2.0
// How much of the model's context the conversation takes.

export class Context {
  #element;
  #track;
  #size = 0;

  constructor(element) {
    this.#element = element;
    this.#track = element.querySelector('.track');
  }

  // size: in tokens; 0 where the server does not say.
  setSize(size) {
    this.#size = size;
    this.show(0);
  }

  get size() {
    return this.#size;
  }

  show(tokens) {
    const { style } = this.#element;
    style.visibility = this.#size > 0 ? 'visible' : 'hidden';
    if (this.#size === 0) return;
    const words = `${tokens.toLocaleString('en')} of ${this.#size.toLocaleString('en')}`;
    this.#element.querySelector('.value').textContent = words;
    this.#track.setAttribute('aria-valuemax', this.#size);
    this.#track.setAttribute('aria-valuenow', tokens);
    this.#track.setAttribute('aria-valuetext', `${words} tokens`);
    this.#track.firstElementChild.style.width = `${Math.min(100, (100 * tokens) / this.#size)}%`;
    this.#element.classList.toggle('full', tokens >= 0.9 * this.#size);
  }
}
