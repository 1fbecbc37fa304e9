"""The worker: `Worker(app).run()`, or `qmodel worker module:app`.

`worker.py` says how it works.
"""

from qmodel.worker.worker import Worker as Worker

__all__ = ["Worker"]
