"""The program as text, for a Python that knows nothing of Bullpen."""

import functools
import json
import struct
from importlib import resources

_PACKAGE = "bullpen.agents.sandbox.warden"
_MODULES = ("wire", "processes", "files", "command", "serving")
"""Each after those that it imports."""

BOOTSTRAP = """
import json, os, struct, sys, types

def exactly(count, read=b""):
    while len(read) < count:
        part = os.read(0, min(count - len(read), 65536))
        if not part:
            sys.exit(0)
        read += part
    return read

for name, text in json.loads(exactly(struct.unpack(">I", exactly(4))[0])):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules[name].main()
"""
"""What the sandbox's Python is started with; it reads the rest from its standard input."""


@functools.cache
def program() -> bytes:
    """What is to be written to the bootstrap first."""
    parts = _PACKAGE.split(".")
    modules = [(".".join(parts[: n + 1]), "") for n in range(len(parts))]
    folder = resources.files(_PACKAGE)
    modules += [(f"{_PACKAGE}.{name}", (folder / f"{name}.py").read_text("utf-8")) for name in _MODULES]
    text = json.dumps(modules).encode()
    return struct.pack(">I", len(text)) + text
