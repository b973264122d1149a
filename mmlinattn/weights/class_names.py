"""Names of classes: those of a checkpoint, and those that mean the same in two data
sets."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

# plurals of other forms, of classes that public data sets have
IRREGULAR = dict(
    people='person', men='man', women='woman', children='child', mice='mouse'
)


def learned_meta(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint of MMEngine says of the data that it was trained with:
    names and colors of classes; of several sets, those of the first."""
    meta = checkpoint.get('meta')
    dataset_meta = (meta if isinstance(meta, dict) else {}).get('dataset_meta') or {}
    if isinstance(dataset_meta, (list, tuple)):
        return dataset_meta[0]
    return dataset_meta


def match_classes(ours: Sequence[str], theirs: Sequence[str]) -> dict[int, int]:
    """Find the classes that two lists share.

    Upper case, underscores, hyphens and spaces do not matter, nor does the plural of
    one of the two. A name with commas or semicolons, as ImageNet has, is any of its
    parts.

    Args:
        ours: Names of classes.
        theirs: Names of classes.

    Returns:
        Positions in ``theirs`` by positions in ``ours``.
    """
    exact: dict[str, int] = {}
    for j, name in enumerate(theirs):
        for form in _names(name):
            exact.setdefault(form, j)
    singular: dict[str, int] = {}
    for form, j in exact.items():
        for other in _singulars(form):
            singular.setdefault(other, j)
    rows: dict[int, int] = {}
    for i, name in enumerate(ours):
        forms = list(_names(name))
        singulars = [other for form in forms for other in _singulars(form)]
        # the same name, their singular of ours, our singular of theirs
        for names, known in ((forms, exact), (singulars, exact), (forms, singular)):
            match = next((known[x] for x in names if x in known), None)
            if match is not None:
                rows[i] = match
                break
    return rows


def _names(name: str) -> Iterator[str]:
    """Yield the names in a name, without case and signs."""
    for part in re.split('[,;]', str(name)):
        words = re.sub(r'[\s_-]+', ' ', part).strip().casefold()
        if words:
            yield words


def _singulars(name: str) -> Iterator[str]:
    """Yield words that a name is the plural of."""
    first, _, last = name.rpartition(' ')
    start = f'{first} ' if first else ''
    if last in IRREGULAR:
        yield start + IRREGULAR[last]
    for ending, other in (
        *(('ies', 'y'), ('ves', 'f'), ('ves', 'fe'), ('ses', 's'), ('xes', 'x')),
        *(('zes', 'z'), ('ches', 'ch'), ('shes', 'sh'), ('oes', 'o')),
    ):
        if last.endswith(ending) and last != ending:
            yield start + last.removesuffix(ending) + other
    if last.endswith('s') and not last.endswith('ss') and len(last) > 2:
        yield start + last[:-1]
