# SPDX-License-Identifier: Apache-2.0
"""foretoken: language models with speculative decoding, in this process.

    import foretoken
    with foretoken.Engine("target.gguf", "draft.gguf") as engine:
        for piece in engine.generate("Once upon a time", max_new_tokens=100):
            print(piece.text, end="", flush=True)

docs/python.md is the guide.
"""
from ._library import version
from .async_engine import AsyncEngine, AsyncStream
from .drafters import Drafter, Drafts, Proposal, Session
from .engine import Engine
from .errors import Code, Error
from .models import bundled_model, bundled_models
from .options import Kind, option_keys
from .scorer import Scorer
from .server import Server, serve
from .stream import Completion, Origin, Round, Stream
from .verification import Verification, Verified

__version__ = "0.1.0"
__all__ = ["AsyncEngine", "AsyncStream", "Code", "Completion", "Drafter", "Drafts", "Engine", "Error", "Kind", "Origin", "Proposal", "Round", "Scorer",
           "Server", "Session", "Stream", "Verification", "Verified", "bundled_model", "bundled_models", "option_keys", "serve", "version"]
