"""SQL state of record: what the server keeps, the outbox, and the read model. Needs `bullpen[server]`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.records.credits.credits import purse
    from bullpen.records.credits.words import Period
    from bullpen.records.files.on import FilesOn
    from bullpen.records.files.words import FileKind
    from bullpen.records.keys import NewKey, Role
    from bullpen.records.records import Records
    from bullpen.records.relay import OutboxRelay
    from bullpen.records.runs.moving import RunsOn
    from bullpen.records.runs.words import ProgressKind
else:
    from bullpen.exports import late

    __getattr__ = late(
        __name__,
        {
            "credits.credits": ("purse",),
            "credits.words": ("Period",),
            "files.on": ("FilesOn",),
            "files.words": ("FileKind",),
            "keys": ("NewKey", "Role"),
            "records": ("Records",),
            "relay": ("OutboxRelay",),
            "runs.moving": ("RunsOn",),
            "runs.words": ("ProgressKind",),
        },
    )

__all__ = [
    "FileKind",
    "FilesOn",
    "NewKey",
    "OutboxRelay",
    "Period",
    "ProgressKind",
    "Records",
    "Role",
    "RunsOn",
    "purse",
]
