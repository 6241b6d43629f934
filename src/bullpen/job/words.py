"""Words that people or programs said, as any store can keep them."""


def storable(text: str) -> str:
    """The same, with what is no Unicode escaped."""
    # A message may quote a file name that is no UTF-8; the attempt must be settled all the same.
    return text.encode(errors="backslashreplace").decode()
