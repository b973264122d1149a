"""Photos of one class each: in folders that are named after classes, or in a table."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from ..class_tables import read_name_tables
from ..folder import PHOTO, Folder
from ..matching import PhotoIndex
from ..records import Match, Note, Reading, notes_on
from ..texts import read_text
from ..words import CONTAINER_WORDS, split_of_name, words_of
from .objects import find_tables
from .tables import PHOTO as PHOTO_COLUMN
from .tables import SPLIT_COLUMNS, Row, Table, read_classes, read_table

# a photo, and the class or its number behind it
CLASS_BEHIND = re.compile(r'(.+?)[\s,;]+([^\s,;]+)')
NAME_TABLES = ('.txt', '.json', '.yaml', '.yml', '.names')


def read_photo_classes(folder: Folder, index: PhotoIndex) -> Reading:
    """Photos and their classes.

    Raises:
        ValueError: If folders or tables are not clear, or contradict each other.
    """
    tables = [read_table(path, index.has) for path in find_tables(folder)]
    named = [table for table in tables if table]
    labels_are_named = named and folder.options.labels
    in_folders = [] if labels_are_named else read_class_folders(folder)
    if _are_splits(in_folders):
        in_folders = []  # photos lie in splits, which have no folders of classes
    folders_suffice = len({match.class_name for match in in_folders}) > 1
    in_tables = match_tables(named, folder, index, may_be_of_anything=folders_suffice)
    if folders_suffice:
        refuse_other_classes(in_folders, in_tables)
        return Reading(in_folders, notes=folder_notes(folder, in_folders))
    if not in_tables:
        in_tables, lists = read_class_lists(folder, index)
        return Reading(in_tables or in_folders, sources=lists)
    return Reading(in_tables, sources={table.path for table in named})


def read_class_lists(
    folder: Folder, index: PhotoIndex
) -> tuple[list[Match], set[Path]]:
    """Photos of lists such as mmpretrain's train.txt, which have a photo and a class,
    or its number, in each line, and these lists."""
    rows: list[tuple[Path, str, str]] = []
    for path in folder.select(folder.files['.txt'], 'labels'):
        lines = [line for line in read_text(path).splitlines() if line.strip()]
        pairs = [CLASS_BEHIND.fullmatch(line.strip()) for line in lines]
        if pairs and all(pair and index.has(pair[1]) for pair in pairs):
            rows += [(path, pair[1], pair[2]) for pair in pairs if pair]
    names = _names_of_numbers(folder, {label for _, _, label in rows})
    matches = [
        index.match(photo, path, class_name=names.get(label, label))
        for path, photo, label in rows
    ]
    return matches, {path for path, _, _ in rows}


def _names_of_numbers(folder: Folder, labels: set[str]) -> dict[str, str]:
    """Names of classes by number, of an option or a table; none if they have others."""
    if not all(label.isdigit() for label in labels):
        return {}
    paths = [path for ending in NAME_TABLES for path in folder.files[ending]]
    options = dict(enumerate(folder.options.classes or ()))
    for names in (options, *(table.names for table in read_name_tables(paths))):
        if names.keys() >= set(map(int, labels)):
            return {label: names[int(label)] for label in labels}
    return {}


def folder_notes(folder: Folder, matches: Iterable[Match]) -> list[Note]:
    """Notes folders below those of classes, which may be the classes, and names that
    differ by blanks."""
    below: dict[str, set[str]] = defaultdict(set)
    written: dict[str, set[str]] = defaultdict(set)
    containers = set[str]()
    for match in matches:
        parts = match.source.relative_to(folder.base).parts
        place = [_class_of(part) for part in parts].index(match.class_name or '')
        below[_class_of(parts[place])].update(parts[place + 1 : place + 2])
        written[_class_of(parts[place])].add(parts[place])
        containers.update(filter(_is_container, parts[:place][:1]))
    notes = []
    if len(containers) > 1:
        names = ', '.join(sorted(containers))
        text = f'the classes are the folders in {names}: --images names one of them'
        notes.append(Note(text))
    deeper = sorted(name for name, inner in below.items() if len(inner) > 1)
    if deeper:
        text = f'the classes are folders such as {deeper[0]}, not those in it, such as '
        text += f'{min(below[deeper[0]])}: --images names another folder'
        notes.append(Note(text))
    alike = sorted(name for name, names in written.items() if len(names) > 1)
    return notes + notes_on('{} classes have folders that differ by blanks', alike)


def _class_of(folder: str) -> str:
    """The class that the name of a folder means."""
    return ' '.join(folder.split())


def _are_splits(matches: list[Match]) -> bool:
    """Whether names of classes are those of several splits."""
    splits = {split_of_name(match.class_name or '') for match in matches}
    return len(splits - {None}) > 1


def refuse_other_classes(in_folders: list[Match], in_tables: list[Match]) -> None:
    """Folders and tables must say the same.

    Raises:
        ValueError: If a photo has another class in a table.
    """
    classes = {match.path: match.class_name for match in in_folders}
    for match in in_tables:
        if classes.get(match.path, match.class_name) != match.class_name:
            raise ValueError(
                'folders and a table tell other classes: --labels names the table, or '
                'remove it'
            )


def match_tables(
    tables: Iterable[Table], folder: Folder, index: PhotoIndex, may_be_of_anything: bool
) -> list[Match]:
    """Photos of the rows of tables; those without classes may be left out.

    Raises:
        ValueError: If it is not clear which column of another one has the class.
    """
    matches: list[Match] = []
    for table in tables:
        try:
            matches += match_table(table, folder.options.column, index)
        except ValueError:
            if not may_be_of_anything:
                raise
    return matches


def match_table(table: Table, column: Optional[str], index: PhotoIndex) -> list[Match]:
    """Photos of the rows of a table.

    Raises:
        ValueError: If it is not clear which column has the class.
    """
    rows = read_classes(table, column)
    return [_match_row(index, table, row, name) for row, name in rows]


def _match_row(index: PhotoIndex, table: Table, row: Row, class_name: str) -> Match:
    """The photo of a row, whose split may be in a column."""
    stated = next((row[key] for key in SPLIT_COLUMNS if row.get(key)), '')
    split = split_of_name(stated)
    labels = dict(split=split) if split else {}
    return index.match(row[PHOTO_COLUMN], table.path, class_name=class_name, **labels)


def read_class_folders(folder: Folder) -> list[Match]:
    """Photos in folders that are named after classes.

    Raises:
        ValueError: If it is not clear which folders are splits.
    """
    parts = {
        photo: photo.parent.relative_to(folder.base).parts
        for photo in folder.files[PHOTO]
    }
    parts = _below_containers(parts)
    splits = _split_folders(parts.values())
    inner = [
        Path('.', *folders[1:])
        for folders in parts.values()
        if folders and folders[0] in splits
    ]
    # folders between the splits and the classes, the same in all splits
    between = len(Path(os.path.commonpath(inner)).parts) if inner else 0
    matches = []
    for path, folders in parts.items():
        split: Optional[str] = None
        if splits:
            split = splits.get(folders[0]) if folders else None
            folders = folders[1 + between :] if split else ()
        if folders:
            matches.append(
                Match(
                    path,
                    path.parent,
                    path.name,
                    split,
                    class_name=_class_of(folders[0]),
                )
            )
    return matches


def _below_containers(
    parts: dict[Path, tuple[str, ...]],
) -> dict[Path, tuple[str, ...]]:
    """Folders of photos below the first ones, if these are called after what they hold,
    such as Dataset and Examples, and have the folders of classes."""
    firsts = {folders[0] for folders in parts.values() if folders}
    inner = {folders[1] for folders in parts.values() if len(folders) > 1}
    if len(inner) < 2 or not all(map(_is_container, firsts)):
        return parts
    return {photo: folders[1:] for photo, folders in parts.items()}


def _is_container(name: str) -> bool:
    words = set(words_of(name))
    return bool(words) and words <= CONTAINER_WORDS


def _split_folders(parts: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """The splits of the first folders, if they are splits; "train" is a class beside
    other ones, unless they have its folders."""
    below: dict[str, set[str]] = defaultdict(set)
    for folders in parts:
        if len(folders) > 1:
            below[folders[0]].add(folders[1])
    named = {name: split_of_name(name) for name in below}
    splits = {name: split for name, split in named.items() if split}
    if len(set(splits.values())) > 1 or len(splits) == len(below):
        return splits
    alike = [name for name in below if _is_like_a_split(name, below, splits)]
    if alike:
        raise ValueError(
            f'are {", ".join(sorted([*splits, *alike]))} splits? Call these folders '
            'train, val and test'
        )
    return {}


def _is_like_a_split(
    name: str, below: dict[str, set[str]], splits: dict[str, str]
) -> bool:
    """Whether a folder of another name has several folders, all of them a split's."""
    if name in splits or len(below[name]) < 2:
        return False
    return any(below[name] <= below[split] for split in splits)
