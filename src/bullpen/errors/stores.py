"""About the place where jobs are kept."""

from bullpen.errors.root import BullpenError


class StoreError(BullpenError):
    """About the place where jobs are kept."""

    code = "store"


class StoreUnavailable(StoreError):
    """The store cannot be reached or does not answer; the same call may succeed later."""

    code = "store-unavailable"


class StoreNotOpen(StoreUnavailable):
    """It was not opened, or was closed."""

    code = "store-not-open"


class StoreFull(StoreError):
    """The store has no room; nothing was written. Make room, then try again."""

    code = "store-full"


class BufferFull(StoreError):
    """The store is away and the producer's buffer holds all it may; nothing was kept."""

    code = "buffer-full"


class BufferLost(StoreError):
    """The producer ended before what its buffer held could be added."""

    code = "buffer-lost"


class StoreReadOnly(StoreError):
    """The store's file or server does not accept writes from us."""

    code = "store-read-only"


class StoreCorrupt(StoreError):
    """The store's file is damaged, or is not a Bullpen file."""

    code = "store-corrupt"


class StoreTooNew(StoreError):
    """The store was written by a newer Bullpen; upgrade this one."""

    code = "store-too-new"
