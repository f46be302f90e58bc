# SPDX-License-Identifier: Apache-2.0
"""What foretoken writes with chat templates: the program of render_templates.cpp."""
import json
import subprocess


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def render(self, template, context):
        self.process.stdin.write(json.dumps({"template": template, "context": context}) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        return reply.get("text"), reply.get("error")
