"""The states of the parser, and where each signal leads. Nothing else decides a state: a policy is a row here.

``docs/parser.md`` draws this table (``scripts/draw_parser.py``), and a test says that the drawing is up to date.
"""

from __future__ import annotations

START, DONE = "start", "done"

# Every answer may end in every state: at the signal "end" the state says what becomes of what is open.
TRANSITIONS: dict[str, dict[str, str]] = {
    # Nothing but white space so far: an answer may open with a thought.
    "start": {"think": "think", "content": "text", "end": "done"},
    # In a thought. A call in it is a draft, unless the thought never ends: known at </think> or at the end.
    "think": {"tag": "think_opener", "function": "think_bare", "end_think": "text", "end": "done"},
    "think_opener": {
        "json": "draft",
        "list": "draft",
        "function": "draft",
        "tag": "think_opener",
        "not_a_call": "think",
        "end": "done",
    },
    "think_bare": {"known": "think_bare_body", "not_a_call": "think", "end": "done"},
    "think_bare_body": {"function": "draft", "not_a_call": "think", "end": "done"},
    "draft": {"end_think": "text", "replay": "text", "end": "done"},
    # In the text, and in a Markdown fence, whose opening line has an info string.
    "text": {"fence": "info", "tag": "opener", "function": "bare", "end": "done"},
    "info": {"line": "fence", "inline": "text", "end": "done"},
    "fence": {"fence_end": "text", "end": "done"},
    # Behind <tool_call>: what follows decides whether it opens a call, and in which dialect.
    "opener": {
        "json": "json",
        "list": "list",
        "function": "name",
        "tag": "opener",
        "not_a_call": "text",
        "end": "done",
    },
    # In the name of a <function=NAME> that stands by itself, and behind it.
    "bare": {"known": "bare_body", "not_a_call": "text", "end": "done"},
    "bare_body": {"function": "name", "not_a_call": "text", "end": "done"},
    # The JSON dialect: in an object, in a string of it, between the objects of a list, behind the whole value, in a
    # list of something else.
    "json": {
        "quote": "string",
        "element": "list",
        "whole": "json_end",
        "closed": "after",
        "tag": "opener",
        "end": "done",
    },
    "string": {"unquote": "json", "end": "done"},
    "list": {
        "json": "json",
        "whole": "json_end",
        "odd": "broken",
        "closed": "after",
        "tag": "opener",
        "end": "done",
    },
    "json_end": {"json": "json", "closed": "after", "tag": "opener", "not_a_call": "after", "end": "done"},
    "broken": {"closed": "after", "tag": "opener", "end": "done"},
    # The XML dialect: in <function=NAME>, between parameters, in <parameter=KEY>, in a value, behind a closing tag in
    # a value, behind </function>.
    "name": {"named": "parameters", "end": "done"},
    "parameters": {
        "parameter": "key",
        "whole": "xml_end",
        "closed": "after",
        "tag": "opener",
        "function": "name",
        "end": "done",
    },
    "key": {"value": "value", "broken": "parameters", "end": "done"},
    "value": {"closer": "look", "next": "key", "end": "done"},
    "look": {"no": "value", "parameter_end": "parameters", "whole": "xml_end", "end": "done"},
    "xml_end": {
        "closed": "after",
        "tag": "opener",
        "function": "name",
        "not_a_call": "after",
        "end": "done",
    },
    # Behind a call: white space, and closing tags that belong to nothing.
    "after": {"content": "text", "end": "done"},
    # Behind a token that ends the turn, or behind close(): nothing is read.
    "done": {},
}
