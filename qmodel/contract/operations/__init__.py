"""The catalogue: every operation of the queue.

One class describes one operation. Its fields are the arguments (their annotations say what is accepted), its docstring
says what it does, and the decorator names the reply, the refusals and the events. The Python API, the command line, the
wire protocol, the generated tests and the documentation derive from these classes; only the two implementations
(`qmodel/model/ops`, `lua/ops`) are written by hand.

Operations are frozen for the type checker. Python does not enforce it at run time: that would make each operation five
times as expensive to build (2.3 microseconds against 0.4, a sixth of the whole step). To change an operation, copy it
with `dataclasses.replace`.

How a repeated request is recognised (law 4) is part of an operation's meaning:

- `read`: the operation changes nothing.
- `job`: the job remembers the request that put it.
- `grant`: the worker remembers which jobs each request was granted, until one of those leases ends.
- `lease`: the job's history holds the outcome of each token; after its deletion, the last 1000 replies do.
- `memo`: the namespace remembers the replies to the last 1000 requests.
- `same`: repeating the operation sets the same value again.
"""

import sys as _sys

# ruff: noqa: I001 - the order of the sections is the order of the catalogue

from qmodel.contract.operations.spec import (
    CATALOGUE as CATALOGUE,
    Argument as Argument,
    Operation as Operation,
    Spec as Spec,
)
from qmodel.contract.operations.put import Put as Put, PutMany as PutMany, PutNew as PutNew
from qmodel.contract.operations.pop import Pop as Pop, PopAny as PopAny, Peek as Peek
from qmodel.contract.operations.finish import (
    Complete as Complete,
    CompleteMany as CompleteMany,
    CompleteAndPop as CompleteAndPop,
    Fail as Fail,
    Retry as Retry,
    Release as Release,
)
from qmodel.contract.operations.lease import Heartbeat as Heartbeat, Timeout as Timeout, Revoke as Revoke
from qmodel.contract.operations.change import (
    Update as Update,
    Priority as Priority,
    Delay as Delay,
    Promote as Promote,
    Log as Log,
    Progress as Progress,
)
from qmodel.contract.operations.remove import (
    Cancel as Cancel,
    Drain as Drain,
    CancelMany as CancelMany,
    Clean as Clean,
    Obliterate as Obliterate,
)
from qmodel.contract.operations.depend import DependsOn as DependsOn, DependsOff as DependsOff, Results as Results
from qmodel.contract.operations.deduplicate import UniqueGet as UniqueGet, UniqueRelease as UniqueRelease
from qmodel.contract.operations.tag import (
    TagAdd as TagAdd,
    TagRemove as TagRemove,
    Tagged as Tagged,
    TopTags as TopTags,
    Track as Track,
    Untrack as Untrack,
    Tracked as Tracked,
)
from qmodel.contract.operations.recover import (
    FailedGroups as FailedGroups,
    Failed as Failed,
    Replay as Replay,
    RetryMany as RetryMany,
)
from qmodel.contract.operations.request import (
    RequestOpen as RequestOpen,
    RequestAdd as RequestAdd,
    RequestClose as RequestClose,
    RequestPut as RequestPut,
    RequestGet as RequestGet,
    RequestJobs as RequestJobs,
    Requests as Requests,
    RequestTouch as RequestTouch,
    RequestTune as RequestTune,
    RequestCancel as RequestCancel,
    RequestForget as RequestForget,
)
from qmodel.contract.operations.recur import (
    Recur as Recur,
    Unrecur as Unrecur,
    RecurGet as RecurGet,
    RecurUpdate as RecurUpdate,
    RecurTag as RecurTag,
    RecurUntag as RecurUntag,
    RecurPause as RecurPause,
    RecurUnpause as RecurUnpause,
    RecurNow as RecurNow,
    RecurAdvance as RecurAdvance,
    RecurringUnset as RecurringUnset,
    Recurring as Recurring,
    Fire as Fire,
)
from qmodel.contract.operations.throttle import (
    ThrottleSet as ThrottleSet,
    ThrottleUnset as ThrottleUnset,
    ThrottleGet as ThrottleGet,
    Throttles as Throttles,
    ThrottlesUsed as ThrottlesUsed,
)
from qmodel.contract.operations.publish import (
    Publish as Publish,
    Subscribe as Subscribe,
    CatchUp as CatchUp,
    Unsubscribe as Unsubscribe,
    SubscriptionGet as SubscriptionGet,
    Subscriptions as Subscriptions,
    Messages as Messages,
    Trim as Trim,
)
from qmodel.contract.operations.read import (
    Why as Why,
    Get as Get,
    Multiget as Multiget,
    Search as Search,
    Waiting as Waiting,
    Scheduled as Scheduled,
    Depending as Depending,
    Throttled as Throttled,
    Running as Running,
    Stalled as Stalled,
    Completed as Completed,
    Queues as Queues,
    Queue as Queue,
    Length as Length,
    Workers as Workers,
    Worker as Worker,
    Stats as Stats,
    Metrics as Metrics,
    Events as Events,
    Newest as Newest,
    Journal as Journal,
)
from qmodel.contract.operations.administer import (
    Pause as Pause,
    Unpause as Unpause,
    Forget as Forget,
    Deregister as Deregister,
    Config as Config,
    ConfigGet as ConfigGet,
    ConfigSet as ConfigSet,
    ConfigUnset as ConfigUnset,
    BeginEpoch as BeginEpoch,
)
from qmodel.contract.operations.annotate import (
    MetadataGet as MetadataGet,
    MetadataSet as MetadataSet,
    MetadataIncrement as MetadataIncrement,
    MetadataUnset as MetadataUnset,
)

SECTIONS = {
    spec.section: (_sys.modules[spec.cls.__module__].__doc__ or "").partition(".")[0] for spec in CATALOGUE.values()
}
"""The sections of the catalogue, and the title of each. A section is a module here and in both implementations."""
