"""Labels of the ids or colors in label maps."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import numpy as np

from .class_tables import NameTable, color_words
from .map_reader import UNLABELED, LabelMap, Wanted
from .records import Note
from .words import JPEG_ENDINGS, VOID_NAMES

COLORS = 2**24
GRAYS = 10  # more of them in black and white masks are blurred borders
LEVELS = 2  # grays that may be blurred borders alone, by the place of their pixels
# gray pixels of blurred borders that have black and white near them: of few grays, and
# of so many that are nearly white that wide borders may have them
BETWEEN, BETWEEN_OF_MANY, SOME_GRAYS = 0.75, 0.4, 4
LARGE_ID = 100  # ids from here on may be gray levels
SHOWN_IDS, SHOWN_COLORS = 50, 30  # in an error


@dataclass(frozen=True)
class Labeling:
    """The label of each id or color, and the names of labels in their order."""

    classes: list[str]
    table: np.ndarray

    @classmethod
    def of(cls, classes: Sequence[str], labels: Mapping[int, int]) -> 'Labeling':
        """Return a labeling by a label for each id or color; others have none."""
        table = np.full(COLORS, UNLABELED, np.uint8)
        table[list(labels)] = list(labels.values())
        return cls(list(classes), table)


@dataclass(frozen=True)
class MapContents:
    """Label maps, their pixels, and what is known of their classes.

    Args:
        by_path (dict[Path, LabelMap]): Each of them.
        counts (Counter[int]): Pixels of all maps by number.
        wanted (Wanted): What is known of the classes.
        notes (list[Note]): Decisions are added to it.
    """

    by_path: Mapping[Path, LabelMap]
    counts: Counter[int]
    wanted: Wanted
    notes: list[Note]

    def note(self, text: str) -> None:
        """Add a note."""
        self.notes.append(Note(text))


def label_ids(contents: MapContents) -> Labeling:
    """Return the labels of ids: of names for 0, 1, 2 and so on, or for all that occur.

    Raises:
        ValueError: If ids and names do not fit each other.
    """
    wanted, names = contents.wanted, contents.wanted.names
    is_halved = len(names or '12') == 2 and not wanted.is_drawn
    if is_halved and has_blurred_borders(contents):
        return _halve(contents)
    if not wanted.is_drawn:
        refuse_jpeg(contents.by_path)
    ids = _used_ids(contents)
    if wanted.id_names:
        return _label_roboflow(contents, ids)
    if not names:
        table = choose_table(contents, ids)
        if table:
            return _label_named(contents, ids, table)
        contents.note('label maps have no names: give them with --classes')
        names = [f'class {i}' for i in sorted(ids)]
    order = sorted(with_missing_ids(ids, len(names), wanted.ignore))
    if not order or len(order) != len(names) or len(order) > UNLABELED:
        raise ValueError(describe_ids(contents.counts, order, wanted.names or ()))
    return Labeling.of(names, {number: i for i, number in enumerate(order)})


def _used_ids(contents: MapContents) -> set[int]:
    """Return ids that are labels: 255 is one where an option says so, 0 is the only
    other id, or there is a name for it."""
    wanted = contents.wanted
    ids = set(contents.counts) - wanted.ignore
    others = ids - {UNLABELED}
    if wanted.uses_255 or UNLABELED not in ids:
        return ids
    if others == {0}:
        text = 'label maps have only 0 and 255, which are two classes'
        contents.note(f'{text}; with --ignore 255, 255 has no label')
        return ids
    num = len(wanted.names or ())
    if num == len(ids) and not others <= set(range(num)):
        contents.note(f'255 is a class, because --classes names {num}, as many as ids')
        return ids
    if not num and max(others, default=0) >= LARGE_ID:
        contents.note('id 255 is no label; --use-255 treats it as a class')
    return others


def choose_table(contents: MapContents, ids: set[int]) -> Optional[NameTable]:
    """Return the first table that names all ids; without one, the first is noted."""
    tables = contents.wanted.tables
    for table in tables:
        if ids <= table.names.keys():
            return table
    if tables:
        unnamed = min(ids - tables[0].names.keys())
        contents.note(f'{tables[0].path} names no id {unnamed}, and is not used')
    return None


def _label_named(contents: MapContents, ids: set[int], table: NameTable) -> Labeling:
    """Return labels in the order of ids that occur, by a table's names."""
    names = table.names
    void = sorted(i for i in ids if names[i].lower() in VOID_NAMES)
    order = sorted(ids.difference(void))
    absent = len(names) - len(ids)
    text = f'names of classes are those of {table.path}'
    if absent:
        text += f', of which {absent} occur in no label map'
    if void:
        text += f'; {", ".join(names[i] for i in void)} is no label'
    contents.note(text)
    classes = list(dict.fromkeys(names[i] for i in order))
    return Labeling.of(classes, {i: classes.index(names[i]) for i in order})


def _label_roboflow(contents: MapContents, ids: set[int]) -> Labeling:
    """Return labels in the order of ids, by the names of Roboflow's tables."""
    names = contents.wanted.id_names
    unnamed = sorted(ids - names.keys())
    if unnamed:
        raise ValueError(
            f'label maps have the id {unnamed[0]}, which no _classes.csv names: '
            f'--ignore {unnamed[0]} takes it for no label'
        )
    order = sorted(set(names) - contents.wanted.ignore - {UNLABELED})
    labels = {number: label for label, number in enumerate(order)}
    return Labeling.of([names[i] for i in order], labels)


def _halve(contents: MapContents) -> Labeling:
    """Return two classes of grays."""
    number = len(set(contents.counts) - contents.wanted.ignore)
    names = contents.wanted.names or ['class 0', 'class 255']
    contents.note(
        f'label maps have {number} grays, as of JPEG or of smoothed masks: '
        f'up to 127 they are {names[0]}, above {names[1]}'
    )
    return Labeling.of(names, {gray: int(gray > 127) for gray in range(256)})


def label_colors(contents: MapContents) -> Labeling:
    """Return the labels of colors that have a name.

    Raises:
        ValueError: If none, or most, have no name.
    """
    counts, colors = contents.counts, contents.wanted.colors
    total = sum(counts.values())
    order = sorted(counts, key=lambda color: (-counts[color], color))
    if not colors:
        shares = []
        for color in order[:SHOWN_COLORS]:
            shares.append(f'{color_words(color)} ({counts[color] / total:.1%})')
        raise ValueError(
            f'label maps have colors, {"; ".join(shares)}: name them in the order '
            'of labels, --colors road=128,64,128 sky=70,130,180, or put a table '
            'with such lines into the folder, colors.txt'
        )
    other = sum(counts[color] for color in order if color not in colors) / total
    text = f'{other:.1%} of label maps have colors of no class'
    if other > 0.5:
        raise ValueError(f'{text}, such as {color_words(order[0])}')
    if other:
        contents.note(f'{text}, and no label')
    classes = list(contents.wanted.names or _without_void(contents))
    named = {code: name for code, name in colors.items() if name in classes}
    labels = {code: classes.index(name) for code, name in named.items()}
    return Labeling.of(classes, labels)


def _without_void(contents: MapContents) -> list[str]:
    """Return the names of a table of colors without those of no label."""
    names = dict.fromkeys(contents.wanted.colors.values())
    void = [name for name in names if name.lower() in VOID_NAMES]
    if contents.wanted.uses_void or not void:
        return list(names)
    contents.note(f'{", ".join(void)} is no label; with --classes, its name is a class')
    return [name for name in names if name not in void]


def has_blurred_borders(contents: MapContents) -> bool:
    """Return whether numbers are black and white, with borders that JPEG, a resizing or
    a drawing has smoothed."""
    counts = contents.counts
    if max(counts, default=0) != UNLABELED or not counts[0]:
        return False
    ends = sum(counts[gray] for gray in (*range(64), *range(192, 256)))
    bright = sum(gray in counts for gray in range(193, 255))
    if bright > GRAYS and ends > 0.9 * sum(counts.values()):
        return True
    grays = sum(label_map.grays for label_map in contents.by_path.values())
    between = sum(label_map.between for label_map in contents.by_path.values())
    share = BETWEEN_OF_MANY if bright >= SOME_GRAYS else BETWEEN
    return len(counts) - 2 >= LEVELS and between > share * grays


def refuse_jpeg(paths: Iterable[Path]) -> None:
    """Ids in JPEG are not exact.

    Raises:
        ValueError: If there are such files.
    """
    lossy = sorted(path for path in paths if path.suffix.lower() in JPEG_ENDINGS)
    if lossy:
        raise ValueError(f'{lossy[0]}: a label map in JPEG has no exact ids')


def with_missing_ids(ids: set[int], num_names: int, ignore: Iterable[int]) -> set[int]:
    """Return the ids of names: the first ones that are not ignored if those that occur
    are among them, or those that occur."""
    ignore, first, number = set(ignore), set[int](), 0
    while len(first) < num_names:
        if number not in ignore:
            first.add(number)
        number += 1
    return first if ids <= first else ids


def describe_ids(counts: Counter[int], ids: list[int], names: Sequence[str]) -> str:
    """Return an error of ids whose number is not that of names."""
    total = sum(counts.values())
    shares = [f'{i} ({counts[i] / total:.1%})' for i in ids[:SHOWN_IDS]]
    return (
        f'label maps have the ids {", ".join(shares)}, and --classes {len(names)} '
        'names: --ignore takes ids that are no label'
    )
