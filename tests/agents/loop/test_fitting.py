"""Texts that do not fit together are cut fairly."""

from bullpen.agents.loop.fitting import fitted


def test_texts_that_fit_stay_as_they_are() -> None:
    assert fitted(["a" * 300, "b" * 700], 1_000) == ["a" * 300, "b" * 700]
    assert fitted([], 10) == []


def test_only_the_longest_are_cut_and_what_others_leave_is_theirs() -> None:
    short, long, longer = fitted(["a" * 100, "b" * 5_000, "ä" * 5_000], 1_100)
    assert short == "a" * 100
    assert (len(long.encode()), long[:100]) == (500, "b" * 100)
    assert 498 <= len(longer.encode()) <= 500
    assert long.endswith("left out")
    assert longer.endswith("left out")


def test_something_is_left_of_each_where_there_is_no_room_at_all() -> None:
    assert [len(text.encode()) for text in fitted(["a" * 500] * 3, -50)] == [200] * 3
