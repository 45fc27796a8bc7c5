"""What is known about a model beyond its files: how it is best asked. One row a model, nothing for most.

The figures behind a row are in docs/embedded.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from .prompt import text_file
from .tools import Toolbox


@dataclass(frozen=True)
class Profile:
    """How to ask a model.

    ``texts`` is the folder in ``prompts/`` with the system text that is sent when the user gives none;
    ``parallel_calls`` is whether several calls in one answer are allowed; ``answer_after_result`` holds the model to
    plain words once a tool gave a result; ``do_sample`` overrides the model's generation_config.
    """

    texts: str | None = None
    parallel_calls: bool = True
    answer_after_result: bool = False
    do_sample: bool | None = None


# The 0.5B writes calls in no fixed form, does not stop calling when several calls are allowed, and calls
# again instead of answering when it has its result.
_EMBEDDED = Profile(texts="embedded", parallel_calls=False, answer_after_result=True, do_sample=False)

PROFILES = {"embedded": _EMBEDDED, "embedded-plain": _EMBEDDED, "embedded-1.5b": _EMBEDDED}


def profile(model: str) -> Profile:
    """The profile of a model by the name given to ``--model``."""
    return PROFILES.get(model, Profile())


def system_text(asked: Profile, toolbox: Toolbox) -> str | None:
    """The system text for these tools, or None where the family's own default is right.

    The examples of calls are those of offered tools: an example of a tool that is not there would be
    followed. Where none is offered, one marked ``stands_in`` shows what a call looks like.
    """
    if asked.texts is None or not len(toolbox):
        return None
    examples = [json.loads(line) for line in text_file(f"{asked.texts}/examples.jsonl").splitlines()]
    offered = any("call" in example and example["call"]["name"] in toolbox for example in examples)
    lines = []
    for example in examples:
        call = example.get("call")
        if call and not (call["name"] in toolbox or (example.get("stands_in") and not offered)):
            continue
        answer = json.dumps(call, ensure_ascii=False) if call else example["text"]
        lines.append(f"User: {example['user']}\nAssistant: {answer}")
    return "\n".join([text_file(f"{asked.texts}/system.txt"), *lines])
