"""``web_fetch``: the text of a web page, after asking.

http and https only, directly (proxies are not used), with limits of size, time and redirects. The addresses of a host
are looked up once, all of them checked, and one of those is connected to, at every redirect anew: a name that changes
its address in between (DNS rebinding) wins nothing. Private, loopback and link-local addresses are refused;
``web_fetch:private`` allows them.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from html.parser import HTMLParser
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from ..errors import UserError
from ..tools import Output, Tool

_SECONDS = 20.0
_CONNECT = 6.0  # for one address of several: the first may be of a network that we are not in
_BYTES = 3_000_000
_REDIRECTS = 5
_SHOWN = 5000  # characters at once

_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: an IPv4 address in its last 32 bits


def tools(argument: str) -> list[Tool]:
    """The tool. Raises UserError for an argument other than ``private``."""
    if argument not in ("", "private"):
        raise UserError(f"web_fetch takes no argument but private, not {argument!r}")

    def web_fetch(url: str, start: int = 0) -> Output:
        return fetch(url, start, private=argument == "private")

    return [
        Tool(
            "web_fetch",
            "Fetch a web page as text.",
            {
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "begins with https:// or http://"},
                    "start": {
                        "type": "integer",
                        "minimum": 0,
                        "default": 0,
                        "description": "character to read on from",
                    },
                },
                "required": ["url"],
            },
            web_fetch,
        )
    ]


def fetch(url: str, start: int = 0, *, private: bool = False) -> Output:
    """A page as text, from a character on. Raises ValueError for what may not or cannot be fetched."""
    deadline = time.monotonic() + _SECONDS
    for _ in range(_REDIRECTS + 1):
        parts = _checked(url)
        status, headers, body = _get(parts, private, deadline)
        location = headers.get("Location")
        if status in (301, 302, 303, 307, 308) and location:
            url = urljoin(url, location)
            continue
        text = _text(body, headers)
        if status >= 400:
            raise ValueError(
                f"{parts.hostname} answered {status} {http.client.responses.get(status, '')}: {text[:200]}"
            )
        if start and start >= len(text):
            raise ValueError(f"the page has {len(text)} characters; start must be smaller")
        shown = text[start : start + _SHOWN]
        end = start + len(shown)
        if end < len(text):
            shown += f"\n[characters {start}-{end} of {len(text)}; start {end} reads on]"
        return Output(shown or "the page has no text", (url,))
    raise ValueError(f"more than {_REDIRECTS} redirects")


def _checked(url: str) -> SplitResult:
    """The parts of an address that may be asked for."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{url!r} is not a web address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not a web address: it must begin with https:// or http:// and a host")
    if parts.username is not None or port == 0:
        raise ValueError("a web address here has no user name and no port 0")
    return parts


def public(address: str) -> bool:
    """Whether an IP address is one of the public internet, also where it is wrapped in an IPv6 one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return public(str(inner))
    return found.is_global and not found.is_multicast


def _connected(host: str, port: int, private: bool, deadline: float) -> socket.socket:
    """A connection to one of the host's addresses, all of which were checked."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ValueError(f"there is no host {host}") from None
    for *_, address in found:
        if not private and not public(str(address[0])):
            raise ValueError(f"{host} is at {address[0]}, an address that is not public; it may not be fetched")
    reason: OSError | None = None
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        try:
            left = max(0.01, deadline - time.monotonic())
            connection.settimeout(min(left, _CONNECT))
            connection.connect(address)
            connection.settimeout(left)
        except OSError as error:
            connection.close()
            reason = error
        else:
            return connection
    raise ValueError(f"cannot connect to {host}: {reason}")


def _get(parts: SplitResult, private: bool, deadline: float) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One request and its answer: status, headers, body."""
    host = _ascii(parts.hostname or "")
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    stream = _connected(host, port, private, deadline)
    # Time-outs are of single reads; a server that sends a byte now and then is cut off by this.
    watch = threading.Timer(max(0.0, deadline - time.monotonic()), lambda: _shut(stream))
    watch.daemon = True
    watch.start()
    try:
        if secure:
            wrapped = ssl.create_default_context().wrap_socket(
                stream, server_hostname=host, do_handshake_on_connect=False
            )
            stream = wrapped  # which has taken the connection over
            wrapped.do_handshake()
        connection = http.client.HTTPConnection(host, port)
        connection.sock = stream
        # What is no ASCII is quoted, and what is quoted already stays.
        target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~") + (
            "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?") if parts.query else ""
        )
        connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
        shown = f"[{host}]" if ":" in host else host
        connection.putheader("Host", shown if port == (443 if secure else 80) else f"{shown}:{port}")
        connection.putheader("User-Agent", "qwen_tools (web_fetch)")
        connection.putheader("Accept", "text/html, text/*;q=0.9, application/json;q=0.8, */*;q=0.1")
        connection.putheader("Accept-Encoding", "gzip")
        connection.putheader("Connection", "close")
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read(_BYTES)
        if time.monotonic() >= deadline:  # what was read then is a part, cut at any place
            raise TimeoutError
        if answer.headers.get("Content-Encoding", "").lower() == "gzip":
            body = zlib.decompressobj(31).decompress(body, _BYTES)
        return answer.status, answer.headers, body
    except (OSError, http.client.HTTPException, zlib.error) as error:
        if time.monotonic() >= deadline:
            raise ValueError(f"{host} did not answer within {_SECONDS:g} seconds") from None
        raise ValueError(f"{host} cannot be read: {' '.join(str(error).split()) or type(error).__name__}") from None
    finally:
        watch.cancel()
        stream.close()


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)


def _ascii(host: str) -> str:
    """A host name as the network has it; 例子.测试 is xn--fsqu00a.xn--0zwm56d."""
    if ":" in host:  # an IPv6 address
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise ValueError(f"{host!r} is not the name of a host") from None


def _text(body: bytes, headers: http.client.HTTPMessage) -> str:
    """The text of an answer. Raises ValueError for what is none."""
    kind = headers.get_content_type() if headers.get("Content-Type") else "text/html"
    if not (kind.startswith("text/") or kind.endswith(("json", "xml", "javascript"))):
        raise ValueError(f"the page is {kind}, not text")
    declared = headers.get_content_charset()
    if declared is None and (meta := re.search(rb"<meta[^>]+charset=[\"']?([\w-]+)", body[:4096], re.IGNORECASE)):
        declared = meta[1].decode("ascii")
    text = _decoded(body, declared)
    return html_to_text(text) if kind in ("text/html", "application/xhtml+xml") else text.strip()


def _decoded(body: bytes, declared: str | None) -> str:
    # GB2312 pages hold characters of its larger successor.
    names = ["gb18030" if (declared or "").lower() in ("gb2312", "gbk") else declared or "utf-8", "utf-8", "gb18030"]
    for name in names:
        try:
            return body.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return body.decode(names[0] if declared is None else "utf-8", "replace")


def html_to_text(html: str) -> str:
    """What a reader sees of a page: headings and list items marked as in Markdown, links without their addresses."""
    # Where nothing is left, the page is wrapped in what is left out, or does not close it.
    text = _read(html, _UNSEEN | _AROUND) or _read(html, _UNSEEN)
    text = re.sub(r"[ \t\r\f\v\u00a0]+", " ", text)
    text = re.sub(r" ?\n(?: ?\n)+ ?", "\n\n", re.sub(r" ?\n ?", "\n", text)).strip()
    return text.translate({mark: space for space, mark in _KEPT.items()})


def _read(html: str, unseen: frozenset[str]) -> str:
    reader = _Reader(unseen)
    reader.feed(html)
    reader.close()
    return "".join(reader.pieces).strip()


# White space in <pre>, while that of all the rest is thrown together: two code points that no text has.
_KEPT = {ord(" "): 0xFDD0, ord("\n"): 0xFDD1}
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object"})
_AROUND = frozenset({"nav", "footer"})
_BLOCKS = {"p", "div", "section", "article", "main", "header", "aside", "ul", "ol", "table", "blockquote", "pre", "dl",
           "figure", "title", "body"}  # fmt: skip
_LINES = {"br", "tr", "dt", "dd", "figcaption", "option"}


class _Reader(HTMLParser):
    def __init__(self, unseen: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hides = unseen
        self._unseen: list[str] = []  # the open elements that are left out: the first, and those of its name in it
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - HTMLParser's
        if self._unseen:
            self._unseen += [tag] if tag == self._unseen[0] else []
        elif tag in self._hides:
            self._unseen.append(tag)
        else:
            self._pre += tag == "pre"
            self.pieces.append(self._before(tag))

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[0]:
                self._unseen.pop()
        elif tag in _BLOCKS or re.fullmatch("h[1-6]", tag):
            self._pre = max(0, self._pre - (tag == "pre"))
            self.pieces.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            # A line end in the source is a space, but in <pre>.
            self.pieces.append(data.translate(_KEPT) if self._pre else re.sub(r"\s+", " ", data))

    @staticmethod
    def _before(tag: str) -> str:
        if re.fullmatch("h[1-6]", tag):
            return "\n\n" + "#" * int(tag[1]) + " "
        if tag == "li":
            return "\n- "
        if tag in ("td", "th"):
            return " | "
        return "\n\n" if tag in _BLOCKS else "\n" if tag in _LINES else ""
