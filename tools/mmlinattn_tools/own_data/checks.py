"""What is left out, refused or said of own data: a rule each, with its text."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

from .folder import PHOTO, Folder
from .other_formats import NoData
from .records import (
    OBJECT_TASKS,
    Match,
    Note,
    Object,
    Photo,
    Reading,
    Splits,
    every_object,
    every_photo,
    notes_on,
)
from .words import UNREAD_ENDINGS

BACKGROUND = ('background', '_background_')  # names of no class
FEW = 0.1  # of the objects, which may have no outline beside others


def check_reading(reading: Reading, folder: Folder) -> list[Note]:
    """Refuses what can't be learned from, and notes what is left out.

    Raises:
        ValueError: If too many files are damaged, or photos are missing, or annotated
            by several files.
    """
    matches, damaged = reading.matches, reading.damaged
    if len(damaged) > max(1, len(matches) // 10):
        raise damaged[0]
    notes = list(reading.notes)
    notes += notes_on('left out {} annotation files that are damaged', damaged)
    refuse_missing(matches)
    if not matches:
        text = f'it has no data for --task {folder.options.task}, see --help'
        raise NoData(f'{text}; {folder.content()}')
    refuse_repeated(matches)
    for ending in UNREAD_ENDINGS:
        text = f'left out {{}} {ending} files, to be converted to JPEG or PNG'
        notes += notes_on(text, folder.files[ending])
    unused = set(folder.files[PHOTO]) - reading.left_out
    for match in matches:
        unused -= {match.path, match.label_map}
    return notes + notes_on('left out {} photos without annotations', sorted(unused))


def refuse_missing(matches: Sequence[Match]) -> None:
    """Photos that are annotated must be there.

    Raises:
        ValueError: If some are not.
    """
    missing = [match.name for match in matches if match.path is None]
    if missing:
        text = f'of {len(matches)} photos with annotations are missing in the folder'
        raise ValueError(f'{len(missing)} {text}, such as {missing[0]}')


def refuse_repeated(matches: Iterable[Match]) -> None:
    """A photo is annotated by one file, unless files of several splits have it.

    Raises:
        ValueError: If several files of a split, or of none, annotate a photo.
    """
    by_photo: dict[Optional[Path], list[Match]] = defaultdict(list)
    for match in matches:
        by_photo[match.path].append(match)
    for path, several in by_photo.items():
        splits = {match.split for match in several if match.split}
        if len(splits) < len(several) > 1:
            sources = list(dict.fromkeys(str(match.source) for match in several))
            files = ' and '.join(sources[:2])
            if len(sources) == 1:
                files += ', which names it twice'
            raise ValueError(
                f'several files annotate the same photos, such as {path}: {files}; '
                '--labels or --masks names a folder, a file, or a pattern such as *.xml'
            )


def choose_outlines(
    photos: Sequence[Photo], task: str
) -> tuple[bool, bool, list[Note]]:
    """Whether objects have outlines, whether boxes stand in for a few that lack them,
    and notes.

    Raises:
        ValueError: If label maps are to be drawn, and outlines are missing, or no
            object has a rotated box.
    """
    objects = every_object(photos)
    boxes = sum(item.outline is None for item in objects)
    if not boxes:
        return task == 'det', False, []
    text = f'{boxes} of {len(objects)} objects have boxes without outlines'
    if task == 'rot' and boxes < len(objects):
        return False, False, [Note(f'{text}: they are learned without a rotation')]
    if boxes < FEW * len(objects):
        note = Note(f'{text}: it takes their boxes for outlines')
        return task == 'det', True, [note]
    if task in ('rot', 'seg'):
        raise ValueError(f'{text}: they are for --task det')
    if boxes < len(objects):
        return False, False, [Note(f'{text}: it takes the boxes of all')]
    return False, False, []


def check_splits(splits: Splits) -> None:
    """Refuses splits without photos.

    Raises:
        ValueError: It says how many each has.
    """
    if not all(splits.values()):
        counts = [f'{len(photos)} for {split}' for split, photos in splits.items()]
        raise ValueError(f'too few photos, {", ".join(counts)}')


def repeated_notes(splits: Splits) -> list[Note]:
    """Notes photos whose content is in the training set, too."""
    digests = {photo.digest for photo in splits['train']}
    held = splits['val'] + splits['test']
    twice = sorted({photo.path for photo in held if photo.digest in digests})
    return notes_on('{} photos for validation or testing are for training, too', twice)


def choose_classes(
    splits: Splits, wanted: Optional[Sequence[str]], task: str
) -> tuple[list[str], list[Note]]:
    """The classes that are wanted, or all of the training set, and notes.

    Raises:
        ValueError: If there is nothing to learn for one of them.
    """
    train = splits['train']
    counts = count_classes(train)
    classes = list(wanted or sorted(counts))
    if task == 'seg':
        classes = [name for name in classes if name not in BACKGROUND]
    refuse_lacking(classes, counts)
    refuse_crowds(every_object(train))
    notes = similar_names(counts)
    left = sorted(count_classes(every_photo(splits)).keys() - set(classes))
    if left:
        notes.append(Note(f'left out other classes: {", ".join(left)}'))
    return classes, notes


def refuse_lacking(classes: Sequence[str], counts: Counter[str]) -> None:
    """Each class must be in a photo for training.

    Raises:
        ValueError: If one is not, or there is none.
    """
    missing = [name for name in classes if not counts[name]]
    if missing or not classes:
        raise ValueError(
            f'no photo for training has {", ".join(missing) or "an object"}; '
            f'their classes: {", ".join(sorted(counts)) or "none"}'
        )


def count_classes(photos: Iterable[Photo]) -> Counter[str]:
    """The objects, or photos, of each class."""
    counts = Counter[str]()
    for photo in photos:
        counts.update(photo.class_names)
    return counts


def refuse_crowds(objects: Sequence[Object]) -> None:
    """An object must be one that is learned.

    Raises:
        ValueError: If all are crowds.
    """
    if objects and all(item.is_crowd for item in objects):
        raise ValueError('all objects are crowds or difficult, and not learned')


def similar_names(names: Iterable[str]) -> list[Note]:
    """Notes classes that differ in upper case alone."""
    names = list(names)
    counts = Counter(map(str.lower, names))
    alike = sorted(name for name in names if counts[name.lower()] > 1)
    text = f'classes differ in upper case alone: {", ".join(alike)}'
    return [Note(text)] if alike else []


def refuse_repeated_names(classes: Sequence[str]) -> None:
    """A class is named once.

    Raises:
        ValueError: If one is named twice.
    """
    if len(set(classes)) < len(classes):
        raise ValueError(f'--classes {" ".join(classes)}: a name is given twice')


def refuse_one_class(classes: Sequence[str], folder: Folder) -> None:
    """There must be something to tell apart, except by a detector.

    Raises:
        ValueError: If there is one class.
    """
    if folder.options.task not in OBJECT_TASKS and len(classes) < 2:
        text = f'one class only, {classes[0]}: there is nothing to tell apart'
        raise ValueError(f'{text}; {folder.content()}')
