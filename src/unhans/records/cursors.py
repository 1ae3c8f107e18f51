"""Where a list goes on, as a short text that the browser gives back."""

from __future__ import annotations

import base64
import json
import math

from unhans.errors import BadOption


def encode(value: float, number: int) -> str:
    """What the order goes by, and a number that tells equal ones apart."""
    return base64.urlsafe_b64encode(json.dumps([value, number]).encode()).decode().rstrip("=")


def decode(cursor: str) -> tuple[float, int]:
    """What `encode` was given; whatever else somebody sends is refused."""
    try:
        told = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        value, number = json.loads(told)
        if type(number) is not int or not 0 <= number < 2**31 or not math.isfinite(value):
            raise ValueError
        return float(value), number
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise BadOption("This place in the list cannot be read. Begin at the top.") from None
