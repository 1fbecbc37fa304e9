"""The screens over the lists of `qmodel top`: one job in full, a question, the search, and the keys."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from qmodel.contract import replies
from qmodel.contract.reasons import Reason
from qmodel.present.durations import format_moment, short_duration
from qmodel.present.text import clean, on_a_line
from qmodel.top.views import COLORS

DATA_SHOWN = 4000


class Question(ModalScreen[bool]):
    """A question; `y` means yes, everything else no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "answer(True)", "yes"),
        ("n,escape,enter,q", "answer(False)", "no"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show it."""
        with Vertical(id="box"):
            yield Static(Text(clean(self._question)), id="question")
            yield Static(Text.assemble(("y", "bold reverse"), " yes    ", ("n", "bold reverse"), " no"))

    def action_answer(self, answer: bool) -> None:
        """Close the screen with the answer."""
        self.dismiss(answer)


class Find(ModalScreen[str]):
    """The search: the id of a job, or a tag."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss('')", "back")]

    def compose(self) -> ComposeResult:
        """Show the field."""
        with Vertical(id="box"):
            yield Static("Find a job by its id, or jobs by tag:name.")
            yield Input(placeholder="jid, or tag:name")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close the screen with the text."""
        self.dismiss(event.value.strip())


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,enter,q,question_mark", "dismiss", "back")]

    def __init__(self, keys: tuple[tuple[str, str], ...]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Show them."""
        text = Text()
        for key, told in self._keys:
            text.append(f"{key:>9}  ", style="bold")
            text.append(told + "\n")
        with Vertical(id="box"):
            yield Static(text)


class Lines(VerticalScroll):
    """One job, in full."""

    def __init__(self) -> None:
        super().__init__()
        self._text = Static(id="lines")

    def compose(self) -> ComposeResult:
        """Show nothing yet."""
        yield self._text

    def show(self, job: replies.Job, reasons: list[Reason]) -> None:
        """Show a job, and why it is not running."""
        self._text.update(told(job, reasons))


def told(job: replies.Job, reasons: list[Reason]) -> Text:
    """Describe a job: its fields, why it is not running, its failure, and its timeline."""
    text = Text()
    _field(text, "job", job.jid, "bold")
    _field(text, "job type", job.klass)
    _field(text, "queue", job.queue)
    _field(text, "state", job.state + (", revoked" if job.revoked else ""), COLORS.get(job.state, ""))
    _field(text, "worker", job.worker)
    _field(text, "priority", str(job.priority))
    _field(text, "retries", f"{job.remaining} of {job.retries} left")
    _field(text, "tags", ", ".join(job.tags))
    _field(text, "throttles", ", ".join(job.throttles))
    _field(text, "depends on", ", ".join(job.dependencies[:10]))
    _field(text, "dependents", ", ".join(job.dependents[:10]))
    _field(text, "progress", job.progress)
    for reason in reasons:
        _field(text, "why", reason.sentence, "yellow")
    _field(text, "data", job.data[:DATA_SHOWN])
    _field(text, "result", job.result[:DATA_SHOWN])
    if job.failure:
        _field(
            text,
            "failed",
            f"{format_moment(job.failure.at)} in group {job.failure.group} on {job.failure.worker}",
            "red",
        )
        text.append("\n" + clean(job.failure.message).rstrip() + "\n", style="red")
    _timeline(text, job)
    return text


def _timeline(text: Text, job: replies.Job) -> None:
    text.append("\nTimeline\n", style="bold")
    before = 0
    for stage in job.history:
        after = f"+{short_duration(stage.at - before)}" if before else ""
        facts = clean(on_a_line(stage.what, stage.named))
        text.append(f"  {format_moment(stage.at)} {after:>5}  {stage.what:<12} ")
        text.append(facts + "\n", style="dim")
        before = stage.at


def _field(text: Text, name: str, value: str, style: str = "") -> None:
    if value:
        text.append(f"{name:>10}  ", style="dim")
        text.append(clean(value) + "\n", style=style)
