"""Qwen2.5 and Qwen2.5-Coder: calls in JSON, no thoughts, always a system text."""

from .family import Family

FAMILY = Family("qwen2.5", signs=("<|im_start|>", "<tool_call>"), default_system="always")
