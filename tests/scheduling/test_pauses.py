from bullpen.scheduling.pauses import Pauses


def test_pauses_grow_up_to_a_most() -> None:
    pauses = Pauses(0.1, 0.5, vary=lambda: 1.0)
    assert [pauses.next_s() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_they_vary_by_half() -> None:
    assert Pauses(1, 8, vary=lambda: 0.0).next_s() == 0.5
    spread = {Pauses(1, 8).next_s() for _ in range(50)}
    assert len(spread) > 1
    assert all(0.5 <= pause <= 1 for pause in spread)


def test_after_a_success_they_begin_anew() -> None:
    pauses = Pauses(0.1, 5, vary=lambda: 1.0)
    pauses.next_s()
    pauses.next_s()
    pauses.begin_anew()
    assert pauses.next_s() == 0.1
