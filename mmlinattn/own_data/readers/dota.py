"""DOTA's files, one for each photo: the corners of rotated boxes, and classes."""

from ..records import Annotation, Object
from ..texts import as_numbers
from .base import AnnotationFile, ClassNames, bounding_box, make_object, make_outline

CORNERS = 8  # numbers
HEADERS = ('imagesource:', 'gsd:', 'acquisition dates:')


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it is a text whose first line is of DOTA."""
    if file.ending != '.txt':
        return False
    lines = filter(None, map(str.strip, file.text.splitlines()))
    first = next(lines, '')
    return first.lower().startswith(HEADERS) or _is_object(first.split())


def _is_object(words: list[str]) -> bool:
    """Return whether words are corners and the name of a class, which is no number."""
    is_long = len(words) > CORNERS and as_numbers(words[:CORNERS]) is not None
    return is_long and as_numbers(words[CORNERS : CORNERS + 1]) is None


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photo; objects that are difficult are learned, as MMRotate does.

    Raises:
        ValueError: If a line is neither a header nor an object.
    """
    objects = []
    for i, line in enumerate(file.text.splitlines(), 1):
        words = line.split()
        if not words or line.strip().lower().startswith(HEADERS):
            continue
        if not _is_object(words):
            raise ValueError(
                f"line {i} is not DOTA's `x1 y1 ... x4 y4 class difficult`"
            )
        objects.append(parse_object(words))
    return [Annotation(file.path.name, None, tuple(objects))]


def parse_object(words: list[str]) -> Object:
    """Return the object of a line."""
    places, name = words[:CORNERS], words[CORNERS]
    return make_object(name, bounding_box(places), make_outline([places]))
