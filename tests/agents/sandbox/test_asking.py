"""The sandbox that a task asks for: what the deployment gives, or less."""

from typing import Any

import pytest

from bullpen.agents.sandbox import Limits, PoolOptions, SandboxSpec
from bullpen.agents.sandbox.asking import SandboxAsked, check_asked, spec_for, usual_spec
from bullpen.agents.sandbox.settings import pool_options_from
from bullpen.errors import BadOption

_MOST = SandboxSpec(limits=Limits(memory_mb=512, cpus=2, disk_mb=64, timeout=60), packages=("pandas", "rich"))


@pytest.mark.parametrize(
    "asked, told",
    [
        ({"type": "chroot"}, "sandbox.type: one of bubblewrap, docker, e2b, not 'chroot'"),
        ({"type": "firecracker"}, "sandbox.type: there is no driver for firecracker itself; use e2b"),
        ({"memory_mb": 513}, "sandbox.memory_mb: at most 512 here, not 513"),
        ({"memory_mb": 1}, "sandbox.memory_mb: a whole number from 16"),
        ({"cpus": 2.5}, "sandbox.cpus: at most 2 here, not 2.5"),
        ({"cpus": -1.0}, "sandbox.cpus: a number from"),
        ({"disk_mb": 65}, "sandbox.disk_mb: at most 64"),
        ({"timeout": 61.0}, "sandbox.timeout: at most 60"),
        ({"timeout": 0.0}, "sandbox.timeout: seconds, more than 0"),
        ({"network": True}, "sandbox.network: there is none here"),
        ({"packages": ("numpy",)}, "sandbox.packages: one of pandas, rich, not 'numpy'"),
    ],
)
def test_what_is_not_given_is_told_by_its_field(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(BadOption) as refused:
        check_asked(SandboxAsked(**asked), _MOST)
    assert str(refused.value).startswith(told)


def test_less_is_lent_as_asked() -> None:
    asked = SandboxAsked(type="docker", memory_mb=64, cpus=0.5, timeout=5, packages=("rich",))
    assert check_asked(asked, _MOST) is asked
    lent = spec_for(asked, _MOST)
    assert lent == SandboxSpec(limits=Limits(memory_mb=64, cpus=0.5, disk_mb=64, timeout=5), packages=("rich",))
    assert check_asked(None, _MOST) is None
    assert spec_for(None, _MOST) is _MOST
    assert spec_for(SandboxAsked(), _MOST) == _MOST


def test_a_worker_never_lends_more_than_its_own() -> None:
    """Whatever another process, with other settings, has allowed."""
    lent = spec_for(SandboxAsked(memory_mb=4_096, network=True), _MOST)
    assert (lent.limits.memory_mb, lent.limits.network) == (512, False)


def test_network_can_be_done_without() -> None:
    most = SandboxSpec(limits=Limits(network=True))
    assert spec_for(SandboxAsked(), most).limits.network
    assert not spec_for(SandboxAsked(network=False), most).limits.network


def test_the_environment_says_how_large_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usual_spec() == SandboxSpec()
    monkeypatch.setenv("BULLPEN_SANDBOX_MEMORY_MB", "2048")
    monkeypatch.setenv("BULLPEN_SANDBOX_CPUS", "1.5")
    assert usual_spec().limits == Limits(memory_mb=2_048, cpus=1.5)
    monkeypatch.setenv("BULLPEN_SANDBOX_DISK_MB", "much")
    with pytest.raises(BadOption, match="BULLPEN_SANDBOX_DISK_MB"):
        usual_spec()


def test_the_environment_says_what_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SandboxAsked(network=True, packages=("rich",))
    with pytest.raises(BadOption, match=r"sandbox\.network"):
        check_asked(asked, usual_spec())
    monkeypatch.setenv("BULLPEN_SANDBOX_NETWORK", "yes")
    monkeypatch.setenv("BULLPEN_SANDBOX_PACKAGES", "pandas==2.2.3, rich")
    assert check_asked(asked, usual_spec()) is asked
    assert spec_for(asked, usual_spec()) == SandboxSpec(limits=Limits(network=True), packages=("rich",))
    monkeypatch.setenv("BULLPEN_SANDBOX_NETWORK", "maybe")
    with pytest.raises(BadOption, match="BULLPEN_SANDBOX_NETWORK"):
        usual_spec()


def test_the_environment_says_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool_options_from() == PoolOptions()
    monkeypatch.setenv("BULLPEN_SANDBOX_MOST", "1")
    assert pool_options_from() == PoolOptions(most=1, warm=1)
    monkeypatch.setenv("BULLPEN_SANDBOX_WARM", "2")
    with pytest.raises(BadOption, match="BULLPEN_SANDBOX_WARM: a whole number from 0 to 1"):
        pool_options_from()
