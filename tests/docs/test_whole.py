"""Nothing is cut off: a paragraph ends with the end of a sentence."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, all_pages, prose

_LIST = re.compile(r"[|]|[-*] |\d+\. ")
_NO_SENTENCE = re.compile(rf"[#>!<]|{_LIST.pattern}")
"""How headings, pictures, comments, tables and lists begin."""
_ENDS = tuple(".:;!?…)*|>_`")


def _cut(page: Path) -> list[str]:
    """The ends of those paragraphs that neither end nor go on in a list or a table."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", prose(page)) if part.strip()]
    return [
        part[-80:]
        for part, following in pairwise([*parts, ""])
        if not (_NO_SENTENCE.match(part) or part.endswith(_ENDS) or _LIST.match(following))
    ]


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_paragraphs_end_with_a_sentence(page: Path) -> None:
    """Whoever filters the lines of a page, such as by "not measured", leaves sentences that go nowhere."""
    assert not _cut(page)
