"""Secrets that have to be kept, since something is signed with them: encrypted, where a key is set.

The key is no part of the database: who reads a copy of the records reads no secret. Several keys, with commas, let one
take over from another: the first encrypts, each of them may decrypt.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bullpen.errors import BadOption, SecretUnreadable
from bullpen.settings import told

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

SECRET_KEY = "BULLPEN_SECRET_KEY"  # noqa: S105 - where it is, not what it is
SECRET_KEY_FILE = "BULLPEN_SECRET_KEY_FILE"  # noqa: S105 - the same
SEALED = "fernet:"
"""What an encrypted one begins with; no secret of ours does."""


class Sealer:
    """Encrypts with a key, or hands on as it is without one."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """BadOption if one of these is no key."""
        self._cipher = _cipher(keys) if keys else None

    @property
    def has_key(self) -> bool:
        return self._cipher is not None

    def seal(self, secret: str) -> str:
        """As it is to be kept."""
        return secret if self._cipher is None else SEALED + self._cipher.encrypt(secret.encode()).decode()

    def unseal(self, kept: str) -> str:
        """The secret. SecretUnreadable if it was encrypted with a key that is not here."""
        if not kept.startswith(SEALED):
            return kept
        if self._cipher is None:
            raise SecretUnreadable(f"a secret is encrypted, and {SECRET_KEY} is not set")
        from cryptography.fernet import InvalidToken

        try:
            return self._cipher.decrypt(kept.removeprefix(SEALED)).decode()
        except InvalidToken:
            raise SecretUnreadable(f"a secret was encrypted with another key than {SECRET_KEY} has") from None

    def is_settled(self, kept: str) -> bool:
        """Whether it is kept as this one would keep it."""
        return self._cipher is None or kept.startswith(SEALED)


def sealer_from_environment() -> Sealer:
    """With the keys of `BULLPEN_SECRET_KEY`, or of the file that `BULLPEN_SECRET_KEY_FILE` names; BadOption."""
    return Sealer([key.strip() for key in (told(SECRET_KEY) or "").split(",") if key.strip()])


def _cipher(keys: Sequence[str]) -> "MultiFernet":
    # Late: whoever sets no key need not load it.
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise BadOption(f"{SECRET_KEY}: needs the package cryptography, which bullpen[server] brings") from error
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        # Not quoted: what is no key of ours may still be somebody's secret.
        raise BadOption(f"{SECRET_KEY}: 32 bytes in URL-safe base64, as Fernet.generate_key() makes them") from error
