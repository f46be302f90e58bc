#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that check_layers.py sees each kind of forbidden arrow, and nothing in a tree without any."""
import pathlib
import tempfile
import unittest

from check_layers import Checker

CMAKE = {
    "CMakeLists.txt": 'set(FORETOKEN_MODULES "base;tensor;kernels;formats;round;text;kv;sampling;model;verify;draft;engine"\n CACHE STRING "")',
    "src/base/CMakeLists.txt": "foretoken_module(base SOURCES a.cpp)",
    "src/tensor/CMakeLists.txt": "foretoken_module(tensor SOURCES a.cpp DEPS base)",
    "src/kernels/CMakeLists.txt": "foretoken_module(kernels SOURCES a.cpp DEPS tensor)",
    "src/formats/CMakeLists.txt": "foretoken_module(formats SOURCES a.cpp DEPS tensor TESTS a_test.cpp)",
    "src/round/CMakeLists.txt": "add_library(foretoken_round INTERFACE)\ntarget_link_libraries(foretoken_round INTERFACE foretoken_base)",
    "src/text/CMakeLists.txt": "foretoken_module(text SOURCES a.cpp DEPS formats)",
    "src/kv/CMakeLists.txt": "foretoken_module(kv SOURCES a.cpp DEPS tensor)",
    "src/sampling/CMakeLists.txt": "foretoken_module(sampling SOURCES a.cpp DEPS kernels)",
    "src/model/CMakeLists.txt": "foretoken_module(model SOURCES a.cpp DEPS kv kernels formats)",
    "src/verify/CMakeLists.txt": "foretoken_module(verify SOURCES a.cpp DEPS round sampling)",
    "src/draft/CMakeLists.txt": "foretoken_module(draft SOURCES a.cpp DEPS round model sampling)",
    "src/engine/CMakeLists.txt": "foretoken_module(engine SOURCES a.cpp DEPS draft verify text)",
}
MODULES = ("base", "tensor", "kernels", "formats", "round", "text", "kv", "sampling", "model", "verify", "draft", "engine")
PUBLIC = ("result.h", "engine.h", "scorer.h", "request.h")


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for path, text in CMAKE.items():
            self.write(path, text)
        for module in MODULES:
            self.write(f"src/{module}/a.h", "#include <vector>\n#include <sys/mman.h>\n")
        for header in PUBLIC:
            self.write(f"include/foretoken/{header}", "#include <string>\n")
        self.write("src/kernels/kernels.h", "")
        self.write("apps/settings/flag_set.h", '#include "foretoken/result.h"\n')
        self.write("tests/fixtures/tiny_model.h", "")
        self.write("tests/oracle/oracle.h", "")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def errors(self):
        return Checker(self.root).run()

    def forbid(self, path, include):
        """The include must be the only error of the tree, named by file and line."""
        kept = (self.root / path).read_text() if (self.root / path).exists() else None
        self.write(path, f"// first line\n#include {include}\n")
        errors = self.errors()
        self.assertEqual(len(errors), 1, f"{path} with {include}: {errors}")
        self.assertTrue(errors[0].startswith(f"{path}:2: includes "), errors[0])
        (self.root / path).unlink() if kept is None else self.write(path, kept)
        self.assertEqual(self.errors(), [])

    def test_a_tree_without_forbidden_arrows_passes(self):
        self.write("src/model/b.cpp", '#include "kv/a.h"\n#include "tensor/a.h"\n#include <fmt/format.h>\n'
                                      '#include "foretoken/request.h"\n')
        self.write("src/engine/b.cpp", '#include "verify/a.h"\n#include "foretoken/engine.h"\n')
        self.write("src/formats/a_test.cpp", '#include <gtest/gtest.h>\n#include "fixtures/tiny_model.h"\n')
        self.write("src/kernels/avx2/b.cpp", '#include <immintrin.h>\n#include "kernels/kernels.h"\n')
        self.write("apps/cli/b.cpp", '#include "settings/flag_set.h"\n#include "foretoken/engine.h"\n')
        self.assertEqual(self.errors(), [])

    def test_arrows_that_point_up_are_found(self):
        self.forbid("src/base/b.cpp", '"tensor/a.h"')
        self.forbid("src/kv/b.h", '"model/a.h"')
        self.forbid("src/model/b.cpp", '"round/a.h"')
        self.forbid("src/text/b.cpp", '"engine/a.h"')

    def test_arrows_on_the_deny_list_are_found_though_deps_reach_them(self):
        self.forbid("src/verify/b.cpp", '"kernels/a.h"')
        self.write("src/verify/b.cpp", '#include "tensor/a.h"\n')
        self.assertEqual(self.errors(), [])

    def test_a_stale_map_is_found(self):
        rows = [f"| `{m}/` | what it does | {d} |" for m, d in (
            ("engine", "draft, verify, text"), ("draft", "model, sampling, round"), ("verify", "sampling, round"), ("model", "kv, formats, kernels"),
            ("sampling", "kernels"), ("kv", "tensor"), ("text", "formats"), ("round", "base"), ("formats", "tensor"), ("kernels", "tensor"),
            ("tensor", "base"), ("base", "`include/` only"))]
        self.write("src/README.md", "\n".join(rows))
        self.assertEqual(self.errors(), [])
        for stale in (rows[1:], [rows[0].replace(", text", ""), *rows[1:]], [*rows[:-1], rows[-1].replace("`include/` only", "round")]):
            self.write("src/README.md", "\n".join(stale))
            self.assertEqual(len(self.errors()), 1, stale)

    def test_public_headers_of_the_engine_stay_above_it(self):
        self.forbid("src/draft/b.cpp", '"foretoken/engine.h"')
        self.forbid("src/formats/b.cpp", '"foretoken/scorer.h"')
        self.forbid("include/foretoken/b.h", '"base/a.h"')

    def test_programs_see_only_the_public_api(self):
        self.forbid("apps/cli/b.cpp", '"base/a.h"')
        self.forbid("apps/settings/b.cpp", '"engine/a.h"')

    def test_programs_see_the_headers_of_src_that_are_named_for_them_and_no_others(self):
        self.forbid("apps/cli/b.cpp", '"base/comma_list.h"')  # there is none
        self.write("src/base/comma_list.h", "")
        self.write("apps/cli/b.cpp", '#include "base/comma_list.h"\n')
        self.assertEqual(self.errors(), [])
        self.forbid("examples/b.cpp", '"base/comma_list.h"')
        self.forbid("src/kernels/avx2/b.cpp", '"base/comma_list.h"')

    def test_libraries_stay_in_one_place(self):
        self.forbid("apps/cli/b.cpp", "<rapidjson/reader.h>")
        self.forbid("apps/settings/b.h", "<CLI/CLI.hpp>")
        self.forbid("src/text/b.cpp", "<pcre2.h>")
        self.forbid("src/base/b.h", "<fmt/format.h>")
        self.forbid("src/base/b.cpp", "<tl/expected.hpp>")
        self.forbid("src/base/b.cpp", "<boost/any.hpp>")
        self.forbid("src/model/b.cpp", "<immintrin.h>")
        self.forbid("src/model/b.cpp", "<gtest/gtest.h>")

    def test_folders_of_an_instruction_set_see_almost_nothing(self):
        self.forbid("src/kernels/avx512/b.cpp", "<vector>")
        self.forbid("src/kernels/neon/b.cpp", "<vector>")
        self.forbid("src/kernels/avx2/b.cpp", "<arm_neon.h>")
        self.forbid("src/kernels/avx2/b.cpp", '"kernels/scalar/exp.h"')
        self.forbid("src/kernels/avx2/b.cpp", '"base/a.h"')
        self.forbid("src/kernels/generic/b.h", "<immintrin.h>")
        self.forbid("src/kernels/generic/b.h", "<utility>")
        self.forbid("src/kernels/generic/b.h", '"kernels/avx2/b.h"')
        self.forbid("src/kernels/generic/b.h", '"base/a.h"')

    def test_tests_may_not_reach_up_either(self):
        self.forbid("src/formats/b_test.cpp", '"model/a.h"')

        self.forbid("src/engine/b_test.cpp", '"foretoken/no_such.h"')
        self.forbid("src/draft/b_test.cpp", '"foretoken/engine.h"')  # its own room and below, public headers too
        self.forbid("src/tensor/b_test.cpp", '"fixtures/tiny_model.h"')  # which writes files, above tensor
        self.forbid("src/formats/b_test.cpp", '"oracle/oracle.h"')
        self.forbid("apps/cli/b_test.cpp", '"base/a.h"')

    def test_libraries_of_tests_that_stand_above_are_found(self):
        self.write("src/formats/CMakeLists.txt", "foretoken_module(formats SOURCES a.cpp DEPS tensor TESTS a_test.cpp TEST_LIBS foretoken_model)")
        self.assertIn("TEST_LIBS names model, which is not below formats", self.errors()[0])

    def test_bench_and_tests_see_what_their_folder_may_see(self):
        self.write("bench/micro/b.cpp", '#include <benchmark/benchmark.h>\n#include "kernels/a.h"\n#include "foretoken/engine.h"\n')
        self.write("tests/oracle/b.cpp", '#include "model/a.h"\n#include "oracle/oracle.h"\n#include "fixtures/tiny_model.h"\n')
        self.write("tests/lossless/b_test.cpp", '#include <gtest/gtest.h>\n#include "oracle/oracle.h"\n#include "foretoken/scorer.h"\n')
        self.write("examples/b.cpp", '#include "foretoken/engine.h"\n')
        self.assertEqual(self.errors(), [])
        self.forbid("bench/micro/b.cpp", '"engine/a.h"')
        self.forbid("bench/end_to_end/b.cpp", '"base/a.h"')
        self.forbid("tests/lossless/b_test.cpp", '"engine/a.h"')
        self.forbid("tests/oracle/b.cpp", '"engine/a.h"')
        self.forbid("tests/fixtures/b.cpp", '"oracle/oracle.h"')
        self.forbid("tests/cli/b.cpp", "<gtest/gtest.h>")
        self.forbid("tests/new/b.cpp", '"base/a.h"')  # a folder without a rule
        self.forbid("tests/oracle/b.cpp", '"model/no_such.h"')
        self.forbid("examples/b.cpp", '"fixtures/tiny_model.h"')

    def test_missing_files_are_found(self):
        self.forbid("src/kv/b.cpp", '"tensor/no_such.h"')
        self.forbid("src/kv/b.cpp", '"no_such.h"')

    def test_dependencies_against_the_order_and_cycles_are_found(self):
        self.write("src/base/CMakeLists.txt", "foretoken_module(base SOURCES a.cpp DEPS tensor)")
        errors = "\n".join(self.errors())
        self.assertIn("base depends on tensor, which stands after it", errors)
        self.assertIn("cycle", errors)

    def test_modules_outside_the_order_are_found(self):
        self.write("src/extra/CMakeLists.txt", "foretoken_module(extra SOURCES a.cpp)")
        self.assertIn("extra is not in FORETOKEN_MODULES", self.errors()[0])

    def test_folders_must_name_their_thing(self):
        self.write("src/base/utils/a.h", "")
        self.assertIn("src/base/utils", self.errors()[0])


if __name__ == "__main__":
    unittest.main()
