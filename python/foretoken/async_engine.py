# SPDX-License-Identifier: Apache-2.0
"""The engine for asyncio.

Contract: nothing here blocks the event loop: each request that runs has a thread that waits for it. A request whose `AsyncStream` is closed or
dropped is cancelled. Use an object from the loop that awaited it first.
"""
import asyncio
import threading
import weakref
from typing import Any, AsyncIterator, Callable, Dict, Iterable, Optional, Sequence, Union

from . import chat as chats
from .engine import Engine
from .errors import Code, Error
from .stream import Completion, Round, Stream


class _Reader:
    """Reads a stream on a thread of its own, and hands over what it finds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: Callable[[], Stream]):
        self.queue: "asyncio.Queue[Any]" = asyncio.Queue()
        self._loop, self._start, self._stream, self._cancelled = loop, start, None, False
        threading.Thread(target=self._run, name="foretoken-stream", daemon=True).start()

    def cancel(self) -> None:
        self._cancelled = True
        stream = self._stream
        if stream is not None:
            stream.cancel()

    def _run(self) -> None:
        try:
            with self._start() as stream:
                self._stream = stream
                if self._cancelled:
                    stream.cancel()
                for found in stream:
                    self._post(found)
                self._post(stream.result())
        except BaseException as error:
            self._post(error)

    def _post(self, item: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self.queue.put_nowait, item)
        except RuntimeError:  # the loop is closed
            self.cancel()


class AsyncStream:
    """A request: `async for` gives its `Round`s, and `await stream.result()` its `Completion`. It starts when it is first awaited."""

    def __init__(self, start: Callable[[], Stream]):
        self._start, self._reader, self._end = start, None, None
        self._closed = False

    def __aiter__(self) -> "AsyncStream":
        return self

    async def __anext__(self) -> Round:
        if self._end is None and self._reader is None and not self._closed:
            self._reader = _Reader(asyncio.get_running_loop(), self._start)
            weakref.finalize(self, self._reader.cancel)
        if self._end is not None or self._reader is None:
            raise StopAsyncIteration
        item = await self._reader.queue.get()
        if isinstance(item, Round):
            return item
        self._end = item
        if isinstance(item, BaseException):
            raise item
        raise StopAsyncIteration

    @property
    def completion(self) -> Optional[Completion]:
        """What the request gave, once it has ended."""
        return self._end if isinstance(self._end, Completion) else None

    async def result(self) -> Completion:
        """Reads the rest, and gives the completion; cancels the request where this is cancelled. Errors: those of `Stream.result`."""
        try:
            async for _ in self:
                pass
        except asyncio.CancelledError:
            self.cancel()
            raise
        if isinstance(self._end, BaseException):
            raise self._end
        if self.completion is None:
            raise Error(Code.STOPPED, "stream", "stream: it was closed before it began; send the request again")
        return self.completion

    def cancel(self) -> None:
        """The request ends at its next step, with the finish reason "cancelled"."""
        if self._reader is not None:
            self._reader.cancel()
        else:
            self._closed = True

    async def aclose(self) -> None:
        """Cancels the request if it has not ended."""
        self.cancel()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


async def _in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, lambda: function(*arguments, **named))


class AsyncEngine:
    """An `Engine` for asyncio: `engine = await AsyncEngine.open("model.gguf")`, or AsyncEngine(engine) around one that is open."""

    def __init__(self, engine: Engine):
        self.engine = engine

    @classmethod
    async def open(cls, *arguments: Any, **options: Any) -> "AsyncEngine":
        """Opens an engine on another thread; arguments as of `Engine`."""
        return cls(await _in_thread(Engine, *arguments, **options))

    def generate(self, prompt: Union[str, Sequence[int], None] = None, *, processors: Iterable[Any] = (), **options: Any) -> AsyncStream:
        """As `Engine.generate`; errors of the request come where the stream is awaited."""
        return AsyncStream(lambda: self.engine.generate(prompt, processors=processors, **options))

    async def chat(self, messages: Sequence[Dict[str, Any]], *, stream: bool = False, processors: Iterable[Any] = (), **arguments: Any) -> Any:
        """As `Engine.chat`: a dict, or with stream=True an async iterator of chunks."""
        asked = await _in_thread(chats.request_options, self.engine, messages, arguments)
        running = self.generate(processors=processors, **asked.options)
        if stream:
            return self._chunks(running, asked)
        return chats.completion(self.engine, await running.result(), asked)

    async def _chunks(self, running: AsyncStream, asked: chats.Asked) -> AsyncIterator[Dict[str, Any]]:
        async with running:
            yield chats.chunk(asked, {"role": "assistant", "content": ""})
            async for found in running:
                shown = chats.of_round(self.engine, asked, found)
                if shown is not None:
                    yield shown
            for last in chats.ends(asked, await running.result()):
                yield last

    async def close(self) -> None:
        """Stops and closes the engine."""
        await _in_thread(self.engine.close)

    async def __aenter__(self) -> "AsyncEngine":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
