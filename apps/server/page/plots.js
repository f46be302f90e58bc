// SPDX-License-Identifier: Apache-2.0
// Four plots, drawn as SVG by hand. Each says its content in words too, and as a table.
import { count, millisecondsText, niceCeiling, percent, rounded, speedText } from './figures.js';

const kHeight = 132; // pixels, as are all of these
const kLeft = 54;
const kRight = 10;
const kTop = 12;
const kBottom = 22;

// A figure of the page with an <svg>, an element .value in its caption, and a <table>. It is drawn
// pixel by pixel, again when its width changes, so that its letters keep their size.
export class Plot {
  #svg;
  #value;
  #table;
  #empty;
  #drawing = null;

  constructor(figure) {
    this.#svg = figure.querySelector('svg');
    this.#value = figure.querySelector('.value');
    this.#table = figure.querySelector('table');
    this.#empty = figure.dataset.empty;
    this.draw(null);
    new ResizeObserver(() => this.#paint()).observe(this.#svg);
  }

  // drawing: {value, words, marks, top, format, labels: [[share, text, anchor]], head, rows}, or
  // null where there is nothing yet. words: the plot in a sentence; marks: a function of the Frame;
  // top: the upper end of the y axis.
  draw(drawing) {
    this.#drawing = drawing;
    this.#value.textContent = drawing?.value ?? '';
    this.#svg.setAttribute('aria-label', drawing?.words ?? this.#empty);
    this.#table.replaceChildren(...(drawing ? tableRows(drawing) : []));
    this.#paint();
  }

  #paint() {
    const width = this.#svg.clientWidth;
    if (width === 0) return; // not on the screen
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${kHeight}`);
    if (!this.#drawing) {
      const middle = { x: width / 2, y: kHeight / 2 + 4, class: 'empty' };
      this.#svg.replaceChildren(svg('text', middle, this.#empty));
      return;
    }
    const frame = new Frame(width);
    this.#svg.replaceChildren(...axis(frame, this.#drawing), ...this.#drawing.marks(frame));
  }
}

// Where shares of the axes lie in the picture.
class Frame {
  constructor(width) {
    this.width = width - kLeft - kRight;
    this.height = kHeight - kTop - kBottom;
    this.left = kLeft;
    this.right = kLeft + this.width;
  }

  x(share) {
    return kLeft + this.width * share;
  }

  y(share) {
    return kTop + this.height * (1 - share);
  }

  // A bar from the x axis up.
  bar(from, to, share, name) {
    const width = Math.max(1, this.width * (to - from));
    const height = Math.max(0, this.height * share);
    return svg('rect', { x: this.x(from), y: this.y(share), width, height, class: name });
  }

  line(points) {
    const d = points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${this.x(x)} ${this.y(y)}`);
    return svg('path', { d: d.join(''), class: 'line' });
  }

  dot(x, y) {
    return svg('circle', { cx: this.x(x), cy: this.y(y), r: 2.8, class: 'dot' });
  }

  box(x, y) {
    const corner = { x: this.x(x) - 2.8, y: this.y(y) - 2.8 };
    return svg('rect', { ...corner, width: 5.6, height: 5.6, class: 'hollow' });
  }
}

export function drawSpeeds(plot, { speeds }) {
  if (speeds.length === 0) return plot.draw(null);
  const best = Math.max(...speeds.map(({ speed }) => speed));
  const top = niceCeiling(best);
  const points = speeds.map(({ speed }, i) => [i / Math.max(speeds.length - 1, 11), speed / top]);
  plot.draw({
    value: speedText(speeds.at(-1).speed),
    words: `Newest ${speedText(speeds.at(-1).speed)} tokens per second, best ${speedText(best)}, ` +
      `of ${count(speeds.length, 'sample')}.`,
    top,
    format: shortNumber,
    labels: [[0, '● speculative  □ plain', 'start'], [1, 'now', 'end']],
    marks: (frame) => [
      frame.line(points),
      ...points.map(([x, y], i) => (speeds[i].speculative ? frame.dot(x, y) : frame.box(x, y))),
    ],
    head: ['Sample', 'Tokens per second', 'Decoding'],
    rows: speeds.map(({ speed, speculative }, i) => {
      return [i + 1, speedText(speed), speculative ? 'speculative' : 'plain'];
    }),
  });
}

export function drawAcceptance(plot, rounds) {
  const { drafted, accepted } = rounds;
  if (drafted.length === 0) return plot.draw(null);
  const shares = drafted.map((n, i) => accepted[i] / n);
  const step = 1 / Math.max(drafted.length, 4);
  plot.draw({
    value: percent(rounds.acceptanceRate()),
    words: `Share accepted by position: ${shares.map((s, i) => `${i + 1}: ${percent(s)}`).join(', ')}.`,
    top: 1,
    format: (value) => `${Math.round(100 * value)} %`,
    labels: drafted.map((_, i) => [(i + 0.5) * step, i + 1]),
    marks: (frame) => shares.map((share, i) => {
      return frame.bar((i + 0.2) * step, (i + 0.8) * step, share, 'accepted');
    }),
    head: ['Position', 'Accepted', 'Drafted', 'Share'],
    rows: shares.map((share, i) => [i + 1, accepted[i], drafted[i], percent(share)]),
  });
}

export function drawLengths(plot, rounds) {
  const { recent } = rounds;
  if (recent.length === 0) return plot.draw(null);
  const top = 2 * Math.ceil(Math.max(4, ...recent.map((round) => round.drafted)) / 2);
  const step = 1 / Math.max(recent.length, 20);
  const mean = rounded(rounds.meanDrafted(), 1);
  plot.draw({
    value: `now ${recent.at(-1).drafted}, mean ${mean}`,
    words: `The last ${count(recent.length, 'round')} drafted ${mean} tokens on average, the ` +
      `newest ${recent.at(-1).drafted}.`,
    top,
    format: (value) => rounded(value, 0),
    labels: [[0, '■ accepted  ░ rejected', 'start'], [1, 'now', 'end']],
    marks: (frame) => recent.flatMap(({ drafted, accepted }, i) => {
      const sides = [(i + 0.15) * step, (i + 0.85) * step];
      return [
        frame.bar(...sides, drafted / top, 'drafted'),
        frame.bar(...sides, accepted / top, 'accepted'),
      ];
    }),
    head: ['Round', 'Drafted', 'Accepted'],
    rows: recent.map(({ drafted, accepted }, i) => [i + 1, drafted, accepted]),
  });
}

// costs: {rows: us}, as the server measured them.
export function drawCosts(plot, costs) {
  const points = Object.entries(costs ?? {})
    .map(([rows, us]) => ({ rows: Number(rows), us }))
    .sort((a, b) => a.rows - b.rows);
  if (points.length === 0) return plot.draw(null);
  const [first, last] = [points[0], points.at(-1)];
  const top = niceCeiling(Math.max(...points.map(({ us }) => us)));
  const places = points.map(({ rows, us }) => [(rows - 1) / Math.max(last.rows - 1, 1), us / top]);
  plot.draw({
    value: `${rounded(last.us / first.us, 2)}× at ${last.rows}`,
    words: `A pass of ${count(first.rows, 'row')} takes ${millisecondsText(first.us)}, one of ` +
      `${count(last.rows, 'row')} ${millisecondsText(last.us)}.`,
    top,
    format: (us) => `${shortNumber(us / 1000)} ms`,
    labels: points.map(({ rows }, i) => [places[i][0], rows]).filter(spacedOut(0.07)),
    marks: (frame) => [frame.line(places), ...places.map(([x, y]) => frame.dot(x, y))],
    head: ['Rows', 'Time of a pass'],
    rows: points.map(({ rows, us }) => [rows, millisecondsText(us)]),
  });
}

function axis(frame, { top, format, labels }) {
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    const y = frame.y(share);
    parts.push(svg('line', { x1: frame.left, x2: frame.right, y1: y, y2: y, class: 'grid' }));
    parts.push(svg('text', { x: frame.left - 6, y: y + 4, class: 'y' }, format(share * top)));
  }
  for (const [share, text, anchor = 'middle'] of labels) {
    parts.push(svg('text', { x: frame.x(share), y: kHeight - 6, 'text-anchor': anchor }, text));
  }
  return parts;
}

// Keeps the labels that stand at least `share` of the width right of the last one kept.
function spacedOut(share) {
  let last = -Infinity;
  return ([x]) => {
    if (x - last < share) return false;
    last = x;
    return true;
  };
}

function shortNumber(value) {
  if (value >= 1000) return `${rounded(value / 1000, value % 1000 === 0 ? 0 : 1)}k`;
  return rounded(value, value >= 10 || Number.isInteger(value) ? 0 : value >= 1 ? 1 : 2);
}

function svg(name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function tableRows({ head, rows }) {
  const tableRow = (cells, tag) => {
    const tr = document.createElement('tr');
    for (const words of cells) {
      const cell = document.createElement(tag);
      if (tag === 'th') cell.scope = 'col';
      cell.textContent = words;
      tr.append(cell);
    }
    return tr;
  };
  return [tableRow(head, 'th'), ...rows.map((row) => tableRow(row, 'td'))];
}
