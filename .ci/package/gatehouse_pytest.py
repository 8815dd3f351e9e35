"""pytest fixtures: a Gatehouse server in development mode, and tokens of it.

    def test_orders(gatehouse):
        token = gatehouse.token(user="alice", scope="openid orders:read")
        requests.get(url, headers={"Authorization": f"Bearer {token}"})
"""

import collections
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import sysconfig
import threading
import urllib.error
import urllib.request

import pytest


class Gatehouse:
    """A running server. `url` is the issuer, `client_id` and `client_secret` those of the first confidential client, or
    of the first client if none is confidential. `password` is that of the users of the default seed."""

    def __init__(self, ready, process, reader):
        self.url = ready["url"]
        self.client_id = ready["client_id"]
        self.client_secret = ready["client_secret"]
        self.password = ready["password"]
        self.environment = {
            "SERVICE_URL": self.url,
            "SERVICE_CLIENT_ID": self.client_id,
            # A command must not inherit the secret of another client.
            "SERVICE_CLIENT_SECRET": self.client_secret or "",
        }
        # This machine may not know the host of the issuer, such as the name of a container.
        self._local_url = ready["local_url"]
        trust = ready["ca_file"] and ssl.create_default_context(cafile=ready["ca_file"])
        # The proxy of HTTP_PROXY would get the control token.
        direct = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(direct, urllib.request.HTTPSHandler(context=trust))
        self._control_token = ready["control_token"]
        self._process = process
        self._reader = reader

    def token(self, **options):
        """Returns a token. Options: user, organization, client_id, scope, roles, claims, expires_in (seconds), kind
        (default "access_token", or "id_token"), bad."""
        request = urllib.request.Request(
            self._local_url + "/dev/mint",
            json.dumps(options).encode(),
            {"content-type": "application/json", "authorization": "Bearer " + self._control_token},
        )
        try:
            with self._opener.open(request, timeout=10) as answer:
                return json.load(answer)["token"]
        except urllib.error.HTTPError as refusal:
            raise RuntimeError(f"gatehouse refused the token ({refusal.code}): {_reason(refusal)}") from None

    def stop(self):
        """Ends the server."""
        self._process.terminate()
        self._process.wait(10)
        self._reader.join(10)
        _close(self._process)


def executable():
    """Returns the path of the executable: SERVICE_EXECUTABLE, this environment's scripts, else PATH."""
    name = "gatehouse.exe" if sys.platform == "win32" else "gatehouse"
    scripts = os.path.join(sysconfig.get_path("scripts"), name)
    found = os.environ.get("SERVICE_EXECUTABLE") or (scripts if os.path.exists(scripts) else shutil.which(name))
    if not found:
        raise FileNotFoundError("gatehouse is not installed: set SERVICE_EXECUTABLE to its path")
    return found


def start(*options, seed=None, image=None, engine=("docker", "run")):
    """Starts a development server on a free port. Takes the options of `gatehouse dev`, such as --tls.

    `seed` is the path of a seed file, which the server gets on standard input. `image` names a container image that
    is run instead of the executable, by the program and options of `engine`. The server stops when this process ends,
    even if it is killed, because its standard input then ends.
    """
    if image is None:
        command = [executable(), "dev", "--port", "0"]
    else:
        # The issuer contains the port on the host, so the server in the container must listen on the same
        # port.
        port = _free_port()
        publish = ["--rm", "--interactive", "--publish", f"127.0.0.1:{port}:{port}"]
        address = ["--port", str(port), "--url", f"http://localhost:{port}", "--dev-host", "0.0.0.0"]
        command = [*engine, *publish, image, "dev", *address]
    if seed is not None:
        command += ["--seed", "-"]
    command += ["--until-input-ends", *options]
    given = b""
    if seed is not None:
        with open(seed, "rb") as file:
            given = file.read() + b"\n...\n"
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        process.stdin.write(given)
    except BrokenPipeError:
        pass  # The server has refused an option, and says so on standard error.
    # Lines of the log may come before the ready line.
    line = next((line for line in process.stdout if line.startswith(b'{"event":"ready"')), None)
    if line is None:
        process.wait()
        _close(process)
        raise RuntimeError("gatehouse did not start; its output is above")
    # Reads and discards all later output, because a full pipe would block the server.
    reader = threading.Thread(target=lambda: collections.deque(process.stdout, maxlen=0), daemon=True)
    reader.start()
    return Gatehouse(json.loads(line), process, reader)


def _reason(refusal):
    text = refusal.read().decode()
    try:
        answer = json.loads(text)
        fields = [f"{each['field']}: {each['message']}" for each in answer.get("details", [])]
        return " ".join([answer["error_description"], *fields])
    except (ValueError, KeyError):
        return text


def _close(process):
    process.stdin.close()
    process.stdout.close()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def gatehouse():
    """A Gatehouse server for the whole run."""
    server = start()
    yield server
    server.stop()
