"""YOLO's files, one for each photo, and the names of their classes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Optional

import yaml

from ..records import Annotation, Object
from ..texts import as_numbers, read_text
from .base import AnnotationFile, ClassNames, make_object, make_outline
from .yolo_lines import BOX, KEYPOINT_LAYOUT, SCORED

DATA_KEYS = {'train', 'val', 'test', 'path', 'nc'}  # of its yaml, beside names
NAME_LISTS = ('classes.txt', 'obj_names.txt')


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it is a text; only those with a photo's name are asked for."""
    return file.ending == '.txt'


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photo.

    Raises:
        ValueError: If a line is no object, or its class has no name.
    """
    objects = []
    for i, line in enumerate(file.text.splitlines(), 1):
        if not line.strip():
            continue
        values = as_numbers(line.split())
        if not values or len(values) < 5 or values[0] % 1:
            raise ValueError(
                f"line {i} is neither YOLO's `class x y w h` nor DOTA's `x1 y1 ... x4 "
                'y4 class difficult`'
            )
        objects.append(parse_object(values, classes))
    return [Annotation(file.path.name, None, tuple(objects), in_fractions=True)]


def rows_of(file: AnnotationFile) -> Iterator[list[float]]:
    """Yield the numbers behind the classes of its lines, of those that are numbers."""
    for line in file.text.splitlines():
        numbers = as_numbers(line.split()[1:])
        if numbers:
            yield numbers


def parse_object(values: list[float], classes: ClassNames) -> Object:
    """Return the object of a line: a class and, in parts of the photo's sides, the
    center and sides of a box, or a polygon."""
    number, places = int(values[0]), values[1:]
    layout = classes.layout
    is_box = len(places) <= SCORED or not layout.has_polygons
    places = places[:BOX] if is_box else places[: len(places) - layout.tail]
    if classes.names and number not in classes.names:
        raise ValueError(f'class {number} has no name, there are {len(classes.names)}')
    if max(places) > 2:  # a box at the edge may reach beyond it
        raise ValueError(
            f'{max(places):g} is no part of the side of a photo, from 0 to 1'
        )
    name = classes.names.get(number, f'class {number}')
    if is_box:
        x, y, width, height = places
        return make_object(name, (x - width / 2, y - height / 2, width, height))
    return make_object(name, outline=make_outline([places]))


def read_class_names(files: Mapping[str, Sequence[Path]]) -> ClassNames:
    """Return the names of a yaml file, or of a list such as classes.txt, among files by
    their endings.

    Raises:
        ValueError: If yaml files contradict each other.
    """
    named = _yaml_names([*files.get('.yaml', ()), *files.get('.yml', ())])
    if named:
        return named
    lists = [path for path in files.get('.txt', ()) if path.name in NAME_LISTS]
    for path in chain(lists, files.get('.names', ())):
        names = map(str.strip, read_text(path).splitlines())
        return ClassNames(dict(enumerate(names)))
    return ClassNames({})


def _yaml_names(paths: list[Path]) -> Optional[ClassNames]:
    contents = {path: _parse_yaml(path) for path in paths}
    for path, content in contents.items():
        if DATA_KEYS & content.keys() and _have_lists(content.get('names')):
            raise ValueError(f'{path}: its names are lists, not text')
    named = {path: content for path, content in contents.items() if _names_in(content)}
    # beside the file of a data set, other lists of names say nothing
    named = {
        path: content for path, content in named.items() if DATA_KEYS & content.keys()
    } or named
    if not named:
        return None
    first, *others = named
    names = _names_in(named[first])
    for path in others:
        if _names_in(named[path]) != names:
            raise ValueError(f'{path}: its names are not those of {first}')
    if any('kpt_shape' in content for content in named.values()):
        return ClassNames(names, KEYPOINT_LAYOUT)
    return ClassNames(names)


def _parse_yaml(path: Path) -> dict[str, Any]:
    """Return the content of a yaml file; nothing if it is of something else."""
    try:
        content = yaml.safe_load(read_text(path))
    except (RecursionError, ValueError, yaml.YAMLError) as error:
        if 'names' not in read_text(path):
            return {}
        raise ValueError(f'{path}: {error}') from error
    return content if isinstance(content, dict) else {}


def _names_in(content: Mapping[str, Any]) -> dict[int, str]:
    names = content.get('names')
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not all(str(i).isdigit() for i in names):
        return {}
    if _have_lists(names):
        return {}
    return {int(i): str(name) for i, name in names.items()}


def _have_lists(names: Any) -> bool:
    """Return whether names are lists themselves, whose text may be longer than any
    memory."""
    if isinstance(names, dict):
        names = list(names.values())
    return isinstance(names, list) and any(
        isinstance(name, (dict, list)) for name in names
    )
