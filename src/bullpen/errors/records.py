"""About the database that the server keeps its records in, and the place of its blobs."""

from bullpen.errors.root import BullpenError


class RecordsError(BullpenError):
    """About the database of records: keys, plans, audit log, outbox, read model."""

    code = "records"


class RecordsUnavailable(RecordsError):
    """The database of records cannot be reached or does not answer; the same call may succeed later."""

    code = "records-unavailable"


class RecordsTooNew(RecordsError):
    """The database of records was migrated by a newer Bullpen; upgrade this one."""

    code = "records-too-new"


class SecretUnreadable(RecordsError):
    """A secret in the records is encrypted with a key that is not set here."""

    code = "secret-unreadable"


class RecordMissing(RecordsError):
    """There is no such key, user, tenant, view, alert or webhook."""

    code = "record-missing"


class RecordTaken(RecordsError):
    """There is one of this name already; nothing was changed."""

    code = "record-taken"


class RecordLimit(RecordsError):
    """A tenant has as many records of this kind as it may; nothing was made."""

    code = "record-limit"


class LastAdmin(RecordsError):
    """Without this user no admin who logs in could let anybody in again; nothing was changed."""

    code = "last-admin"


class UploadsFull(RecordsError):
    """A tenant has as many bytes of files that no run was given as it may; nothing was kept."""

    code = "uploads-full"


class IdempotencyConflict(RecordsError):
    """The idempotency key was used for another request."""

    code = "idempotency-conflict"


class IdempotencyInProgress(IdempotencyConflict):
    """The first request with this idempotency key is not answered yet; ask again later."""

    code = "idempotency-in-progress"


class BlobError(RecordsError):
    """About the place where files and workspaces are kept, apart from their rows."""

    code = "blob"


class BlobMissing(BlobError):
    """There is no such blob: it was never put, or nobody named it for too long."""

    code = "blob-missing"


class BlobDamaged(BlobError):
    """What lies there is not what was put. It is not given to anyone."""

    code = "blob-damaged"


class BlobsUnavailable(BlobError):
    """The folder or bucket of blobs does not answer, has no room, or refuses us."""

    code = "blobs-unavailable"
