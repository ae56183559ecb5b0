"""Buckets of S3 on this machine, which fail as they are asked to.

moto keeps them in memory. It runs in a separate process: a client that holds Python's lock while
it waits would wait for ever.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode
from urllib.request import Request, urlopen

# Answers of a server that has to fail: with `lost` it has done as it was asked.
FAULTS = {"lost": "500 Internal Server Error", "throttled": "503 Slow Down", "denied": "403 Denied"}


@dataclass(frozen=True, slots=True)
class Buckets:
    """A server of S3, any of whose buckets is made by the first word of it."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a client finds the server."""
        return {
            "AWS_ACCESS_KEY_ID": "a-key",
            "AWS_SECRET_ACCESS_KEY": "a-very-secret-key",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def make(self, bucket: str) -> None:
        """Create a bucket."""
        self._ask("PUT", bucket)

    def mark_folder(self, path: str) -> None:
        """Mark a folder of a bucket as S3A does: by an empty object named with a slash."""
        self._ask("PUT", f"{path}/")

    def put_empty(self, path: str) -> None:
        """Put an empty object of any name, as another writer may."""
        self._ask("PUT", path)

    def fail(self, fault: str, times: int, method: str = "PUT", part: str = "/") -> None:
        """Let the next requests of a method fail, by a word of `FAULTS`.

        `part`: of the path of the object.
        """
        asked = urlencode({"fault": fault, "times": times, "method": method, "part": part})
        self._ask("POST", f"_faults?{asked}")

    def count(self) -> dict[str, float]:
        """Return the number of requests, their bytes both ways, and the seconds of answers."""
        answer: dict[str, float] = json.loads(self._ask("GET", "_counts"))
        return answer

    def _ask(self, method: str, path: str) -> bytes:
        with urlopen(Request(f"{self.endpoint}/{path}", method=method)) as answer:
            return bytes(answer.read())


@contextmanager
def buckets() -> Iterator[Buckets]:
    """Start a server; it ends with the block, or with this process."""
    command = [sys.executable, "-W", "ignore", __file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin and server.stdout
        try:
            yield Buckets(server.stdout.readline().strip())
        finally:
            server.stdin.close()


def _serve() -> None:
    """Serve until the input ends; the first line of the output is the URL."""
    import logging
    from threading import Lock, Thread

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    waiting: list[dict[str, str]] = []
    counts, counting = {"requests": 0.0, "bytes": 0.0, "seconds": 0.0}, Lock()

    def answer(environ, start_response):  # type: ignore[no-untyped-def]
        if environ["PATH_INFO"] == "/_counts":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(counts).encode()]
        began = time.perf_counter()
        content: list[bytes] = list(answered(environ, start_response))  # type: ignore[no-untyped-call]
        sizes = (int(environ.get("CONTENT_LENGTH") or 0), *map(len, content))
        with counting:
            counts["requests"] += 1
            counts["bytes"] += sum(sizes)
            counts["seconds"] += time.perf_counter() - began
        return content

    def answered(environ, start_response):  # type: ignore[no-untyped-def]
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == "/_faults":
            asked = dict(parse_qsl(environ["QUERY_STRING"]))
            waiting.extend([asked] * int(asked["times"]))
        elif waiting and waiting[0]["method"] == method and waiting[0]["part"] in path:
            fault = waiting.pop(0)["fault"]
            if fault == "lost":
                list(application(environ, lambda *_: None))
            else:
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(FAULTS[fault], [("Content-Length", "0")])
            return []
        else:
            return application(environ, start_response)
        start_response("204 No Content", [])
        return []

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
