"""Training, validation and testing: from lists, or drawn."""

import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Optional

from .matching import PhotoIndex
from .path_splits import part_without_ending
from .records import Note, Photo, Splits, notes_on
from .sources import Sources
from .texts import read_text
from .words import TABLE_ENDINGS, split_of_name

HELD_BACK = 5  # without a validation set: every fifth photo


def read_lists(
    index: PhotoIndex, paths: Iterable[Path]
) -> tuple[dict[Path, str], list[Note]]:
    """Return the splits of photos in lists such as train.txt, and notes on names of
    none.

    Later lists win over earlier ones.
    """
    splits, notes = {}, []
    for path in paths:
        split = split_of_name(part_without_ending(path.name))
        if not split:
            continue
        is_table, absent = path.suffix.lower() in TABLE_ENDINGS, 0
        for name in _names_in(read_text(path), is_table, index):
            photo = index.find(name, path.parent) if name else None
            if photo:
                splits[photo] = split
            absent += name is None
        if absent and not is_table:
            notes.append(Note(f'{path}: it has no photos of {absent} names'))
    return splits, notes


def _names_in(text: str, is_table: bool, index: PhotoIndex) -> Iterator[Optional[str]]:
    """Yield the name of a photo in each line of a list, or None; a class may be behind
    it."""
    if is_table:
        text = re.sub('[,;\t"]', ' ', text)
    for words in filter(None, map(str.split, text.splitlines())):
        names = (' '.join(words[:end]) for end in range(len(words), 0, -1))
        yield next(filter(index.has, names), None)


def assign(
    photos: list[Photo], lists: dict[Path, str], root: Path
) -> tuple[Splits, list[Note]]:
    """Return photos below a folder by split, and notes on how they were chosen."""
    splits: Splits = dict(train=[], val=[], test=[])
    without: list[Photo] = []
    named = {photo.split for photo in photos}
    # one name of all photos tells nothing apart
    tells = len(named) > 1 and named != {'train', None}
    for photo in photos:
        split = (photo.split if tells else None) or lists.get(photo.path)
        splits.get(split or '', without).append(photo)
    if not splits['train']:
        splits['train'], without = without, []
    notes = notes_on('ignored {} photos in no split', [photo.path for photo in without])
    if not splits['val'] and splits['test']:
        text = 'no validation photos: the test photos are used for validation'
        notes.append(Note(text))
        splits['val'] = splits['test']
    sources = Sources(root, [photo.path for photo in photos])
    if not splits['val']:
        notes.append(Note(f'no validation photos: every {HELD_BACK}th is used'))
        groups = sources.group(splits['train'])
        notes += group_notes(groups)
        splits['train'], splits['val'] = hold_back(groups)
    if not splits['test']:
        notes.append(Note('no test photos: the validation photos are used for testing'))
        splits['test'] = splits['val']
    return splits, notes + sources.notes(splits)


def group_notes(groups: list[list[Photo]]) -> list[Note]:
    """Return a note on photos of fewer sources."""
    several = [group for group in groups if len(group) > 1]
    if not several or len(groups) < 2:
        return []
    names = [f'{group[0].path.name} and {group[1].path.name}' for group in several]
    text = (
        f'{sum(map(len, groups))} photos are of {len(groups)} sources, by their names: '
        'copies, tiles or frames of {} sources stay together'
    )
    return [Note(text, names)]


def hold_back(groups: list[list[Photo]]) -> tuple[list[Photo], list[Photo]]:
    """Return photos for training and for validation, drawn evenly among classes; photos
    of one group stay together, unless there is a single one, or the only one of a class
    would have to go."""
    if len(groups) == 1:
        groups = [[photo] for photo in groups[0]]
    order = random.Random(0).sample(groups, len(groups))
    order.sort(key=lambda group: group[0].class_names)
    train, val = list[Photo](), list[Photo]()
    for group in order:
        seen = len(train) + len(val) + len(group)
        is_due = seen >= HELD_BACK * (len(val) + len(group))
        (val if is_due else train).extend(group)
    if not val:  # they are few, or one of their groups is large
        *_, least = sorted(order, key=len, reverse=True)
        held = {photo.path for photo in least}
        rest = [photo for photo in train if photo.path not in held]
        if len(train) > len(groups) and not _classes(least) <= _classes(rest):
            return hold_back([[photo] for photo in train])
        return rest, least
    return train, val


def _classes(photos: Iterable[Photo]) -> set[str]:
    return {name for photo in photos for name in photo.class_names}
