"""The pages: a function each, and `ROUTES`, the table of their paths.

Names and ids stand in the query of a link, not in its path, because they may be anything: `..` and `a/b` too.
"""

from __future__ import annotations

from starlette.routing import Route

from qmodel.web.pages import (
    bulk,
    doctor,
    events,
    failures,
    forms,
    job,
    jobs,
    klass,
    messages,
    overview,
    queues,
    requests,
    schedules,
    settings,
    stats,
    subscriptions,
    tags,
    throttles,
    types,
    unique,
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
    Route("/requests", requests.index),
    Route("/request", requests.show),
    Route("/subscriptions", subscriptions.index),
    Route("/subscription", subscriptions.show),
    Route("/messages", messages.index),
    Route("/types", types.index),
    Route("/klass", klass.show),
    Route("/events", events.index),
    Route("/settings", settings.show),
    Route("/doctor", doctor.show),
    Route("/tags", tags.index),
    Route("/unique", unique.show),
    Route("/stats", stats.show),
    Route("/do", forms.do, methods=["POST"]),
    Route("/bulk", bulk.preview),
    Route("/bulk", bulk.run, methods=["POST"]),
]
