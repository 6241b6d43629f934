"""The signature of a delivery: who has the secret can tell that it is from us, unchanged, and of now.

`X-Bullpen-Signature: t=<seconds>,v1=<hex>`, where the hex is HMAC-SHA256 with the secret over the
seconds, a full stop, and the body as it was sent.
"""

import hashlib
import hmac

HEADER = "X-Bullpen-Signature"
TOLERANCE_S = 300


def sign(secret: str, at_s: int, body: bytes) -> str:
    """The header's value."""
    return f"t={at_s},v1={_digest(secret, at_s, body)}"


def verify(secret: str, header: str, body: bytes, *, now_s: float, tolerance_s: float = TOLERANCE_S) -> bool:
    """Whether the header fits the body, and is not so old that somebody may have kept it to send it again."""
    parts = dict(part.strip().partition("=")[::2] for part in header.split(","))
    at = parts.get("t", "")
    if not (at.isascii() and at.isdecimal() and len(at) < 19) or abs(now_s - int(at)) > tolerance_s:
        return False
    return hmac.compare_digest(parts.get("v1", "").encode(), _digest(secret, int(at), body).encode())


def _digest(secret: str, at_s: int, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
