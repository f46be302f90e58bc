# SPDX-License-Identifier: Apache-2.0
"""The bundled model and the command line, where they are on this machine.

Contract: FORETOKEN_MODELS is the folder of the bundled models, as for the program, and FORETOKEN_PROGRAM the program; else they are
in this package's folder, or the program is in PATH and the models where `cmake --install` and packages put them beside it.
"""
import os
import pathlib
import shutil

from .errors import Code, Error

_HERE = pathlib.Path(__file__).parent


def bundled_models() -> pathlib.Path:
    """The folder of the bundled models. Errors: NOT_FOUND."""
    named = os.environ.get("FORETOKEN_MODELS")
    folder = pathlib.Path(named) if named else _HERE / "models"
    installed = shutil.which("foretoken")
    if not named and not folder.is_dir() and installed:
        folder = pathlib.Path(installed).resolve().parent.parent / "share/foretoken/models"
    if not folder.is_dir():
        raise Error(Code.NOT_FOUND, "FORETOKEN_MODELS", f"models: there is no folder {folder}; name a model, or the folder in FORETOKEN_MODELS")
    return folder


def bundled_model() -> str:
    """The path of the bundled model; its drafters lie beside it. Errors: NOT_FOUND."""
    path = bundled_models() / "tales-9m-q8_0.gguf"
    if not path.exists():
        raise Error(Code.NOT_FOUND, "FORETOKEN_MODELS", f"model: there is no {path}; name a model, or the folder in FORETOKEN_MODELS")
    return str(path)


def program() -> str:
    """The path of the program `foretoken`. Errors: NOT_FOUND."""
    named = os.environ.get("FORETOKEN_PROGRAM")
    beside = _HERE / "bin" / "foretoken"
    found = named or (str(beside) if beside.exists() else shutil.which("foretoken"))
    if not found:
        raise Error(Code.NOT_FOUND, "FORETOKEN_PROGRAM", f"program foretoken: it is neither in {beside.parent} nor in PATH; name it in FORETOKEN_PROGRAM")
    return found
