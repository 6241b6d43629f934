"""Blobs in a folder and in a bucket, and records that keep files of a run."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bullpen.records.blobs.blobs import Blobs, blobs_at
from bullpen.records.records import Records
from bullpen.testing.clock import ManualClock
from tests.support.bucket_server import KEY, Bucket, running_bucket


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with running_bucket() as bucket:
        environment = {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": bucket.url,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield bucket


@pytest.fixture(params=["folder", "bucket", "hot"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    """In each kind of place."""
    if request.param == "folder":
        return blobs_at(str(tmp_path / "blobs"))
    request.getfixturevalue("bucket")
    monkeypatch.chdir(tmp_path)  # the copies are in the usual folder
    monkeypatch.setenv("BULLPEN_BLOBS_HOT", "0" if request.param == "bucket" else "60")
    return blobs_at("s3://things/of/ours")


@pytest.fixture
async def records(address: str, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Records]:
    async with await Records.open(address, clock=clock, blobs=str(tmp_path / "blobs")) as records:
        yield records
