"""The Lua scripts: each put together from its parts once, run by its SHA.

A script is its parts and its body in one text. Its functions are made anew at each call, so what
few calls need is a module: made when it is first asked for, by its name, as in `groups().stand(…)`.
A module ends with the table of what others use of it. `KEY.x`, `FIELD.x` and `OPTION.x` stand for
the stored names of keys.py and codec.py and are replaced by them here; everything that
differs from call to call is an argument.
"""

import functools
import hashlib
import re
from importlib.resources import files

from bullpen.stores.redis.codec import FIELDS, OPTIONS
from bullpen.stores.redis.keys import LAYOUT

_NAMES = {"KEY": LAYOUT, "FIELD": FIELDS, "OPTION": OPTIONS}
_NAME = re.compile(r"\b(KEY|FIELD|OPTION)\.([a-z_]+)")
_LUA = files("bullpen.stores.redis") / "lua"


class Script:
    """One script. `flags` are Redis's: `allow-oom` lets a full server be drained, `no-writes` only looks.

    Put together when it first runs: most processes use a few of them.
    """

    def __init__(self, name: str, *, parts: tuple[str, ...] = (), flags: str = "") -> None:
        self.name = name
        self._parts = parts
        self._flags = flags

    @functools.cached_property
    def text(self) -> str:
        sources = [_read_part(part) for part in self._parts]
        return "\n".join([f"#!lua flags={self._flags}", *sources, _read(self.name)])

    @functools.cached_property
    def sha(self) -> str:
        # Redis names a script by this digest; nothing is protected by it.
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


def _read_part(name: str) -> str:
    """A part as it is, or a module as the function that makes it once: `groups()`."""
    if not _LUA.joinpath(f"modules/{name}.lua").is_file():
        return _read(f"parts/{name}")
    make = f"(function()\n{_read(f'modules/{name}')}end)()"
    return f"local {name}_made\nlocal function {name}()\n{name}_made = {name}_made or {make}\nreturn {name}_made\nend\n"


@functools.cache
def _read(name: str) -> str:
    return _NAME.sub(_stored_name, _LUA.joinpath(f"{name}.lua").read_text())


def _stored_name(match: re.Match[str]) -> str:
    return f'"{_NAMES[match[1]][match[2]]}"'


_GROUPS = ("queue", "groups")
_LINE = (*_GROUPS, "line")
_KEEPING = (*_LINE, "family", "jobs", "forgetting")
_ADDING = (*_KEEPING, "kinship", "subjects", "adding", "trees")
_ENDING = (*_ADDING, "lease", "trimming", "freeing", "finishing", "failing", "batch")
_RELEASING = (*_ENDING, "releasing")
_REMOVING = (*_ENDING, "place", "remove")
_SETTLING = (*_RELEASING, "steps", "closing", "verdicts", "settle")
_CLAIMING = ("limits", "strays", "activate", "turns", "take")

# Producing and working. All but `add` run on a full server too: it must be able to drain.
ADD = Script("add", parts=("memory", *_ADDING, "sizes"))
ADD_CHILDREN = Script("add_children", parts=("memory", *_ADDING, "sizes", "lease"))
EXCHANGE = Script("exchange", parts=("memory", "time", *_SETTLING, *_CLAIMING), flags="allow-oom")
RENEW = Script("renew", parts=("queue", "lease"), flags="allow-oom")
ABANDON = Script("abandon", parts=("memory", *_RELEASING), flags="allow-oom")
RUNNABLE = Script("runnable", parts=("time", "queue", "limits"), flags="allow-oom")
RESCUE = Script("rescue", parts=(*_RELEASING, "place"), flags="allow-oom")
NOTICES = Script("notices", flags="allow-oom")
BEAT = Script("beat", flags="allow-oom")
WORKERS = Script("workers", flags="no-writes")

# Steering.
CANCEL = Script("cancel", parts=(*_ENDING, "place"), flags="allow-oom")
RETRY = Script("retry", parts=(*_KEEPING, "place", "revive"), flags="allow-oom")
RETRY_ALL = Script("retry_all", parts=(*_KEEPING, "revive"), flags="allow-oom")
PROMOTE = Script("promote", parts=(*_LINE, "place"), flags="allow-oom")
CHANGE_DELAY = Script("change_delay", parts=(*_LINE, "place"), flags="allow-oom")
CHANGE_PRIORITY = Script("change_priority", parts=(*_LINE, "place"), flags="allow-oom")
REMOVE = Script("remove", parts=_REMOVING, flags="allow-oom")
NOTE = Script("note", parts=("queue",), flags="allow-oom")
ADD_LOG = Script("add_log", parts=("jobs",), flags="allow-oom")
PAUSE = Script("pause", parts=("queue", "moving_lists"), flags="allow-oom")
RESUME = Script("resume", parts=("queue", "moving_lists"), flags="allow-oom")
DRAIN = Script("drain", parts=_REMOVING, flags="allow-oom")
CLEAN = Script("clean", parts=(*_REMOVING, "listing"), flags="allow-oom")
OBLITERATE = Script("obliterate", parts=_KEEPING, flags="allow-oom")
FORGET_SUBJECTS = Script("forget_subjects", flags="allow-oom")

# Limits and groups.
SET_LIMITS = Script("set_limits", parts=("queue",), flags="allow-oom")
LIMITS = Script("limits", parts=("queue", "limits"), flags="no-writes")
CLOSE = Script("close", parts=("queue", "closing"), flags="allow-oom")
SET_GROUP = Script("set_group", parts=_GROUPS, flags="allow-oom")
SET_GROUP_DEFAULT = Script("set_group_default", parts=_GROUPS, flags="allow-oom")
PAUSE_GROUP = Script("pause_group", parts=_GROUPS, flags="allow-oom")
LIST_GROUPS = Script("list_groups", parts=_GROUPS, flags="no-writes")

# Moving to another store, and from one.
EXPORT_JOBS = Script("export_jobs", parts=(*_GROUPS, "listing"), flags="no-writes")
EXPORT_SUBJECTS = Script("export_subjects", flags="no-writes")
DEPART = Script("depart", parts=_REMOVING, flags="allow-oom")
BEGIN_MOVE = Script("begin_move", parts=("queue",))
RESTORE = Script("restore", parts=(*_ADDING, "steps", "signals"))
# Schedules.
PUT_SCHEDULE = Script("put_schedule", parts=(*_REMOVING, "schedule"))
ADVANCE_SCHEDULE = Script("advance_schedule", parts=(*_ADDING, "schedule"), flags="allow-oom")
START_TICK = Script("start_tick", parts=("queue", "lease", "schedule"), flags="allow-oom")
REMOVE_SCHEDULE = Script("remove_schedule", parts=(*_REMOVING, "schedule"), flags="allow-oom")
SCHEDULES = Script("schedules", parts=("queue", "schedule"), flags="no-writes")
IDLE_SCHEDULES = Script("idle_schedules", parts=("queue", "schedule"), flags="no-writes")
# Durable steps. A running job may record on a full server too: it must be able to end.
APPEND_JOURNAL = Script("append_journal", parts=("queue", "steps"), flags="allow-oom")
READ_JOURNAL = Script("read_journal", parts=("queue",), flags="no-writes")
FORK_JOURNAL = Script("fork_journal", parts=(*_GROUPS, "place", "steps"))
FORGET_JOURNAL = Script("forget_journal", parts=(*_KEEPING, "place"), flags="allow-oom")
SIGNAL = Script("signal", parts=("memory", *_LINE, "place", "steps", "signals"))

# Looking.
CHILDREN = Script("children", flags="no-writes")
QUEUES = Script("queues", flags="no-writes")
COUNTS = Script("counts", parts=_GROUPS, flags="no-writes")
JOB = Script("job", parts=(*_GROUPS, "place"), flags="no-writes")
JOBS = Script("jobs", parts=(*_GROUPS, "listing"), flags="no-writes")
LOOK = Script("look", parts=(*_GROUPS, "place"), flags="no-writes")
LOGS = Script("logs", flags="no-writes")
OLDEST = Script("oldest", parts=(*_GROUPS, "listing"), flags="no-writes")
EVENTS = Script("events", flags="no-writes")
