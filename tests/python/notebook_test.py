#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/notebooks run to their ends on the bundled models and draw their plots; skipped where Jupyter or matplotlib is missing.

usage: notebook_test.py LIBRARY PROGRAM MODELS
"""
import base64
import importlib.util
import os
import sys

from python_testing import ROOT, SECONDS, TestCase, main

NEEDED = ("nbformat", "nbclient", "ipykernel", "matplotlib")


class NotebookTest(TestCase):
    def test_acceptance_and_cost(self):
        import nbclient
        import nbformat

        os.environ.update(PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="module://matplotlib_inline.backend_inline")
        notebook = nbformat.read(ROOT / "examples/notebooks/acceptance_and_cost.ipynb", as_version=4)
        self.assertEqual([cell for cell in notebook.cells if cell.get("outputs")], [])  # outputs are not kept in the tree
        notebook.cells.append(nbformat.v4.new_code_cell("print(shares, cost, speedups)"))
        nbclient.NotebookClient(notebook, timeout=SECONDS, kernel_name="python3").execute()
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        pictures = [base64.b64decode(output["data"]["image/png"]) for output in outputs if "image/png" in output.get("data", {})]
        self.assertEqual([picture[:4] for picture in pictures], [b"\x89PNG"] * 3)
        self.assertEqual([output for output in outputs if output.get("name") == "stderr"], [])
        shares, cost, speedups = eval("".join(output["text"] for output in outputs if output.get("name") == "stdout").replace("} {", "}, {"))
        for key, share in shares.items():
            self.assertTrue(len(share) == 8 and 1 >= share[0] >= share[7] >= 0, (key, share))
        self.assertGreater(shares["standalone", 0][0], 0.5)
        self.assertTrue(all(milliseconds > 0 for milliseconds in cost.values()))
        self.assertEqual({len(ratios) for ratios in speedups.values()}, {7})


if __name__ == "__main__":
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        print(f"skipped: one of {', '.join(NEEDED)} is not installed")
        sys.exit(77)
    main()
