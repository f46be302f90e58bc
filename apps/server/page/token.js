// SPDX-License-Identifier: Apache-2.0
// One token of an answer on the page, with where it came from.
import { percent, quoted } from './figures.js';
import { shownTexts } from './rounds.js';

export const kOrigins = {
  accepted: { name: 'accepted', what: 'drafted, and the target agreed' },
  recovered: { name: 'recovered', what: "the target's own, in place of a rejected draft" },
  bonus: { name: 'bonus', what: "the target's own, after a draft accepted whole" },
  plain: { name: 'plain', what: "the target's own, no draft in this round" },
};

// The tokens of a chunk's "foretoken" object, each with its place in the round and the text that it
// shows; content is the chunk's text.
export function tokensOf(round, content) {
  const shown = shownTexts(round.tokens, content);
  return round.tokens.map((token, index) => ({ ...token, shown: shown[index], index, round }));
}

// A span for the token. Blanks around the word stay outside the mark, so that marks do not run
// into each other; a token without visible text gets a sign that is not part of the text.
export function tokenElement(token) {
  const span = document.createElement('span');
  span.className = `token ${token.origin}`;
  const [, before, word, after] = /^(\s*)([^]*?)(\s*)$/.exec(token.shown);
  const mark = document.createElement('span');
  mark.className = 'mark';
  mark.textContent = word;
  if (word !== '') {
    span.append(before, mark, after);
  } else {
    const breaks = token.shown.includes('\n');
    mark.classList.add(breaks ? 'line-end' : 'no-text');
    span.append(breaks ? '' : before, mark, breaks ? before : '');
  }
  return span;
}

// Drafts that the target refused, as they stood in the round.
export function rejectedElement(round) {
  const list = document.createElement('del');
  list.className = 'rejected';
  list.textContent = round.rejected.map((token) => token.text).join('')
    .replaceAll('\n', '⏎').trim() || '·';
  list.title = 'rejected draft';
  return list;
}

// [term, words] pairs that say all there is to say about a token.
export function tokenFacts(token) {
  const { round, index, origin } = token;
  const facts = [];
  if (token.logprob !== undefined && token.logprob !== null) {
    facts.push(['Probability', `${percent(Math.exp(token.logprob))} (at T = 1)`]);
  }
  facts.push(['Drafter', round.drafter ?? 'none']);
  facts.push(['Place', place()]);
  if (origin === 'recovered' && round.rejected?.length) {
    facts.push(['Instead of', quoted(round.rejected.map((draft) => draft.text).join(''))]);
  }
  facts.push(['Token', `id ${token.id}`]);
  return facts;

  function place() {
    const of = `round ${round.round}`;
    if (origin === 'accepted') return `draft ${index + 1} of ${round.drafted}, ${of}`;
    if (round.drafted === 0) return `alone in ${of}`;
    return `after ${index} of ${round.drafted} drafts, ${of}`;
  }
}
