"""Settings: who is heard first, secrets in files, the settings file, and what is wrong in one."""

from pathlib import Path

import pytest

from bullpen.agents.redacting import Redactor
from bullpen.errors import BadOption
from bullpen.server.settings import ServerSettings
from bullpen.settings import store_from, told
from bullpen.stores.sqlite import SqliteStore
from bullpen.worker.options import WorkerOptions

_NAME = "BULLPEN_SEARCH"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of its own, in which nothing is told."""
    monkeypatch.chdir(tmp_path)
    for name in (_NAME, "BULLPEN_STORE", "BULLPEN_SETTINGS", "BULLPEN_SERVER_PORT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _write(folder: Path, text: str) -> None:
    (folder / "bullpen.toml").write_text(text)


def test_nobody_says_anything() -> None:
    assert told(_NAME) is None


def test_the_environment_comes_before_a_secrets_file_and_that_before_the_settings_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(folder, 'search = "of the settings file"')
    assert told(_NAME) == "of the settings file"
    (folder / "secret").write_text("of a file of its own\n")
    monkeypatch.setenv(f"{_NAME}_FILE", str(folder / "secret"))
    assert told(_NAME) == "of a file of its own"
    monkeypatch.setenv(_NAME, "of the environment")
    assert told(_NAME) == "of the environment"


def test_a_file_sets_up_store_server_and_worker(folder: Path) -> None:
    _write(
        folder,
        'store = "sqlite:here.db"\n[server]\nport = 9000\nfields = ["user", "order"]\n[concurrency]\nbig-files = 3\n',
    )
    store, server = store_from(), ServerSettings.from_environment()
    assert isinstance(store, SqliteStore)
    assert (server.port, server.fields) == (9000, ("user", "order"))
    assert WorkerOptions().slots("big-files") == 3
    assert ServerSettings.from_environment(port=1).port == 1  # an argument stands before all


def test_another_place_may_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "elsewhere.toml").write_text('search = "there"')
    monkeypatch.setenv("BULLPEN_SETTINGS", str(folder / "elsewhere.toml"))
    assert told(_NAME) == "there"


@pytest.mark.parametrize(
    "text, message",
    [
        ('serch = "a typo"', "serch: there is no such setting"),
        ("[server]\nprot = 1", r"server\.prot: there is no such setting"),
        ("search = 2020-01-01", "search: a text, a number, true, false or a list of texts"),
        ("search = ", "bullpen.toml: "),
    ],
)
def test_what_is_wrong_in_the_file_is_named(folder: Path, text: str, message: str) -> None:
    _write(folder, text)
    with pytest.raises(BadOption, match=message):
        told(_NAME)


def test_a_file_that_is_named_and_not_there_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_SETTINGS", "gone.toml")
    with pytest.raises(BadOption, match="BULLPEN_SETTINGS: there is no file"):
        told(_NAME)


def test_a_secrets_file_that_cannot_be_read_or_is_empty_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{_NAME}_FILE", str(folder / "gone"))
    with pytest.raises(BadOption, match=f"{_NAME}_FILE: .* cannot be read: FileNotFoundError"):
        told(_NAME)
    (folder / "gone").write_text(" \n")
    with pytest.raises(BadOption, match="holds nothing"):
        told(_NAME)


def test_secrets_are_redacted_wherever_they_were_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those in files, and passwords in the addresses of store and records."""
    _write(folder, 'records = "postgresql://bullpen:horse%40battery@db/bullpen"\nsmtp_password = "correct-staple"')
    (folder / "key").write_text("of-the-model-provider")
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(folder / "key"))
    said = Redactor().text("horse%40battery horse@battery correct-staple of-the-model-provider bullpen")
    assert said == "[redacted] [redacted] [redacted] [redacted] bullpen"
