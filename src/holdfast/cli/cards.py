"""How the parts of an answer look in a terminal: tool cards, questions, notes and what was used.

Colours are the terminal's own, and none that is hard to read on white or on black.
"""

from __future__ import annotations

from typing import cast

from rich.text import Text

from holdfast.cli.frame import visible
from holdfast.core import questions
from holdfast.core.events import ApprovalAsked
from holdfast.core.journal import Entry
from holdfast.core.notes import is_note
from holdfast.core.questions import About, Decision, short_id
from holdfast.core.transcript import main_argument
from holdfast.core.usage import Usage
from holdfast.operations.approvals import ApprovalView

_OUTCOMES = {"ok": ("✓", "green"), "error": ("✗", "red"), "unknown": ("?", "magenta")}
_RUNNING = ("·", "dim")
_ARGUMENT_MAX = 100
_RESULT_MAX = 160
_MILLION = 1_000_000
# Prices are shown to a hundredth of a cent.
_LEAST_MICROS = 100
_SET_APART = "    "
# A card is read at a glance, however wide the window is.
WIDTH_MAX = 140


def message(text: str) -> Text:
    """Return what a person wrote, or what the gateway says in their place."""
    if is_note(text):
        return Text(f"\n◦ {visible(text)}", "dim")
    return Text.assemble("\n", ("› ", "bold cyan"), (visible(text), "bold"))


def shortened(text: str, most: int) -> str:
    """Return text as one line of some length."""
    line = " ".join(visible(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def about(args: object) -> str:
    """Return what a call is about, in a few words."""
    return shortened(main_argument(args), _ARGUMENT_MAX)


def card(
    name: str, args: object, outcome: str | None, result: str | None, took_ms: int | None = None, width: int = 100
) -> Text:
    """Return one tool call in one line."""
    sign, style = _OUTCOMES.get(outcome or "", _RUNNING)
    said = Text.assemble((f"{sign} ", f"bold {style}"), (visible(name), style), "  ", about(args))
    if took_ms is not None:
        said.append(f"  {duration(took_ms)}", "dim")
    room = min(width - said.cell_len - 4, _RESULT_MAX)
    if result and room > 8:
        said.append(f"  → {shortened(result, room)}", "dim")
    said.truncate(width, overflow="ellipsis")
    return said


def duration(took_ms: int) -> str:
    """Return a time as people say it."""
    if took_ms < 950:
        return f"{took_ms} ms"
    if took_ms < 60_000:
        return f"{took_ms / 1000:.1f} s"
    return f"{took_ms // 60_000} min {took_ms % 60_000 // 1000} s"


def usage(used: Usage) -> Text:
    """Return what a turn has used."""
    cost = f" · {_price(used.cost_micros)}" if used.cost_micros else ""
    cached = f" ({_amount(used.cached_tokens)} cached)" if used.cached_tokens else ""
    model = f"{visible(used.model)} · " if used.model else ""
    return Text(f"{model}{_amount(used.input_tokens)} in{cached}, {_amount(used.output_tokens)} out{cost}", "dim")


def _price(micros: int) -> str:
    return f"${micros / _MILLION:.4f}" if micros >= _LEAST_MICROS else f"under ${_LEAST_MICROS / _MILLION:.4f}"


def _amount(tokens: int) -> str:
    return str(tokens) if tokens < 10_000 else f"{tokens / 1000:.1f}k"


def question(asked: ApprovalView) -> Text:
    """Return what a turn waits for, with everything that a decision needs."""
    mark = "?" if asked.about is About.ANSWER else "!"
    said = Text(f"{mark} ", "bold magenta")
    for number, line in enumerate(visible(asked.text).split("\n")):
        said.append("\n" if number else "")
        # What is set apart in it is what it is about, such as a command.
        said.append(line, "bold cyan" if line.startswith(_SET_APART) else "" if number else "bold")
    for name, value in asked.detail.items():
        # What the text says already is not said twice.
        if missing := [each for each in _written(value) if each not in asked.text]:
            said.append(f"\n  {visible(name)}: ", "dim")
            shown = visible(", ".join(missing)).replace("\n", "\n    ")
            said.append(shown, "bold cyan" if name == "command" else "")
    for number, choice in enumerate(asked.choices if asked.about is About.ANSWER else (), 1):
        said.append(f"\n  {number}  ", "bold")
        said.append(visible(choice))
    return said


def _written(value: object) -> list[str]:
    if isinstance(value, list | tuple):
        return [str(each) for each in cast("list[object]", value)]
    return [] if value in (None, False, "") else [str(value)]


def asked(entry: Entry, event: ApprovalAsked) -> ApprovalView:
    """Return the question that an entry of the journal holds."""
    return ApprovalView(
        id=short_id(entry.turn_id, event.question_id),
        turn_id=entry.turn_id,
        session_id=entry.session_id,
        question_id=event.question_id,
        about=About(event.about) if event.about in set(About) else About.ANSWER,
        text=event.text,
        choices=event.choices,
        detail=event.detail,
        asked_at=entry.at,
        expires_at=event.expires_at,
    )


def reply(asked: ApprovalView, typed: str) -> str:
    """Return the answer that a person means: a letter or a number stands for a choice."""
    word = typed.strip()
    if asked.about is About.ANSWER:
        is_number = word.isascii() and word.isdigit() and 1 <= int(word) <= len(asked.choices)
        return asked.choices[int(word) - 1] if is_number else typed
    meant = {
        **{each[0]: each for each in asked.choices if each},
        "y": decided(asked, yes=True),
        "n": decided(asked, yes=False),
    }
    return meant.get(word.lower(), word)


def decided(asked: ApprovalView, *, yes: bool, length: Decision = Decision.ONCE) -> str:
    """Return the answer that allows what is asked, or refuses it."""
    return questions.answer(asked.about, asked.choices, length if yes else Decision.DENY)


def how_to_answer(asked: ApprovalView) -> str:
    """Say how a question is answered from elsewhere."""
    if asked.about is About.ANSWER:
        return f"answer with `holdfast turns answer {asked.turn_id} TEXT`"
    return f"answer with `holdfast approvals approve {asked.id}` or `holdfast approvals deny {asked.id}`"


def choices(asked: ApprovalView) -> str:
    """Say what may be typed."""
    if asked.about is not About.ANSWER:
        return "  ".join(f"[{each[:1]}]{each[1:]}" for each in asked.choices)
    return f"1–{len(asked.choices)}, or your own words" if asked.choices else "your answer"
