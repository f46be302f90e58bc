// SPDX-License-Identifier: Apache-2.0
// The conversation.
import { Answer } from './answer.js';
import { runAnswer } from './answering.js';

export class Chat {
  #page;
  #list;
  #welcome;
  #turns = []; // {role, content}, as the server wants them

  constructor(page, panel) {
    this.#page = page;
    this.#list = panel.querySelector('#turns');
    this.#welcome = panel.querySelector('.welcome');
  }

  clear() {
    this.#turns = [];
    this.#list.replaceChildren();
    this.#welcome.hidden = false;
  }

  // Throws what went wrong, shown already; the conversation is then what it was before.
  async send(prompt, signal) {
    this.#welcome.hidden = true;
    const question = document.createElement('p');
    question.className = 'question';
    question.textContent = prompt;
    const answer = new Answer(this.#page.inspector, 'Answer');
    this.#list.append(question, answer.element);
    answer.element.scrollIntoView({ block: 'nearest' });
    const turns = [...this.#turns, { role: 'user', content: prompt }];
    await runAnswer(this.#page, { turns, fields: this.#page.settings.fields(), answer, signal });
    this.#turns = [...turns, { role: 'assistant', content: answer.text }];
  }
}
