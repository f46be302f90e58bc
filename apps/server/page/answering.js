// SPDX-License-Identifier: Apache-2.0
// Has the server write one answer, and shows it as it comes.
import { outcomeText } from './answer.js';
import { Speedometer } from './rounds.js';

// page: what its parts share: {service, settings, rounds, announcer, context, inspector, replot,
// follow}. turns: what the server is sent, or a promise of that.
// Returns {speed, drafted, reason, strategy, tokens (prompt and answer)}; throws what Service.answer throws, with the error
// shown in `answer`. A stop is not an error: its reason is "cancelled".
export async function runAnswer(page, { turns, fields, answer, signal }) {
  const speculative = fields.speculative.enabled;
  const speedometer = new Speedometer();
  page.follow(answer);
  const outcome = { speed: null, drafted: 0, reason: null, strategy: null, tokens: null };
  const onChunk = (chunk) => {
    const round = chunk.foretoken;
    outcome.tokens = chunk.usage?.total_tokens ?? outcome.tokens;
    outcome.reason = chunk.choices?.[0]?.finish_reason ?? outcome.reason;
    outcome.strategy = chunk.speculation?.strategy ?? outcome.strategy;
    outcome.speed = chunk.timings?.predicted_per_second ?? outcome.speed;
    const content = chunk.choices?.[0]?.text ?? chunk.choices?.[0]?.delta?.content ?? '';
    if (!round) return answer.addRest(content);
    const decoding = answer.tokens.length > 0;
    answer.add(round, content);
    page.announcer.add(content);
    outcome.drafted += round.drafted;
    if (speculative && decoding && round.tokens.length > 0) page.rounds.add(round);
    const speed = speedometer.add(round.tokens.length, performance.now());
    if (speed !== null) page.rounds.addSpeed(speed, speculative);
    page.replot();
  };
  try {
    await page.service.answer(await turns, fields, { signal, onChunk });
  } catch (error) {
    if (error.name !== 'AbortError') {
      answer.fail(error.message);
      page.announcer.finish(error.message);
      throw error;
    }
    outcome.reason = 'cancelled';
  }
  if (outcome.speed) page.rounds.addSpeed(outcome.speed, speculative);
  const words = outcomeText(answer, outcome);
  answer.finish(words);
  page.announcer.finish(words);
  page.replot();
  return outcome;
}
