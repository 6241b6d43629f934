"""Passwords, as scrypt of the standard library keeps them: slow to guess, each with its own salt."""

import asyncio
import base64
import functools
import hashlib
import hmac
import secrets
from concurrent.futures import ThreadPoolExecutor

from bullpen.errors import BadOption

_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
_MEMORY = 64 * 1024 * 1024
_AT_ONCE = 2
"""Each takes a core and 16 megabytes: who sends many passwords must not take all of them."""
_SHORTEST = 8
_LONGEST = 1_024


def check_password(password: str) -> str:
    """A password that may be set, or BadOption."""
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise BadOption(f"password: {_SHORTEST} characters at least, {_LONGEST:,} at most")
    return password


async def hashed(password: str) -> str:
    """What to keep: the parameters, the salt and the hash."""
    salt = secrets.token_bytes(16)
    made = await _made(password, salt, _COST, _BLOCK, _PARALLEL)
    return "$".join(("scrypt", str(_COST), str(_BLOCK), str(_PARALLEL), _text(salt), _text(made)))


async def matches(password: str, kept: str) -> bool:
    """Whether this is the password; takes its time whatever the answer is."""
    _, cost, block, parallel, salt, wanted = kept.split("$")
    made = await _made(password[:_LONGEST], base64.b64decode(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(made, base64.b64decode(wanted))


async def _made(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads(), _scrypt, password, salt, cost, block, parallel)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Made with the first password: most processes see none."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="bullpen-passwords")


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(
        password.encode(errors="surrogatepass"), salt=salt, n=cost, r=block, p=parallel, maxmem=_MEMORY, dklen=32
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
