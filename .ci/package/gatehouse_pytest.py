"""pytest fixtures: a Gatehouse server in development mode, and tokens of it.

    def test_orders(gatehouse):
        token = gatehouse.token(user="alice", scope="openid orders:read")
        requests.get(url, headers={"Authorization": f"Bearer {token}"})
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request

import pytest


class Gatehouse:
    """A running server. `url` is the issuer, `client_id` and `client_secret` those of the first confidential client."""

    def __init__(self, ready, process):
        self.url = ready["url"]
        self.client_id = ready["client_id"]
        self.client_secret = ready["client_secret"]
        self.environment = {
            "SERVICE_URL": self.url,
            "SERVICE_CLIENT_ID": self.client_id,
            "SERVICE_CLIENT_SECRET": self.client_secret,
        }
        self._control_token = ready["control_token"]
        self._process = process

    def token(self, **options):
        """Returns an access token. Options: user, client_id, scope, roles, claims, expires_in (seconds), bad."""
        request = urllib.request.Request(
            self.url + "/dev/mint",
            json.dumps(options).encode(),
            {"content-type": "application/json", "authorization": "Bearer " + self._control_token},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["token"]

    def stop(self):
        """Ends the server."""
        self._process.terminate()
        self._process.wait(10)


def executable():
    """Returns the path of the executable: GATEHOUSE_EXECUTABLE, this environment's scripts, else PATH."""
    name = "gatehouse.exe" if sys.platform == "win32" else "gatehouse"
    scripts = os.path.join(sysconfig.get_path("scripts"), name)
    found = os.environ.get("GATEHOUSE_EXECUTABLE") or (scripts if os.path.exists(scripts) else shutil.which(name))
    if not found:
        raise FileNotFoundError("gatehouse is not installed: set GATEHOUSE_EXECUTABLE to its path")
    return found


def start(*options):
    """Starts a development server on a free port. Takes the options of `gatehouse dev`, such as --seed FILE."""
    folder = tempfile.mkdtemp(prefix="gatehouse-")
    ready = os.path.join(folder, "ready")
    process = subprocess.Popen(
        [executable(), "dev", "--port", "0", "--ready-file", ready, *options],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not os.path.exists(ready):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError("gatehouse did not start; its output is above")
        time.sleep(0.01)
    with open(ready, encoding="utf-8") as file:
        line = json.load(file)
    shutil.rmtree(folder)
    return Gatehouse(line, process)


@pytest.fixture(scope="session")
def gatehouse():
    """A Gatehouse server for the whole run."""
    server = start()
    yield server
    server.stop()
