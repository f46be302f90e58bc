#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work on a body ends when nobody waits for its answer: its client has gone, or the server was told to stop. Each body here takes long, and would be
refused at the end of that work with 400; the log says which of the two it was."""
import json
import re
import signal

from server_case import ONE_THREAD, ServerCase, main
from server_testing import read_all, request_bytes, responses

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
GOOD = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
# As many steps as a template may take, where the variable n is large.
TEMPLATE = "{% for a in range(n | default(1)) %}{% for b in range(n | default(1)) %}{% endfor %}{% endfor %}{{ messages[0].content }}"
# The tests of grammars and tokenizers show that each kind of such work ends.
BODIES = {
    "variables": (CHAT, {"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"n": 99_999}}),
    "prompt": (COMPLETIONS, {"prompt": "the end of it " * 400_000}),
    "conversation": (CHAT, {"messages": [{"role": "user", "content": "the end of it " * 200_000}]}),
}
TRIES = 200  # a body may not have been read when its client goes, or its work may be done before that is seen


class AbandonedWork(ServerCase):
    FLAGS = ONE_THREAD

    def test_it_ends_with_its_client(self):
        server = self.serve(template=TEMPLATE)
        good = server.completion(**GOOD)["choices"]
        for name, (path, body) in BODIES.items():
            with self.subTest(name):
                for i in range(TRIES):
                    with server.socket() as sock:
                        sock.sendall(request_bytes(path, body, f"X-Request-Id: {name}-{i}"))
                        server.get("/health")  # the body has been read by now, most likely
                    self.assertEqual(server.completion(**GOOD)["choices"], good)
                    if ended := re.search(rf"^.*request_id={name}-\d+ .*error=client_gone.*$", server.log_text(), re.MULTILINE):
                        break
                else:
                    self.fail("all of it was done")
                self.assertIn("status=499", ended[0])

    def test_without_an_end_of_the_connection_it_is_done(self):
        server = self.serve(template=TEMPLATE)
        for name in ("prompt", "conversation"):
            with self.subTest(name):
                server.error(*BODIES[name])
        self.assertNotIn("client_gone", server.log_text())

    def test_it_ends_when_the_server_is_told_to_stop(self):
        for name in ("variables", "prompt"):
            with self.subTest(name):
                statuses = set()
                for _ in range(TRIES):
                    server = self.serve(template=TEMPLATE)
                    with server.socket() as sock:
                        sock.sendall(request_bytes(BODIES[name][0], BODIES[name][1]))
                        server.get("/health")  # the body has been read by now, most likely
                        server.process.send_signal(signal.SIGTERM)
                        data = read_all(sock)
                    self.assertEqual(server.wait(), 0)
                    found = [json.loads(answer)["error"]["code"] for status, _, answer in responses(data) if status == 503]
                    statuses.update(status for status, _, _ in responses(data))
                    if "draining" in found:
                        break
                else:
                    self.fail(f"all of it was done: {statuses}")


if __name__ == "__main__":
    main()
