"""Photos of one class each: in folders that are named after classes, or in a table."""

import os
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Optional

from ..class_tables import NameTable, read_name_tables
from ..folder import PHOTO, Folder
from ..matching import PhotoIndex
from ..records import Match, Note, Reading, notes_on
from ..texts import read_text
from ..words import (
    CONTAINER_WORDS,
    JPEG_ENDINGS,
    MAP_WORDS,
    PARTS,
    PHOTO_WORDS,
    plain,
    split_of_name,
    words_of,
)
from .masks import ShortNames, has_maps, is_map_name, photo_names
from .named_photos import read_named_photos, suggest_classes
from .objects import find_tables
from .tables import PHOTO as PHOTO_COLUMN
from .tables import SPLIT_COLUMNS, NoClassColumn, Row, Table, read_classes, read_table

# a photo, and the class or its number behind it
CLASS_BEHIND = re.compile(r'(.+?)[\s,;]+([^\s,;]+)')
NAME_TABLES = ('.txt', '.json', '.yaml', '.yml', '.names')


def read_photo_classes(folder: Folder, index: PhotoIndex) -> Reading:
    """Return photos and their classes.

    Raises:
        ValueError: If folders or tables are not clear, or contradict each other.
    """
    tables = [read_table(path, index.has) for path in find_tables(folder)]
    named = [table for table in tables if table]
    labels_are_named = named and folder.options.labels
    maps = maps_beside_photos(folder)
    in_folders = [] if labels_are_named else read_class_folders(folder, maps)
    in_folders, inner_maps = without_label_maps(folder, in_folders)
    maps |= inner_maps
    in_folders = with_inner_splits(folder, in_folders)
    if _are_splits(in_folders):
        in_folders = []  # photos lie in splits, which have no folders of classes
    names = {match.class_name for match in in_folders}
    wanted = folder.options.classes or names
    folders_suffice = len(names) > 1 and not names.isdisjoint(wanted)
    in_tables = match_tables(named, folder, index, may_be_of_anything=folders_suffice)
    if folders_suffice:
        refuse_other_classes(in_folders, in_tables)
        notes = notes_on('ignored {} label maps of photos', sorted(maps))
        notes += twin_notes(in_folders)
        notes += folder_notes(folder, in_folders)
        return Reading(in_folders, left_out=maps, notes=notes)
    if not in_tables:
        in_tables, lists = read_class_lists(folder, index)
        matches = in_tables or read_named_photos(folder) or in_folders
        hints = [] if matches else suggest_classes(folder)
        return Reading(matches, sources=lists, hints=hints)
    in_tables, notes = with_names(folder, in_tables)
    notes += combination_notes(in_tables)
    return Reading(in_tables, {table.path for table in named}, notes=notes)


def read_class_lists(
    folder: Folder, index: PhotoIndex
) -> tuple[list[Match], set[Path]]:
    """Return photos of lists such as mmpretrain's train.txt, which have a photo and a
    class, or its number, in each line, and these lists."""
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


def with_names(folder: Folder, matches: list[Match]) -> tuple[list[Match], list[Note]]:
    """Return matches with the names of classes that a table in the folder gives their
    numbers, and a note on it."""
    labels = {match.class_name or '' for match in matches}
    table = _table_of_names(folder, labels)
    if table is None:
        return matches, []
    note = Note(f'names of classes are those of {table.path}')
    return [
        replace(match, class_name=table.names[int(match.class_name or '')])
        for match in matches
    ], [note]


def combination_notes(matches: Iterable[Match]) -> list[Note]:
    """Note classes that are several others, as where a photo has several labels."""
    names = {match.class_name or '' for match in matches}
    parts = {name: re.split(r'[\s,;|]+', name) for name in names}
    combined = [
        name for name in names if len(parts[name]) > 1 and names.issuperset(parts[name])
    ]
    text = '{} classes are combinations of others: a classifier learns one of a photo'
    return notes_on(text, sorted(combined))


def _table_of_names(folder: Folder, labels: set[str]) -> Optional[NameTable]:
    """Return the first table that names all classes, if they are numbers."""
    if not all(label.isdigit() for label in labels):
        return None
    paths = [path for ending in NAME_TABLES for path in folder.files[ending]]
    wanted = set(map(int, labels))
    tables = read_name_tables(paths)
    return next((table for table in tables if table.names.keys() >= wanted), None)


def _names_of_numbers(folder: Folder, labels: set[str]) -> dict[str, str]:
    """Return names of classes by number, of an option or a table; none if they have
    others."""
    if not all(label.isdigit() for label in labels):
        return {}
    names: Mapping[int, str] = dict(enumerate(folder.options.classes or ()))
    if not names.keys() >= set(map(int, labels)):
        table = _table_of_names(folder, labels)
        names = table.names if table else {}
    # the number of a label may begin with zeros
    return {label: names[int(label)] for label in labels} if names else {}


def folder_notes(folder: Folder, matches: Iterable[Match]) -> list[Note]:
    """Note folders below those of classes, which may be the classes, and name that
    differ by blanks."""
    below: dict[str, set[str]] = defaultdict(set)
    written: dict[str, set[str]] = defaultdict(set)
    containers = set[str]()
    for match in matches:
        above, name, inner = _around_class(folder, match)
        if match.split and _split_below(inner) == match.split:
            inner = inner[1:]
        below[_class_of(name)].update(inner[:1])
        written[_class_of(name)].add(name)
        containers.update(filter(_is_container, above[:1]))
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


def without_label_maps(
    folder: Folder, matches: list[Match]
) -> tuple[list[Match], set[Path]]:
    """Return matches without the label maps of other photos of their class, and these
    maps: a folder in the class's folder, or their own name, says what they are."""
    photos, others = list[Match](), list[tuple[Match, Path]]()
    stems: dict[Optional[str], set[str]] = defaultdict(set)
    for match in matches:
        path = match.source / match.name
        _, _, inner = _around_class(folder, match)
        if has_maps('/'.join(inner)) or is_map_name(path.stem):
            others.append((match, path))
        else:
            photos.append(match)
            stems[match.class_name].add(plain(path.stem))
    maps = set[Path]()
    for match, path in others:
        if stems[match.class_name].isdisjoint(map(plain, photo_names(path.stem))):
            photos.append(match)
        else:
            maps.add(path)
    return photos, maps


def twin_notes(matches: Iterable[Match]) -> list[Note]:
    """Note PNG files that have the name of a JPEG file in their folder: they may be
    label maps, or other photos."""
    photos = [match.source / match.name for match in matches]
    jpeg = {
        path.with_suffix(''): path.suffix
        for path in photos
        if path.suffix.lower() in JPEG_ENDINGS
    }
    twins = [
        path
        for path in photos
        if path.suffix.lower() == '.png' and path.with_suffix('') in jpeg
    ]
    if not twins:
        return []
    pattern = f'*{jpeg[twins[0].with_suffix("")]}'
    text = f"if these are label maps, --images '{pattern}' ignores them: "
    text += '{} PNG files beside JPEG files of their names'
    return notes_on(text, sorted(twins))


def maps_beside_photos(folder: Folder) -> set[Path]:
    """Return pictures in folders of label maps beside those of their photos, such as
    images and masks: they have the names of photos, and are no JPEG files."""
    others, photos, stems = list[Path](), list[Path](), set[str]()
    for path in folder.files[PHOTO]:
        parts = path.parent.relative_to(folder.base).parts
        is_exact = path.suffix.lower() not in JPEG_ENDINGS
        if is_exact and any(map(_is_map_folder, parts)):
            others.append(path)
            continue
        stems.add(plain(path.stem))
        if any(map(_is_photo_folder, parts)):
            photos.append(path)
    of_photo_folders, short = {plain(path.stem) for path in photos}, ShortNames(photos)
    maps = set[Path]()
    for path in others:
        names = [plain(name) for name in photo_names(path.stem)]
        known = stems if is_map_name(path.stem) else of_photo_folders
        if not known.isdisjoint(names) or short.find(names):
            maps.add(path)
    return maps


def _is_map_folder(name: str) -> bool:
    words = set(words_of(name))
    has_number = re.search(r'\d', name) is not None  # label_0 is a class
    return not has_number and bool(words & MAP_WORDS) and words <= MAP_WORDS | PARTS


def _is_photo_folder(name: str) -> bool:
    words = set(words_of(name))
    return bool(words & PHOTO_WORDS) and words <= PARTS


def with_inner_splits(folder: Folder, matches: list[Match]) -> list[Match]:
    """Return matches with the splits of folders in those of the classes, if all photos
    lie in such folders."""
    splits = [_split_below(_around_class(folder, match)[2]) for match in matches]
    if None in splits or len(set(splits)) < 2:
        return matches
    return [replace(match, split=split) for match, split in zip(matches, splits)]


def _split_below(inner: Sequence[str]) -> Optional[str]:
    """Return the split of the first folder in the one of a class, or None."""
    return split_of_name(inner[0]) if inner else None


def _around_class(
    folder: Folder, match: Match
) -> tuple[Sequence[str], str, Sequence[str]]:
    """Return the folders above the one of a photo's class, its name, and the folders in
    it."""
    parts = match.source.relative_to(folder.base).parts
    place = [_class_of(part) for part in parts].index(match.class_name or '')
    return parts[:place], parts[place], parts[place + 1 :]


def _class_of(folder: str) -> str:
    """Return the class that the name of a folder means."""
    return ' '.join(folder.split())


def _are_splits(matches: list[Match]) -> bool:
    """Return whether names of classes are those of several splits."""
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
    """Return the photos of the rows of tables; those that do not name a column of
    classes, such as of photos for a test, are ignored beside one that does.

    Raises:
        ValueError: If it is not clear which column has the class.
    """
    column, named, others = folder.options.column, list[Match](), list[Match]()
    unclear = list[ValueError]()
    for table in tables:
        try:
            rows, is_named = read_classes(table, column)
            matched = [_match_row(index, table, row, name) for row, name in rows]
            (named if is_named else others).extend(matched)
        except NoClassColumn as error:
            unclear.append(error)
        except ValueError:
            if not may_be_of_anything:
                raise
    if unclear and not (named or may_be_of_anything):
        raise unclear[0]
    return named or others


def _match_row(index: PhotoIndex, table: Table, row: Row, class_name: str) -> Match:
    """Return the photo of a row, whose split may be in a column."""
    stated = next((row[key] for key in SPLIT_COLUMNS if row.get(key)), '')
    split = split_of_name(stated)
    labels = dict(split=split) if split else {}
    return index.match(row[PHOTO_COLUMN], table.path, class_name=class_name, **labels)


def read_class_folders(folder: Folder, left_out: Container[Path]) -> list[Match]:
    """Photos, but those that are ignored, in folders that are named after classes.

    Raises:
        ValueError: If it is not clear which folders are splits.
    """
    parts = {
        photo: photo.parent.relative_to(folder.base).parts
        for photo in folder.files[PHOTO]
        if photo not in left_out
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
    """Return folders of photos below the first ones, if these are called after what
    they hold, such as Dataset and Examples, or are one, and have the folders of
    classes."""
    firsts = {folders[0] for folders in parts.values() if folders}
    inner = {folders[1] for folders in parts.values() if len(folders) > 1}
    is_alone = len(firsts) == 1 and not any(map(split_of_name, firsts))
    if len(inner) < 2 or not (is_alone or all(map(_is_container, firsts))):
        return parts
    return {photo: folders[1:] for photo, folders in parts.items()}


def _is_container(name: str) -> bool:
    words = set(words_of(name))
    return bool(words) and words <= CONTAINER_WORDS


def _split_folders(parts: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Return the splits of the first folders, if they are splits; "train" is a class
    beside other ones, unless they have its folders."""
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
    """Return whether a folder of another name has several folders, all of them a
    split's."""
    if name in splits or len(below[name]) < 2:
        return False
    return any(below[name] <= below[split] for split in splits)
