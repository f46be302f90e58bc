// SPDX-License-Identifier: Apache-2.0
// EventReader puts the events of a text/event-stream together, wherever the pieces of its body end.
//
// Contract: push(piece) returns the data of the events that became whole. Comments and other fields are left out. An event of more than
// `most` characters is an error, so a server cannot fill this process's memory.
import { ForetokenError } from './errors.js';

export class EventReader {
  #parts = []; // of the line that is not whole yet
  #length = 0;
  #data = [];
  #most;

  constructor(most = 1 << 26) {
    this.#most = most;
  }

  push(piece) {
    const events = [];
    const lines = piece.split('\n');
    for (const [index, part] of lines.entries()) {
      this.#add(part);
      if (index < lines.length - 1) this.#endLine(events);
    }
    return events;
  }

  #add(part) {
    this.#length += part.length;
    if (this.#length > this.#most) throw new ForetokenError('connection', `stream: an event has more than ${this.#most} characters; ask for shorter replies`);
    this.#parts.push(part);
  }

  #endLine(events) {
    const line = this.#parts.join('').replace(/\r$/, '');
    this.#parts = [];
    if (line.startsWith('data:')) {
      this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    } else if (line === '') {
      if (this.#data.length > 0) events.push(this.#data.join('\n'));
      this.#data = [];
    }
    if (this.#data.length === 0) this.#length = 0;
  }
}
