"""A small reverse proxy, as notebooks and company networks put in front of servers."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def proxy(port: int, path: str, *, strips: bool) -> Iterator[str]:
    """Shows the server at `port` under `path`; passes the path on, or takes it away. Yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            if not self.path.startswith(f"{path}/"):
                return self.send_error(404)
            asked = self.path.removeprefix(path) if strips else self.path
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            behind = http.client.HTTPConnection("127.0.0.1", port)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
                behind.request(self.command, asked, body, headers)
                answer = behind.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "date"):
                        self.send_header(name, value)
                self.end_headers()
                while some := answer.read1(65536):
                    self.wfile.write(some)
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the browser has gone on to another page
            finally:
                behind.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    front = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    front.daemon_threads = True
    thread = threading.Thread(target=front.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{front.server_port}"
    finally:
        front.shutdown()
        front.server_close()
        thread.join()
