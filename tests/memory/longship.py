"""The real OpenViking server, where it is installed: a process of its own, and a scripted model that it asks.

It is looked for as `openviking-server` on the path, or as what `HOLDFAST_TEST_OPENVIKING` says.  To try it, install the
package `openviking` (seen working: 0.5.2) into an environment of its own, and point the variable at the command there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "root-0123456789abcdef"
READY_S = 120
DIMENSION = 64
_SAID = re.compile(r"^\[(\d+)\]\[user\]\[[^\]]*\]: (.*)$", re.MULTILINE)


def command() -> str | None:
    """Return how the server is started; None where it is not installed."""
    return os.environ.get("HOLDFAST_TEST_OPENVIKING") or shutil.which("openviking-server")


class _Model(BaseHTTPRequestHandler):
    """Embeds by the words of a text, and extracts from a conversation each thing that the person said."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(_embedded(told) if "embeddings" in self.path else _completed(told)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - The name that it is called by.
        """Keep quiet."""


def _embedded(told: dict[str, Any]) -> dict[str, Any]:
    texts = [told["input"]] if isinstance(told["input"], str) else told["input"]
    data = [{"object": "embedding", "index": number, "embedding": _vector(text)} for number, text in enumerate(texts)]
    return {"object": "list", "model": told["model"], "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def _vector(text: str) -> list[float]:
    vector = [0.0] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % DIMENSION] += 1.0
    length = sum(each * each for each in vector) ** 0.5 or 1.0
    return [each / length for each in vector]


def _completed(told: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": _program([str(each.get("content")) for each in told["messages"]])}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": told["model"],
        "choices": [choice],
        "usage": usage,
    }


def _program(prompts: list[str]) -> str:
    """Return what OpenViking takes for an extraction: calls of its memory kit."""
    talk = next((each for each in prompts if "Conversation History" in each), "")
    calls = [
        f'e{index} = sdk.create_events(event_name="{_event(text)}", goal="remember", summary={text!r}, ranges="{index}")'
        for index, text in _SAID.findall(talk)
    ]
    return "\n".join([*calls, "sdk.commit()"])


def _event(text: str) -> str:
    return re.sub(r"[^a-z]+", "_", text.lower()).strip("_")


@contextmanager
def running(home: Path) -> Iterator[str]:
    """Run the server in a folder of its own; yields its address."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    port = _free_port()
    (home / "ov.conf").write_text(json.dumps(_settings(home, port, f"http://127.0.0.1:{model.server_port}/v1")))
    log = home / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(command()), "--config", str(home / "ov.conf")],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            cwd=home,
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        model.shutdown()
        model.server_close()


def _settings(home: Path, port: int, model: str) -> dict[str, Any]:
    asked = {"provider": "openai", "model": "scripted", "api_key": "none", "api_base": model}
    return {
        "storage": {"workspace": str(home / "data")},
        "server": {"host": "127.0.0.1", "port": port, "auth_mode": "trusted", "root_api_key": KEY},
        "embedding": {"dense": {**asked, "dimension": DIMENSION, "input": "text", "encoding_format": "float"}},
        "vlm": asked,
    }


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-3_000:]
        with suppress(OSError, urllib.error.URLError), urllib.request.urlopen(f"{url}/ready", timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError(f"OpenViking did not start in {READY_S} s: {log.read_text()[-3_000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
