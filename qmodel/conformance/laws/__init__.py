"""Laws: what holds of every step of every history, each with the sentence that it holds.

Comparing finds a rule that is wrong on one side. The laws find one that is wrong on both: they are derived from the
documents, and look only at replies, events, settings and states, never at the model's verbs.

    check(before, step, outcome, events, after)      the laws of single steps, for one edge of a graph
    Observer().step(before, step, outcome, events, after)   all laws, along a history; it can be copied

Each module is a theme. A law is a function that yields violations; its name is how the documents name it, and its
docstring is the sentence that it holds.
"""

from qmodel.conformance.laws import (
    deduplication,
    dependencies,
    ending,
    keys,
    leases,
    lists,
    messages,
    order,
    qless,
    queues,
    records,
    recurring,
    requests,
    retries,
    statistics,
    throttles,
)
from qmodel.conformance.laws.law import DIFFERS, LAWS, Broken, Law, Moment, Observer, check, observe

THEMES = (
    records, leases, retries, order, dependencies, ending, throttles, keys, requests, deduplication, statistics, lists,
    recurring, messages, queues, qless,
)  # fmt: skip

__all__ = ["DIFFERS", "LAWS", "THEMES", "Broken", "Law", "Moment", "Observer", "check", "observe"]
