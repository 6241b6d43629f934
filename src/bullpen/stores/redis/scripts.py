"""The Lua scripts: put together from their parts once, run by their SHA.

A script is its parts and its body in one text. `KEY.x`, `FIELD.x` and `OPTION.x` stand for
the stored names of keys.py and codec.py and are replaced by them here; everything that
differs from call to call is an argument.
"""

import hashlib
import re
from importlib.resources import files

from bullpen.stores.redis.codec import FIELDS, OPTIONS
from bullpen.stores.redis.keys import LAYOUT

_NAMES = {"KEY": LAYOUT, "FIELD": FIELDS, "OPTION": OPTIONS}
_NAME = re.compile(r"\b(KEY|FIELD|OPTION)\.([a-z_]+)")
_LUA = files("bullpen.stores.redis") / "lua"


class Script:
    """One script. `flags` are Redis's: `allow-oom` lets a full server be drained, `no-writes` only looks."""

    def __init__(self, name: str, *, parts: tuple[str, ...] = (), flags: str = "") -> None:
        self.name = name
        sources = [(_LUA / "parts" / f"{part}.lua").read_text() for part in parts]
        sources.append((_LUA / f"{name}.lua").read_text())
        body = _NAME.sub(_stored_name, "\n".join(sources))
        self.text = f"#!lua flags={flags}\n{body}"
        # Redis names a script by this digest; nothing is protected by it.
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


def _stored_name(match: re.Match[str]) -> str:
    return f'"{_NAMES[match[1]][match[2]]}"'


_ADDING = ("queue", "line", "jobs", "insert")
_SETTLING = (*_ADDING, "finish", "settle")

ADD = Script("add", parts=("memory", *_ADDING))
EXCHANGE = Script("exchange", parts=("memory", *_SETTLING, "take"), flags="allow-oom")
RENEW = Script("renew", parts=("queue", "line"), flags="allow-oom")
ABANDON = Script("abandon", parts=("memory", "queue", "line"), flags="allow-oom")
RUNNABLE = Script("runnable", parts=("queue",), flags="allow-oom")
PAUSE = Script("pause", parts=("queue",), flags="allow-oom")
RESUME = Script("resume", parts=("queue",), flags="allow-oom")
COUNTS = Script("counts", flags="no-writes")
JOB = Script("job", flags="no-writes")
EVENTS = Script("events", flags="no-writes")
