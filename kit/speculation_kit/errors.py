# SPDX-License-Identifier: Apache-2.0
"""What ends a run with one line and exit code 2: input that is wrong, or a server that cannot be used."""


class KitError(Exception):
    """Its text has the form "what: why; what to do"."""


class Refused(KitError):
    """A server answered with an error; `status` is HTTP's."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status
