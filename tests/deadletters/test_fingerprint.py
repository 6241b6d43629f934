"""Which failures are the same, and which are not."""

import pytest

from bullpen import Failure, JobRecord, JobRef, State
from bullpen.deadletters.fingerprint import fingerprint_of, innermost_frame, normalised
from bullpen.job.spec import JobSpec
from tests.deadletters.failing import STACK


def _print(
    message: str = "broken", *, stack: str = "", kind: str = "ValueError", queue: str = "mail", name: str = "a"
) -> str:
    failure = Failure(message, type=kind)
    stacks = (stack,) if stack else ()
    record = JobRecord(JobRef(queue, "1"), name, b"{}", State.FAILED, JobSpec(), failure=failure, stacks=stacks)
    return fingerprint_of(record)


@pytest.mark.parametrize(
    "one, other",
    [
        ("user 42 is gone", "user 1001 is gone"),
        ("took 1.5 s", "took 20 s"),
        ("at 10:20:30", "at 11:02:03"),
        ("no key 'name'", "no key 'street'"),
        ('no "a b"', 'no "c"'),
        ("object at 0x7f1e2a", "object at 0x1"),
        ("blob 9f86d081884c7d65 is missing", "blob e3b0c44298fc1c14 is missing"),
        ("run 123e4567-e89b-12d3-a456-426614174000", "run 00000000-0000-4000-8000-000000000001"),
    ],
)
def test_what_belongs_to_one_job_does_not_count(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)
    assert _print(one) == _print(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("connection refused", "connection reset"),
        ("the decade is over", "the facade is over"),  # words of letters that hex has too
        ("can't find it, won't try", "can't read it, won't try"),  # apostrophes, no quotation
    ],
)
def test_what_differs_in_words_differs(one: str, other: str) -> None:
    assert _print(one) != _print(other)


def test_queue_name_type_and_place_count() -> None:
    usual = _print(stack=STACK.format(line=3))
    assert usual == _print(stack=STACK.format(line=99)), "a line moves with each edit"
    assert usual == _print(stack=STACK.replace("/srv/app", "/home/me").format(line=3)), "a folder is a machine's"
    others = [
        _print(stack=STACK.format(line=3), queue="other"),
        _print(stack=STACK.format(line=3), name="other"),
        _print(stack=STACK.format(line=3), kind="KeyError"),
        _print(stack=STACK.format(line=3).replace("in send", "in receive")),
        _print(),
    ]
    assert len({usual, *others}) == 6


def test_the_innermost_frame_is_found_in_stacks_of_both_worlds() -> None:
    assert innermost_frame(STACK.format(line=3)) == "mail.py:send"
    node = "Error: no\n    at send (/srv/mail.js:10:5)\n    at run (/srv/worker.js:1:1)"
    assert innermost_frame(node) == "mail.js:send"
    assert innermost_frame("Error: no\n    at /srv/mail.js:10:5") == "mail.js:"
    assert innermost_frame("") == innermost_frame("no stack at all") == ""


def test_a_fingerprint_does_not_change_between_releases() -> None:
    """People keep them in tickets and filters."""
    assert _print("user 42 is gone", stack=STACK.format(line=3)) == "bdda9173677b"
