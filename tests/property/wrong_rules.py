"""Rules that are wrong, planted in the model alone: each breaks a sentence of docs/semantics.md.

Comparing the model with the Lua would find each at once. But a rule can be wrong on both sides, and then only the laws
can notice (`qmodel/conformance/laws`). A plant replaces one text of a file of the model by another.
"""

from __future__ import annotations

from typing import NamedTuple


class Wrong(NamedTuple):
    """A wrong rule: what is wrong, the sentence that it breaks, and the text of a file that it replaces."""

    name: str
    sentence: str
    file: str
    right: str
    wrong: str


WRONG = (
    # ---- order
    Wrong(
        "a new priority moves a job behind its equals",
        "A new priority moves a job to the front of its equals. (14) | It keeps its place in time.",
        "model/ops/change",
        "    state_index.leave(store, job)\n    job.priority = op.priority\n",
        "    state_index.leave(store, job)\n    job.priority = op.priority\n    job.seq = store.seq\n",
    ),
    Wrong(
        "lifo jobs come in the order of their puts",
        "within a priority, `lifo` jobs first, newest first",
        "model/state/queues",
        "return job.priority, -1 - job.ready_at, -job.seq, job.jid",
        "return job.priority, -1 - job.ready_at, job.seq, job.jid",
    ),
    Wrong(
        "stalled jobs come after those whose lease has lapsed",
        "Jobs whose lease was ended by `timeout`, in the order of these calls.",
        "model/ops/pop",
        "        for job in found:\n            units",
        "        for job in sorted(found, key=lambda j: j.state == 'stalled'):\n            units",
    ),
    Wrong(
        "a pop examines as many ended leases as it may give jobs",
        "It takes back ended leases until it has as many jobs as it may give.",
        "model/ops/pop",
        "        found = queues.lapsed(store, queue_state, until, CHUNK)\n",
        "        break\n",
    ),
    Wrong(
        "a due job is ready when it is noticed",
        "A job put with a delay until 12:00 is ready at 12:00, whether or not anybody looked at that moment",
        "model/ops/pop",
        '        emit(store, now, "promoted", job.jid, job.queue)\n        _promote(store, now, job)',
        '        emit(store, now, "promoted", job.jid, job.queue)\n        queues.unschedule(store, job)\n'
        "        job.ready_at = now\n        queues.schedule(store, job)\n        _promote(store, now, job)",
    ),
    Wrong(
        "a pop takes from the last queue first",
        "takes the jobs of the first queue, then of the second, and so on",
        "model/ops/pop",
        "    return list(dict.fromkeys(names))",
        "    return list(dict.fromkeys(names))[::-1]",
    ),
    Wrong(
        "a released job keeps the moment at which it was ready",
        "A job becomes ready when it is put, when its delay ends, when its last dependency completes, or when it is "
        "given back.",
        "model/ops/finish",
        "    job.expires_at = 0\n    job.ready_at = now + delay_ms\n",
        "    job.expires_at = 0\n    job.ready_at = now + delay_ms if delay_ms else job.ready_at\n",
    ),
    Wrong(
        "a moment that is past comes first",
        "A moment that is past means now: such a job does not overtake those that\nare ready.",
        "model/rules/stages",
        "    return max(op.at, now) if op.at is not None else now + op.delay_ms",
        "    return op.at if op.at is not None else now + op.delay_ms",
    ),
    Wrong(
        "a new key gets the turn of the first job",
        "the turn of the\n"
        "first ready job of its priority and half a step, or the next turn of its key, whichever is later",
        "model/state/turns",
        "+ cost(job) // 2, following), LAST)",
        ", following), LAST)",
    ),
    Wrong(
        "a weight takes turns away",
        "a step is 1000 divided by the weight",
        "model/state/turns",
        '    return TURN // int(options.get(job, "fair_weight") or 1)',
        '    return TURN * int(options.get(job, "fair_weight") or 1)',
    ),
    Wrong(
        "a canceled job keeps its turn",
        "gives its turn back: the later puts of its\n  key move up",
        "model/state/turns",
        "        _set(turns, key, max(turns.next[key] - cost(job), 0))\n",
        "        pass\n",
    ),
    # ---- priorities that improve with age
    Wrong(
        "a worse priority is an earlier moment",
        "which is its ready time plus `aging` times its priority",
        "model/state/aging",
        "ready_at + priority * rate",
        "ready_at - priority * rate",
    ),
    Wrong(
        "age counts from the put",
        "Age counts from the ready time",
        "model/state/queues",
        "aging.first_number(rate, priority, at)",
        "aging.first_number(rate, priority, job.put_at)",
    ),
    Wrong(
        "jobs of one moment stand by their sequence",
        "jobs of one moment stand by their ready time, then by sequence",
        "model/state/queues",
        "    return (aging.first_number(rate, priority, at) if rate else priority, at, seq, jid)",
        "    return (aging.first_number(rate, priority, at) if rate else priority, 1 if rate else at, seq, jid)",
    ),
    # ---- ordered keys
    Wrong(
        "a retry gives the key away",
        "A job holds the key until it ends, through retries, releases, expired leases and a move to a `next` queue.",
        "model/ops/finish",
        "    job.remaining -= 1\n    if not op.qless",
        "    job.remaining -= 1\n"
        "    from qmodel.model.rules.concurrency import release_slot\n    release_slot(store, now, job)\n"
        "    if not op.qless",
    ),
    Wrong(
        "of those in line the last one goes on",
        "it proceeds in the order of joining",
        "model/state/concurrency_keys",
        "[jid for _, _, jid in slots.parked[:most]]",
        "[jid for _, _, jid in list(slots.parked)[-most:]]",
    ),
    Wrong(
        "who is let through keeps the moment at which it was ready",
        "the next job proceeds in the same step, at the end of its\npriority",
        "model/rules/concurrency",
        '        job.ready_at = now\n        emit(store, now, "unthrottled"',
        '        emit(store, now, "unthrottled"',
    ),
    # ---- leases
    Wrong(
        "a lease is renewed from its end",
        "The\nworker renews the lease with `heartbeat`, counted from that call.",
        "model/ops/lease",
        "    queues.renew(store, job, expiry(store, now, job))",
        "    queues.renew(store, job, expiry(store, max(now, job.expires_at), job))",
    ),
    Wrong(
        "a heartbeat lasts beyond the timeout",
        "no lease extends beyond that time after its claim, however often it is renewed",
        "model/ops/lease",
        "    return min(ends, job.popped_at + int(longest)) if longest is not None else ends",
        "    return min(ends, now + int(longest)) if longest is not None else ends",
    ),
    Wrong(
        "a job's lease does not shorten the heartbeat of its queue",
        "A put may set a lease duration for the job (`lease`, instead of the queue's heartbeat)",
        "model/ops/lease",
        "    ends = now + (int(own) if own is not None else config.heartbeat(store, job.queue))",
        "    ends = now + max(int(own or 0), config.heartbeat(store, job.queue))",
    ),
    Wrong(
        "there is no grace period",
        "During the grace period (`grace-period`, 10 seconds) it stays with its worker",
        "model/ops/pop",
        '    until = now - config.value(store, "grace-period")\n    taken',
        "    until = now\n    taken",
    ),
    Wrong(
        "a lease that reached its timeout has lapsed",
        "When\nthe lease ends there, `lock_lost` has the cause `timeout`.",
        "model/ops/lease",
        "job.expires_at >= job.popped_at + int(longest)",
        "job.expires_at > job.popped_at + int(longest)",
    ),
    Wrong(
        "a lease that has lapsed cannot be renewed",
        "A heartbeat or a completion is accepted until another worker takes the job, also after the grace\nperiod.",
        "model/state/jobs",
        '    if job.state == "running" and job.token == token:\n        return job, None',
        '    if job.state == "running" and job.token == token and job.popped_at + 10**7 > job.expires_at:\n'
        "        return job, None",
    ),
    # ---- retries
    Wrong(
        "a manual timeout counts as a retry",
        "`timeout` (not counted as a retry; the job is handed out next)",
        "model/ops/lease",
        "    job.ready_at = now\n    if released:\n",
        "    job.ready_at = now\n    job.remaining = max(job.remaining - 1, 0)\n    if released:\n",
    ),
    Wrong(
        "a failed job that is retried has the retries that were left",
        "the job has all of them again when it is put, completed, sent on, or retried after a failure",
        "model/rules/stages",
        "    job.queue = queue\n    job.remaining = job.retries\n",
        "    job.queue = queue\n"
        '    job.remaining = job.remaining if job.failure and job.state == "" else job.retries\n',
    ),
    Wrong(
        "a job sent on has the retries that were left",
        "the job has all of them again when it is put, completed, sent on, or retried after a failure",
        "model/ops/finish",
        "    enter(store, now, job, op.next, now + op.delay_ms)\n",
        "    remaining = job.remaining\n    enter(store, now, job, op.next, now + op.delay_ms)\n"
        "    job.remaining = remaining\n",
    ),
    Wrong(
        "a release counts as a retry",
        "`release` gives a job back without counting.",
        "model/ops/finish",
        '    history.add(store, now, job, "released", job.token, state)\n    emit',
        '    history.add(store, now, job, "released", job.token, state)\n'
        "    job.remaining = max(job.remaining - 1, 0)\n"
        "    emit",
    ),
    Wrong(
        "a job is buried with one retry left",
        "Without retries left,\n`retry` fails the job and replies -1.",
        "model/ops/finish",
        "    if revoked or job.remaining == 0:\n",
        "    if revoked or job.remaining <= 1:\n",
    ),
    Wrong(
        "a backoff grows threefold",
        "each further one twice as long as the one before",
        "model/rules/backoff",
        "    return min(int(first) << min(before, DOUBLINGS), most)",
        "    return min(int(first) * 3 ** min(before, DOUBLINGS), most)",
    ),
    Wrong(
        "a backoff has no bound",
        "up to `retry_delay_max` (a day)",
        "model/rules/backoff",
        "    return min(int(first) << min(before, DOUBLINGS), most)",
        "    return int(first) << min(before, DOUBLINGS)",
    ),
    Wrong(
        "the shorter of two delays holds",
        "Of both delays the longer one holds.",
        "model/ops/finish",
        "    delay_ms = max(op.delay_ms, backoff.delay(job))",
        "    delay_ms = min(op.delay_ms, backoff.delay(job)) or op.delay_ms",
    ),
    Wrong(
        "a lapsed job waits for its backoff from the pop",
        "the job waits for its [backoff](#retries), from the end of the lease",
        "model/ops/pop",
        "    job.ready_at += delay_ms\n",
        "    job.ready_at = now + delay_ms\n",
    ),
    Wrong(
        "a job that is sent on has lapsed as often as before",
        "A put, a move to a `next` queue and a retry after the\n  failure begin the count anew.",
        "model/rules/stages",
        '    if job.options:\n        options.drop(job, "lapses")\n    job.put_at',
        '    if job.options and job.token == 0:\n        options.drop(job, "lapses")\n    job.put_at',
    ),
    # ---- dead letters
    Wrong(
        "a dead letter has all default retries",
        "It has the\nklass, data, priority, retries, tags and failure of the failed job.",
        "model/rules/failure",
        "    letter.retries = job.retries\n",
        "",
    ),
    Wrong(
        "a job that expires leaves no letter",
        "leaves a *dead letter* there when it fails for good, for any reason",
        "model/rules/failure",
        "    clean_up(store, now, job)\n    _write_letter(store, now, job)\n",
        '    clean_up(store, now, job)\n    if not group.startswith("expired-"):\n'
        "        _write_letter(store, now, job)\n",
    ),
    Wrong(
        "a replay does not give the dead queue back",
        "`lifo`, lease, timeout and dead queue are as before",
        "model/ops/recover",
        '        dead_queue=letter.options["origin_dead_queue"],\n',
        "",
    ),
    # ---- revoking
    Wrong(
        "a revoked job that is released goes on",
        "However the lease ends (complete,\nretry, release, fail, timeout, or expiry), the job fails in that group and "
        "is not retried.",
        "model/ops/finish",
        '    if is_revoked(job):\n        history.add(store, now, job, "released", job.token, "failed")',
        "    if is_revoked(job) and not op.delay_ms:\n"
        '        history.add(store, now, job, "released", job.token, "failed")',
    ),
    Wrong(
        "a heartbeat does not tell that a job was revoked",
        "its worker learns this at its next heartbeat",
        "model/ops/lease",
        "    return Lease(job.expires_at, is_revoked(job))",
        "    return Lease(job.expires_at, False)",
    ),
    Wrong(
        "a revoked job fails into the group of its worker",
        "the job fails in that group and is not retried",
        "model/ops/finish",
        "    if is_revoked(job):\n        fail_revoked(store, now, job, op.message, job.token)\n    else:\n"
        "        fail_job",
        "    if False:\n        fail_revoked(store, now, job, op.message, job.token)\n    else:\n        fail_job",
    ),
    # ---- time to live
    Wrong(
        "a job may not start in the last moment of its life",
        "may start until that long after the put, including that moment",
        "model/state/ttl",
        "for _, _, jid in queue.expires.until(now - 1, most)]",
        "for _, _, jid in queue.expires.until(now, most)]",
    ),
    Wrong(
        "a job that was started may expire",
        "A job that has been started once cannot expire any more, however often it is retried.",
        "model/ops/pop",
        '        options.drop(job, "ttl_ms")\n',
        "",
    ),
    # ---- dependencies
    Wrong(
        "a dependent goes on when its dependency is sent on",
        "A dependency that is retried or sent on to another queue\nis not complete",
        "model/ops/finish",
        "    queues.register(store, now, op.next)\n    emit",
        "    queues.register(store, now, op.next)\n    for waiting in dependencies.resolve(store, job):\n"
        "        unblock(store, now, waiting)\n    emit",
    ),
    Wrong(
        "an unblocked job keeps the moment at which it was put",
        "A job becomes ready when it is put, when its delay ends, when its last dependency completes",
        "model/rules/stages",
        "    job.ready_at = max(job.ready_at, now)\n    state",
        "    state",
    ),
    Wrong(
        "a dependency that failed counts as blocking although it is to be ignored",
        "| `ignore` | counts the dependency as met.",
        "model/rules/propagation",
        'FOLLOWED = ("fail", "ignore", "cancel")',
        'FOLLOWED = ("fail", "cancel")',
    ),
    Wrong(
        "a job that is to be canceled with its dependency fails",
        "| `cancel` | is canceled.",
        "model/rules/propagation",
        "    else:\n        doomed.append(job.jid)\n",
        "    else:\n        _fail(store, now, job, message)\n",
    ),
    Wrong(
        "the result of a named dependency is dropped when the job fails",
        "The results stay until the job is complete\nor deleted, also through failures and retries.",
        "model/rules/cleanup",
        '    if job.state == "complete":\n        results.forget(store, job)',
        "    results.forget(store, job)",
    ),
    # ---- requests
    Wrong(
        "a sub-request that fails counts as canceled",
        "A sub-request ends as done, failed or canceled.",
        "model/rules/request_end",
        '    elif job.state == "failed" and (request.state != "canceling" or',
        '    elif job.state == "failed" and (request.state == "open" or',
    ),
    Wrong(
        "a type keeps one complete job more than its newest",
        "`keep_newest` of a put keeps only the newest",
        "model/state/retention",
        'max(len(newest) - int(job.options["keep_newest"]), 0)',
        'max(len(newest) - int(job.options["keep_newest"]) - 1, 0)',
    ),
    Wrong(
        "a bad end of a request lets all jobs go on",
        "**A bad end** is any other",
        "model/rules/propagation",
        "    if requests.has_ended_well(request):\n",
        "    if True:\n",
    ),
    Wrong(
        "a request has ended well whatever became of its sub-requests",
        "**A good end** is one with each of its sub-requests done",
        "model/state/requests",
        'return request.state == "done" and request.done == request.total',
        'return request.state == "done"',
    ),
    Wrong(
        "sub-requests are listed by id",
        "The sub-requests of a request are listed in the order in which they were added",
        "model/state/requests",
        "    return request.order[offset : offset + count]",
        "    return sorted(request.order)[offset : offset + count]",
    ),
    Wrong(
        "added sub-requests come first",
        "The sub-requests of a request are listed in the order in which they were added",
        "model/state/requests",
        "    request.order += jids",
        "    request.order[:0] = jids",
    ),
    Wrong(
        "a job that was put again is forgotten with the request",
        "those that were retried or put again stay",
        "model/ops/request",
        "    return as_ended and job.seq == seq and not job.dependents",
        "    return as_ended and not job.dependents",
    ),
    Wrong(
        "a late request goes on",
        "From its deadline on, its queue hands out none of its sub-requests",
        "model/rules/request_cancellation",
        "        if requests.is_late(now, request) and request.reason",
        "        if requests.is_late(now - 1, request) and request.reason",
    ),
    Wrong(
        "a failed sub-request cancels those that have begun",
        "those that have begun go on",
        "model/rules/request_cancellation",
        'pick(store, request, kept, request.reason == "deadline")',
        "pick(store, request, kept, True)",
    ),
    Wrong(
        "a failed sub-request cancels those that have begun and have a new place",
        "those that\n  have begun go on",
        "model/rules/request_cancellation",
        "(not begun and job.token > 0)",
        "(not begun and concurrency_keys.has_begun(job))",
    ),
    Wrong(
        "those that have begun get no new place after a failure",
        "Then those that have begun share the limit.",
        "model/state/requests",
        '    goes_on = request.reason == "failed" and not request.ending\n',
        "    goes_on = False\n",
    ),
    Wrong(
        "a sub-request in backoff keeps its place",
        "leaves its place, and the next one gets it in the same step",
        "model/rules/stages",
        "        wait_for_time(store, now, job)\n",
        "",
    ),
    Wrong(
        "a sub-request in backoff leaves its place though its request keeps places",
        "With `keep_places`, one that has begun keeps its place",
        "model/rules/concurrency",
        "has_slot(job) and not requests.load(store, id).keep_places",
        "has_slot(job)",
    ),
    Wrong(
        "nobody notes who left a place",
        "until they are done, no place is given",
        "model/rules/concurrency",
        "        requests.note_yield(store, id, job)\n",
        "        pass\n",
    ),
    Wrong(
        "a lease on openness lasts for ever",
        "A lease on openness closes the request",
        "model/state/requests",
        '    moments = (request.open_until if request.state == "open" else 0), request.deadline_at',
        "    moments = 0, request.deadline_at",
    ),
    Wrong(
        "one sub-request too many goes on",
        "Only as many as the limit are in the\n  queue's order",
        "model/state/concurrency_keys",
        "return requests.limit(store, name[len(REQUEST) :]) if name.startswith(REQUEST) else 1",
        "return 1 + requests.limit(store, name[len(REQUEST) :]) if name.startswith(REQUEST) else 1",
    ),
    Wrong(
        "a request ends while it is open",
        "It ends once: the step in\nwhich the last sub-request ends also produces the event `request_done`.",
        "model/rules/request_end",
        '    if request.state in ("closed", "canceling") and requests.left(request) == 0:',
        '    if request.state in ("open", "closed", "canceling") and request.total and requests.left(request) == 0:',
    ),
    Wrong(
        "a retry without a delay gives its place away",
        "A retry without a delay keeps its place in any case.",
        "model/ops/finish",
        "    job.expires_at = 0\n    job.ready_at = now + delay_ms\n    return begins",
        "    job.expires_at = 0\n"
        "    job.ready_at = now + delay_ms\n"
        "    from qmodel.model.rules.concurrency import wait_for_time\n"
        "    wait_for_time(store, now, job)\n"
        "    return begins",
    ),
    Wrong(
        "a request that is opened again keeps its old lease on openness",
        "`add`, `touch` and\n  opening it again renew the lease",
        "model/ops/request",
        "        _check_same(store, request, op)\n        _renew(store, now, request)\n",
        "        _check_same(store, request, op)\n",
    ),
    Wrong(
        "an addition does not renew the lease on openness",
        "`add`, `touch` and\n  opening it again renew the lease",
        "model/ops/request",
        "    _renew(store, now, request)\n    _add(store, now, request, news, edges)\n",
        "    _add(store, now, request, news, edges)\n",
    ),
    Wrong(
        "a deadline leaves alone what was sent on",
        "revokes the running ones, also those that were sent on to another queue",
        "model/rules/request_cancellation",
        '        if begun and job.state == "running":\n            leased.append(job)\n',
        '        if begun and job.state == "running" and job.queue == request.queue:\n            leased.append(job)\n',
    ),
    Wrong(
        "the engine deletes what others wait for",
        "a sub-request on which a job outside of the request depends is not\n"
        "  deleted but fails into `revoked-<queue>`",
        "model/rules/request_cancellation",
        "        if jid in failing:\n",
        "        if False:\n",
    ),
    Wrong(
        "a request that is canceled at its deadline counts its failures",
        "A sub-request ends as done, failed or canceled.",
        "model/rules/request_end",
        'and (request.state != "canceling" or request.reason == "failed"):',
        'and (request.state != "canceling" or request.reason in ("failed", "deadline")):',
    ),
    # ---- throttles
    Wrong(
        "an admitted job keeps its old place",
        "Pops of its queue admit as many parked jobs as there is\n  room for, to the end of their priority.",
        "model/rules/admission",
        '    options.set(job, "parked", str(parked))\n    job.ready_at = now\n',
        '    options.set(job, "parked", str(parked))\n',
    ),
    Wrong(
        "a stalled job holds no place",
        "A running or stalled job holds its place",
        "model/state/state_index",
        '    "stalled": (_lock, _unlock),\n    "complete"',
        '    "stalled": (queues.lock, queues.unlock),\n    "complete"',
    ),
    Wrong(
        "a window is closed at its edge",
        "any span of that length has at most `rate` claims, also at its edges",
        "model/state/throttles",
        "    surplus = len(throttle.claims) - gone + count - throttle.rate\n",
        "    surplus = len(throttle.claims) - gone + count - throttle.rate - (1 if gone else 0)\n",
    ),
    Wrong(
        "an idle bucket fills beyond its capacity",
        "an idle bucket fills up to its\n  capacity",
        "model/state/throttles",
        "    if elapsed >= _ceiling(missing, throttle.refill):\n        return throttle.level + missing\n",
        "",
    ),
    Wrong(
        "a parked job waits on after its throttle has opened",
        "Pops of its queue admit as many parked jobs as there is\n  room for",
        "model/state/parked",
        "    for queue in sorted(of(store, name).queues)[:MOST]:\n        expect(store, queue, name, 0)\n",
        "    for queue in sorted(of(store, name).queues)[:MOST]:\n",
    ),
    Wrong(
        "the shortest pattern of a family rules",
        "otherwise the longest pattern that\n  matches rules",
        "model/state/families",
        "(-budget.size(family[0]), family[0])",
        "(budget.size(family[0]), family[0])",
    ),
    Wrong(
        "a throttle of a family forgets its claims",
        "Each throttle has its own jobs, window and bucket.",
        "model/state/throttles",
        "    if throttle.generation == generation:\n",
        "    if False:\n",
    ),
    Wrong(
        "of two families of one length the last one rules",
        "of two of one length the first by name",
        "model/state/families",
        "        store.families.sort(key=lambda family: (-budget.size(family[0]), family[0]))",
        "        store.families.sort(key=lambda family: (budget.size(family[0]), family[0]), reverse=True)",
    ),
    Wrong(
        "a cost above the capacity never passes",
        "If the capacity is lowered later, such a job takes the whole bucket.",
        "model/state/throttles",
        "    tokens = min(min(cost, throttle.capacity) + spent, 2 * throttle.capacity)",
        "    tokens = min(cost + spent, 2 * throttle.capacity)",
    ),
    Wrong(
        "parked jobs come last in first out",
        "is parked** there (state `throttled`), by priority, then in the order of arrival",
        "model/state/parked",
        "    return [store.jobs[jid] for _, _, jid in entry.parked[:most]] if entry is not None else []",
        "    found = sorted(entry.parked, key=lambda one: (one[0], -one[1]))[:most] if entry is not None else []\n"
        "    return [store.jobs[jid] for _, _, jid in found]",
    ),
    # ---- deduplication
    Wrong(
        "a dropped put extends the window",
        "for `unique_ms` from its put, however the job ends; dropped puts do not extend this",
        "model/rules/deduplication",
        "    assert unique is not None\n    changes",
        "    assert unique is not None\n    if unique.mode == 'window' and op.unique_ms:\n"
        "        uniques.hold(store, key, 'window', job, now, now + op.unique_ms)\n"
        "        unique = uniques.get(store, now, key)\n    changes",
    ),
    Wrong(
        "a window ends one millisecond late",
        "A window ends exactly at its last millisecond: a put at that moment is accepted.",
        "model/state/uniques",
        "(not unique.ends or now < unique.ends)",
        "(not unique.ends or now <= unique.ends)",
    ),
    Wrong(
        "a job keeps its key when it fails",
        "A job releases its key when it fails",
        "model/rules/deduplication",
        '    elif unique.jid == job.jid and unique.mode != "window":',
        '    elif unique.jid == job.jid and unique.mode != "window" and job.state != "failed":',
    ),
    Wrong(
        "a job that waits for a retry is changed",
        "A job that waits for a retry has begun: it is neither changed nor replaced.",
        "model/rules/deduplication",
        "job.state in NOT_BEGUN and not job.token",
        "job.state in NOT_BEGUN",
    ),
    Wrong(
        "a debounced job is delayed for ever",
        "its delay starts again, at most until `unique_max_ms` after the put of the holder",
        "model/rules/deduplication",
        "        ready_at = min(ready_at, unique.since + op.unique_max_ms)\n",
        "        ready_at = min(ready_at, now + op.unique_max_ms)\n",
    ),
    # ---- recurring jobs
    Wrong(
        "due times drift",
        "**Due times are anchored:** the first one, and every interval after it.",
        "model/state/schedules",
        "        schedule.next_at += count * schedule.interval_ms\n",
        "        schedule.next_at += count * schedule.interval_ms + (1 if count > 1 else 0)\n",
    ),
    Wrong(
        "a run is due after its end",
        "no run is due before `start_at` or after `end_at` (inclusive)",
        "model/state/schedules",
        '    return "end" if schedule.end_at and schedule.next_at > schedule.end_at and known else ""',
        '    return "end" if schedule.end_at and schedule.next_at > schedule.end_at + 1000 and known else ""',
    ),
    Wrong(
        "a failed run has not ended",
        "Unfinished runs are counted, not estimated from times; a failed\n  run has ended.",
        "model/rules/recurrence",
        "    if said is None:\n        return\n    options",
        '    if said is None or job.state == "failed":\n        return\n    options',
    ),
    Wrong(
        "of several missed runs the first one is made",
        "`missed` creates `all`, the last `one`",
        "model/state/schedules",
        "    missed = max(missed, 0)\n    skip(schedule, missed)\n    return missed",
        "    missed = max(missed, 0)\n"
        '    if schedule.missed == "one" and missed and schedule.kind == "interval":\n'
        "        at = schedule.next_at\n"
        "        skip(schedule, missed)\n"
        "        schedule.next_at = at\n"
        "        return missed\n"
        "    skip(schedule, missed)\n"
        "    return missed",
    ),
    Wrong(
        "a run that is late by its catch-up time is passed over",
        "`none` that is later than\n  `catchup_ms` (a minute)",
        "model/state/schedules",
        "        missed = before(schedule, now - schedule.catchup_ms)",
        "        missed = before(schedule, now - schedule.catchup_ms + 1)",
    ),
    Wrong(
        "a run that is made by hand moves the others",
        "It counts, and does not move the other due\n  times.",
        "model/ops/recur",
        "        schedules.count_run(schedule)\n        make(store, now, run)\n    keep",
        "        schedules.count_run(schedule)\n"
        "        if schedule.kind == 'interval':\n"
        "            schedule.next_at = now + schedule.interval_ms\n"
        "        make(store, now, run)\n"
        "    keep",
    ),
    # ---- pauses
    Wrong(
        "the end of a pause ends all",
        "a queue is paused while any reason is left",
        "model/state/pauses",
        "if reason not in (None, one)}",
        "if reason not in (None, one) and until == 0}",
    ),
    Wrong(
        "a pause ends one millisecond late",
        "Every read treats it as ended at that moment",
        "model/state/pauses",
        "if 0 < until <= now]",
        "if 0 < until < now]",
    ),
    # ---- messages
    Wrong(
        "a wildcard at the end matches nothing more, too",
        "`>` at the end matches one or\n  more",
        "model/state/subjects",
        "        if place == len(subject):\n            return False\n",
        "        if place == len(subject):\n            return segment == MORE\n",
    ),
    Wrong(
        "a delay counts from the delivery",
        "A delay** counts from the moment of publishing, also for later deliveries.",
        "model/state/subscriptions",
        "    delay_ms = max(message.due_at + subscription.put.delay_ms - now, 0)",
        "    delay_ms = max(message.due_at - message.at + subscription.put.delay_ms, 0)",
    ),
    # ---- statistics
    Wrong(
        "a day counts by any number of tags",
        "A queue counts on each day by the first `stats-tags` (100) that come; later\nones are not counted that day",
        "model/state/stats",
        "    if part is None and len(parts) < most:\n",
        "    if part is None:\n",
    ),
    Wrong(
        "the wait counts from the put",
        "**wait** is recorded at each pop, from the moment when the job became ready",
        "model/ops/pop",
        "    wait_ms = now - since if now > since else 0\n",
        "    wait_ms = now - job.put_at if now > job.put_at else 0\n",
    ),
    Wrong(
        "the mean forgets the first duration",
        "count, mean and sum of squared deviations of waiting and running times, by Welford's\nrecurrence",
        "model/state/stats",
        "    sample.squares += delta * (duration - mean)\n",
        "    sample.squares += delta * delta\n",
    ),
    Wrong(
        "the histogram has hours from half a day on",
        "92 of a quarter of an hour up to a day",
        "model/state/stats",
        "    if seconds < 86_400:\n        return 115 + seconds // 900\n",
        "    if seconds < 43_200:\n        return 115 + seconds // 900\n",
    ),
    Wrong(
        "a failure is taken back today",
        "taken back on that day when the job is retried, put again or\n  canceled",
        "model/ops/recover",
        "    stats.recovered(store, job.ended_at, job.queue)\n    jobs.lift",
        "    stats.recovered(store, now, job.queue)\n    jobs.lift",
    ),
    # ---- retention, events, lists
    Wrong(
        "the youngest complete jobs are deleted",
        "at most `jobs-history-count` (50,000). They are deleted when other\n  jobs complete",
        "model/state/completed",
        "        found = completed[: min(surplus, most)]\n",
        "        found = completed[max(len(completed) - min(surplus, most), 0) :]\n",
    ),
    Wrong(
        "workers are listed longest silent first",
        "Lists have a defined order.",
        "model/state/workers",
        "    ordered = sorted(known, reverse=True)\n",
        "    ordered = sorted(known)\n",
    ),
    Wrong(
        "failed jobs are listed longest failed first",
        "Lists have a defined order.",
        "model/state/failures",
        "    return tuple(jid for _, _, jid in reversed(places[max(end - count, 0) : max(end, 0)]))",
        "    return tuple(jid for _, _, jid in places[offset : offset + count])",
    ),
    Wrong(
        "a new job wakes all idle workers",
        "Each event wakes all followers, whereas a new job wakes one worker.",
        "model/state/queues",
        "    if queue.idle:\n        wake(queue, 1)\n\n\ndef place",
        "    if queue.idle:\n        wake(queue, queue.idle)\n\n\ndef place",
    ),
    Wrong(
        "a silent worker is removed with its leases",
        "A silent worker is removed with its leases. (34) | It stays as long as it holds any.",
        "model/state/workers",
        "        if store.workers[name].held:\n            passed += 1\n        else:\n"
        "            deregister(store, name)",
        "        deregister(store, name)",
    ),
    Wrong(
        "by the rules of qless a holder keeps the job for half of the grace period",
        "With a grace period the job stays with the holder until that has passed again, and then a pop gives it away.",
        "model/ops/pop",
        "        queues.renew(store, job, now + grace)",
        "        queues.renew(store, job, now + grace // 2)",
    ),
    Wrong(
        "by the rules of qless a retry is counted",
        "The statistics count a retry when a holder is told, and none for `retry`.",
        "model/ops/finish",
        "    if not op.qless:\n        stats",
        "    if True:\n        stats",
    ),
    Wrong(
        "by the rules of qless a due job is ready since it was due",
        "A pop makes as many due jobs ready as it wants, from now.",
        "model/ops/pop",
        "        job.ready_at = now\n        place(store, now, job, admit(store, job))",
        "        place(store, now, job, admit(store, job))",
    ),
)
