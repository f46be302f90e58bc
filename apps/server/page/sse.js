// SPDX-License-Identifier: Apache-2.0
// Server-sent events out of the pieces of a response body, which may end anywhere.

export class EventReader {
  #rest = '';

  // The data of the events that `piece` completes, in order.
  push(piece) {
    const parts = (this.#rest + piece).replaceAll('\r\n', '\n').split('\n\n');
    this.#rest = parts.pop();
    return parts.map(dataOf).filter((data) => data !== '');
  }
}

function dataOf(event) {
  return event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5))
    .join('\n');
}
