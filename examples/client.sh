#!/usr/bin/env bash
# Put a job, be its worker, and wait for what it gave: with curl alone. API=http://127.0.0.1:8000 is where
# `qmodel http --writable` serves.
set -euo pipefail
API=${API:-http://127.0.0.1:8000}

post() { # post PATH JSON
    curl --silent --show-error --fail-with-body -H 'Content-Type: application/json' -d "$2" "$API$1"
}

field() { # field NAME: of the JSON that comes in
    sed -E "s/.*\"$1\":\"?([^\",}]*).*/\1/"
}

# The same key each time: sent again, say because the answer was lost, it is done once.
jid=$(curl --silent --show-error --fail-with-body -H 'Content-Type: application/json' -H 'Idempotency-Key: order-17' \
    -d '{"klass": "SendEmail", "data": {"to": "ada@example.com"}}' "$API/v1/queues/emails/jobs" | field jid)

job=$(post /v1/queues/emails/pop '{"worker": "shell", "timeout": 30}')
token=$(field token <<<"$job")
to=$(field to <<<"$job")

post "/v1/jobs/$jid/heartbeat" "{\"token\": $token}" >/dev/null
post "/v1/jobs/$jid/complete" "{\"token\": $token, \"result\": \"sent to $to\"}" >/dev/null

curl --silent --show-error --fail-with-body "$API/v1/jobs/$jid/wait?timeout=30" | field result
