"""The pages, a function each; `ROUTES` says where each is found.

Names and ids stand in the query of a link, not in its path: there they may be anything, `..` and `a/b` too.
"""

from __future__ import annotations

from starlette.routing import Route

from qmodel.web.pages import (
    bulk,
    failures,
    forms,
    job,
    jobs,
    others,
    overview,
    queues,
    schedules,
    stats,
    throttles,
    workers,
)

ROUTES = [
    Route("/", overview.show),
    Route("/queues", queues.index),
    Route("/queue", queues.show),
    Route("/jobs", jobs.index),
    Route("/find", jobs.find),
    Route("/job", job.show),
    Route("/flow", job.flow),
    Route("/failures", failures.index),
    Route("/workers", workers.index),
    Route("/worker", workers.show),
    Route("/schedules", schedules.index),
    Route("/schedule", schedules.show),
    Route("/throttles", throttles.index),
    Route("/throttle", throttles.show),
    Route("/requests", others.requests),
    Route("/request", others.request),
    Route("/subscriptions", others.subscriptions),
    Route("/subscription", others.subscription),
    Route("/messages", others.messages),
    Route("/klass", others.klass),
    Route("/events", others.events),
    Route("/settings", others.settings),
    Route("/doctor", others.doctor),
    Route("/tags", others.tags),
    Route("/unique", others.unique),
    Route("/stats", stats.show),
    Route("/do", forms.do, methods=["POST"]),
    Route("/bulk", bulk.preview),
    Route("/bulk", bulk.run, methods=["POST"]),
]
