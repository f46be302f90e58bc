# SPDX-License-Identifier: Apache-2.0
"""A model file in place of the loaded module and the tokenizer that other designs pass around.

Contract: the file is opened when it is first used, once for each drafter and way of running; these engines stay open until `close`, the end of a
`with` block, or the end of the object. Functions that take a model also take a path, and then open and close it themselves.
"""
import contextlib
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ..engine import Engine, Path
from ..models import bundled_model

_SESSION_OPTIONS = ("threads", "repack_cache", "context_size", "isa")


class Model:
    """A target or a drafter. path: a GGUF file; None: the bundled model. options: of the kind "engine", such as threads and context_size."""

    def __init__(self, path: Optional[Path] = None, **options: Any):
        self.path = bundled_model() if path is None else os.fspath(path)
        self.options = options
        self._engines: Dict[Tuple[Any, ...], Engine] = {}

    def engine(self, drafter: Optional[str] = None, memory: Any = None, **settings: Any) -> Engine:
        """The engine of this target with a drafter (a path) and more engine options, opened at the first call.

        memory: the object whose engine it is, because of what its drafter learns; None: everybody's.
        """
        key = (memory, drafter, *sorted(settings.items()))
        if key not in self._engines:
            method = {} if drafter else {"speculative_method": "none"}
            self._engines[key] = Engine(self.path, drafter, **{"find_drafters": False, **method, **self.options, **settings})
        return self._engines[key]

    def forget(self, memory: Any) -> None:
        """Closes the engines of an object."""
        for key in [key for key in self._engines if key[0] is memory]:
            self._engines.pop(key).close()

    def encode(self, text: str) -> List[int]:
        """The tokens of a text, with the begin token that the model wants."""
        return self._any().tokenize(text)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of tokens."""
        return self._any().detokenize(token_ids, special=not skip_special_tokens)

    @property
    def eos_token_id(self) -> Optional[int]:
        """The first end token of the file."""
        return next(iter(self._any().info()["end_tokens"]), None)

    def _any(self) -> Engine:
        return next(iter(self._engines.values()), None) or self.engine()

    def close(self) -> None:
        """Closes its engines; may be called again, and the model used again."""
        while self._engines:
            self._engines.popitem()[1].close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def path_of(model: Union[Model, Path]) -> str:
    """The file of a model or a path."""
    return model.path if isinstance(model, Model) else os.fspath(model)


def session_options(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Those engine options that a draft `Session` has too."""
    return {name: options[name] for name in _SESSION_OPTIONS if name in options}


@contextlib.contextmanager
def opened(model: Union[Model, Path]) -> Iterator[Model]:
    """A block with the model; one that was given as a path is closed at its end."""
    if isinstance(model, Model):
        yield model
        return
    with Model(model) as own:
        yield own
