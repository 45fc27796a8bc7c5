"""Results as one HTML page that needs nothing else: no network, no script, charts as inline SVG, light and dark, from
the width of a telephone up.

Pages are made of the same JSON values that ``--json`` prints. All text comes from models, tools and files: it is
escaped, and the page's own policy forbids whatever is not on it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

# No script runs and nothing is fetched, whatever a text brings along.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

# What must not reach a page as it is: control characters, those that turn the direction of writing, half a character.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# A model that opens a call with less than this probability hardly calls by itself.
HARDLY = 0.01


class Bar(NamedTuple):
    """A row of a chart: ``parts`` stand one behind the other; ``amount`` says in words what they are."""

    label: str
    parts: Sequence[float]
    amount: str


def comparison(data: Mapping[str, Any]) -> str:
    """The page of ``compare``: ``model``, ``family``, ``arms`` (what each is), ``summary`` (by arm) and ``tasks`` with
    their ``outcomes`` (see ``compare.Outcome``).
    """
    tasks = data["tasks"]
    counted = f"{len(tasks)} tasks" if len(tasks) != 1 else "one task"
    parts = [
        f"<h1>{text(data['model'])}: {counted}, {len(data['arms'])} ways to ask</h1>",
        f'<p class="dim">Prompts of family {text(data["family"])}, answers of at most {data["max_new_tokens"]} tokens. '
        "Strict and salvaged results are never added up.</p>",
        _summary_table(data["summary"], data["arms"]),
        _summary_charts(data["summary"]),
    ]
    parts += [_task(task, alone=len(tasks) == 1) for task in tasks]
    return page(f"{data['model']}: {counted} compared", parts)


def beginnings(data: Mapping[str, Any]) -> str:
    """The page of ``why``: ``model``, ``versions`` of the tools (one or two), ``verdict`` and ``questions``."""
    parts = [
        f"<h1>How {text(data['model'])} begins its answer</h1>",
        '<p class="dim">Exact probabilities at the first tokens of the answer, temperature 1, nothing sampled. '
        "A call is counted as one of a tool when it begins with the tag and the tool's whole name.</p>",
    ]
    if data["verdict"]:
        parts.append(f"<p><strong>{text(data['verdict'])}</strong></p>")
    versions = data["versions"]
    if len(versions) == 2:
        parts.append("<h2>The two descriptions</h2>")
        texts = [json.dumps(tools, ensure_ascii=False, indent=1) for tools in versions.values()]
        parts.append(_side_by_side(list(zip(versions, texts, strict=True))))
    parts += [_question(question, list(versions)) for question in data["questions"]]
    return page(f"How {data['model']} begins its answer", parts)


def benchmark(data: Mapping[str, Any]) -> str:
    """The page of ``bench``: what ``compare`` has of it, ``asked`` and ``questions`` (how many there are answers of,
    and how many were chosen), ``summary`` by category and arm, ``pairs`` (see ``bench.pairs``) and ``rows``.
    """
    counted = f"{data['asked']} of {data['questions']}" if data["asked"] < data["questions"] else str(data["asked"])
    overall = data["summary"]["all"]
    parts = [
        f"<h1>{text(data['model'])}: {counted} questions of BFCL, {len(data['arms'])} ways to ask</h1>",
        f'<p class="dim">BFCL {text(data["bfcl"])}, judged by its own checker. Prompts of family '
        f"{text(data['family'])}, answers of at most {data['max_new_tokens']} tokens, {text(data['decoding'])}. "
        "Intervals are Wilson's, at 95 %. Strict and salvaged results are never added up.</p>",
        "<h2>Right</h2>",
        _right_table(data["summary"]),
        "<h2>All questions</h2>",
        _summary_table(overall, data["arms"]),
        _summary_charts(overall),
        _per_right_charts(overall),
    ]
    if data["pairs"]:
        parts += [
            "<h2>Is it a difference?</h2>",
            '<p class="dim">How many questions one of two ways has right and the other has not, and how likely a split '
            "at least as uneven is by chance (McNemar, exact, two-sided; Holm: adjusted for the number of pairs).</p>",
            _pairs_table(data["pairs"]),
        ]
    parts.append(_rows_table(data["rows"], list(data["arms"])))
    return page(f"{data['model']}: {counted} questions of BFCL", parts)


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page; ``parts`` are HTML."""
    style = (files(__package__) / "report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def text(value: Any) -> str:
    """Any text as HTML that shows it."""
    return html.escape(_UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", str(value)))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """A table of HTML cells; the columns in ``numbers`` are numbers. It scrolls by itself where it is too wide."""
    right = set(numbers)

    def line(kind: str, cells: Sequence[str]) -> str:
        return "".join(
            f"<{kind}{' class=number' if index in right else ''}>{cell}</{kind}>" for index, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{line("th", head)}</tr></thead><tbody>{body}</tbody></table></div>'


def chart(
    title: str, bars: Sequence[Bar], whole: float | None = None, keys: Sequence[str] = (), *, paired: bool = False
) -> str:
    """Horizontal bars: the parts of each one behind the other, or, ``paired``, one below the other. ``whole`` is what
    the full width stands for (the longest bar unless given), ``keys`` name the parts. Widths are shares and text is
    not scaled, so that it can be read at any width.
    """
    whole = whole or max((sum(bar.parts) for bar in bars), default=0.0) or 1.0
    height = 48 if paired and any(len(bar.parts) > 1 for bar in bars) else 38
    rows = []
    for index, bar in enumerate(bars):
        top = height * index
        rows += [
            f'<text x="0" y="{top + 12}">{text(bar.label)}</text>',
            f'<text x="100%" y="{top + 12}" text-anchor="end" class="amount">{text(bar.amount)}</text>',
        ]
        start = 0.0
        for number, (part, kind) in enumerate(zip(bar.parts, _KINDS, strict=False)):
            at = top + 18 + (10 * number if paired else 0)
            if paired or not number:
                rows.append(_rect(0, at, 100, "rest"))
            rows.append(_rect(start, at, 100 * part / whole, kind))
            start += 0 if paired else 100 * part / whole
    legend = "".join(f'<span class="key {kind}"></span>{text(key)}' for key, kind in zip(keys, _KINDS, strict=False))
    legend = f' <span class="dim small">{legend}</span>' if legend else ""
    whole_height = max(height * len(bars) - 8, 0)
    return (
        f"<figure><figcaption>{text(title)}{legend}</figcaption>"
        f'<svg role="img" aria-label="{text(title)}" height="{whole_height}">{"".join(rows)}</svg></figure>'
    )


_KINDS = ("first", "second")


def _rect(start: float, top: int, width: float, kind: str) -> str:
    return f'<rect x="{start:.2f}%" y="{top}" width="{width:.2f}%" height="8" rx="2" class="{kind}"/>'


def percent(p: float) -> str:
    """A probability for people: what is very small keeps its size."""
    return f"{100 * p:.1f} %" if p >= 0.0005 or p == 0 else f"{p:.0e}"


def p_value(p: float) -> str:
    """The probability of a test for people."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def which_is_better(pair: Mapping[str, Any]) -> str:
    """What a pair of arms (see ``bench.pairs``) comes to, in words."""
    return f"{pair['better']} is better" if pair["better"] else "no difference shown"


def interval(row: Mapping[str, Any]) -> str:
    """The interval of a share."""
    return f"{100 * row['low']:.0f}–{100 * row['high']:.0f} %"


def costs(row: Mapping[str, Any], of: str = "/") -> list[str]:
    """An arm's counts and means (see ``compare.summary``) as cells: called, valid, right, tokens read, tokens written,
    seconds to the first token and to the end. ``of`` stands between a count and what it is counted among.
    """
    return [
        f"{row['called']}{of}{row['ran']}" if row["ran"] else "–",
        str(row["valid"]) if row["ran"] else "–",
        f"{row['right']}{of}{row['judged']}" if row["judged"] else "–",
        number(row["prompt_tokens"], 0),
        number(row["new_tokens"], 0),
        number(row["first_token_s"], 2),
        number(row["total_s"], 2),
    ]


def number(value: float | None, digits: int) -> str:
    """A number as a cell, and a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


# --- A comparison ---------------------------------------------------------------------------------


def _summary_table(summary: Mapping[str, Mapping[str, Any]], arms: Mapping[str, str]) -> str:
    rows = [
        [
            f"<strong>{text(arm)}</strong>",
            called,
            valid,
            f"<strong>{right}</strong>" if row["judged"] else right,
            *means,
            f'<span class="wide">{text(arms[arm])}</span>',
        ]
        for arm, row in summary.items()
        for called, valid, right, *means in [costs(row, " of ")]
    ]
    head = ["arm", "called", "valid", "right", "prompt tokens", "new tokens", "first token, s", "end, s", "what it is"]
    return table(head, rows, range(1, 8))


def _summary_charts(rows: Mapping[str, Mapping[str, Any]]) -> str:
    charts = []
    judged = [
        Bar(arm, [row["right"]], f"{row['right']} of {row['judged']}") for arm, row in rows.items() if row["judged"]
    ]
    if judged:
        charts.append(chart("Right", judged, max(row["judged"] for row in rows.values())))
    tokens = [
        Bar(arm, [row["prompt_tokens"] or 0, row["new_tokens"] or 0], _sum(row["prompt_tokens"], row["new_tokens"], 0))
        for arm, row in rows.items()
        if row["ran"]
    ]
    charts.append(chart("Tokens a task", tokens, keys=("prompt", "new")))
    seconds = [
        Bar(arm, [row["first_token_s"], row["total_s"] - row["first_token_s"]], f"{row['total_s']:.2f} s")
        for arm, row in rows.items()
        if row["ran"]
    ]
    charts.append(chart("Seconds a task", seconds, keys=("to the first token", "to the end")))
    return f'<div class="columns">{"".join(charts)}</div>'


def _task(task: Mapping[str, Any], *, alone: bool) -> str:
    outcomes = task["outcomes"]
    expected = f'<p class="dim">Right: {_expected(task)}</p>' if task["expect"] is not None or task["answer"] else ""
    requests: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome["request"]:
            requests.setdefault(outcome["request"], []).append(outcome["arm"])
    sizes = {outcome["request"]: outcome["prompt_tokens"] for outcome in outcomes}
    columns = [
        (", ".join(names) + (f": {sizes[request]} tokens" if sizes[request] else ""), request)
        for request, names in requests.items()
    ]
    prompts = (
        f"<details{' open' if alone else ''}><summary>What was sent, side by side</summary>"
        f"{_side_by_side(columns)}</details>"
    )
    answers = "".join(map(_answer, outcomes))
    heading = text(task["question"]) if alone else f"{text(task['id'])}: {text(task['question'])}"
    return (
        f"<section><h2>{heading}</h2>{expected}{prompts}"
        f'<h4>What came back</h4><div class="columns narrow">{answers}</div></section>'
    )


def _expected(task: Mapping[str, Any]) -> str:
    parts = []
    if task["expect"] is not None:
        parts.append(
            f"<code>{text(json.dumps(task['expect'], ensure_ascii=False))}</code>" if task["expect"] else "no call"
        )
    if task["answer"]:
        parts.append(f"in words <code>{text(task['answer'])}</code>")
    return ", ".join(parts)


def _answer(outcome: Mapping[str, Any]) -> str:
    verdict, colour = _verdict(outcome)
    rows = [f'<h3>{text(outcome["arm"])} <span class="{colour}">{verdict}</span></h3>']
    if outcome["taken_back"]:
        rows.append(
            f'<p class="small dim">Written first and taken back: <code>{text(outcome["taken_back"])}</code></p>'
        )
    if outcome["finish"]:
        rows.append(f"<pre>{_attempts(outcome) or '<span class=dim>(nothing)</span>'}</pre>")
    for call in outcome["calls"]:
        mended = f' <span class="dim">({text(", ".join(call["repairs"]))})</span>' if call["repairs"] else ""
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        rows.append(f'<p class="small">⚙ <code>{text(call["name"])} {text(arguments)}</code>{mended}</p>')
    if outcome["why"]:
        rows.append(f'<p class="small bad">{text(outcome["why"])}</p>')
    if outcome["finish"]:
        tokens = f"{outcome['prompt_tokens'] or '–'} + {outcome['new_tokens']} tokens"
        times = f"first after {outcome['first_token_s']:.2f} s, all after {outcome['total_s']:.2f} s"
        rows.append(f'<p class="small dim">{tokens}; {times}; ended by {text(outcome["finish"])}</p>')
    return f'<div class="card">{"".join(rows)}</div>'


def _verdict(outcome: Mapping[str, Any]) -> tuple[str, str]:
    if not outcome["finish"]:
        return "could not be run", "bad"
    if outcome["right"] is not None:
        return ("right", "good") if outcome["right"] else ("wrong", "bad")
    if outcome["valid"] is None:
        return "no call", "dim"
    return ("valid", "good") if outcome["valid"] else ("not valid", "bad")


def _attempts(outcome: Mapping[str, Any]) -> str:
    """The answer with the calls in it marked, and what was meant to be one."""
    answer, kinds = outcome["answer"], [""] * len(outcome["answer"])
    found = [("call", call["span"]) for call in outcome["calls"]]
    found += [("fault", problem["span"]) for problem in outcome["problems"]]
    for kind, (start, end) in found:
        kinds[start:end] = [kind] * (min(end, len(kinds)) - start)
    return _marked(answer, kinds)


# --- A benchmark ----------------------------------------------------------------------------------


def _per_right_charts(rows: Mapping[str, Mapping[str, Any]]) -> str:
    charts = [
        chart(title, [Bar(arm, [row[key] or 0], number(row[key], digits) + unit) for arm, row in rows.items()])
        for title, key, digits, unit in (
            ("Tokens a right answer", "tokens_per_right", 0, ""),
            ("Seconds a right answer", "seconds_per_right", 2, " s"),
        )
    ]
    return f'<div class="columns">{"".join(charts)}</div>'


def _right_table(summary: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """A row an arm, a column a category: how many are right, and the interval of that share."""
    rows = [
        [
            f"<strong>{text(arm)}</strong>",
            *(
                f"<strong>{of_arm[arm]['right']} of {of_arm[arm]['judged']}</strong> "
                f'<span class="dim">{interval(of_arm[arm])}</span>'
                for of_arm in summary.values()
            ),
        ]
        for arm in summary["all"]
    ]
    return table(["arm", *map(text, summary)], rows, range(1, 1 + len(summary)))


def _pairs_table(pairs: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            *(f"<strong>{text(arm)}</strong> {only}" for arm, only in zip(pair["arms"], pair["only"], strict=True)),
            p_value(pair["p"]),
            p_value(pair["p_holm"]),
            f'<span class="{"good" if pair["better"] else "dim"}">{text(which_is_better(pair))}</span>',
        ]
        for pair in pairs
    ]
    return table(["only the one", "only the other", "p", "p, Holm", ""], rows, [2, 3])


def _rows_table(rows: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> str:
    """Every question with the verdict of every arm, and why the wrong ones are wrong."""
    cells = []
    for row in rows:
        verdicts = [f'<span class="{colour}">{word}</span>' for word, colour in map(_verdict, row["outcomes"])]
        whys: dict[str, list[str]] = {}
        for outcome in row["outcomes"]:
            if outcome["why"]:
                whys.setdefault(outcome["why"], []).append(outcome["arm"])
        said = "; ".join(f"{', '.join(names)}: {why}" for why, names in whys.items())
        question = f'<span class="wide">{text(row["question"])}</span> <span class="dim">{text(said)}</span>'
        cells.append([text(row["id"]), question, *verdicts])
    body = table(["question", "", *map(text, arms)], cells)
    return f"<details><summary>Question by question</summary>{body}</details>"


# --- How an answer begins -------------------------------------------------------------------------


def _question(question: Mapping[str, Any], versions: Sequence[str]) -> str:
    each_version = [question["versions"][version] for version in versions]
    parts = [f"<h2>{text(question['question'])}</h2>"]
    if question["right"]:
        parts.append(f'<p class="dim">Right: {text(question["right"])}</p>')
    charts = [_shares("The answer begins as", question["right"], versions, [each["begins"] for each in each_version])]
    if all(each["opened"] < HARDLY for each in each_version):
        # The bars above show nothing of the tools.
        title = "If it had to take a tool"
        charts.append(_shares(title, question["right"], versions, [each["among_tools"] for each in each_version]))
    parts.append(f'<div class="columns">{"".join(charts)}</div>')
    for version in versions:
        each = question["versions"][version]
        heading = f"{version}: the likeliest call" if len(versions) > 1 else "The likeliest call"
        parts.append(f"<h4>{text(heading)}</h4><pre>{text(each['call']['text'])}</pre>")
        if each["call"]["problem"]:
            parts.append(f'<p class="small bad">{text(each["call"]["problem"])}</p>')
        rows = [
            [
                text(argument["name"]),
                f"<code>{text(argument['value'])}</code>",
                percent(argument["p"]),
                " ".join(f"<code>{text(other)}</code> {percent(p)}<br>" for other, p in argument["others"]) or "–",
            ]
            for argument in each["call"]["arguments"]
        ]
        if rows:
            parts.append(table(["argument", "value", "how sure", "or"], rows, [2]))
    return f"<section>{''.join(parts)}</section>"


def _shares(title: str, right: str | None, versions: Sequence[str], shares: Sequence[Mapping[str, float]]) -> str:
    """Bars of probabilities by name, one of each version."""
    bars = []
    for name in dict.fromkeys(name for each in shares for name in each):
        found = [each.get(name) for each in shares]
        amounts = ["–" if p is None else percent(p) for p in found]
        bars.append(Bar(name + (" ✓" if name == right else ""), [p or 0.0 for p in found], " | ".join(amounts)))
    return chart(title, bars, 1.0, versions if len(versions) > 1 else (), paired=True)


# --- Texts side by side ---------------------------------------------------------------------------


def _side_by_side(columns: Sequence[tuple[str, str]]) -> str:
    """Texts in columns (heading, text), with what is different marked."""
    cards = []
    for (heading, body), flags in zip(columns, differences([body for _, body in columns]), strict=True):
        marked = _marked(body, ["differs" if flag else "" for flag in flags])
        cards.append(f'<div class="card"><h3>{text(heading)}</h3><pre>{marked}</pre></div>')
    legend = "Marked: what only the first has, and what each other has and the first has not."
    legend = f'<p class="dim small">{legend}</p>' if len(columns) > 1 else ""
    return f'{legend}<div class="columns">{"".join(cards)}</div>'


def differences(texts: Sequence[str]) -> list[bytearray]:
    """For each text, by character: 1 where it differs. The first differs where it has what no other has, each other
    where it has what the first has not.
    """
    result = [bytearray(len(each)) for each in texts]
    if len(texts) > 1:
        result[0] = bytearray(b"\1" * len(texts[0]))
    for other in range(1, len(texts)):
        own = _differs(texts[0], texts[other])
        result[0] = bytearray(a & b for a, b in zip(result[0], own[0], strict=True))
        result[other] = own[1]
    return result


# More words than these are not compared word by word, which takes the square of their number.
_WORDS = 2000


def _differs(one: str, two: str) -> tuple[bytearray, bytearray]:
    """Where two texts differ: line by line, and within lines that differ word by word."""
    flags = bytearray(len(one)), bytearray(len(two))

    def compare(ones: list[str], twos: list[str], starts: tuple[int, int], split: bool) -> None:
        places = [_starts(ones, starts[0]), _starts(twos, starts[1])]
        for kind, a, b, c, d in SequenceMatcher(None, ones, twos, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            if kind == "replace" and split:
                words = [re.findall(r"\w+|\s+|[^\w\s]", "".join(part)) for part in (ones[a:b], twos[c:d])]
                if max(map(len, words)) <= _WORDS:
                    compare(words[0], words[1], (places[0][a], places[1][c]), split=False)
                    continue
            for flag, place, start, end in zip(flags, places, (a, c), (b, d), strict=True):
                flag[place[start] : place[end]] = b"\1" * (place[end] - place[start])

    compare(one.splitlines(keepends=True), two.splitlines(keepends=True), (0, 0), split=True)
    return flags


def _starts(pieces: Sequence[str], start: int) -> list[int]:
    """Where each piece begins in the text, and where the last one ends."""
    places = [start]
    for piece in pieces:
        places.append(places[-1] + len(piece))
    return places


def _marked(body: str, kinds: Sequence[str]) -> str:
    """A text as HTML, its characters marked by kind; "" is unmarked."""
    parts, start = [], 0
    for kind, group in groupby(kinds):
        end = start + len(list(group))
        piece = text(body[start:end])
        parts.append(f'<mark class="{kind}">{piece}</mark>' if kind else piece)
        start = end
    return "".join(parts)


def _sum(one: float | None, two: float | None, digits: int) -> str:
    return f"{number(one, digits)} + {number(two, digits)}"
