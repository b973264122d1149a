"""Photos with objects: the files of all tools, in turn."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Optional

from ..folder import Folder
from ..matching import PhotoIndex
from ..records import Annotation, Note, Reading
from ..words import TABLE_ENDINGS, stem_of
from . import box_tables, coco, cvat, dota, labelme, tables, via, voc, yolo
from .base import AnnotationFile, ClassNames, Reader
from .yolo_lines import KEYPOINT_LAYOUT, Layout, find_layout

JSON_READERS: tuple[Reader, ...] = (coco, labelme, via)
TEXT_READERS: tuple[Reader, ...] = (dota, yolo)
XML_READERS: tuple[Reader, ...] = (voc, cvat)
NO_NAMES = 'labels have no names: give them with --classes'
FAULTS = (AttributeError, KeyError, SyntaxError, TypeError, ValueError)


class ObjectReader:
    """Reads the files of labelling tools in a folder into a :class:`Reading`."""

    def __init__(self, folder: Folder, index: PhotoIndex) -> None:
        self.folder, self.index = folder, index
        self.reading = Reading()

    def read_all(self) -> Reading:
        """Return photos and objects of all files; texts and tables beside other labels
        repeat these, or are of something else.

        Raises:
            ValueError: If a file of many photos is damaged.
        """
        classes = ClassNames({}, column=self.folder.options.column)
        keypoints = []
        for ending, readers in (('.json', JSON_READERS), ('.xml', XML_READERS)):
            for path in self.folder.select(self.folder.files[ending], 'labels'):
                # COCO has people's keypoints in further files
                if ending == '.json' and 'keypoints' in path.name:
                    keypoints.append(path)
                else:
                    self.read_file(AnnotationFile(path), readers, classes)
        if not self.reading.sources:  # they have boxes, too
            for path in keypoints:
                self.read_file(AnnotationFile(path), JSON_READERS, classes)
        self._read_texts()
        if not self.reading.sources:
            self._read_tables(classes)
        return self.reading

    def _read_texts(self) -> None:
        texts = self.folder.select(self.folder.files['.txt'], 'labels')
        texts = [path for path in texts if self.index.has(path.name)]
        if not texts:
            return
        classes = yolo.read_class_names(self.folder.files)
        if not classes.names:
            names = dict(enumerate(self.folder.options.classes or ()))
            classes = replace(classes, names=names)
        before = len(self.reading.matches), len(self.reading.damaged)
        files = list(map(AnnotationFile, texts))
        if classes.layout != KEYPOINT_LAYOUT:
            classes = replace(classes, layout=self._find_layout(files))
        for file in files:
            self.read_file(file, TEXT_READERS, classes)
        num_read = len(self.reading.matches) - before[0]
        # beside labels, texts of which none can be read are something else
        if self.reading.sources and not num_read:
            del self.reading.damaged[before[1] :]
        if num_read and not classes.names and not all(map(dota.recognizes, files)):
            self.reading.notes.append(Note(NO_NAMES))

    def _find_layout(self, files: Sequence[AnnotationFile]) -> Layout:
        """Return what the numbers of YOLO's lines are, which is noted if it is not
        usual.

        Raises:
            ValueError: If it is not clear, and there are no other labels.
        """
        of_yolo = [file for file in files if not dota.recognizes(file)]
        rows = list(chain.from_iterable(map(yolo.rows_of, of_yolo)))
        try:
            layout = find_layout(rows)
        except ValueError:
            if self.reading.sources:
                return Layout()  # texts beside labels may be of anything
            raise
        if layout.note and not self.reading.sources:
            self.reading.notes.append(Note(layout.note))
        return layout

    def _read_tables(self, classes: ClassNames) -> None:
        for path in find_tables(self.folder):
            file = AnnotationFile(path)
            if path.suffix.lower() == '.csv' and via.recognizes(file):
                self.read_file(file, (via,), classes)
                continue
            table = tables.read_table(path, self.index.has)
            if table:
                self._add(path, partial(self._read_boxes, table, classes))

    def _read_boxes(self, table: tables.Table, classes: ClassNames) -> list[Annotation]:
        annotations, note = box_tables.read_boxes(table, classes)
        self.reading.notes += [Note(note)] if note else []
        return annotations

    def read_file(
        self, file: AnnotationFile, readers: tuple[Reader, ...], classes: ClassNames
    ) -> None:
        """Add the photos of a file, by the first reader that recognizes it."""

        def read() -> list[Annotation]:
            reader = next(
                (reader for reader in readers if reader.recognizes(file)), None
            )
            return reader.read(file, classes) if reader else []

        self._add(file.path, read)

    def _add(self, path: Path, read: Callable[[], list[Annotation]]) -> None:
        try:
            annotations = read()
            if annotations:
                self.reading.sources.add(path)
            for annotation in annotations:
                self.reading.skipped_shapes.update(annotation.skipped_shapes)
                name, near = self._name_of(annotation, path, len(annotations))
                match = self.index.match(name, near, source=path, annotation=annotation)
                self.reading.matches.append(match)
        except FAULTS as error:
            fault = describe_fault(path, error)
            if self._annotates_many(path):
                raise fault from error
            self.reading.damaged.append(fault)

    def _name_of(
        self, annotation: Annotation, path: Path, count: int
    ) -> tuple[str, Path]:
        """Return the name of a photo in a file of several, and the place near which it
        lies.

        The file of one photo has the photo's name; what it says may be older.
        """
        name, stem = annotation.photo_name, stem_of(path.name)
        is_xml, has_own_photo = path.suffix.lower() == '.xml', self.index.has(path.name)
        near = path.parent if is_xml or has_own_photo else path
        is_own = has_own_photo or (is_xml and not self.index.has(name))
        if count == 1 and is_own and stem_of(name) != stem:
            name = path.name
        return name, near

    def _annotates_many(self, path: Path) -> bool:
        """Return whether a file has the labels of more than one photo, as far as is
        known."""
        is_only = len(self.folder.files[path.suffix.lower()]) == 1
        is_of_one = self.index.has(path.name) or path.suffix.lower() == '.xml'
        return is_only or not is_of_one


def describe_fault(path: Path, error: Exception) -> ValueError:
    """Return an error of a file that names the file, and its kind if its text does
    not."""
    kind = '' if isinstance(error, ValueError) else f'{type(error).__name__} '
    return ValueError(f'{path}: {kind}{str(error).removeprefix(f"{path}: ")}')


def find_tables(folder: Folder) -> list[Path]:
    """Return files of tables; those whose labels are to be filled in are ignored."""
    paths: list[Path] = []
    for ending in TABLE_ENDINGS:
        paths += folder.select(folder.files[ending], 'labels')
    return [path for path in paths if 'submission' not in path.name.lower()]


def read_objects(folder: Folder, index: Optional[PhotoIndex] = None) -> Reading:
    """Return photos and objects of the files of labelling tools in a folder."""
    return ObjectReader(folder, index or PhotoIndex(folder)).read_all()
