"""Photos whose names begin or end with their class, such as cat.0.jpg and 12_dog.jpg.

Only the option ``--classes`` tells a class from other words, such as those of cameras.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Optional

from ..folder import PHOTO, Folder
from ..records import Match
from ..words import CAMERA_WORDS, PARTS, plain, words_of

WORD = r'([^\W\d_](?:.*[^\W\d_])?)'  # it begins and ends with a letter
PATTERNS = dict(
    begin=re.compile(WORD + r'[\W_]*\d[\W\d_]*'), end=re.compile(r'\d[\W\d_]*' + WORD)
)
SHOWN = 20  # names in a line


def read_named_photos(folder: Folder) -> list[Match]:
    """Return photos whose names begin or end with one of the classes of an option; none
    without the option.

    Raises:
        ValueError: If a name begins with one class and ends with another one.
    """
    wanted = {plain(name): name for name in folder.options.classes or ()}
    matches = []
    for path in folder.files[PHOTO]:
        name = class_in(path, wanted)
        if name:
            split = folder.splits.of(path.parent)
            matches.append(Match(path, path.parent, path.name, split, class_name=name))
    return matches


def class_in(path: Path, wanted: Mapping[str, str]) -> Optional[str]:
    """Return the class in the name of a photo, of classes by their plain names, or
    None.

    Raises:
        ValueError: If there are two.
    """
    stem = plain(path.stem)
    first = [
        name
        for name in wanted
        if stem.startswith(name) and not stem[len(name) :][:1].isalpha()
    ]
    last = [
        name
        for name in wanted
        if stem.endswith(name) and not stem[: -len(name)][-1:].isalpha()
    ]
    classes = {wanted[max(names, key=len)] for names in (first, last) if names}
    if len(classes) > 1:
        names = ', '.join(sorted(classes))
        raise ValueError(f'{path}: its name has two classes, {names}')
    return next(iter(classes), None)


def suggest_classes(folder: Folder) -> list[str]:
    """Return a line on the option that reads photos whose names seem to have classes;
    none if they do not."""
    stems = [path.stem for path in folder.files[PHOTO]]
    for place, pattern in PATTERNS.items():
        matches = list(filter(None, map(pattern.fullmatch, stems)))
        names = likely_classes(match[1] for match in matches)
        if names and 2 * len(matches) >= len(stems):
            shown = shlex.join(names[:SHOWN]) + (' ...' if names[SHOWN:] else '')
            text = f'names of photos {place} with {shlex.join(names[:2])}'
            return [f'{text}: --classes {shown} takes these for the classes']
    return []


def likely_classes(words: Iterable[str]) -> list[str]:
    """Return words that may be classes: two or more of several photos each, which no
    camera writes."""
    counts = Counter(words)
    known = PARTS | CAMERA_WORDS
    names = [
        name
        for name, count in counts.items()
        if count > 1 and not known.issuperset(words_of(name))
    ]
    return sorted(names) if len(names) > 1 else []
