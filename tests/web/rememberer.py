"""A memory server as somebody else would write it: real HTTP in a thread, so that commands and gateways alike can ask it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOLD_MAX_S = 60


class Rememberer:
    """What it was told, and how it answers.  With `refuses` it takes no commit whose text holds that word.

    From the commit of number `hold` on it does not answer until it is released.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.commits: list[Any] = []
        self.forgets: list[Any] = []
        self.refuses: str | None = None
        self.memories: dict[str, str] = {}
        self.hold = 0
        self.held = False
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    @property
    def owner(self) -> str:
        return f"http:{self.url}"

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        match path:
            case "/commit":
                if self.refuses is not None and self.refuses in json.dumps(body["messages"]):
                    return 503, {"error": "not now"}
                self.commits.append(body)
                if self.hold and len(self.commits) >= self.hold:
                    self.held = True
                    self._released.wait(HOLD_MAX_S)
                return 200, {"receipt": f"{len(body['messages'])} messages taken"}
            case "/recall":
                found = [{"id": id_, "text": text} for id_, text in self.memories.items() if body["query"] in text]
                return 200, {"memories": found[: body["limit"]]}
            case "/forget":
                self.forgets.append(body)
                gone = 2 if "session_id" in body else int(self.memories.pop(body["id"], None) is not None)
                return 200, {"forgotten": gone}
            case _:
                return 404, {}

    def told(self) -> list[str]:
        """Return what people said in what was committed, in order."""
        return [message["text"] for each in self.commits for message in each["messages"] if message["role"] == "user"]


@contextlib.contextmanager
def remembering() -> Iterator[Rememberer]:
    """Serve for as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, told = server.answer(self.path, body)
            raw = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            # Whoever asked may have left by now.
            with contextlib.suppress(BrokenPipeError):
                self.wfile.write(raw)

        def log_message(self, *_told: Any) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = Rememberer(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
