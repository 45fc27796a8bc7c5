"""Tools of your own: every public function of a file is one.

    python -m qwen_tools chat --tools examples/my_tools.py "How many words has 'to be or not to be'?"

Type hints and the docstring are all that is needed. What only reads says so, and runs without asking;
everything else is shown to you first.
"""

from pathlib import Path

from qwen_tools.tools import tool


@tool(read_only=True)
def word_count(text: str) -> int:
    """Count the words of a text.

    Args:
        text: the text

    """
    return len(text.split())


def append_note(text: str) -> str:
    """Append a line to notes.txt in the current folder.

    Args:
        text: the line

    """
    with Path("notes.txt").open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return "noted"
