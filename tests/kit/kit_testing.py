# SPDX-License-Identifier: Apache-2.0
"""The kit as a program, its modules, and a server whose replies a test writes."""
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIT = ROOT / "kit"
VECTORS = ROOT / "tests/vectors/verification.jsonl"
sys.path.insert(0, str(KIT))


def run_kit(*arguments, kit=KIT, env=None):
    """(exit code, the JSON report or None, standard output, standard error)"""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        done = subprocess.run([sys.executable, "-B", "-m", "speculation_kit", *arguments, "--json", report], capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join([str(kit), os.environ.get("PYTHONPATH", "")]), **(env or {})})
        value = json.loads(pathlib.Path(report).read_text()) if os.path.exists(report) else None
        if "Traceback" in done.stderr:
            raise AssertionError(done.stderr)
        return done.returncode, value, done.stdout, done.stderr


class ScriptedServer:
    """`with ScriptedServer(answer) as server`: answer(path, body) gives (status, headers, bytes) of each reply."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self):
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, headers, body = answer(self.path, json.loads(data) if data else None)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):  # the kit has read enough
                    pass
            do_GET = do_POST = reply

            def log_message(self, *_):
                pass
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # a connection that the kit gave up
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
