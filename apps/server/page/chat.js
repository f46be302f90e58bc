// SPDX-License-Identifier: Apache-2.0
// The conversation. Where it outgrows the model's context, the oldest turns are no longer sent.
import { Answer } from './answer.js';
import { runAnswer } from './answering.js';
import { count } from './figures.js';

export class Chat {
  #page;
  #list;
  #welcome;
  #turns = []; // {role, content}, as the server wants them: questions and answers by turns
  #questions = []; // the elements of the questions among them
  #border = document.createElement('p'); // between what is sent no longer and what is

  constructor(page, panel) {
    this.#page = page;
    this.#list = panel.querySelector('#turns');
    this.#welcome = panel.querySelector('.welcome');
    this.#border.className = 'forgotten';
  }

  clear() {
    this.#turns = [];
    this.#questions = [];
    this.#list.replaceChildren();
    this.#welcome.hidden = false;
    this.#page.context.show(0);
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
    const fields = this.#page.settings.fields();
    const asked = [...this.#turns, { role: 'user', content: prompt }];
    const questions = [...this.#questions, question];
    const sent = this.#thatFit(asked, questions, fields.max_tokens, signal);
    const { tokens } = await runAnswer(this.#page, { turns: sent, fields, answer, signal });
    if (tokens) this.#page.context.show(tokens);
    this.#turns = [...await sent, { role: 'assistant', content: answer.text }];
    this.#questions = questions.slice(-Math.ceil(this.#turns.length / 2));
  }

  // The last of `turns` that leave room for an answer; says so where some are left out.
  async #thatFit(turns, questions, maxTokens, signal) {
    const { service, context } = this.#page;
    const room = Math.min(maxTokens, Math.floor(context.size / 4));
    for (let dropped = 0; ; dropped += 2) {
      const rest = turns.slice(dropped);
      const tokens = await service.promptTokens(rest, signal);
      if (rest.length > 1 && context.size > 0 && tokens + room > context.size) continue;
      if (dropped > 0) this.#tell(dropped, questions[dropped / 2]);
      return rest;
    }
  }

  #tell(dropped, firstKept) {
    this.#border.textContent = `The context of ${count(this.#page.context.size, 'token')} is full: ` +
      'the model no longer sees what stands above';
    firstKept.before(this.#border);
    this.#page.announcer.say(`The context is full: the oldest ${count(dropped, 'message')} ` +
      'are no longer sent.');
  }
}
