"""Compares the names of a data set's classes with those in its annotations."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

from mmengine.registry import DATASETS

from mmlinattn.utils.options import parts as dicts_in


def check_names(
    key: str, parts: list[Any], warn: Optional[Callable[[str], object]]
) -> None:
    """Raise a ValueError for sets without any object of their classes, and for sets
    that are used as one and give a label two names, which ``warn`` takes instead."""
    known: Any = ()
    for i, part in enumerate(parts, 1):
        place = f'{key}: ' if len(parts) == 1 else f'{key}, set {i}: '
        names = names_of(part)
        check_own_names(place, part, names)
        if any(one != other for one, other in zip(known, names)):
            text = (
                f'{place}its classes are {shown(names)}, those of another set are '
                f'{shown(known)}: a label means two things. Give all sets the same '
                'list in metainfo=dict(classes=...)'
            )
            if warn is None:
                raise ValueError(text)
            warn(text)
        known = known or names


def names_of(part: Any) -> Any:
    """Return the names of a data set's classes, () for none."""
    meta = getattr(part, 'metainfo', None)
    return (meta.get('classes') if isinstance(meta, dict) else None) or ()


def check_own_names(place: str, part: Any, names: Any) -> None:
    """Raise a ValueError for names that are one text, and for a data set without any
    object of its classes, or without some of them for their letter case."""
    if isinstance(names, str):
        raise ValueError(
            f'{place}metainfo.classes={names!r} is text, of which each letter is a '
            f'class: write classes=({names!r},), with the comma'
        )
    category_ids = getattr(part, 'cat_ids', None)
    if category_ids is None:
        return
    if names and not len(category_ids):
        raise ValueError(
            f'{place}its annotations have none of its {len(names)} classes, '
            f'{shown(names)}{those_of(part)}: name theirs in '
            'metainfo=dict(classes=...)'
        )
    if len(category_ids) < len(names):
        check_case(place, part, names)


def those_of(part: Any) -> str:
    """Return the names in the file of a COCO data set, in words."""
    names = categories_of(part)
    return f', but those of {shown(names)}' if names else ''


def check_case(place: str, part: Any, names: Any) -> None:
    """Raise a ValueError for classes that a data set's file has in other letter
    case."""
    known = categories_of(part)
    small = {name.strip().lower(): name for name in known}
    for name in names:
        other = small.get(str(name).strip().lower(), name)
        if name not in known and other != name:
            raise ValueError(
                f'{place}its class {name!r} is {other!r} in the annotations, so its '
                f'objects are ignored: write {other!r} in metainfo=dict(classes=...)'
            )


def categories_of(part: Any) -> list[str]:
    """Return names of the categories in the COCO file of a data set; [] of other
    ones."""
    path = Path(str(getattr(part, 'ann_file', '')))
    if path.suffix != '.json' or not path.is_file():
        return []
    content = json.loads(path.read_bytes())
    categories = content.get('categories') if isinstance(content, dict) else None
    return [str(category.get('name')) for category in categories or ()]


@contextmanager
def named_classes(loader: Any) -> Iterator[None]:
    """Name the classes of the data sets of a loader's config, where they are built and
    filters leave none of their photos."""
    try:
        yield
    except ValueError as error:
        if 'need at least one array' not in str(error):
            raise
        text = 'no photo is left that has an object of its classes'
        sets = '; '.join(describe_sets(loader.dataset))
        raise ValueError(f'{text}{sets}: letter case counts, too') from error


def describe_sets(dataset: Any) -> Iterator[str]:
    """Yield classes of a config's data sets, and those in their files, in words."""
    for _, part in dicts_in(dataset):
        if 'type' in part and 'pipeline' in part:
            built = DATASETS.build(dict(part, lazy_init=True))
            yield f', {shown(names_of(built))}{those_of(built)}'


def shown(names: Any) -> str:
    """Return the first names of a list."""
    more = ', ...' if len(names) > 6 else ''
    return f'({", ".join(map(str, names[:6]))}{more})'
