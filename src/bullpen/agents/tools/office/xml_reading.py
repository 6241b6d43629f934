"""XML from elsewhere, read without what makes XML dangerous."""

from xml.etree import ElementTree as ET

from bullpen.errors import ToolError

MAX_TEXT = 1_000_000
_MAX_DEPTH = 60


def parse_xml(text: str, field: str) -> ET.Element:
    """Without a document type, in which entities would be declared, and not too deep. ToolError names the field."""
    if len(text) > MAX_TEXT:
        raise ToolError(f"{field}: has {len(text):,} characters; {MAX_TEXT:,} is the most")
    lowered = text.lower()
    if "<!doctype" in lowered or "<!entity" in lowered:
        raise ToolError(f"{field}: without a <!DOCTYPE>")
    try:
        root = ET.fromstring(text)  # noqa: S314 - entities, which the rule is about, cannot be declared
    except (ET.ParseError, ValueError) as error:
        raise ToolError(f"{field}: is no XML: {error}") from None
    level, depth = [root], 0
    while level:  # floor by floor: what goes through it later, calls itself for each
        depth += 1
        if depth > _MAX_DEPTH:
            raise ToolError(f"{field}: elements stand in each other more than {_MAX_DEPTH} deep")
        level = [child for element in level for child in element]
    return root
