"""The engine that sends raw prompts to a server: vLLM, SGLang, llama.cpp's, any with OpenAI's ``/v1/completions``.

The prompt goes as token ids where the model's tokenizer is on this machine and the server takes ids. Else it
goes as text in which control tokens that somebody wrote are visibly broken (``prompt.escaped``): the server reads every
control token in a text as one. Stop strings are found here, for every server alike; to stop is to close the
connection, which these servers take as a cancellation.

A guide is passed on to the servers that can hold an answer to a JSON Schema. What stands around the JSON of a
call is then not generated at all: the opening tag is part of the prompt, and the closing one is added here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from ..errors import UserError
from ..events import Usage
from ..families import detect, get
from ..guide import Guide
from ..prompt import Prompt, encode, escaped, tagged
from ..template import TemplatePrompt
from . import Piece, Settings
from .stops import until_stop

# Seconds. A server may make a prompt wait for others; a started answer should not pause for long.
_CONNECT, _SILENCE = 10.0, 300.0
# Before each new attempt to reach a server that does not answer, or is still loading its model.
_PAUSES = (0.5, 1.0, 2.0)
_LINE = 10_000_000  # characters of one event; a server is not trusted to stop

# Where a server shows the end of the turn as text, it is not part of the answer.
_ENDS = ("<|im_end|>", "<|endoftext|>")


def _vllm(schema: Any, regex: str) -> dict[str, Any]:
    return {"structured_outputs": {"regex": regex} if schema is None else {"json": schema}}


def _sglang(schema: Any, regex: str) -> dict[str, Any]:
    return {"regex": regex} if schema is None else {"json_schema": json.dumps(schema)}


def _llamacpp(schema: Any, regex: str) -> dict[str, Any]:
    if schema is not None:
        return {"json_schema": schema}
    # The regular expressions of guides are of the kind that GBNF can say too.
    return {"grammar": "root ::= " + regex.replace("[\\s\\S]", "[^\\x00]")}


# By what a server calls itself in its list of models: how it is told what an answer must be.
_STRUCTURED = {"vllm": _vllm, "sglang": _sglang, "llamacpp": _llamacpp}


class CompletionsEngine:
    """A model behind ``url`` (which ends in ``/v1``), by the name it has there.

    ``tokenizer`` is the model's where it is on this machine. ``kind`` is what the server calls itself.
    """

    def __init__(self, url: str, model: str, family: str, tokenizer: Any = None, kind: str = "") -> None:
        self.name = f"completions:{url}#{model}"
        self.family = family
        self.tokenizer = tokenizer
        self._url = url
        self._model = model
        self._kind = kind
        self._takes_ids = tokenizer is not None

    @property
    def can_guide(self) -> bool:
        """Whether the server is known to hold answers to a schema, and the prompt can be continued token by token."""
        return self._kind in _STRUCTURED and self.tokenizer is not None and get(self.family).dialect == "json"

    def generate(
        self,
        prompt: Prompt | TemplatePrompt,
        settings: Settings,
        *,
        begun: Sequence[int] = (),
        guide: Guide | None = None,
    ) -> Iterator[Piece]:
        """See Engine. Raises UserError: code 3 when the server cannot be reached or fails, 1 when it refuses."""
        opening, closing_tag, held_to = self._held_to(guide) if guide else ("", "", {})
        pieces = self._pieces(prompt, settings, [*begun, *self._ids(opening)], opening, closing_tag, held_to)
        for piece in until_stop(pieces, (*settings.stop, *_ENDS)):
            yield replace(piece, stop=None) if piece.stop in _ENDS else piece

    def _held_to(self, guide: Guide) -> tuple[str, str, dict[str, Any]]:
        """What stands before the guided part of an answer, what behind it, and how the server is told."""
        tell = _STRUCTURED[self._kind]
        if guide.schema is not None:
            return "", "", tell(guide.schema, "")
        if not guide.tools:
            rest = "[^{}\\[\\]<`]*" if guide.prose else "[\\s\\S]*"
            return "", "", tell(None, "[^{}\\[\\]<` \\t\\n\\r]" + rest)
        calls = [
            {
                "type": "object",
                "properties": {"name": {"const": tool.name}, "arguments": tool.parameters or {"type": "object"}},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for tool in guide.tools
        ]
        return "<tool_call>\n", "\n</tool_call>", tell(calls[0] if len(calls) == 1 else {"anyOf": calls}, "")

    def _pieces(
        self,
        prompt: Prompt | TemplatePrompt,
        settings: Settings,
        begun: list[int],
        opening: str,
        closing_tag: str,
        held_to: Mapping[str, Any],
    ) -> Generator[Piece, None, None]:
        started = time.perf_counter()
        usage = Usage()
        if self.tokenizer is not None:
            usage = replace(usage, prompt_tokens=len(prompt.ids(self.tokenizer)) + len(begun))
        if opening:
            yield Piece(opening, self._ids(opening), usage)
        finish = "stop"
        with closing(self._chunks(prompt, begun, self._body(settings, held_to))) as chunks:
            for text, reason, counts in chunks:
                if not usage.prefill_s:
                    usage = replace(usage, prefill_s=time.perf_counter() - started)
                usage = replace(
                    usage,
                    # These servers send an event a token; where one counts itself, that is what holds.
                    new_tokens=counts.get("completion_tokens", usage.new_tokens + bool(text)),
                    cached_tokens=(counts.get("prompt_tokens_details") or {}).get("cached_tokens")
                    or usage.cached_tokens,
                    prompt_tokens=counts.get("prompt_tokens", usage.prompt_tokens),
                    decode_s=time.perf_counter() - started - usage.prefill_s,
                )
                finish = reason or finish
                if text:
                    yield Piece(text, self._ids(text), usage)
        finish = "length" if finish == "length" else "stop"
        if closing_tag and finish == "stop":
            yield Piece(closing_tag, self._ids(closing_tag), usage)
        yield Piece("", usage=usage, finish=finish)

    def _ids(self, text: str) -> tuple[int, ...]:
        """The ids of a piece of the answer: servers give text, nearly always a token at a time."""
        return () if self.tokenizer is None else tuple(encode(tagged(text), self.tokenizer))

    def _body(self, settings: Settings, held_to: Mapping[str, Any]) -> dict[str, Any]:
        """A request but for its prompt. What is not set is the server's to choose: vLLM and SGLang take the
        model's generation_config.
        """
        temperature = 0 if settings.do_sample is False else settings.temperature
        penalty = "repeat_penalty" if self._kind == "llamacpp" else "repetition_penalty"
        given = {
            "temperature": temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k,
            "min_p": settings.min_p,
            penalty: settings.repetition_penalty,
            "seed": settings.seed,
        }
        body: dict[str, Any] = {"model": self._model, "max_tokens": settings.max_new_tokens, "stream": True}
        if self._kind in _STRUCTURED:  # others may refuse what they do not know
            body["stream_options"] = {"include_usage": True}
        if self._kind in ("vllm", "sglang"):
            body |= {"skip_special_tokens": False, "spaces_between_special_tokens": False}
        return body | {key: value for key, value in given.items() if value is not None} | dict(held_to)

    def _chunks(
        self, prompt: Prompt | TemplatePrompt, begun: list[int], body: dict[str, Any]
    ) -> Generator[tuple[str, str | None, dict[str, Any]], None, None]:
        """The answer's text as it comes, the reason of its end, and the server's counts."""
        if self._takes_ids:
            try:
                yield from _stream(self._url, {**body, "prompt": [*prompt.ids(self.tokenizer), *begun]})
                return
            except _RefusedError as refused:
                if refused.status not in (400, 422):
                    raise
                # It may be the ids that it does not take, which is found out once.
        text = "".join(segment.text for segment in escaped(prompt.segments))
        text += self.tokenizer.decode(begun) if begun else ""
        for chunk in _stream(self._url, {**body, "prompt": text}):
            self._takes_ids = False
            yield chunk


class _RefusedError(UserError):
    """The server did not like the request: ``status`` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message, code=1 if status in (400, 413, 422) else 3)
        self.status = status


def _http() -> Any:
    """The HTTP client that huggingface-hub brings along: httpx2, or httpx in versions for Python 3.10."""
    try:
        import httpx2

        return httpx2
    except ImportError:
        import httpx

        return httpx


def _client() -> Any:
    http = _http()
    key = os.environ.get("QWEN_TOOLS_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return http.Client(headers=headers, timeout=http.Timeout(_SILENCE, connect=_CONNECT))


def _stream(url: str, body: dict[str, Any]) -> Generator[tuple[str, str | None, dict[str, Any]], None, None]:
    """Ask, and read the server-sent events. Until the first byte of the answer a lost connection is tried again."""
    http = _http()
    with _client() as client:
        for pause in (*_PAUSES, None):
            begun = False
            try:
                with client.stream("POST", f"{url}/completions", json=body) as response:
                    if response.status_code == 503 and pause is not None:  # still loading its model, or too busy
                        time.sleep(pause)
                        continue
                    if response.status_code != 200:
                        response.read()
                        raise _RefusedError(response.status_code, _complaint(url, response))
                    for line in response.iter_lines():
                        begun = True
                        if len(line) > _LINE:
                            raise UserError(f"{url} sends events of more than {_LINE} characters", code=3)
                        if line.startswith("data:") and (data := line[5:].strip()) != "[DONE]":
                            yield _chunk(url, data)
                    return
            except http.TimeoutException as error:
                raise UserError(f"{url} did not answer for {_SILENCE:.0f} s", code=3) from error
            except http.TransportError as error:
                if begun:
                    raise UserError(f"{url} broke off in the middle of an answer ({error})", code=3) from error
                if pause is None:
                    raise UserError(f"cannot reach {url} ({error}): is the server running?", code=3) from error
                time.sleep(pause)


def _chunk(url: str, data: str) -> tuple[str, str | None, dict[str, Any]]:
    """One event: text, the reason of the end, counts."""
    try:
        event = json.loads(data)
        if "error" in event:
            raise UserError(f"{url} ended the answer: {_words(event)}", code=3)
        choices = event.get("choices") or [{}]
        text, reason, counts = choices[0].get("text") or "", choices[0].get("finish_reason"), event.get("usage") or {}
        if not (isinstance(text, str) and isinstance(counts, dict)):
            raise ValueError("neither text nor counts")
    except (ValueError, AttributeError, LookupError) as error:
        raise UserError(
            f"{url} does not answer as an OpenAI-style completions server does: {data[:100]!r}", 3
        ) from error
    return text, reason, counts


def _complaint(url: str, response: Any) -> str:
    try:
        words = _words(response.json())
    except ValueError:
        words = response.text
    if response.status_code == 401:
        return f"{url} wants a key: set QWEN_TOOLS_API_KEY"
    return f"{url} refuses ({response.status_code}): {' '.join(str(words).split())[:300]}"


def _words(answer: Any) -> Any:
    """What a server says is wrong, in the shapes that there are."""
    if not isinstance(answer, dict):
        return answer
    error = answer.get("error", answer)
    if isinstance(error, dict):
        return error.get("message") or error.get("detail") or error
    return error


def connect(address: str, family: str | None) -> CompletionsEngine:
    """The engine for ``URL[#MODEL]``. Without a model's name the server must have exactly one.

    Raises UserError (code 3) when the server cannot be reached or has no such model, (code 2) where the family cannot
    be told.
    """
    url, _, model = address.partition("#")
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise UserError(f"completions:{address} needs a URL, such as completions:http://localhost:8000/v1")
    if url.count("/") == 2:
        url += "/v1"
    offered = _models(url)
    names = [str(entry.get("id")) for entry in offered]
    if not model:
        if len(names) != 1:
            raise UserError(f"{url} has {len(names)} models: add one behind #: {', '.join(names[:10])}")
        model = names[0]
    entry = next((entry for entry in offered if entry.get("id") == model), {})
    tokenizer = _tokenizer(str(entry.get("root") or model)) or _tokenizer(model)
    if family is None:
        if tokenizer is None:
            raise UserError(f"the tokenizer of {model} is not on this machine: say how it is asked with --family")
        family = detect(tokenizer.chat_template or "", tokenizer.get_added_vocab())
    return CompletionsEngine(url, model, get(family).name, tokenizer, str(entry.get("owned_by", "")))


def _models(url: str) -> list[dict[str, Any]]:
    """What the server's list of models says."""
    http = _http()
    try:
        with _client() as client:
            response = client.get(f"{url}/models")
        if response.status_code != 200:
            raise UserError(_complaint(url, response), code=3)
        entries = response.json()["data"]
        return [entry for entry in entries if isinstance(entry, dict)]
    except http.TransportError as error:
        raise UserError(f"cannot reach {url} ({error}): is the server running?", code=3) from error
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(f"{url} is no OpenAI-style server: it has no list of models", code=3) from error


def _tokenizer(model: str) -> Any:
    """The tokenizer of a model that is on this machine (folder, GGUF file, a name of ours, hub's cache), or None. No
    network is asked.
    """
    import transformers

    from .. import models

    log: Any = transformers.logging  # not typed
    log.set_verbosity_error()
    try:
        source = models.resolve(model)
        where: Any = source.location if source.kind == "hub" else models.prepare(source)
        return transformers.AutoTokenizer.from_pretrained(where, local_files_only=True)
    except (UserError, OSError, ValueError):
        return None
