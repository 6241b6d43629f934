"""Ratios are quotients of medians, of the best where there is a choice."""

from benchmarks.series import Best, Figures, Ratio, Series

OURS, ONE, OTHER = (Series(name, "drain", "") for name in ("ours", "one", "other"))


def found(**rounds: list[float]) -> Figures:
    figures = Figures()
    for name, values in rounds.items():
        for number, value in enumerate(values):
            figures.note(Series(name, "drain", ""), number, value)
    return figures


def test_a_ratio_is_of_medians_and_spreads_over_the_rounds() -> None:
    summary = found(ours=[10, 20, 60], one=[10, 10, 20]).ratio(Ratio("r", OURS, ONE))
    assert summary is not None
    assert (summary.median, summary.low, summary.high) == (2, 1, 3)


def test_the_best_is_the_highest_or_the_lowest() -> None:
    figures = found(one=[1, 2], other=[3, 4])
    assert figures.chosen(Best((ONE, OTHER))) == OTHER
    assert figures.chosen(Best((ONE, OTHER), lowest=True)) == ONE


def test_what_was_not_measured_is_not_chosen() -> None:
    figures = found(one=[1, 2])
    assert figures.chosen(Best((OTHER, ONE))) == ONE
    assert figures.ratio(Ratio("r", OURS, Best((OTHER, ONE)))) is None


def test_a_figure_can_be_its_own_answer() -> None:
    summary = found(ours=[1, 2, 9]).ratio(Ratio("r", OURS, None))
    assert summary is not None
    assert summary.median == 2
