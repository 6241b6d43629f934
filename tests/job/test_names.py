"""What may be a name or an id."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen import BadId, BadName
from bullpen.job.names import check_explicit_id, check_job_name, check_queue_name, is_generated_id, is_text


@pytest.mark.parametrize("name", ["a", "mail", "web-mail", "web.mail", "web_mail", "9", "A" * 200])
def test_a_good_queue_name(name: str) -> None:
    assert check_queue_name(name) == name


@pytest.mark.parametrize("name", ["a", "send mail", "mail:send", "Zoë", "🐂", "a\nb", "x" * 200])
def test_a_good_job_name(name: str) -> None:
    assert check_job_name(name) == name


@pytest.mark.parametrize(
    "job_id", ["a", "order-1", "007", "1a", "1.0", "+1", "tenant:subject:reason", "Zoë", "x" * 300]
)
def test_a_good_explicit_id(job_id: str) -> None:
    assert check_explicit_id(job_id) == job_id


@pytest.mark.parametrize("job_id", ["0", "1", "-1", "12345678901234567890"])
def test_whole_numbers_are_the_store_s_own(job_id: str) -> None:
    assert is_generated_id(job_id)
    with pytest.raises(BadId, match="whole numbers are given by the store"):
        check_explicit_id(job_id)


@pytest.mark.parametrize("job_id", ["", "01", "-0x1", "1.0", "order-1", "1 "])
def test_what_is_no_whole_number_was_not_made_by_the_store(job_id: str) -> None:
    assert not is_generated_id(job_id)


@given(st.integers())
def test_no_number_can_be_chosen_as_an_id(number: int) -> None:
    """Whatever number the store gives next, nobody has taken it."""
    assert is_generated_id(str(number))
    with pytest.raises(BadId):
        check_explicit_id(str(number))


@given(st.text())
def test_every_name_is_taken_or_refused(text: str) -> None:
    """No text breaks the checks themselves."""
    for check, error in ((check_queue_name, BadName), (check_job_name, BadName), (check_explicit_id, BadId)):
        with contextlib.suppress(error):
            assert check(text) == text


@given(st.text(st.characters(exclude_categories=[])))
def test_a_text_is_what_utf_8_can_carry(text: str) -> None:
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    assert is_text(text) == (text != "" and not has_surrogates)
