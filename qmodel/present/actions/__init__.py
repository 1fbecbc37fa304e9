"""The actions of the pages and of `qmodel top`: each has a label, a question, operations, and a sentence afterwards.

The faces only bind them: the pages to forms (`qmodel.web.actions`), `top` to keys (`qmodel.top.actions`). An action
that deletes something, or takes something from a worker, has a question, and is done only after a yes.

There are three kinds. `Once` sends a few operations together; where these depend on what there is, it looks first.
`Stepwise` repeats one operation of up to 1000 jobs until nothing is left. `Signal` is heard by workers.
"""

from __future__ import annotations

from qmodel.present.actions import jobs, queues, requests, schedules, settings, workers
from qmodel.present.actions.kinds import Action, Once, Signal, Step, Stepwise, outcome, question

ACTIONS: dict[str, Action] = {
    **queues.ACTIONS,
    **jobs.ACTIONS,
    **workers.ACTIONS,
    **schedules.ACTIONS,
    **requests.ACTIONS,
    **settings.ACTIONS,
}
"""Every action by its name."""

__all__ = ["ACTIONS", "Action", "Once", "Signal", "Step", "Stepwise", "outcome", "question"]
