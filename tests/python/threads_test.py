#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads, asyncio, signals, forks and the ends of processes.

usage: threads_test.py LIBRARY PROGRAM MODELS
"""
import asyncio
import atexit
import gc
import os
import signal
import subprocess
import sys
import threading

from python_testing import ARGUMENTS, DRAFT, SECONDS, TARGET, Gate, TestCase, at_once, foretoken, main, open_engine

PROMPT = "Once upon a time"
SAMPLED = {"max_new_tokens": 20, "temperature": 1, "rejection_sampling_strategy": "sample-match"}  # a seed gives one text, drafted or not
STOPPED = foretoken.Code.STOPPED


def texts(engine, seeds):
    return [engine.generate(PROMPT, seed=seed, **SAMPLED).result().tokens for seed in seeds]


class ThreadsTest(TestCase):
    def test_two_engines_in_two_threads(self):
        with open_engine() as plain, open_engine(DRAFT) as drafting:
            expected = texts(plain, range(6))
            self.assertEqual(at_once([lambda engine=engine: texts(engine, range(6)) for engine in (plain, drafting)]), [expected, expected])

    def test_one_engine_in_many_threads(self):
        with open_engine(DRAFT, max_sequences=4) as engine:
            expected = texts(engine, range(4))
            self.assertEqual(at_once([lambda seed=seed: texts(engine, [seed])[0] for seed in range(4)]), expected)

    def test_an_interrupt_reaches_a_stream_that_waits(self):
        gate = Gate()

        def interrupts(text, logits):
            if gate.calls == 0:
                os.kill(os.getpid(), signal.SIGINT)
            gate(text, logits)

        with open_engine() as engine:
            try:
                with self.assertRaises(KeyboardInterrupt):
                    engine.generate(PROMPT, max_new_tokens=200, processors=[interrupts]).result()
            finally:
                gate.opened.set()
            engine.wait_idle(SECONDS)

    def test_closing_ends_what_runs(self):
        gate = Gate(free_calls=1)
        engine = open_engine()
        stream, failed = engine.generate(PROMPT, max_new_tokens=200, ignore_eos=True, processors=[gate]), []

        def read():
            try:
                stream.result()
            except foretoken.Error as error:
                failed.append(error.code)

        reader = threading.Thread(target=read)
        reader.start()
        self.assertTrue(gate.reached.wait(SECONDS))
        closer = threading.Thread(target=engine.close)
        closer.start()
        reader.join(SECONDS)
        gate.opened.set()
        closer.join(SECONDS)
        self.assertEqual(failed, [STOPPED])
        for use in (lambda: engine.generate(PROMPT), engine.info, lambda: engine.tokenize("a"), engine.wait_idle):
            self.fails(STOPPED, "engine", "closed", use)
        engine.close()
        stream.close()
        self.fails(STOPPED, "", "", stream.result)

    def test_a_callback_may_close_its_engine(self):
        engine = open_engine()
        stream = engine.generate(PROMPT, max_new_tokens=200, processors=[lambda text, logits: engine.close()])
        self.fails(STOPPED, "", "", stream.result)

    def test_a_drained_engine_takes_nothing_more(self):
        with open_engine() as engine:
            engine.drain()
            self.fails(STOPPED, "", "", engine.generate, PROMPT)

    def test_a_forked_child_gets_a_clear_error(self):
        engine = open_engine()
        stream = engine.generate(PROMPT, max_new_tokens=5)
        child = os.fork()
        if child == 0:
            codes = []
            for use in (lambda: engine.generate(PROMPT), lambda: next(stream)):
                try:
                    use()
                except foretoken.Error as error:
                    codes.append((error.code, "forked" in error.text))
            engine.close()
            stream.close()
            atexit._run_exitfuncs()  # what sys.exit runs; none of it may wait for threads of the parent
            os._exit(0 if codes == [(STOPPED, True)] * 2 else 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(stream.result().tokens), 5)
        engine.close()

    def test_a_process_ends_with_requests_that_run(self):
        program = f"""
import sys, threading
sys.argv[1:] = {ARGUMENTS!r}
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from python_testing import open_engine
engine, begun = open_engine(), threading.Event()
def read():
    while True:
        engine.generate("Once", max_new_tokens=200, ignore_eos=True, processors=[lambda text, logits: begun.set()]).result()
threading.excepthook = lambda _: None
threading.Thread(target=read, daemon=True).start()
held = engine.generate("Once", max_new_tokens=200, ignore_eos=True)
begun.wait(60)
print("ends")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ends\n", ""))


class AsyncTest(TestCase):
    def test_requests_run_together_and_give_the_same_texts(self):
        async def run(engine):
            found = await asyncio.gather(*(engine.generate(PROMPT, seed=seed, **SAMPLED).result() for seed in range(4)))
            stream, text = engine.generate(PROMPT, seed=0, **SAMPLED), ""
            async for piece in stream:
                text += piece.text
            return found, text, stream.completion

        with open_engine(DRAFT, max_sequences=4) as engine:
            expected = texts(engine, range(4))
            found, text, completion = asyncio.run(run(foretoken.AsyncEngine(engine)))
        self.assertEqual([done.tokens for done in found], expected)
        self.assertEqual((text, completion.tokens), (found[0].text, expected[0]))

    def test_cancelled_tasks_and_dropped_streams_end_their_requests(self):
        async def run(engine):
            for end in ("task", "drop", "aclose"):
                gate = Gate(free_calls=1)
                stream = engine.generate(PROMPT, max_new_tokens=200, ignore_eos=True, processors=[gate])
                await stream.__anext__()
                task = asyncio.ensure_future(stream.result()) if end == "task" else None
                await asyncio.get_running_loop().run_in_executor(None, gate.reached.wait, SECONDS)
                if task is not None:
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                if end == "aclose":
                    await stream.aclose()
                del stream, task
                gc.collect()
                gate.opened.set()
                await asyncio.get_running_loop().run_in_executor(None, engine.engine.wait_idle, SECONDS)
                self.assertLess(gate.calls, 10, end)

        with open_engine() as engine:
            asyncio.run(run(foretoken.AsyncEngine(engine)))

    def test_errors_and_conversations(self):
        async def run():
            async with await foretoken.AsyncEngine.open(TARGET, speculative_method="none", threads=1, context_size=256, repack_cache="off") as engine:
                with self.assertRaises(foretoken.Error) as caught:
                    await engine.generate(PROMPT, top_k=-7).result()
                self.assertEqual(caught.exception.field, "top_k")
                asked = {"chat_template": "chatml", "max_tokens": 8, "temperature": 0}
                messages = [{"role": "user", "content": "Who?"}]
                answer = await engine.chat(messages, **asked)
                chunks = [chunk async for chunk in await engine.chat(messages, stream=True, **asked)]
                return answer["choices"][0]["message"]["content"], "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)

        text, pieces = asyncio.run(run())
        self.assertEqual(text, pieces)
        self.assertTrue(text)


if __name__ == "__main__":
    main()
