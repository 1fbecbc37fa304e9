"""The worker: `Worker(app).run()`, or `qmodel worker module:app`.

The docstring of `worker.py` describes how it works.
"""

from qmodel.worker.worker import Worker as Worker

__all__ = ["Worker"]
