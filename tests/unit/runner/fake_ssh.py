"""An ssh for tests: takes the options the real one is given, runs the command here, forwards for real.

FAKE_SSH=denied|refused|unknown-key|silent|hang makes it fail in ssh's own words (OpenSSH 9). An option it does not know
ends it, as with the real one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

WORDS = {
    "denied": "root@h1: Permission denied (publickey).",
    "refused": "ssh: connect to host h1 port 22: Connection refused",
    "unknown-key": "No ED25519 host key is known for h1 and you requested strict checking.\nHost key verification failed.",
    "silent": "",
}
KNOWN: tuple[str, ...] = (
    "BatchMode",
    "ControlMaster",
    "ControlPath",
    "ConnectTimeout",
    "ExitOnForwardFailure",
    "Port",
    "User",
)
KNOWN += ("IdentityFile", "StrictHostKeyChecking", "ProxyCommand", "ControlPersist", "ServerAliveInterval", "SendEnv")


def pump(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(4096):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def serve(listener: socket.socket, far: str) -> None:
    while True:
        near, _ = listener.accept()
        if far.startswith("/"):
            remote = socket.socket(socket.AF_UNIX)
            remote.connect(far)
        else:
            remote = socket.create_connection(("127.0.0.1", int(far.rpartition(":")[2])))
        for pair in ((near, remote), (remote, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


def listen(spec: str) -> None:
    if spec.startswith("/"):
        near, _, far = spec.partition(":")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(near)
    else:
        _, port, far = spec.split(":", 2)
        listener = socket.socket()
        try:
            listener.bind(("127.0.0.1", int(port)))
        except OSError:
            sys.stderr.write(f"bind [127.0.0.1]:{port}: Address already in use\nCould not request local forwarding.\n")
            sys.exit(255)
    listener.listen()
    threading.Thread(target=serve, args=(listener, far), daemon=True).start()


def main() -> None:
    words = sys.argv[1:]
    if log := os.environ.get("FAKE_SSH_LOG"):
        Path(log).write_text("\n".join([str(os.getpid()), *words]))
    specs = []
    while words and words[0].startswith("-") and words[0] != "--":
        option, value = words.pop(0), words.pop(0)
        if option == "-L":
            specs.append(value)
        elif option != "-o" or value.split("=")[0] not in KNOWN:
            sys.exit(f"command-line: unknown option {option} {value}")
    mode = os.environ.get("FAKE_SSH", "")
    if mode == "hang":
        time.sleep(60)
    if mode:
        sys.stderr.write(WORDS[mode] + "\n")
        sys.exit(255)
    for spec in specs:
        listen(spec)
    assert words[1] == "--"
    sys.exit(subprocess.run(["sh", "-c", " ".join(words[2:])], check=False).returncode)


main()
