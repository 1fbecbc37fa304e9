"""The application behind `qmodel top`.

There is one table, and a stack of views: the top one is drawn. A loop reads its page, draws it, and sleeps for the
interval or until a key asks for a redraw; so a slow server gets fewer requests, and one at a time. While the server is
away, the last page stays, with a line that says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static, Tab, Tabs

from qmodel.client.aio import AsyncClient
from qmodel.contract import operations as ops
from qmodel.contract import redaction, replies
from qmodel.errors import ConnectError, QmodelError
from qmodel.present.numbers import short_number, sparkline
from qmodel.present.text import clean
from qmodel.top.actions import KEYS
from qmodel.top.pulse import Pulse
from qmodel.top.screens import Find, Help, Lines, Question
from qmodel.top.views import MAIN, STATES, GroupView, Page, QueueView, Row, TagView, View, WorkerView

PAGE = 50

HELP = (
    ("1 2 3 4", "queues, running jobs, failures, workers"),
    ("enter esc", "open a queue, group, worker or job; go back"),
    ("s", "the jobs of a queue in the next state"),
    ("n b", "next page, previous page"),
    ("/", "find a job by its id, or jobs by tag:NAME"),
    ("p", "pause a queue, or unpause it;"),
    ("", "make a worker take no more jobs, or resume"),
    ("r", "retry a failed job, or all jobs of a group"),
    ("c", "cancel a job, all jobs of a group, or the jobs"),
    ("", "of a queue that have not begun; stop a worker"),
    ("x", "revoke a job: it fails, and is not retried"),
    ("t", "take the lease of a job from its worker"),
    ("space", "freeze the display, or continue"),
    ("q", "quit"),
)
"""The keys, and what each does."""


class Place(NamedTuple):
    """A view, the offset of its page, and the line of the cursor."""

    view: View
    offset: int = 0
    cursor: int = 0


class Top(App[None]):
    """A live view of the jobs of a client; `interval` in seconds. With `read_only` nothing can be changed."""

    CSS = """
    #head { height: 1; padding: 0 1; background: $panel; }
    #trouble { height: auto; padding: 0 1; background: $error; color: $text; display: none; }
    #where { height: 1; padding: 0 1; color: $text-muted; }
    DataTable { height: 1fr; }
    Lines { height: 1fr; padding: 0 1; display: none; }
    Question, Find, Help { align: center middle; }
    #box { width: 64; max-width: 95%; height: auto; max-height: 95%; padding: 1 2; background: $panel; }
    #question { margin-bottom: 1; }
    """
    TITLE = "qmodel top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "main(0)", "queues", show=False),
        Binding("2", "main(1)", "running jobs", show=False),
        Binding("3", "main(2)", "failures", show=False),
        Binding("4", "main(3)", "workers", show=False),
        Binding("escape,backspace", "leave", "back"),
        Binding("s", "state", "next state"),
        Binding("p", "act('pause')", "pause"),
        Binding("r", "act('retry')", "retry"),
        Binding("c", "act('cancel')", "cancel"),
        Binding("x", "act('revoke')", "revoke"),
        Binding("t", "act('take')", "take lease"),
        Binding("n,right_square_bracket", "turn(1)", "next"),
        Binding("b,left_square_bracket", "turn(-1)", "previous"),
        Binding("slash", "find", "find"),
        Binding("space", "freeze", "freeze", show=False),
        Binding("question_mark", "help", "keys"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(
        self, client: AsyncClient, where: str, *, interval: float = 2.0, read_only: bool = False, page: int = PAGE
    ) -> None:
        super().__init__()
        self._client = client
        self._where = where
        self._interval = interval
        self._read_only = read_only
        self._most = page
        self._stack = [Place(MAIN[0]())]
        self._page = Page([], False)
        self._jid = ""
        self._frozen = False
        self._at_once = asyncio.Event()
        self._pulse = Pulse()
        self.drawn = 0
        """The number of pages drawn so far."""
        self._head, self._trouble, self._foot = Static(id="head"), Static(id="trouble"), Static(id="where")
        self._tabs = Tabs(*(Tab(f"{number} {view.title}", id=f"main{number}") for number, view in enumerate(MAIN, 1)))
        self.table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        self._lines = Lines()

    # ---- what is on the screen

    def compose(self) -> ComposeResult:
        """Compose the screen."""
        yield from (self._head, self._trouble, self._tabs, self.table, self._lines, self._foot, Footer())

    @property
    def place(self) -> Place:
        """Give the current view."""
        return self._stack[-1]

    def on_mount(self) -> None:
        """Start reading."""
        self.table.focus()
        self.run_worker(self._go_round(), exit_on_error=True)

    async def on_unmount(self) -> None:
        """Close the connection."""
        with contextlib.suppress(QmodelError):
            await self._client.close()

    async def _go_round(self) -> None:
        while True:
            self._at_once.clear()
            try:
                await self._draw()
                self._say_trouble("")
            except ConnectError as error:
                self._say_trouble(f"{error.sentence} The display is out of date; retrying.")
            except QmodelError as error:  # what was typed names nothing
                self.notify(clean(str(error)), severity="error", markup=False)
                self.action_leave()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._at_once.wait(), None if self._frozen else self._interval)

    async def _draw(self) -> None:
        place = self.place
        if self._jid:
            await self._draw_job()
        else:
            page = await place.view.read(self._client, place.offset, self._most)
            if place is self.place and not self._jid:  # the view has not changed in the meantime
                self._show(place, page)
        newest, groups = await self._client.execute_many((ops.Newest(), ops.FailedGroups(0, 1000)))
        self._say_head(newest.seq, groups)
        self.drawn += 1

    async def _draw_job(self) -> None:
        jid = self._jid
        job = await self._client.jobs.get(jid)
        if job is None:
            self.notify(f"Job {jid} is gone.", severity="warning", markup=False)
            self._close_job()
            return
        reasons = await job.why() if job.state not in ("complete", "running") else []
        if jid == self._jid:
            self._lines.show(redaction.shown(job.raw), reasons)

    def _show(self, place: Place, page: Page) -> None:
        """Draw a page, and keep the cursor on its line."""
        table, old = self.table, self._page
        columns = [str(column.label) for column in table.ordered_columns]
        if columns != [name.lstrip(">") for name in place.view.columns]:
            table.clear(columns=True)
            for name in place.view.columns:
                table.add_column(Text(name.lstrip(">"), justify="right" if name.startswith(">") else "left"))
            old = Page([], False)
        if [row.key for row in old.rows] == [row.key for row in page.rows] and table.row_count == len(page.rows):
            for number, (before, row) in enumerate(zip(old.rows, page.rows, strict=True)):
                _change(table, number, before, row)
        else:
            cursor = place.cursor
            here = old.rows[table.cursor_row].key if table.row_count and table.cursor_row < len(old.rows) else None
            table.clear()
            for row in page.rows:
                table.add_row(*row.cells)
            keys = [row.key for row in page.rows]
            table.move_cursor(row=keys.index(here) if here in keys else min(cursor, max(len(keys) - 1, 0)))
        self._page = page
        self._say_where()

    def _say_head(self, newest: object, groups: object) -> None:
        if isinstance(newest, int):
            self._pulse.note(newest)
        failed = sum(one.jobs for one in groups if isinstance(one, replies.Tally)) if isinstance(groups, tuple) else 0
        text = Text(no_wrap=True)
        text.append("qmodel top  ", style="bold")
        text.append(clean(self._where), style="dim")
        text.append(f"   changes/s {short_number(round(self._pulse.rate))} ")
        text.append(sparkline(list(self._pulse.rates)), style="cyan")
        text.append("   failed ")
        text.append(short_number(failed), style="bold red" if failed else "dim")
        if self._frozen:
            text.append("   frozen", style="bold yellow")
        if self._read_only:
            text.append("   read only", style="dim")
        self._head.update(text)

    def _say_trouble(self, trouble: str) -> None:
        line = self._trouble
        line.update(Text(clean(trouble)))
        line.display = bool(trouble)

    def _say_where(self) -> None:
        first, rows = self.place.offset, len(self._page.rows)
        of = f" of {self._page.total:,}" if self._page.total is not None else ""
        lines = f"{first + 1:,} to {first + rows:,}{of}" if rows else "nothing"
        note = f"   ({self._page.note})" if self._page.note else ""
        self._foot.update(Text(f"{clean(self.place.view.title)}   {lines}{note}"))
        self.refresh_bindings()

    # ---- navigation

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Go to one of the main lists."""
        view = MAIN[int(str(event.tab.id)[-1]) - 1]
        if type(self._stack[0].view) is not view:
            self._go([Place(view())])

    def action_main(self, number: int) -> None:
        """Go to one of the main lists, from any view."""
        if type(self._stack[0].view) is MAIN[number]:
            self._go([Place(MAIN[number]())])
        self._tabs.active = f"main{number + 1}"

    def _go(self, stack: list[Place]) -> None:
        self._stack = stack
        self._jid = ""
        self._page = Page([], False)
        self.table.clear()
        self.table.focus()
        self._turn_to_list(True)
        self._at_once.set()
        self.refresh_bindings()

    def _turn_to_list(self, is_list: bool) -> None:
        self.table.display = is_list
        self._lines.display = not is_list

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the item under the cursor."""
        row = self._row()
        if row is None:
            return
        self._stack[-1] = self.place._replace(cursor=self.table.cursor_row)
        kind = self.place.view.kind
        if kind == "job":
            self.open_job(row.key)
        elif kind == "queue":
            self._go([*self._stack, Place(QueueView(row.key))])
        elif kind == "group":
            self._go([*self._stack, Place(GroupView(row.key))])
        else:
            self._go([*self._stack, Place(WorkerView(row.key))])

    def open_job(self, jid: str) -> None:
        """Show one job in full."""
        self._jid = jid
        self._turn_to_list(False)
        self._lines.focus()
        self._foot.update(Text(f"Job {clean(jid)}"))
        self._at_once.set()
        self.refresh_bindings()

    def _close_job(self) -> None:
        self._jid = ""
        self._turn_to_list(True)
        self.table.focus()
        self._say_where()
        self._at_once.set()
        self.refresh_bindings()

    def action_leave(self) -> None:
        """Go back to the previous view."""
        if self._jid:
            self._close_job()
        elif len(self._stack) > 1:
            self._go(self._stack[:-1])

    def action_turn(self, by: int) -> None:
        """Turn a page."""
        if by < 0 or self._page.more:
            offset = max(self.place.offset + by * self._most, 0)
            if offset != self.place.offset:
                self._go([*self._stack[:-1], Place(self.place.view, offset)])

    def action_state(self) -> None:
        """Show the jobs of a queue in the next state."""
        view = self.place.view
        if isinstance(view, QueueView) and view.state:
            states = list(STATES)
            following = states[(states.index(view.state) + 1) % len(states)]
            self._go([*self._stack[:-1], Place(QueueView(view.queue, following))])

    def action_find(self) -> None:
        """Ask for a job or a tag, and show it."""

        def show(found: str | None) -> None:
            if found and found.startswith("tag:"):
                self._go([*self._stack, Place(TagView(found.removeprefix("tag:").strip()))])
            elif found:
                self.open_job(found)

        self.push_screen(Find(), show)

    def action_freeze(self) -> None:
        """Freeze the display, or continue."""
        self._frozen = not self._frozen
        self._at_once.set()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help(HELP))

    # ---- actions

    def _row(self) -> Row | None:
        number = self.table.cursor_row
        return self._page.rows[number] if 0 <= number < len(self._page.rows) else None

    def _target(self) -> tuple[str, str] | None:
        """Give the kind and the key of the item that a key acts on."""
        if self._jid:
            return "job", self._jid
        row = self._row()
        return (self.place.view.kind, row.key) if row else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the keys that act on this view."""
        kind = "job" if self._jid else self.place.view.kind
        if action == "act":
            return not self._read_only and (str(parameters[0]), kind) in KEYS
        if action == "state":
            return not self._jid and isinstance(self.place.view, QueueView)
        if action == "leave":
            return bool(self._jid) or len(self._stack) > 1
        if action == "turn":
            return not self._jid and (self._page.more if parameters[0] == 1 else self.place.offset > 0)
        return True

    def action_act(self, name: str) -> None:
        """Perform a key's action on the item under the cursor, after its question if it has one."""
        target = self._target()
        if target is not None:
            self.run_worker(self._act(name, *target), group="actions")

    async def _act(self, name: str, kind: str, key: str) -> None:
        try:
            action = await KEYS[name, kind](self._client, key)
            if action.question:
                if not await self.push_screen_wait(Question(action.question)):
                    return
                self.notify("In progress.", timeout=2)
            self.notify(clean(await action.perform()), markup=False)
        except QmodelError as error:
            self.notify(clean(str(error)), severity="error", markup=False, timeout=10)
        self._at_once.set()


def _change(table: DataTable[Text], number: int, before: Row, after: Row) -> None:
    for column, (old, new) in enumerate(zip(before.cells, after.cells, strict=True)):
        if old.plain != new.plain or old.style != new.style:
            table.update_cell_at((number, column), new, update_width=True)  # type: ignore[arg-type]
