"""A chat API on this machine that answers with what a test wrote down, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Reply:
    """One answer: a status, headers and a body; ``breaks`` closes the connection in the middle, ``drops`` before the
    first byte.
    """

    def __init__(self, body="", status=200, kind="text/event-stream", headers=(), breaks=False, drops=False):
        self.body = body if isinstance(body, bytes) else body.encode()
        self.status, self.kind, self.headers, self.breaks, self.drops = status, kind, headers, breaks, drops


class Api:
    """What came in, and where the server is."""

    def __init__(self, url):
        self.url = url
        self.requests = []
        self.paths = []
        self.headers = []


@contextmanager
def serving(*replies):
    """A server that gives the replies in order; one more request is a 500."""
    waiting = list(replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            api.paths.append(self.path)
            api.headers.append({key.lower(): value for key, value in self.headers.items()})
            api.requests.append(json.loads(self.rfile.read(int(self.headers.get("content-length", 0)))))
            self.reply()

        def do_GET(self):
            api.paths.append(self.path)
            self.reply()

        def reply(self):
            reply = waiting.pop(0) if waiting else Reply("no more replies", 500)
            self.close_connection = True
            if reply.drops:
                return
            self.send_response(reply.status)
            self.send_header("content-type", reply.kind)
            for name, value in reply.headers:
                self.send_header(name, value)
            if reply.breaks:
                self.send_header("content-length", str(len(reply.body) + 100))
            else:
                self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api = Api(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
