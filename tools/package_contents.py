# SPDX-License-Identifier: Apache-2.0
"""What packages of any kind have inside, and the time that their files get.

Contract: equal sources give equal results, on any machine.
"""
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version():
    """The version of foretoken, "0.1.0"."""
    return re.search(r"project\(foretoken VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


def bundled_models(folder):
    """The files of the bundled models."""
    return sorted(folder.glob("*.gguf"))


def file_time(default):
    """The time of each file in seconds since 1970: SOURCE_DATE_EPOCH, or `default`, the usual one of the kind of package."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", default))
