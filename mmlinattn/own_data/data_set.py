"""A user's data set, step by step from a folder."""

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from mmlinattn.engine.preflight.outlines import Fault

from . import checks, other_formats
from .fitting import SMALL, TURNED, UNROTATE, fit
from .folder import Folder
from .headers import Header, depth_notes, read_headers
from .label_maps import LabelMaps, Wanted
from .matching import PhotoIndex
from .readers.folders import read_photo_classes
from .readers.masks import read_label_maps
from .readers.objects import read_objects
from .records import (
    OBJECT_TASKS,
    Annotation,
    Match,
    Note,
    Object,
    Options,
    Photo,
    Reading,
    Splits,
    every_object,
    every_photo,
    notes_on,
)
from .splits import assign, read_lists
from .words import TABLE_ENDINGS

LEARNED = (*OBJECT_TASKS, 'seg', 'cls')  # tasks
UNREAD = 'ignored {} photos that OpenCV does not read'
EARLY = '{} photos end early, their last rows are missing'


@dataclass
class OwnData:
    """A user's data set.

    Args:
        folder (Folder): Its files.
        splits (dict[str, list[Photo]]): Photos for train, val and test.
        classes (list[str]): Names in the order of labels.
        has_masks (bool): All objects of a detector's data have outlines.
        notes (list[Note]): On decisions.
        label_maps (LabelMaps, optional): Those of a segmentor's data.
        sources (set[Path]): Files that have annotations, without label maps.
    """

    folder: Folder
    splits: Splits
    classes: list[str]
    has_masks: bool
    notes: list[Note]
    label_maps: Optional[LabelMaps] = None
    sources: set[Path] = field(default_factory=set)

    @property
    def label_files(self) -> set[Path]:
        """The files that its labels are from."""
        maps = {photo.label_map for photo in every_photo(self.splits)}
        return {*self.sources, *filter(None, maps)}

    @classmethod
    def from_folder(
        cls, folder: Union[str, Path, Options], task: str = '', **options: Any
    ) -> 'OwnData':
        """Read a folder of photos and annotations, as the command ``mmlinattn
        new-config`` does: formats, splits and classes are found.

        Args:
            folder (str | Path | Options): The folder, or all options at once.
            task (str): What is learned: 'det', boxes and masks; 'rot', rotated boxes;
                'seg', a class for each pixel; 'cls', a class for each photo.
            **options: Other fields of :class:`.Options`, which are the options of the
                command, such as ``classes=['cat', 'dog']`` or ``images='photos'``.

        Returns:
            OwnData: Photos by split, classes, and notes on decisions.

        Raises:
            OSError: If photos or annotations can't be read.
            TypeError: If there is no such option.
            ValueError: If there is no such task, photos or annotations are missing, or
                they contradict each other or the options.
        """
        if not isinstance(folder, Options):
            folder = Options(Path(folder), task, **options)
        if folder.task not in LEARNED:
            raise ValueError(f'task must be one of {LEARNED}, got {folder.task!r}')
        return cls._from_files(Folder(folder))

    @classmethod
    def _from_files(cls, folder: Folder) -> 'OwnData':
        try:
            with without_collector():
                return cls._read(folder)
        except ValueError as error:
            raise other_formats.explain(error, folder) from error

    @classmethod
    def _read(cls, folder: Folder) -> 'OwnData':
        options, task = folder.options, folder.options.task
        index = PhotoIndex(folder)
        reading = read_task(folder, index)
        other_formats.refuse(folder, reading.sources)
        notes = checks.check_reading(reading, folder)
        notes += other_formats.beside(folder, reading.sources)
        photos = measure(reading.matches, task, notes)
        has_masks, boxes_stand_in, outline_notes = checks.choose_outlines(photos, task)
        if boxes_stand_in:
            photos = with_objects(photos, Object.with_box_as_outline)
        if task == 'rot':
            photos = with_objects(photos, Object.with_rectangle)
        notes += outline_notes + checks.shape_notes(reading, photos)
        lists, list_notes = read_lists(index, find_lists(folder, reading.sources))
        splits, split_notes = assign(photos, lists, folder.root)
        checks.check_splits(splits)
        notes += list_notes + split_notes + checks.repeated_notes(splits)
        checks.refuse_repeated_names(options.classes or ())
        classes, label_maps = list[str](), None
        draws = any(photo.is_drawn for photo in photos)
        if task != 'seg' or draws:
            chosen = checks.choose_classes(splits, options.classes, task)
            classes, class_notes = chosen
            notes += class_notes
        if task == 'cls':
            splits = with_classes(splits, classes)
        if task == 'seg':
            drawn = ['background', *classes] if draws else None
            if drawn:
                notes.append(Note('label maps are drawn from outlines, on class 0'))
            label_maps = LabelMaps(splits, Wanted.from_folder(folder, drawn))
            classes, splits = label_maps.classes, label_maps.splits
            notes += label_maps.notes
        checks.check_splits(splits)
        checks.refuse_one_class(classes, folder)
        labels_of = label_maps.labels_key if label_maps else labels_key
        notes += checks.contradiction_notes(splits, labels_of)
        return cls(
            folder, splits, classes, has_masks, notes, label_maps, reading.sources
        )

    def overview(self) -> Iterator[list[str]]:
        """Yield rows of a table: the first has the splits, the others a name and a
        value for each split: photos, their sizes in pixels, those without objects, and
        objects, photos or the share of pixels of each class."""
        parts = list(self.splits.values())
        yield ['', *self.splits]
        yield ['photos', *(str(len(photos)) for photos in parts)]
        sizes = [
            sorted((photo.size for photo in photos), key=np.prod) for photos in parts
        ]
        for name, place in (('smallest', 0.0), ('median', 0.5), ('largest', 1.0)):
            picked = [
                ordered[min(int(place * len(ordered)), len(ordered) - 1)]
                for ordered in sizes
            ]
            yield [name, *(f'{width} x {height}' for width, height in picked)]
        empty = list(map(self.count_empty, parts))
        if any(empty):
            yield ['without objects', *map(str, empty)]
        if self.label_maps:
            yield from self.label_maps.overview()
            return
        counts = [checks.count_classes(photos) for photos in parts]
        for name in self.classes:
            yield [name, *(str(count[name]) for count in counts)]

    def count_empty(self, photos: list[Photo]) -> int:
        """Return how many photos have no object of the classes; 0 if none has
        objects."""
        if not every_object(every_photo(self.splits)):
            return 0
        known = set(self.classes)
        return sum(known.isdisjoint(photo.class_names) for photo in photos)


@contextmanager
def without_collector() -> Iterator[None]:
    """Pause Python's cyclic garbage collector, which takes 0.4 of the time where there
    are hundreds of thousands of objects, and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_task(folder: Folder, index: PhotoIndex) -> Reading:
    """Return what a task learns from a folder."""
    task = folder.options.task
    if task in OBJECT_TASKS:
        return read_objects(folder, index)
    return (
        read_label_maps(folder) if task == 'seg' else read_photo_classes(folder, index)
    )


def measure(matches: list[Match], task: str, notes: list[Note]) -> list[Photo]:
    """Return photos that OpenCV reads, with their sizes, and objects that fit them;
    notes are added.

    Raises:
        ValueError: If none is read, no box is larger than a pixel, or many outlines
            can't be drawn.
    """
    photos, read = [], []
    faults = list[tuple[Path, Fault]]()
    noted: dict[str, list[Path]] = defaultdict(list)
    for match, header in zip(
        matches, read_headers([match.path for match in matches if match.path])
    ):
        path = match.path or Path()
        if header is None:
            noted[UNREAD].append(path)
            continue
        photo, counts, faults_of_photo = measure_photo(match, path, header, task)
        faults += [(path, fault) for fault in faults_of_photo]
        photos.append(photo)
        read.append((path, header))
        if header.ends_early:
            noted[EARLY].append(path)
        for text, count in counts.items():
            noted[text] += [path] * count
    if not photos:
        raise ValueError(
            f'OpenCV reads none of {len(matches)} photos, such as {matches[0].path}: '
            'convert them to JPEG or PNG, of up to three bands of 8 bits'
        )
    for text, paths in noted.items():
        notes += notes_on(text, paths)
    notes += checks.check_faults(photos, faults)
    headers = dict(read)
    notes += depth_notes(list(headers), list(headers.values()))
    if noted[SMALL] and not any(photo.class_names for photo in photos):
        raise ValueError(
            f'all {len(noted[SMALL])} boxes have less than a pixel in their photo: '
            'are they in pixels, as (x, y, width, height)?'
        )
    return photos


def measure_photo(
    match: Match, path: Path, header: Header, task: str
) -> tuple[Photo, Counter[str], list[Fault]]:
    """Return a photo, what is noted of its objects, and what is wrong with their
    outlines."""
    photo = Photo(
        path,
        header.size,
        header.digest,
        header.orientation,
        match.split,
        label_map=match.label_map,
        class_name=match.class_name,
        is_drawn=task == 'seg' and match.label_map is None,
    )
    if match.annotation is None:
        return photo, Counter(), []
    refuse_unrotated(match.annotation, header, path)
    fitted = fit(match.annotation, header.size, path)
    noted = Counter({TURNED: 1}) if header.is_turned else Counter[str]()
    noted.update(fitted.counts)
    return replace(photo, objects=fitted.objects), noted, fitted.faults


def refuse_unrotated(annotation: Annotation, header: Header, path: Path) -> None:
    """Refuse labels of the pixels that a camera wrote, which EXIF data rotate.

    Raises:
        ValueError: It says how to remove the rotation.
    """
    width, height = header.size
    if header.orientation < 5 or annotation.size != (height, width) or width == height:
        return
    raise ValueError(
        f'{path} has {height} x {width} pixels, as its annotation says, and its EXIF '
        f'data rotate it to {width} x {height}: {UNROTATE}'
    )


def with_objects(
    photos: list[Photo], change: Callable[[Object], Object]
) -> list[Photo]:
    """Return photos with changed objects."""
    return [
        replace(photo, objects=tuple(map(change, photo.objects))) for photo in photos
    ]


def with_classes(splits: Splits, classes: list[str]) -> Splits:
    """Return photos of these classes alone."""
    chosen: Splits = {}
    for split, photos in splits.items():
        chosen[split] = [photo for photo in photos if photo.class_name in classes]
    return chosen


def labels_key(photo: Photo) -> Any:
    """Return what tells the labels of a photo from others: its class, or its
    objects."""
    boxes = [(item.name, *map(round, item.bbox)) for item in photo.objects]
    return photo.class_name, sorted(boxes)


def find_lists(folder: Folder, sources: set[Path]) -> list[Path]:
    """Return texts and tables that may be lists of a split, those of the task last."""
    kind = 'Segmentation' if folder.options.task == 'seg' else 'Main'  # VOC's folders
    paths = set[Path]()
    for ending in ('.txt', *TABLE_ENDINGS):
        paths.update(folder.files[ending])
    return sorted(paths - sources, key=lambda path: (path.parent.name == kind, path))
