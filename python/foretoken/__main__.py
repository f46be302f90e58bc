# SPDX-License-Identifier: Apache-2.0
"""`python -m foretoken ...` and the script `foretoken`: the program, with the bundled models."""
import os
import sys

from .errors import Error
from .models import program
from .server import environment


def main() -> int:
    """Becomes the program."""
    try:
        path = program()
        os.execve(path, ["foretoken", *sys.argv[1:]], environment())
    except (Error, OSError) as error:
        print(f"foretoken: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
