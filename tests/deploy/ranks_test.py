#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/foretoken-ranks as containers run it: two machines of their own names and networks, joined by a cable, with ranks that mpirun starts through ssh.
Usage: ranks_test.py FORETOKEN MODELS DEPLOY. It needs root, Open MPI, an ssh server and the right to make networks; otherwise it is skipped (77)."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FORETOKEN, MODELS, DEPLOY = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
NEEDED = ("ip", "unshare", "setpriv", "mpirun", "ssh", "ssh-keygen", "/usr/sbin/sshd")
USER = 10001
PORT = 8080
LEAD, WORKER = "10.77.0.1", "10.77.0.2"
BODY = {"prompt": "Once upon a time", "max_tokens": 120, "temperature": 0, "ignore_eos": True}

# What a container has of its own: the host's name, /run, a user.
ENTER = """
hostname "$1" && shift && mount -t tmpfs none /run && mkdir -m 777 /run/foretoken && cp /etc/passwd /run/passwd &&
echo "foretoken:x:{user}:{user}::/run/foretoken:/bin/sh" >> /run/passwd && mount --bind /run/passwd /etc/passwd &&
exec setpriv --reuid={user} --regid={user} --clear-groups --bounding-set=-all env -i "$@"
"""


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def networks_allowed():
    name = f"ft{os.getpid()}t"
    allowed = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if allowed:
        run("ip", "netns", "delete", name)
    return allowed


class Cable:
    """Two networks with a cable between them."""

    def __init__(self):
        self.names = [f"ft{os.getpid()}{end}" for end in "ab"]
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "rank0", "netns", self.names[0], "type", "veth", "peer", "name", "rank0", "netns", self.names[1])
        for name, address in zip(self.names, (LEAD, WORKER)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "rank0")
            run("ip", "-n", name, "link", "set", "rank0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cable = Cable()
        cls.addClassCleanup(cls.cable.close)

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        bin_folder = self.folder / "bin"
        bin_folder.mkdir(mode=0o755)
        shutil.copy(DEPLOY / "foretoken-ranks", bin_folder)
        # Copies: the build folder may be closed to other users.
        shutil.copy(FORETOKEN, bin_folder / "foretoken")
        shutil.copy(FORETOKEN.parent / "libforetoken_mpi.so", bin_folder)
        shutil.copytree(MODELS, self.folder / "models", ignore=lambda folder, names: [name for name in names if not name.endswith(".gguf")])
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / "id"))
        os.chown(self.folder / "id", USER, USER)
        self.logs = {}

    def container(self, end, name, *command):
        """A process of a container; it ends with the test."""
        environment = [f"PATH={self.folder}/bin:/usr/bin:/bin", f"RANKS_SSH_KEY={self.folder}/id", f"FORETOKEN_MODELS={self.folder}/models", "FORETOKEN_THREADS=1",
                       "HOME=/run/foretoken", "TMPDIR=/run/foretoken"]
        self.logs[name] = open(self.folder / f"{name}.log", "wb")
        process = subprocess.Popen(["ip", "netns", "exec", self.cable.names[end], "unshare", "-m", "-u", "--pid", "--fork", "--mount-proc", "--kill-child", "sh",
                                    "-c", ENTER.format(user=USER), "sh", name, *environment, *command],
                                   stdout=self.logs[name], stderr=subprocess.STDOUT)
        self.addCleanup(self.logs[name].close)
        self.addCleanup(self.end, process)
        return process

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def end(self, container):
        if container.poll() is None:
            self.signal_first(container, signal.SIGKILL)
        container.wait()

    def signal_first(self, container, how):
        """To the first process of a container, as what runs containers does."""
        children = pathlib.Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(children[0]), how)

    def lead(self, *flags):
        return self.container(0, "lead", "foretoken-ranks", "lead", WORKER, "serve", "--host", "0.0.0.0", "--port", str(PORT), "-q", *flags)

    def worker(self):
        return self.container(1, "worker", "foretoken-ranks", "worker")

    def ask(self, method="GET", path="/health", body=None):
        """(status, reply) of the lead, asked from the worker's network."""
        program = ("import http.client, sys\n"
                   f"c = http.client.HTTPConnection('{LEAD}', {PORT}, timeout=60)\n"
                   "c.request(sys.argv[1], sys.argv[2], sys.argv[3] or None, {'Content-Type': 'application/json'})\n"
                   "r = c.getresponse(); print(r.status); print(r.read().decode())")
        done = subprocess.run(["ip", "netns", "exec", self.cable.names[1], sys.executable, "-c", program, method, path, json.dumps(body) if body else ""],
                              capture_output=True, text=True, timeout=90, check=False)
        status, _, reply = done.stdout.partition("\n")
        return (int(status), json.loads(reply)) if status else (None, done.stderr)

    def await_health(self, lead, seconds=60):
        end = time.monotonic() + seconds
        while self.ask()[0] != 200:
            self.assertIsNone(lead.poll(), self.log("lead"))
            self.assertLess(time.monotonic(), end, self.log("lead") + self.log("worker"))
            time.sleep(0.2)

    def test_two_machines_give_the_text_of_one_and_drain(self):
        alone = subprocess.run([FORETOKEN, "generate", "-p", BODY["prompt"], "-n", "120", "--temp", "0", "--ignore-eos", "--json"], capture_output=True, text=True,
                               check=True, env={**os.environ, "FORETOKEN_MODELS": str(MODELS), "FORETOKEN_THREADS": "1"})
        right = json.loads(alone.stdout)["text"]
        worker = self.worker()
        lead = self.lead("--parallel", "4")
        self.await_health(lead)
        self.assertEqual(self.ask("POST", "/v1/completions", BODY)[1]["choices"][0]["text"], right)
        found = []
        threads = [threading.Thread(target=lambda: found.append(self.ask("POST", "/v1/completions", {**BODY, "n": 4}))) for _ in range(4)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 60
        while self.ask()[1].get("running", 0) == 0 and time.monotonic() < end and not found:
            pass
        self.signal_first(lead, signal.SIGTERM)
        for thread in threads:
            thread.join()
        for status, reply in found:
            self.assertIn(status, (200, 503, None), reply)
            if status == 200:
                self.assertEqual({choice["text"] for choice in reply["choices"]}, {right})
        self.assertIn(200, {status for status, _ in found}, found)
        self.assertEqual(lead.wait(900), 0, self.log("lead"))
        self.signal_first(worker, signal.SIGTERM)
        worker.wait(900)

    def test_a_worker_that_dies_ends_the_lead_which_can_be_started_again(self):
        worker = self.worker()
        lead = self.lead()
        self.await_health(lead)
        self.end(worker)
        self.assertNotEqual(lead.wait(900), 0)
        self.assertRegex(self.log("lead"), f"rank 1 on worker|{WORKER}")
        lead = self.lead()  # it waits for the worker
        time.sleep(1)
        self.assertIsNone(lead.poll(), self.log("lead"))
        self.worker()
        self.await_health(lead)


if __name__ == "__main__":
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or os.geteuid() != 0 or not networks_allowed():
        print(f"skipped: {f'there is no {missing[0]}' if missing else 'networks cannot be made here'}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
