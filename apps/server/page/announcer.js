// SPDX-License-Identifier: Apache-2.0
// Reads an answer to screen readers sentence by sentence: token by token would be noise.

const kKeptMs = 10000;

export class Announcer {
  #log;
  #pending = '';

  constructor(log) {
    this.#log = log;
  }

  // Text as it arrives; whole sentences are said.
  add(text) {
    this.#pending += text;
    const end = Math.max(...['. ', '! ', '? ', '\n'].map((mark) => this.#pending.lastIndexOf(mark)));
    if (end < 0) return;
    this.say(this.#pending.slice(0, end + 1));
    this.#pending = this.#pending.slice(end + 1);
  }

  // Says what is left, and how it went.
  finish(words) {
    this.say(`${this.#pending} ${words}`);
    this.#pending = '';
  }

  say(words) {
    if (words.trim() === '') return;
    const line = document.createElement('p');
    line.textContent = words.trim();
    this.#log.append(line);
    setTimeout(() => line.remove(), kKeptMs);
  }
}
