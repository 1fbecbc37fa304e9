"""Draw a history as an HTML page with a lane for each client; the operation that fits nowhere is red.

Bars are operations, from call to return; operations with a lost reply fade out. A number is the operation's place in
the longest order found; operations outside that order are dashed. Hovering over a bar shows the operation, its reply
and, where the search ended, the model's reply. The page loads no other file.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from qmodel.conformance.concurrency.calls import Call
from qmodel.conformance.concurrency.linearizability import Verdict
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import CompletedAndPopped, Job

LEFT, TOP, LANE, BAR, FOOT = 92, 86, 46, 28, 44
WIDEST, WIDE = 5200, 1180
LEAST, MOST = 52, 100
"""The least and greatest distance of two moments, in pixels, unless the picture would become wider than WIDEST."""

AROUND = 8
"""How many operations are drawn before the one that cannot be placed."""

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2933; }
  .title { font-size: 15px; font-weight: 600; }
  .note, .time { fill: #52606d; }
  .wrong { fill: #9b2c2c; }
  .client { font-weight: 600; text-anchor: end; }
  .lane { stroke: #e4e7eb; }
  .tick { stroke: #e4e7eb; stroke-dasharray: 2 4; }
  .bar rect { fill: #e8f1fb; stroke: #3e6fa3; stroke-width: 1.2; }
  .bar .place { font-weight: 600; fill: #3e6fa3; }
  .read rect { fill: #f4f5f7; stroke: #7b8794; }
  .refused rect { fill: #fff6e0; stroke: #b7791f; }
  .open rect { fill: #fff; stroke-dasharray: 4 3; }
  .lost rect { fill: url(#fade); stroke: none; }
  .stuck rect { fill: #fdecea; stroke: #c53030; stroke-width: 2.2; }
  .stuck text { fill: #9b2c2c; font-weight: 600; }
  .bar:hover rect { stroke-width: 2.6; }
  .limit { stroke: #c53030; stroke-dasharray: 5 4; }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
 body {{ font: 14px system-ui, sans-serif; color: #1f2933; margin: 24px; background: #fff; }}
 .picture {{ overflow-x: auto; border: 1px solid #e4e7eb; border-radius: 10px; }}
 table {{ border-collapse: collapse; margin-top: 20px; }}
 td, th {{ text-align: left; vertical-align: top; padding: 5px 14px 5px 0; border-top: 1px solid #e4e7eb; }}
 td.said {{ font-family: ui-monospace, monospace; font-size: 12px; max-width: 46em; overflow-wrap: anywhere; }}
 .wrong {{ color: #9b2c2c; }}
</style></head><body>
<h1 style="font-size: 19px">{title}</h1>
<p>{sentence}</p>
<div class="picture">
{svg}</div>
{table}</body></html>
"""


class Bar(NamedTuple):
    """An operation in the picture: its place in the history, and where it is drawn."""

    n: int
    lane: int
    left: float
    right: float


def page(verdict: Verdict) -> str:
    """Write the whole page."""
    title = {"linearizable": "A linearizable history", "violation": "Not linearizable", "undecided": "Undecided"}
    return PAGE.format(
        title=title[verdict.answer], sentence=escape(str(verdict)), svg=svg(verdict), table=_table(verdict)
    )


def svg(verdict: Verdict) -> str:
    """Draw the picture alone; of a long history, only the end of the longest order."""
    shown = _shown(verdict)
    clients = list(dict.fromkeys(verdict.history[n].client for n in shown))
    clients.sort(key=_natural)
    scale = _Scale(verdict.history, shown)
    bars = _bars(verdict, shown, clients, scale)
    width = max(scale.width, 32 + 7.8 * len(headline(verdict).partition("\n")[0]))
    height = TOP + LANE * len(clients) + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" '
        f'height="{height}" role="img">',
        f"<title>{escape(headline(verdict))}</title><style>{STYLE}</style>",
        '<defs><linearGradient id="fade"><stop offset="0" stop-color="#e8f1fb"/>'
        '<stop offset="1" stop-color="#fff"/></linearGradient></defs>',
        f'<rect width="{width:g}" height="{height}" rx="10" fill="#fff"/>',
        *_heading(verdict),
        *scale.ticks(height),
        *(_lane(client, number, width) for number, client in enumerate(clients)),
        *_limit(verdict, scale, height),
        *(_bar(verdict, bar) for bar in bars),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _natural(client: str) -> tuple[str, int]:
    name = client.rstrip("0123456789")
    return name, int(client[len(name) :] or 0)


def _shown(verdict: Verdict) -> list[int]:
    """Choose the operations to draw: the last of the order, the candidates, and the lost ones among them."""
    history = verdict.history
    if verdict.stuck is None:
        chosen = set(verdict.order[: 4 * AROUND])
    else:
        last = [n for n in verdict.order if history[n].returned is not None][-AROUND:]
        chosen = {*last, verdict.stuck, *verdict.instead}
    first = min((history[n].called for n in chosen), default=0)
    end = max((history[n].returned or history[n].called for n in chosen), default=0)
    lost = {n for n, call in enumerate(history) if call.returned is None and first <= call.called <= end}
    return sorted(chosen | lost, key=lambda n: history[n].called)


class _Scale:
    """Horizontal positions of moments: equally spaced, so that a time without calls and returns takes no more room."""

    def __init__(self, history: Sequence[Call], shown: Sequence[int]) -> None:
        moments = {history[n].called for n in shown} | {history[n].returned or history[n].called for n in shown}
        self._moments = sorted(moments) or [0]
        self._gap = min(max(LEAST, WIDE / len(self._moments)), MOST, WIDEST / len(self._moments))
        self._places = {moment: LEFT + 16 + self._gap * i for i, moment in enumerate(self._moments)}
        self.width = max(LEFT + 32 + self._gap * len(self._moments), 720)

    def at(self, moment: int) -> float:
        """Give the position of a moment, in pixels."""
        return self._places[moment]

    @property
    def end(self) -> float:
        """Give the right end of bars without a return, in pixels."""
        return self.width - 16

    def ticks(self, height: int) -> list[str]:
        """Draw lines at some moments, labelled with the microseconds since the first one."""
        step = max(1, round(120 / self._gap))
        first, bottom = self._moments[0], height - FOOT + 4
        return [
            f'<path class="tick" d="M{self.at(moment):.1f} {TOP - 4} V{bottom}"/>'
            f'<text class="time" x="{self.at(moment):.1f}" y="{bottom + 18}" text-anchor="middle">'
            f"{(moment - first) / 1000:,.0f} µs</text>"
            for moment in self._moments[::step]
        ]


def _bars(verdict: Verdict, shown: Sequence[int], clients: Sequence[str], scale: _Scale) -> list[Bar]:
    found = []
    for n in shown:
        call = verdict.history[n]
        right = scale.end if call.returned is None else scale.at(call.returned)
        found.append(Bar(n, clients.index(call.client), scale.at(call.called), right))
    return found


# ---- parts of the picture


LEGEND = "numbers: longest order the model agrees with;   dashed: not in that order;   grey: reads;   yellow: refused"


def _heading(verdict: Verdict) -> list[str]:
    first, _, second = headline(verdict).partition("\n")
    return [
        f'<text class="title" x="16" y="24">{escape(first)}</text>',
        f'<text class="wrong" x="16" y="44">{escape(second)}</text>',
        f'<text class="note" x="16" y="64">{escape(LEGEND)}</text>',
    ]


def headline(verdict: Verdict) -> str:
    """Describe the violation in two lines, or say that there is none."""
    if verdict.stuck is None:
        return "An order exists in which the model gives all recorded replies."
    call = verdict.history[verdict.stuck]
    model = reply_text(verdict.instead[verdict.stuck]) + _against(verdict, verdict.stuck)
    return (
        f"{call.client}: {call_text(call.op)} got the reply {reply_text(call.outcome)}.\n"
        f"No order of the operations before explains it. After the longest order the model replies {model}."
    )


def _lane(client: str, number: int, width: float) -> str:
    y = TOP + LANE * number + LANE / 2
    return (
        f'<path class="lane" d="M{LEFT} {y:g} H{width - 12:g}"/>'
        f'<text class="client" x="{LEFT - 10}" y="{y + 4:g}">{escape(client)}</text>'
    )


def _limit(verdict: Verdict, scale: _Scale, height: int) -> list[str]:
    """Draw a line at the return of the stuck operation: it must have happened before."""
    if verdict.stuck is None:
        return []
    x = scale.at(verdict.history[verdict.stuck].returned or 0)
    return [f'<path class="limit" d="M{x:.1f} {TOP - 6} V{height - FOOT + 4}"/>']


def _bar(verdict: Verdict, bar: Bar) -> str:
    call = verdict.history[bar.n]
    y = TOP + LANE * bar.lane + (LANE - BAR) / 2
    width = max(bar.right - bar.left - 3, 6)
    place = verdict.order.index(bar.n) + 1 if bar.n in verdict.order else None
    label = (f"{place} " if place else "") + call_text(call.op)
    room = int((width - 10) / 6.4)
    text = label if len(label) <= room else label[: max(room - 1, 0)] + "…"
    number, rest = (text[: len(str(place))], text[len(str(place)) :]) if place else ("", text)
    return (
        f'<g class="{" ".join(_classes(verdict, bar.n))}" data-operation="{bar.n}">'
        f"<title>{escape(_hover(verdict, bar.n))}</title>"
        f'<rect x="{bar.left:.1f}" y="{y:g}" width="{width:.1f}" height="{BAR}" rx="5"/>'
        f'<text x="{bar.left + 6:.1f}" y="{y + 18:g}"><tspan class="place">{escape(number)}</tspan>'
        f"{escape(rest)}</text></g>"
    )


def _classes(verdict: Verdict, n: int) -> list[str]:
    call = verdict.history[n]
    found = ["bar"]
    if call.op.spec.reads:
        found.append("read")
    if isinstance(call.outcome, Refusal):
        found.append("refused")
    if n not in verdict.order:
        found.append("open")
    if call.returned is None:
        found.append("lost")
    return [*found, "stuck"] if n == verdict.stuck else found


def _hover(verdict: Verdict, n: int) -> str:
    call = verdict.history[n]
    lines = [f"{call.client} at {call.now}: {call.op}"]
    lines.append("no reply came" if call.returned is None else f"reply: {call.outcome!r}")
    if n in verdict.order:
        lines.append(f"place {verdict.order.index(n) + 1} in the order")
    if n in verdict.instead:
        lines.append(f"the model's reply, if it came next: {verdict.instead[n]!r}{_against(verdict, n)}")
    return "\n".join(lines)


def _against(verdict: Verdict, n: int) -> str:
    """Say why an operation cannot come next although its reply matches the model's."""
    if n not in verdict.taken or verdict.instead[n] != verdict.history[n].outcome:
        return ""
    seq, makers = verdict.taken[n]
    by = " or ".join(f"{call_text(verdict.history[one].op)} of {verdict.history[one].client}" for one in makers[:2])
    return f", but it would emit event {seq}, which {by or 'no operation'} emitted"


def _table(verdict: Verdict) -> str:
    """List the operations that could come next, with the model's reply to each."""
    if verdict.stuck is None:
        return ""
    rows = []
    for n, outcome in sorted(verdict.instead.items(), key=lambda item: item[0] != verdict.stuck):
        call = verdict.history[n]
        style = ' class="wrong"' if n == verdict.stuck else ""
        said = reply_text(outcome) + _against(verdict, n)
        rows.append(
            f"<tr{style}><td>{escape(call.client)}</td><td>{escape(call_text(call.op))}</td>"
            f'<td class="said">{escape(reply_text(call.outcome))}</td><td class="said">{escape(said)}</td></tr>'
        )
    head = "<tr><th>client</th><th>could come next</th><th>recorded reply</th><th>model's reply</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>\n"


# ---- words


def call_text(op: Operation) -> str:
    """Write an operation briefly: its name, and its job or queue."""
    given = []
    for argument in op.spec.arguments:
        value = getattr(op, argument.name)
        if argument.required and argument.name not in ("klass", "data", "message", "group"):
            given.append(_value(value))
    return f"{op.spec.name} {' '.join(given)}".strip()


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(_value(one) for one in value)
    return str(getattr(value, "jid", value))


def reply_text(outcome: Any) -> str:
    """Write a reply briefly: jobs by their ids and tokens."""
    if isinstance(outcome, Refusal):
        return f"{outcome.code} {' '.join(outcome.facts)}".strip()
    if isinstance(outcome, Job):
        lease = f" #{outcome.token} of {outcome.worker}" if outcome.state == "running" else ""
        return f"{outcome.jid} {outcome.state}{lease} in {outcome.queue}"
    if isinstance(outcome, CompletedAndPopped):
        return f"{outcome.state}, {reply_text(outcome.jobs)}"
    if isinstance(outcome, tuple) and not hasattr(outcome, "_fields"):
        return "[" + ", ".join(map(reply_text, outcome)) + "]"
    return "nothing" if outcome is None else str(outcome)
