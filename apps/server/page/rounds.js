// SPDX-License-Identifier: Apache-2.0
// What the rounds of the page's answers did: the numbers behind the plots.

const kRecentRounds = 40;
const kRecentSpeeds = 48;

export class Rounds {
  drafted = []; // [i]: rounds that drafted position i (from 0)
  accepted = []; // [i]: of these, accepted
  recent = []; // {drafted, accepted}, the newest last
  speeds = []; // {speed, speculative}, tokens per second, the newest last

  add({ drafted, tokens }) {
    const accepted = tokens.filter((token) => token.origin === 'accepted').length;
    for (let i = 0; i < drafted; ++i) {
      this.drafted[i] = (this.drafted[i] ?? 0) + 1;
      this.accepted[i] = (this.accepted[i] ?? 0) + (i < accepted ? 1 : 0);
    }
    this.recent = [...this.recent, { drafted, accepted }].slice(-kRecentRounds);
  }

  addSpeed(speed, speculative) {
    this.speeds = [...this.speeds, { speed, speculative }].slice(-kRecentSpeeds);
  }

  meanDrafted() {
    if (this.recent.length === 0) return null;
    return this.recent.reduce((sum, round) => sum + round.drafted, 0) / this.recent.length;
  }

  acceptanceRate() {
    const drafted = this.drafted.reduce((sum, n) => sum + n, 0);
    return drafted === 0 ? null : this.accepted.reduce((sum, n) => sum + n, 0) / drafted;
  }
}

// Tokens per second while an answer arrives: a sample whenever `kSpanMs` have passed.
export class Speedometer {
  static kSpanMs = 250;
  #since = null;
  #tokens = 0;

  // Returns the speed of the span that ends here, or null within one. The first call starts the
  // clock: its tokens came before.
  add(tokens, now) {
    if (this.#since === null) {
      this.#since = now;
      return null;
    }
    this.#tokens += tokens;
    const ms = now - this.#since;
    if (ms < Speedometer.kSpanMs) return null;
    const speed = (1000 * this.#tokens) / ms;
    this.#since = now;
    this.#tokens = 0;
    return speed;
  }
}

// The text that each token of a chunk shows, of `content`, the chunk's text in whole characters.
// Mostly that is the token's own; but a part of a character stands with the last of its parts, and
// an end token shows nothing.
export function shownTexts(tokens, content) {
  const shown = tokens.map(() => '');
  let rest = content;
  tokens.forEach(({ text }, i) => {
    const at = text === '' || text.includes('\ufffd') ? -1 : rest.indexOf(text);
    if (at < 0) return;
    if (i > 0) shown[i - 1] += rest.slice(0, at);
    shown[i] = i > 0 ? text : rest.slice(0, at) + text;
    rest = rest.slice(at + text.length);
  });
  if (tokens.length > 0) shown[tokens.length - 1] += rest;
  return shown;
}

// The first place where two token lists differ, or -1 where they do not.
export function firstDifference(left, right) {
  const shorter = Math.min(left.length, right.length);
  for (let i = 0; i < shorter; ++i) {
    if (left[i].id !== right[i].id) return i;
  }
  return left.length === right.length ? -1 : shorter;
}
