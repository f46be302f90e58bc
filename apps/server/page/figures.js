// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

export function percent(share) {
  if (share > 0 && share < 0.001) return '< 0.1 %';
  return `${(100 * share).toFixed(share < 0.0995 || share > 0.995 ? 1 : 0).replace(/\.0$/, '')} %`;
}

export function speedText(tokensPerSecond) {
  const digits = tokensPerSecond < 10 ? 2 : tokensPerSecond < 100 ? 1 : 0;
  return rounded(tokensPerSecond, digits);
}

export function rounded(value, digits) {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function millisecondsText(us) {
  return `${rounded(us / 1000, us < 1000 ? 3 : us < 10000 ? 2 : us < 100000 ? 1 : 0)} ms`;
}

export function count(n, noun) {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
}

// "9.4 million"
export function compact(n) {
  return n.toLocaleString('en', { notation: 'compact', compactDisplay: 'long', maximumSignificantDigits: 2 });
}

// A text as a quotation on one line: blanks and line ends stay visible.
export function quoted(text) {
  return `“${text.replaceAll('\n', '⏎').replaceAll('\t', '⇥')}”`;
}

// A round number at or above `value`: the upper end of an axis.
export function niceCeiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.9999) * power;
}
