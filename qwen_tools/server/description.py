"""The routes for programs: an OpenAPI 3.1 document. What a field of a chat format means its owner says."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_OBJECT: Schema = {"type": "object"}
_OBJECTS: Schema = {"type": "array", "items": _OBJECT}
_TEXT_OR_OBJECTS: Schema = {"anyOf": [_TEXT, _OBJECTS]}
_STOP: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_SAMPLING: Schema = {
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
}

_CHAT: Schema = {
    "model": _TEXT,
    "messages": {**_OBJECTS, "minItems": 1},
    "tools": _OBJECTS,
    "tool_choice": {"anyOf": [_TEXT, _OBJECT]},
    "parallel_tool_calls": _FLAG,
    "response_format": _OBJECT,
    "max_completion_tokens": _COUNT,
    "max_tokens": _COUNT,
    "stop": _STOP,
    "seed": {"type": "integer"},
    **_SAMPLING,
    "stream": _FLAG,
    "stream_options": _OBJECT,
}

_BODIES: dict[str, tuple[str, Schema, list[str]]] = {
    "/v1/chat/completions": ("OpenAI Chat Completions", _CHAT, ["messages"]),
    "/v1/responses": (
        "OpenAI Responses, without anything kept between requests",
        {
            "model": _TEXT,
            "input": _TEXT_OR_OBJECTS,
            "instructions": _TEXT,
            "tools": _OBJECTS,
            "tool_choice": {"anyOf": [_TEXT, _OBJECT]},
            "parallel_tool_calls": _FLAG,
            "text": _OBJECT,
            "max_output_tokens": _COUNT,
            **_SAMPLING,
            "stream": _FLAG,
        },
        ["input"],
    ),
    "/v1/messages": (
        "Anthropic Messages",
        {
            "model": _TEXT,
            "max_tokens": _COUNT,
            "system": _TEXT_OR_OBJECTS,
            "messages": {**_OBJECTS, "minItems": 1},
            "tools": _OBJECTS,
            "tool_choice": _OBJECT,
            "stop_sequences": {"type": "array", "items": _TEXT},
            "top_k": {"type": "integer", "minimum": 0},
            **_SAMPLING,
            "stream": _FLAG,
        },
        ["messages"],
    ),
    "/v1/completions": (
        "A raw prompt goes on: nothing is rendered, nothing is parsed",
        {
            "model": _TEXT,
            "prompt": _TEXT,
            "max_tokens": _COUNT,
            "stop": _STOP,
            "seed": {"type": "integer"},
            **_SAMPLING,
            "echo": _FLAG,
            "stream": _FLAG,
            "stream_options": _OBJECT,
        },
        ["prompt"],
    ),
    "/v1/events": (
        "A Chat Completions request, answered by the events of the turn: the exact raw prompt first, then all that "
        "happens while the answer is read. Always a stream",
        _CHAT,
        ["messages"],
    ),
}

_READS = {
    "/v1/models": "The list of models, which is one",
    "/v1/models/{model}": "One model",
    "/health": "Whether the server is there, and how many requests wait",
    "/openapi.json": "This document",
}


def _described(says: str, mime: str = "application/json") -> Schema:
    return {"description": says, "content": {mime: {"schema": _OBJECT if mime == "application/json" else _TEXT}}}


_ERRORS: Schema = {
    "400": _described("A field is wrong or not supported; the error names it"),
    "401": _described("The API key is missing or wrong"),
    "403": _described("The host or the origin is not served"),
    "404": _described("No such model"),
    "413": _described("The body is too large"),
    "429": _described("Too many requests wait; Retry-After says when to try again"),
}


def _post(says: str, properties: Schema, required: list[str]) -> Schema:
    answer = _described("The answer; with `stream` as server-sent events")
    answer["content"]["text/event-stream"] = {"schema": _TEXT}
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "post": {
            "summary": says,
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {"200": answer, **_ERRORS},
        }
    }


def _get(path: str, says: str) -> Schema:
    operation: Schema = {"summary": says, "responses": {"200": _described(says), "401": _ERRORS["401"]}}
    if "{model}" in path:
        operation["parameters"] = [{"name": "model", "in": "path", "required": True, "schema": _TEXT}]
        operation["responses"]["404"] = _ERRORS["404"]
    return {"get": operation}


DESCRIPTION: Schema = {
    "openapi": "3.1.0",
    "info": {
        "title": "qwen_tools",
        "version": "1",
        "description": "Tool calling with a local model over raw tags, in the formats of OpenAI and Anthropic.",
    },
    "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "security": [{}, {"key": []}],
    "paths": {
        **{path: _post(*body) for path, body in _BODIES.items()},
        **{path: _get(path, says) for path, says in _READS.items()},
    },
}
