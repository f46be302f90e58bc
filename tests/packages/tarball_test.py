#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tarball of a build, unpacked in a bare Debian 11 (an older C library than the build's): its program gives the ids of the build.

usage: tarball_test.py BUILD [RELEASE]
"""
import sys
import tempfile

import bare_system


def main():
    bare_system.need("strip")
    expected = bare_system.expected_ids(sys.argv[1] + "/foretoken")
    with tempfile.TemporaryDirectory() as folder, bare_system.BareSystem("bullseye") as system:
        tarball = next(bare_system.made(folder, "tarball").glob("*-linux-*.tar.gz"))
        system.run("tar", "-xzf", system.put(tarball), "-C", "/opt")
        program = f"/opt/{tarball.name.removesuffix('.tar.gz')}/bin/foretoken"
        assert bare_system.token_ids(system.run(program, *bare_system.REQUEST)) == expected
        system.run("ln", "-s", program, "/usr/local/bin/foretoken")
        assert bare_system.token_ids(system.run("foretoken", *bare_system.REQUEST)) == expected, "through a link in PATH"
    return 0


if __name__ == "__main__":
    sys.exit(main())
