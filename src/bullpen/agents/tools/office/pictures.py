"""What a picture says of itself, before it is unpacked."""

import io
import warnings

from PIL import Image, UnidentifiedImageError

from bullpen.errors import ToolError


def size_of(data: bytes, field: str) -> tuple[int, int]:
    """Width and height by its head; ToolError if that cannot be read."""
    try:
        with warnings.catch_warnings():
            # Whoever asks decides how many pixels are too many.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as picture:
                return picture.size
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise ToolError(f"{field}: the picture cannot be read: {type(error).__name__}") from None
