"""Forms: read from a request, of a bounded size."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from qmodel.present.fields import BadInput, Fields
from qmodel.present.numbers import number

MOST_BYTES = 1 << 18
"""The most bytes of a form. The ids of all jobs that can be selected on a page take a tenth of it."""

MOST_FIELDS = 2000


async def read(request: Request) -> Fields:
    """Read the fields of a form; raise BadInput if it is too large, or no form."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise BadInput(f"A form has at most {number(MOST_BYTES)} bytes.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise BadInput("The body is not a form as this server reads it (application/x-www-form-urlencoded).") from None
    return Fields(pairs)
