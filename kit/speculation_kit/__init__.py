# SPDX-License-Identifier: Apache-2.0
"""Checks speculative decoding of any engine: its rules with test vectors, its servers against plain decoding. docs/kit.md tells how.

Contract: needs Python 3.9 and its standard library alone. `python3 -m speculation_kit` is the command line.
"""
