"""What the readers of own data give each other.

Places are in pixels of the photo, x to the right and y down; a box is (x, y, width,
height), a polygon x, y, x, y, ..., and a size (width, height).
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Optional

from .outlines import Outline, Polygon, Size

__all__ = ['Outline', 'Polygon', 'Size']

Box = tuple[float, float, float, float]

OBJECT_TASKS = ('det', 'rot')  # of new_config.py, that learn objects


@dataclass(frozen=True)
class Options:
    """The options of new_config.py that choose what is read."""

    data: Path
    task: str
    classes: Optional[Sequence[str]] = None
    ignore: Sequence[int] = ()
    images: Optional[str] = None
    labels: Optional[str] = None
    masks: Optional[str] = None
    column: Optional[str] = None
    colors: Optional[Sequence[str]] = None
    resize_masks: bool = False
    rotate_masks: bool = False
    use_255: bool = False

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> 'Options':
        """Return the options among those of a command."""
        return cls(**{name: getattr(args, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Note:
    """A line about a decision.

    Args:
        text (str): The line; with subjects, ``{}`` is their number.
        subjects (sequence): Files or others that it is about; the first is named.
    """

    text: str
    subjects: Sequence[Any] = ()

    def __str__(self) -> str:
        if not self.subjects:
            return self.text
        return f'{self.text.format(len(self.subjects))}, such as {self.subjects[0]}'


def notes_on(text: str, subjects: Sequence[Any]) -> list[Note]:
    """Return a note on subjects; none if there are none."""
    return [Note(text, subjects)] if subjects else []


@dataclass(frozen=True)
class Object:
    """An object in a photo, as MMDetection learns it.

    ``area`` is in square pixels; a crowd is neither learned nor counted as wrong.
    """

    name: str
    bbox: Box
    area: float
    is_crowd: bool = False
    outline: Optional[Outline] = None

    def scaled(self, factors: tuple[float, float]) -> 'Object':
        """Return the object in a photo that was resized by factors of width and
        height."""
        (x, y, width, height), (across, down) = self.bbox, factors
        return Object(  # faster than replace, for hundreds of thousands of objects
            self.name,
            (x * across, y * down, width * across, height * down),
            self.area * across * down,
            self.is_crowd,
            self.outline and self.outline.scaled(factors),
        )

    def with_box_as_outline(self) -> 'Object':
        """Return the object itself, or one whose outline is its box if it has no
        outline."""
        if self.outline:
            return self
        x, y, width, height = self.bbox
        right, bottom = x + width, y + height
        return replace(
            self, outline=Outline(((x, y, right, y, right, bottom, x, bottom),))
        )

    def with_rectangle(self) -> 'Object':
        """Return the object with the smallest rectangle around its outline, or else
        with its box, as an outline."""
        outline = self.with_box_as_outline().outline
        return replace(self, outline=outline and Outline((outline.rectangle(),)))

    def to_coco(self) -> dict[str, Any]:
        """Return what a COCO file says of the object, beside its ids."""
        entry: dict[str, Any] = dict(
            name=self.name,
            bbox=list(self.bbox),
            area=self.area,
            iscrowd=int(self.is_crowd),
        )
        if self.outline:
            entry['segmentation'] = self.outline.to_coco()
        return entry


@dataclass(frozen=True)
class Annotation:
    """What a file says of one photo.

    Args:
        photo_name (str): The photo's name in the file, which may be a path or address.
        size (tuple, optional): The photo's size when it was labeled, if that is said.
        objects (tuple[Object]): The objects in it.
        in_fractions (bool): Places are parts of the photo's sides, not pixels.
        skipped_shapes (tuple[str]): Kinds of shapes that are no boxes or outlines.
    """

    photo_name: str
    size: Optional[tuple[float, float]] = None
    objects: tuple[Object, ...] = ()
    in_fractions: bool = False
    skipped_shapes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Match:
    """A photo on the disk and what belongs to it.

    Args:
        path (Path, optional): The photo's file; None if it is missing.
        source (Path): The file or folder that has the labels.
        name (str): The name by which it was looked for.
        split (str, optional): The split that names of files and folders say.
        annotation (Annotation, optional): Its objects.
        label_map (Path, optional): The file of its label map.
        class_name (str, optional): The class of the whole photo.
    """

    path: Optional[Path]
    source: Path
    name: str
    split: Optional[str] = None
    annotation: Optional[Annotation] = None
    label_map: Optional[Path] = None
    class_name: Optional[str] = None


@dataclass
class Reading:
    """What a task's reader has found in a folder.

    ``sources`` are files that have annotations, ``damaged`` the errors of files that
    annotate one photo each, ``skipped_shapes`` counts shapes by their kinds,
    ``left_out`` are pictures that notes name already, and ``hints`` say what makes a
    folder without labels readable.
    """

    matches: list[Match] = field(default_factory=list)
    sources: set[Path] = field(default_factory=set)
    damaged: list[ValueError] = field(default_factory=list)
    skipped_shapes: Counter[str] = field(default_factory=Counter)
    left_out: set[Path] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Photo:
    """A photo that can be learned from.

    ``digest`` is of its file's content, ``orientation`` in its EXIF data the one by
    which OpenCV turns it, 1 for none; the other attributes are those of a match.
    """

    path: Path
    size: Size
    digest: bytes = b''
    orientation: int = 1
    split: Optional[str] = None
    objects: tuple[Object, ...] = ()
    label_map: Optional[Path] = None
    class_name: Optional[str] = None
    is_drawn: bool = False

    @property
    def class_names(self) -> list[str]:
        """The classes of its objects, or that of the whole photo."""
        if self.class_name is not None:
            return [self.class_name]
        return [item.name for item in self.objects]

    @property
    def map_path(self) -> Path:
        """The file of the label map; the photo's if it is drawn from outlines."""
        return self.label_map or self.path


Splits = dict[str, list[Photo]]


def every_photo(splits: Splits) -> list[Photo]:
    """Return the photos of all splits; one in several splits is there for each."""
    return list(chain.from_iterable(splits.values()))


def every_object(photos: Iterable[Photo]) -> list[Object]:
    """Return the objects of all photos."""
    return list(chain.from_iterable(photo.objects for photo in photos))
