"""Finds the photos of a folder, and tells what was predicted for them before."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from mmlinattn.deployment.predictor import state_of
from mmlinattn.utils.files import MARK

from .own_data import PHOTO_ENDINGS, read_headers
from .run_arguments import note

# what tells one model from another; the rest of an entry may change with time
SAME_MODEL = ('config', 'weights')


def find_photos(place: Path) -> list[Path]:
    """A photo, or those of a folder without our own pictures; damaged ones among them
    are named and left out."""
    if place.is_file():
        return [place]
    photos = [x for x in sorted(place.glob('*')) if x.suffix.lower() in PHOTO_ENDINGS]
    photos = [x for x in photos if not is_own(x)]
    pairs = zip(photos, read_headers(photos))
    damaged = [path for path, header in pairs if header is None or header.ends_early]
    if damaged:
        names = ', '.join(x.name for x in damaged)
        note(f'--image {place}: left out {len(damaged)} damaged photos: {names}')
    if len(photos) == len(damaged):
        raise FileNotFoundError(f'--image {place}: there is no image')
    return [x for x in photos if x not in damaged]


def is_own(path: Path) -> bool:
    """True for a picture that a command of ours wrote."""
    if path.suffix.lower() != '.png' or not path.is_file():
        return False
    with path.open('rb') as file:
        return MARK.encode() in file.read(4096)


def read_record(file: Path) -> Optional[dict[str, Any]]:
    """What a JSON file of predictions says, or None for no file of ours."""
    try:
        record = json.loads(file.read_text('utf-8'))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and 'models' in record else None


def is_done(
    record: Optional[dict[str, Any]],
    path: Path,
    made_with: Sequence[dict[str, Any]],
    score: float,
) -> bool:
    """True if a record has predictions for a photo as it is now of these models, in all
    of what they were made with, and with this score."""
    if record is None:
        return False
    models = [
        {key: entry.get(key) for key in wanted}
        for entry, wanted in zip(record['models'], made_with)
    ]
    same = len(record['models']) == len(made_with) and models == [*made_with]
    return same and (record.get('score'), record.get('file')) == (score, state_of(path))


def check_model(
    file: Path, record: Optional[dict[str, Any]], made_with: Sequence[dict[str, Any]]
) -> None:
    """Raises a FileExistsError for predictions of other models, which would be lost."""
    if record is None:
        return
    old = [tuple(x.get(key) for key in SAME_MODEL) for x in record['models']]
    new = [tuple(x.get(key) for key in SAME_MODEL) for x in made_with]
    if old != new:
        names = ' and '.join(f'{config} with {weights}' for config, weights in old)
        raise FileExistsError(
            f'{file} has predictions of {names}: give another --out, or --overwrite to '
            'replace them'
        )
