"""The SQLite store: the contract's verbs, each handed to the writer or to a reader."""

from bullpen.stores.sqlite.verbs.coordinating import Coordinating
from bullpen.stores.sqlite.verbs.journaling import Journaling
from bullpen.stores.sqlite.verbs.looking import Looking
from bullpen.stores.sqlite.verbs.moving import Moving
from bullpen.stores.sqlite.verbs.steering import Steering
from bullpen.stores.sqlite.verbs.working import Working


class SqliteStore(Working, Steering, Journaling, Coordinating, Looking, Moving):
    """Jobs in one file, shared by all processes of this machine."""

    def another(self) -> "SqliteStore":
        return SqliteStore(self._path, sync=self._sync, clock=self._clock)
