"""Draw the parser's transition table in docs/parser.md: python scripts/draw_parser.py

Rewrites what stands between the two marks there. Only the table is read; what the groups are called is known here.
"""

from __future__ import annotations

from pathlib import Path

from qwen_tools.parser import TRANSITIONS

DOCS = Path(__file__).parents[1] / "docs" / "parser.md"
BEGIN, END = "<!-- drawn by scripts/draw_parser.py -->\n", "<!-- end of the drawing -->\n"

GROUPS = {
    "Thought": ("think", "think_opener", "think_bare", "think_bare_body", "draft"),
    "Text": ("text", "info", "fence", "after"),
    "Does a call open?": ("opener", "bare", "bare_body"),
    "JSON": ("json", "string", "list", "json_end", "broken"),
    "XML": ("name", "parameters", "key", "value", "look", "xml_end"),
}


def drawing() -> str:
    """The table as a Mermaid diagram. The signal ``end`` leads from every state to ``done`` and is left out."""
    lines = ["```mermaid", "stateDiagram-v2", "    direction LR", "    [*] --> start"]
    for number, (title, states) in enumerate(GROUPS.items()):
        lines.append(f'    state "{title}" as group{number} {{')
        lines += [f"        {state}" for state in states]
        lines.append("    }")
    for state, row in TRANSITIONS.items():
        targets: dict[str, list[str]] = {}
        for signal, target in row.items():
            if signal != "end":
                targets.setdefault(target, []).append(signal)
        lines += [f"    {state} --> {target}: {', '.join(signals)}" for target, signals in targets.items()]
    return "\n".join([*lines, "```", ""])


def with_drawing(text: str) -> str:
    """The text of the documentation with the drawing as it must be."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return before + BEGIN + "\n" + drawing() + "\n" + END + behind


if __name__ == "__main__":
    DOCS.write_text(with_drawing(DOCS.read_text(encoding="utf-8")), encoding="utf-8")
