"""The front door to all that is kept in SQL."""

import asyncio
from collections.abc import Sequence
from typing import Self

from sqlalchemy import or_, select

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.records.audit import Audit
from bullpen.records.blobs.blobs import Blobs, blobs_at
from bullpen.records.credits.credits import Credits
from bullpen.records.database import Database, database_at
from bullpen.records.files.files import Files
from bullpen.records.idempotency import Idempotency
from bullpen.records.keys import Keys
from bullpen.records.migrating import migrate
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.model.queries import ReadModel
from bullpen.records.providers import Providers
from bullpen.records.relay import OutboxRelay
from bullpen.records.runs.runs import Runs
from bullpen.records.salts import Salts
from bullpen.records.sandboxes import SandboxPools
from bullpen.records.sealing import Sealer, sealer_from_environment
from bullpen.records.settings import Alerts, Views
from bullpen.records.tables.access import api_key, user
from bullpen.records.tenants import Tenants
from bullpen.records.users import Users
from bullpen.records.webhooks import Webhooks
from bullpen.settings import told
from bullpen.stores.base import Store

RECORDS = "BULLPEN_RECORDS"
DEFAULT_RECORDS = "sqlite:.bullpen/records.db"
_SOMEBODY = select(or_(select(api_key.c.id).exists(), select(user.c.id).exists()))


class Records:
    """SQL records: who may come in, what they did and set, the outbox, the read model.

        async with await Records.open("postgresql://…") as records:
            key, text = await records.keys.create(NewKey(name="ci", role="producer", tenant="acme"), created_by="ann")
            assert await records.keys.check(text) == key

    - `keys`: API keys. `create`, `check`, `get`, `list`, `revoke`, `is_empty`.
    - `users`: people and their sessions. `create`, `log_in`, `session`, `log_out`, `set_password`, `change`, `disable`,
      `list`.
    - `tenants`: tenants with their plans. `create`, `get`, `list`, `set_plan`, `disable`, `remove`.
    - `audit`: `note`, `list` by filter and cursor, `forget`.
    - `views`, `alerts`: what people set in the dashboard. `save`, `list`, `remove`.
    - `webhooks`: who is told of events. `create`, `get`, `list`, `change`, `secret`, `renew_secret`, `remove`.
    - `idempotency`: `begin`, `finish`, `give_up`, `forget`.
    - `salts`: what names are hashed with before strangers see them. `get`.
    - `credits`: what tenants and tasks have. `deposit`, `balance`, `accounts`, `statement`; `set_budget`,
      `remove_budget`, `budgets_of`; `ledger`.
    - `runs`: what agents were asked for. `page`, `get`, `tasks`, `task`, `events`, `told`.
    - `providers`: how those of models are doing. `health`, `change`.
    - `sandboxes`: pools of all workers. `list`, `ask_restart`.
    - `files`: what runs were given and made, and their workspaces. `keep_artifact`, `add_input`, `get`, `of_run`,
      `page`, `read`, `parts`, `checkpoint`, `expire`.
    - `jobs`: the read model. `list` by filter and cursor, `search`, `counts`, `rates`, `failures`, `lag`.

    `records.feeder(store)` keeps the read model up to date, and `records.relay(store)` moves what the
    outbox of this database holds: start them, and stop them.

    Opening migrates an older database, whoever else opens it at that moment; a newer one is
    RecordsTooNew. All verbs raise RecordsUnavailable while the database does not answer.
    """

    def __init__(self, database: Database, blobs: Blobs | None = None, sealer: Sealer | None = None) -> None:
        self.database = database
        self.keys = Keys(database)
        self.users = Users(database)
        self.tenants = Tenants(database)
        self.audit = Audit(database)
        self.views = Views(database)
        self.alerts = Alerts(database, sealer)
        self.webhooks = Webhooks(database, sealer)
        self.idempotency = Idempotency(database)
        self.salts = Salts(database)
        self.jobs = ReadModel(database)
        self.credits = Credits(database)
        self.runs = Runs(database)
        self.providers = Providers(database)
        self.sandboxes = SandboxPools(database)
        self.files = Files(database, blobs or blobs_at())

    @classmethod
    async def open(cls, address: str | None = None, *, clock: Clock = SYSTEM_CLOCK, blobs: str | None = None) -> Self:
        """The records at `sqlite:PATH` or `postgresql://USER:PASSWORD@HOST/NAME`, migrated.

        Without an address `BULLPEN_RECORDS` says where; without that it is a file in `./.bullpen/`. `blobs` is a
        folder or `s3://BUCKET/PREFIX`; without it `BULLPEN_BLOBS` says, and else it is a folder in `./.bullpen/`.
        """
        files = blobs_at(blobs)
        sealer = await asyncio.to_thread(sealer_from_environment)  # may read a file
        database = database_at(address or told(RECORDS) or DEFAULT_RECORDS, clock)
        try:
            await migrate(database)
        except BaseException:
            await database.close()
            raise
        return cls(database, files, sealer)

    async def knows_nobody(self) -> bool:
        """Whether there was never a key nor a user: also one that is revoked or disabled counts."""
        async with self.database.reading(brief=True) as connection:
            return not (await connection.execute(_SOMEBODY)).scalar_one()

    def feeder(self, store: Store, *, queues: Sequence[str] | None = None, fields: Sequence[str] = ()) -> ModelFeeder:
        """What feeds the read model from this store; `fields` of the data are kept for lists and search."""
        return ModelFeeder(self.database, store, queues=queues, fields=fields)

    def relay(self, store: Store) -> OutboxRelay:
        """What moves the rows of this database's outbox to this store."""
        return OutboxRelay(self.database.engine, store, clock=self.database.clock)

    async def close(self) -> None:
        """Let go of the database; safe to call twice."""
        await self.database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
