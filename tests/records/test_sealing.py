"""Secrets of webhooks at rest: encrypted where there is a key, readable by nobody without it."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import select, text

from bullpen import BadOption, SecretUnreadable
from bullpen.clock import SYSTEM_CLOCK
from bullpen.records.database import database_at
from bullpen.records.migrating import upgrade_to
from bullpen.records.records import Records
from bullpen.records.sealing import SEALED, SECRET_KEY, SECRET_KEY_FILE
from bullpen.records.tables.access import alert
from bullpen.records.tables.webhooks import webhook
from bullpen.records.webhooks import NewWebhook

_NEW = NewWebhook(name="ops", url="https://example.com/hook")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'records.db'}"
    return str(request.getfixturevalue("postgres_server").new_database())


def _key() -> str:
    return Fernet.generate_key().decode()


async def _kept(records: Records) -> str:
    async with records.database.reading() as connection:
        return str((await connection.execute(select(webhook.c.secret))).scalar_one())


async def test_with_a_key_the_records_do_not_have_the_secret(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_KEY, _key())
    async with await Records.open(address) as records:
        made, secret = await records.webhooks.create(_NEW, created_by="ann")
        assert secret not in await _kept(records)
        assert await records.webhooks.secret(made.id) == secret
        renewed = await records.webhooks.renew_secret(made.id)
        assert renewed not in await _kept(records)
        assert await records.webhooks.secret(made.id) == renewed
    monkeypatch.setenv(SECRET_KEY, _key())
    async with await Records.open(address) as other:
        with pytest.raises(SecretUnreadable, match="another key"):
            await other.webhooks.secret(made.id)
    monkeypatch.delenv(SECRET_KEY)
    async with await Records.open(address) as without:
        with pytest.raises(SecretUnreadable, match=f"{SECRET_KEY} is not set"):
            await without.webhooks.secret(made.id)


async def test_a_secret_from_before_the_key_is_encrypted_when_it_is_used(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECRET_KEY, raising=False)
    async with await Records.open(address) as records:
        made, secret = await records.webhooks.create(_NEW, created_by="ann")
        assert await _kept(records) == secret
    monkeypatch.setenv(SECRET_KEY, _key())
    async with await Records.open(address) as records:
        assert await records.webhooks.secret(made.id) == secret
        assert secret not in await _kept(records)
        assert await records.webhooks.secret(made.id) == secret


async def test_one_key_takes_over_from_another(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = _key(), _key()
    monkeypatch.setenv(SECRET_KEY, old)
    async with await Records.open(address) as records:
        made, secret = await records.webhooks.create(_NEW, created_by="ann")
    monkeypatch.delenv(SECRET_KEY)
    (tmp_path / "keys").write_text(f"{new},{old}\n")
    monkeypatch.setenv(SECRET_KEY_FILE, str(tmp_path / "keys"))
    async with await Records.open(address) as records:
        assert await records.webhooks.secret(made.id) == secret
        renewed = await records.webhooks.renew_secret(made.id)
    monkeypatch.setenv(SECRET_KEY, new)
    async with await Records.open(address) as records:
        assert await records.webhooks.secret(made.id) == renewed


async def _kept_channel(records: Records) -> str:
    async with records.database.reading() as connection:
        return str((await connection.execute(select(alert.c.channel))).scalar_one())


async def test_the_address_of_slack_is_kept_like_a_secret(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = {"slack": "https://hooks.slack.com/services/T0/B0/x"}
    monkeypatch.delenv(SECRET_KEY, raising=False)
    async with await Records.open(address) as records:
        made = await records.alerts.save("a", condition={"failed": 1}, channel=channel)
        assert channel["slack"] in await _kept_channel(records)
    monkeypatch.setenv(SECRET_KEY, _key())
    async with await Records.open(address) as records:
        assert (await records.alerts.get(made.id)).channel == channel
        assert channel["slack"] not in await _kept_channel(records), "it was encrypted when it was used"
        changed = await records.alerts.save("b", condition={"failed": 1}, channel=channel, alert_id=made.id)
        assert channel["slack"] not in await _kept_channel(records)
        assert await records.alerts.list() == [changed]
        assert changed.channel == channel
    monkeypatch.setenv(SECRET_KEY, _key())
    async with await Records.open(address) as other:
        with pytest.raises(SecretUnreadable):
            await other.alerts.get(made.id)
        (unread,) = await other.alerts.list()
        assert unread.channel["slack"].startswith(SEALED)


async def test_webhooks_of_an_older_version_keep_their_secret(address: str) -> None:
    database = database_at(address, SYSTEM_CLOCK)
    row = {"id": "w", "name": "n", "url": "u", "kinds": '["failed"]', "secret": "whsec_x", "created_by": "ann"}
    row |= {"since_ms": "1", "created_ms": "1", "changed_ms": "1", "with_result": "false", "is_enabled": "true"}
    async with database.writing() as connection:
        await connection.run_sync(upgrade_to, "0009")
        columns, values = (
            ", ".join(row),
            ", ".join(f"'{value}'" if name in _TEXTS else value for name, value in row.items()),
        )
        await connection.execute(text(f"INSERT INTO bullpen_webhook ({columns}) VALUES ({values})"))
    await database.close()
    async with await Records.open(address) as records:
        assert await records.webhooks.secret("w") == "whsec_x"
        assert [one.id for one in await records.webhooks.list()] == ["w"]


_TEXTS = {"id", "name", "url", "kinds", "secret", "created_by"}


@pytest.mark.parametrize("key", ["short", "?" * 44])
async def test_what_is_no_key_is_refused_by_the_name_of_its_setting(
    address: str, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv(SECRET_KEY, key)
    with pytest.raises(BadOption, match=f"^{SECRET_KEY}: 32 bytes") as refused:
        await Records.open(address)
    assert key not in str(refused.value)


async def test_a_file_of_keys_that_is_not_there_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_KEY, raising=False)
    monkeypatch.setenv(SECRET_KEY_FILE, "/nowhere/key")
    with pytest.raises(BadOption, match=f"^{SECRET_KEY_FILE}: /nowhere/key"):
        await Records.open(address)
