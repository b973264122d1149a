"""Validate a user's data: each rule drops, rejects or reports something."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Optional

from mmlinattn.engine.preflight.outlines import Fault

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
from .words import IGNORED, UNREAD_ENDINGS

BACKGROUND = ('background', '_background_', '__background__')  # names of no class
FEW = 0.1  # of the objects, which may have no outline beside others


def check_reading(reading: Reading, folder: Folder) -> list[Note]:
    """Refuse what can't be learned from, and note what is ignored.

    Raises:
        ValueError: If too many files are damaged, or photos are missing, or annotated
            by several files.
    """
    matches, damaged = reading.matches, reading.damaged
    if len(damaged) > max(1, len(matches) // 10):
        raise damaged[0]
    notes = list(reading.notes)
    notes += notes_on('ignored {} annotation files that are damaged', damaged)
    refuse_missing(matches)
    if not matches:
        text = f'it has no data for --task {folder.options.task}, see --help'
        raise NoData('; '.join([text, *reading.hints[:1], folder.content()]))
    refuse_repeated(matches)
    for ending in UNREAD_ENDINGS:
        text = f'ignored {{}} {ending} files, to be converted to JPEG or PNG'
        notes += notes_on(text, folder.files[ending])
    notes += notes_on('ignored {} links that lead to no file', folder.broken)
    unused = set(folder.files[PHOTO]) - reading.left_out - folder.labelme_masks()
    for match in matches:
        unused -= {match.path, match.label_map}
    return notes + notes_on('ignored {} photos without annotations', sorted(unused))


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
    """Check that a photo has one annotation file, unless several splits have it.

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


def shape_notes(reading: Reading, photos: Sequence[Photo]) -> list[Note]:
    """Return notes on shapes that are no boxes or outlines.

    Raises:
        ValueError: If there are no other ones.
    """
    notes = [
        Note(f'ignored {count} shapes: {kind}')
        for kind, count in reading.skipped_shapes.items()
    ]
    if notes and not any(photo.objects for photo in photos):
        text = '; '.join(map(str, notes))
        raise ValueError(f'no photo has a box or an outline; it {text}')
    return notes


def choose_outlines(
    photos: Sequence[Photo], task: str
) -> tuple[bool, bool, list[Note]]:
    """Return whether objects have outlines, whether boxes stand in for a few that lack
    them, and notes.

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


def check_faults(
    photos: Sequence[Photo], faults: Sequence[tuple[Path, Fault]]
) -> list[Note]:
    """Note outlines that can't be drawn and are ignored.

    Raises:
        ValueError: If they are more than a few.
    """
    if not faults:
        return []
    whole = sum(item.outline is not None for item in every_object(photos))
    path, first = faults[0]
    text = f'{len(faults)} of {whole + len(faults)} outlines can not be drawn'
    why = f'{first.kind}, such as in {path}: {first.detail}'
    if len(faults) > FEW * (whole + len(faults)):
        raise ValueError(f'{text}: {why}')
    return [Note(f'{text}, and are ignored: {why}')]


def check_splits(splits: Splits) -> None:
    """Refuse splits without photos.

    Raises:
        ValueError: It says how many each has.
    """
    if not all(splits.values()):
        counts = [f'{len(photos)} for {split}' for split, photos in splits.items()]
        raise ValueError(f'too few photos, {", ".join(counts)}')


def repeated_notes(splits: Splits) -> list[Note]:
    """Note photos whose content is in the training set, too."""
    digests = {photo.digest for photo in splits['train']}
    held = splits['val'] + splits['test']
    twice = sorted({photo.path for photo in held if photo.digest in digests})
    return notes_on('{} photos for validation or testing are for training, too', twice)


def choose_classes(
    splits: Splits, wanted: Optional[Sequence[str]], task: str
) -> tuple[list[str], list[Note]]:
    """Return the classes that are wanted, or all of the training set, and notes.

    Raises:
        ValueError: If there is nothing to learn for one of them.
    """
    train = splits['train']
    counts, learned = count_classes(train), count_learned(train)
    classes = list(wanted or sorted(learned))
    if task == 'seg':
        classes = [name for name in classes if name not in BACKGROUND]
    refuse_crowds(every_object(train))
    refuse_lacking(classes, learned)
    notes = similar_names(counts)
    left = count_classes(every_photo(splits)).keys() - set(classes) - {IGNORED}
    reasons = {
        'ignored other classes': left & learned.keys(),
        'ignored classes that are crowds or difficult alone': left
        & (counts.keys() - learned.keys()),
        'ignored classes that no photo for training has': left - counts.keys(),
    }
    for text, names in reasons.items():
        if names:
            notes.append(Note(f'{text}: {", ".join(sorted(names))}'))
    once = {photo.path: photo for photo in every_photo(splits)}
    ignored = sum(item.name == IGNORED for item in every_object(once.values()))
    if ignored:
        notes.append(Note(f'{IGNORED} is no class: it ignores {ignored} objects'))
    return classes, notes


def count_learned(photos: Iterable[Photo]) -> Counter[str]:
    """Return the objects of each class that are no crowds, or the photos."""
    counts = Counter[str]()
    for photo in photos:
        objects = [item.name for item in photo.objects if not item.is_crowd]
        counts.update(photo.class_names if photo.class_name else objects)
    return counts


def contradiction_notes(
    splits: Splits, labels_of: Callable[[Photo], Any]
) -> list[Note]:
    """Note photos of the same content with different labels."""
    by_digest: dict[bytes, dict[Path, Photo]] = defaultdict(dict)
    for photo in every_photo(splits):
        by_digest[photo.digest][photo.path] = photo
    pairs = []
    for photos in by_digest.values():
        first, *others = photos.values()
        for other in others:
            if labels_of(first) != labels_of(other):
                pairs.append(f'{first.path} and {other.path}')
                break
    return notes_on('{} photos have duplicates with different labels', pairs)


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
    """Return the objects, or photos, of each class."""
    counts = Counter[str]()
    for photo in photos:
        counts.update(photo.class_names)
    return counts


def refuse_crowds(objects: Sequence[Object]) -> None:
    """Check that an object is one that is learned.

    Raises:
        ValueError: If all are crowds.
    """
    if objects and all(item.is_crowd for item in objects):
        raise ValueError('all objects are crowds or difficult, and not learned')


def similar_names(names: Iterable[str]) -> list[Note]:
    """Note classes that differ in upper case, blanks or hyphens alone."""
    names = list(names)
    plain = {name: re.sub(r'[\s_-]', '', name.lower()) for name in names}
    counts = Counter(plain.values())
    alike = sorted(name for name in names if counts[plain[name]] > 1)
    text = f'classes differ in upper case or blanks alone: {", ".join(alike)}'
    return [Note(text)] if alike else []


def refuse_repeated_names(classes: Sequence[str]) -> None:
    """Check that a class is named once.

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
