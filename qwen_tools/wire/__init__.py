"""The wire formats of chat APIs: JSON on one side, our messages, tools and events on the other. No HTTP.

``request`` is a request in neutral form. ``openai`` (Chat Completions), ``responses`` (OpenAI Responses) and
``anthropic`` (Messages) have the same names each:

- ``read_request(body) -> Request`` raises WireError, which names the field, and nothing else, for any JSON value;
  ``write_request(request) -> body``. What was read from a format and not changed is written as it was.
- ``response(message, *, id, created, model, finish, usage) -> body``;
  ``read_response(body, lost=[]) -> (message, finish, usage)``; to ``lost`` are added the places of what only this
  format says.
- ``StreamWriter(id=, created=, model=, include_usage=)``: ``feed(event) -> chunks`` takes every event of a turn,
  ``close(finish, usage) -> chunks``. Text, thoughts and arguments go out as they come, and a call is announced when
  its name is known; so one that is cut off or turns out broken stays on the wire unfinished, and the finish
  reason never says that there are calls to run because of it.
- ``StreamReader()``: ``feed(chunk) -> events``, ``close() -> events``; ``message``, ``finish`` and ``usage`` then say
  what the stream said, and ``lost`` what else.

``qwen`` reads and writes the raw text of a family in the same way. ``sse`` is the framing of the streams, ``loss`` says
what a conversation loses on its way into another format, ``names`` how tools are called where a format
allows fewer letters.

``finish`` is one of ``stop``, ``length``, ``interrupted`` and ``content_filter``.
"""

from ..fields import WireError
from .request import Request, Sampling

__all__ = ["Request", "Sampling", "WireError"]
