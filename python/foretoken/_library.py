# SPDX-License-Identifier: Apache-2.0
"""Finds libforetoken.so.1, binds the functions of foretoken.h, and owns the library's objects.

Contract: the library is looked for when it is first needed: the file that FORETOKEN_LIBRARY names, then this package's folder, then the
system's libraries. ctypes releases the interpreter's lock during each call. A `Handle` may be used by many threads: what is
closed while others use it is freed by the last of them, and what was made before a fork is refused in the child.
"""
import atexit
import contextlib
import ctypes
import itertools
import os
import pathlib
import threading
import time
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .errors import Code, Error

ABI_VERSION = 1
FILE_NAME = "libforetoken.so.1"

# For each function its result, then its arguments: i int32, l int64, z size_t, s a C string, p any pointer, v nothing.
FUNCTIONS: Dict[str, str] = {
    "foretoken_version": "s", "foretoken_abi_version": "i", "foretoken_catch_bus_errors": "vi",
    "foretoken_error_code": "ip", "foretoken_error_field": "sp", "foretoken_error_message": "sp", "foretoken_error_free": "vp",
    "foretoken_options_create": "iipp", "foretoken_options_copy": "ippp", "foretoken_options_set": "ipsszp",
    "foretoken_options_set_tokens": "ipspzp", "foretoken_options_key": "siz", "foretoken_options_free": "vp",
    "foretoken_proposal_text": "ppp", "foretoken_proposal_left": "ip", "foretoken_proposal_push": "ipi",
    "foretoken_proposal_draw": "ippz", "foretoken_options_set_drafter": "ippp", "foretoken_options_add_processor": "ippppp",
    "foretoken_engine_open": "ippp", "foretoken_engine_close": "vp", "foretoken_engine_drain": "ipp", "foretoken_engine_stop": "ipp",
    "foretoken_engine_wait_idle": "iplp", "foretoken_engine_info": "ipspzpp", "foretoken_engine_tokenize": "ipsziipzpp",
    "foretoken_engine_detokenize": "ippzipzpp", "foretoken_engine_submit": "ipppp", "foretoken_stream_next": "iplpp",
    "foretoken_stream_ended": "ip", "foretoken_stream_cancel": "vp", "foretoken_stream_result": "ippp", "foretoken_stream_free": "vp",
    "foretoken_engine_generate": "ipppppp", "foretoken_result_get": "pp", "foretoken_result_stat": "ipspp",
    "foretoken_result_key": "sz",
    "foretoken_result_free": "vp", "foretoken_chat_create": "ipp", "foretoken_chat_add": "ipsszsp",
    "foretoken_chat_tokens": "ippppzpp", "foretoken_chat_text": "ippppzpp", "foretoken_chat_free": "vp",
    "foretoken_session_open": "ippp", "foretoken_session_begin": "ippzp", "foretoken_session_propose": "ipiipp",
    "foretoken_session_observe": "ippzp", "foretoken_session_close": "vp", "foretoken_verification_create": "ippp",
    "foretoken_verification_run": "ipppp", "foretoken_verification_free": "vp", "foretoken_scorer_open": "ippp",
    "foretoken_scorer_score": "ipipzpppp", "foretoken_scorer_length": "zpi", "foretoken_scorer_truncate": "ipizp",
    "foretoken_scorer_close": "vp",
}
_TYPES = {"i": ctypes.c_int32, "l": ctypes.c_int64, "z": ctypes.c_size_t, "s": ctypes.c_char_p, "p": ctypes.c_void_p, "v": None}
_P, _I, _Z = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t


class EventView(ctypes.Structure):
    _fields_ = [("kind", _I), ("drafted", _I), ("text", _P), ("text_size", _Z), ("tokens", _P), ("origins", _P), ("logprobs", _P),
                ("token_count", _Z), ("rejected", _P), ("rejected_count", _Z), ("drafter", ctypes.c_char_p)]


class ResultView(ctypes.Structure):
    _fields_ = [("text", _P), ("text_size", _Z), ("tokens", _P), ("token_count", _Z), ("prompt_tokens", _P), ("prompt_token_count", _Z),
                ("logprobs", _P), ("top_offsets", _P), ("top_tokens", _P), ("top_logprobs", _P), ("embedding", _P),
                ("embedding_count", _Z), ("finish_reason", ctypes.c_char_p), ("strategy", ctypes.c_char_p),
                ("controller", ctypes.c_char_p), ("seed", ctypes.c_uint64), ("lossless", _I)]


class DraftsView(ctypes.Structure):
    _fields_ = [("tokens", _P), ("count", _Z), ("probabilities", _P), ("distributions", _P), ("vocabulary", _Z)]


class VerificationInput(ctypes.Structure):
    _fields_ = [("struct_size", _Z), ("text", _P), ("text_count", _Z), ("generated", _Z), ("position", ctypes.c_int64), ("drafts", _P),
                ("draft_count", _Z), ("draft_probabilities", _P), ("draft_logits", _P), ("target_logits", _P), ("vocabulary", _Z),
                ("accept", _P), ("recover", _P), ("target", _P)]


class VerifiedView(ctypes.Structure):
    _fields_ = [("struct_size", _Z), ("accepted", _I), ("next", _I), ("origin", _I), ("lossless", _I)]


BEGIN = ctypes.CFUNCTYPE(_I, _P, _I, _P, _Z)
PROPOSE = ctypes.CFUNCTYPE(_I, _P, _I, _P)
OBSERVE = ctypes.CFUNCTYPE(_I, _P, _I, _P, _Z, _I, _I)
END = ctypes.CFUNCTYPE(None, _P, _I)
RELEASE = ctypes.CFUNCTYPE(None, _P)
PROCESSOR = ctypes.CFUNCTYPE(_I, _P, _P, _Z, _P, _Z)


class DrafterFunctions(ctypes.Structure):
    _fields_ = [("struct_size", _Z), ("name", ctypes.c_char_p), ("reports_distributions", _I), ("vocabulary_size", _I), ("user", _P),
                ("begin", BEGIN), ("propose", PROPOSE), ("observe", OBSERVE), ("end", END), ("release", RELEASE)]


_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def _load_named(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as why:
        raise Error(Code.NOT_FOUND, "FORETOKEN_LIBRARY", f"library {path}: {why}; name {FILE_NAME} in FORETOKEN_LIBRARY, or unset it") from why


def _find() -> ctypes.CDLL:
    named = os.environ.get("FORETOKEN_LIBRARY")
    if named:
        return _load_named(named)
    beside = pathlib.Path(__file__).with_name(FILE_NAME)
    if beside.exists():
        return _load_named(str(beside))
    try:
        return ctypes.CDLL(FILE_NAME)
    except OSError as why:
        raise Error(Code.NOT_FOUND, "FORETOKEN_LIBRARY",
                    f"library {FILE_NAME}: it is neither in {beside.parent} nor among the system's libraries; name it in FORETOKEN_LIBRARY") from why


def _bind(found: ctypes.CDLL) -> ctypes.CDLL:
    for name, letters in FUNCTIONS.items():
        try:
            function = getattr(found, name)
        except AttributeError:
            raise Error(Code.UNSUPPORTED, "FORETOKEN_LIBRARY", f"library: it has no {name}; use a foretoken of this package's version") from None
        function.restype = _TYPES[letters[0]]
        function.argtypes = [_TYPES[letter] for letter in letters[1:]]
    if found.foretoken_abi_version() < ABI_VERSION:
        raise Error(Code.UNSUPPORTED, "FORETOKEN_LIBRARY",
                    f"library: its interface is {found.foretoken_abi_version()}, older than {ABI_VERSION}; use a newer foretoken")
    return found


def library() -> ctypes.CDLL:
    """The library, found and bound at the first call. Errors: NOT_FOUND, UNSUPPORTED."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _bind(_find())
    return _loaded


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status; the address of an error is added. Raises `Error`."""
    bound = library()
    error = ctypes.c_void_p()
    status = getattr(bound, name)(*arguments, ctypes.byref(error))
    if status == 0:
        return
    field, text = bound.foretoken_error_field(error), bound.foretoken_error_message(error)
    bound.foretoken_error_free(error)
    raise Error(status, (field or b"").decode(errors="replace"), (text or b"no memory for the reason").decode(errors="replace"))


def make(name: str, *arguments: Any) -> int:
    """Calls a function whose last argument but one gets a new object; its address."""
    pointer = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(pointer))
    assert pointer.value is not None
    return pointer.value


def read_bytes(name: str, *arguments: Any) -> bytes:
    """The text of a function that writes to a buffer of the caller; it may end within a character."""
    capacity, count = 256, ctypes.c_size_t()
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        call(name, *arguments, buffer, capacity, ctypes.byref(count))
        if count.value <= capacity:
            return buffer.raw[:count.value]
        capacity = count.value


def read_text(name: str, *arguments: Any) -> str:
    """The text of a function that writes to a buffer of the caller."""
    return read_bytes(name, *arguments).decode(errors="replace")


def read_tokens(capacity: int, name: str, *arguments: Any) -> List[int]:
    """The tokens of a function that writes to a buffer of the caller; it is called again if there are more than `capacity`."""
    count = ctypes.c_size_t()
    while True:
        buffer = (ctypes.c_int32 * capacity)()
        call(name, *arguments, buffer, capacity, ctypes.byref(count))
        if count.value <= capacity:
            return buffer[:count.value]
        capacity = count.value


_inside = threading.local()


@contextlib.contextmanager
def inside(owner: Optional["Handle"]) -> Iterator[None]:
    """Marks that this thread runs a function of the caller for `owner`."""
    before = getattr(_inside, "owner", None)
    _inside.owner = owner
    try:
        yield
    finally:
        _inside.owner = before


_handles: Dict[int, "Handle"] = {}
_numbers = itertools.count()
_ending: Optional[int] = None  # the thread that runs `_at_exit`, once it does
_STOPS = {"foretoken_engine_close": "foretoken_engine_stop", "foretoken_stream_free": "foretoken_stream_cancel"}


class Handle:
    """Owns one object of the library until its Python owner is dropped or closed.

    what: its name in errors. free: the function that frees it. An engine that is closed by one of its own callbacks is
    freed by another thread, as its own cannot wait for itself.
    """

    def __init__(self, owner: Any, what: str, pointer: int, free: str):
        self._what, self._pointer, self._free, self._number = what, pointer, free, next(_numbers)
        self._process, self._lock, self._users, self._closed, self._freeing = os.getpid(), threading.RLock(), 0, False, False
        _handles[self._number] = self
        weakref.finalize(owner, self.close).atexit = False

    def check(self) -> None:
        """Raises `Error` where the object cannot be used any more."""
        if os.getpid() != self._process:
            raise Error(Code.STOPPED, self._what, f"{self._what}: it was made before this process was forked; make another one in this process")
        if self._closed:
            raise Error(Code.STOPPED, self._what, f"{self._what}: it is closed; make another one")
        if _ending not in (None, threading.get_ident()):
            raise Error(Code.STOPPED, self._what, f"{self._what}: the process ends; join the threads that use it first")

    def refuse_inside(self) -> None:
        """Raises `Error` in a callback of this object, which would wait for itself."""
        if getattr(_inside, "owner", None) is self:
            raise Error(Code.INVALID_ARGUMENT, self._what, f"{self._what}: one of its own callbacks would wait for it; wait on another thread")

    @contextlib.contextmanager
    def use(self) -> Iterator[int]:
        """The object's address, which stays valid in the block."""
        self.check()
        with self._lock:
            self.check()
            self._users += 1
        try:
            yield self._pointer
        finally:
            with self._lock:
                self._users -= 1
            if self._closed:
                self._release()

    def close(self) -> None:
        """Frees the object, at once or when its last user is done with it. May be called again."""
        if os.getpid() != self._process:  # the threads and locks of the parent are not here
            return
        self._closed = True
        self._release()

    def _release(self) -> None:
        """Frees it if nobody uses it. What other threads let go while the process ends is left to `_at_exit`."""
        with self._lock:
            if self._freeing or self._users > 0 or _ending not in (None, threading.get_ident()):
                return
            self._freeing = True
        if getattr(_inside, "owner", None) is self:
            threading.Thread(target=self._free_now).start()
        else:
            self._free_now()

    def _free_now(self) -> None:
        getattr(library(), self._free)(self._pointer)
        _handles.pop(self._number, None)

    def stop(self) -> None:
        """Ends what runs, so that its users come back soon."""
        with self._lock:
            if self._freeing or self._free not in _STOPS:
                return
            arguments = (self._pointer, None) if self._free == "foretoken_engine_close" else (self._pointer,)
            getattr(library(), _STOPS[self._free])(*arguments)

    def busy(self) -> bool:
        """True while a thread uses or frees it."""
        with self._lock:
            return self._users > 0 or (self._freeing and self._number in _handles)


def _at_exit() -> None:
    """Closes everything while the interpreter still runs: a thread of the library that calls Python later would end the process with SIGABRT."""
    global _ending
    _ending = threading.get_ident()
    mine = [handle for handle in reversed(list(_handles.values())) if handle._process == os.getpid()]
    for handle in mine:
        handle.stop()
    until = time.monotonic() + 10  # a callback that never returns holds no process longer
    while any(handle.busy() for handle in mine) and time.monotonic() < until:
        time.sleep(0.002)
    for handle in mine:
        handle.close()


atexit.register(_at_exit)


def text_bytes(text: Any, field: str) -> Tuple[bytes, int]:
    """A text as UTF-8 and its size in bytes. Errors: INVALID_ARGUMENT (lone surrogates)."""
    if isinstance(text, bytes):
        return text, len(text)
    try:
        encoded = text.encode()
    except UnicodeEncodeError as why:
        raise Error(Code.INVALID_ARGUMENT, field, f"{field}: {why}; give text that UTF-8 can hold") from None
    return encoded, len(encoded)


def version() -> str:
    """The version of the library, "0.1.0"."""
    return library().foretoken_version().decode()
