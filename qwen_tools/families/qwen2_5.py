"""Qwen2.5 and Qwen2.5-Coder: calls in JSON, no thoughts, always a system text.

Its sign is that of ChatML alone, so that a model whose template knows no tools counts as one of this family.
"""

from .family import Family

FAMILY = Family("qwen2.5", signs=("<|im_start|>",), default_system="always")
