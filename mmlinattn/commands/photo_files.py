"""Finds the photos of a folder, and tells what was predicted for them before."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from mmlinattn.cli.run_arguments import note
from mmlinattn.deployment.predictor import Origin, is_up_to_date, state_of
from mmlinattn.own_data import PHOTO_ENDINGS, Header, depth_notes, read_headers
from mmlinattn.utils.files import MARK


def find_photos(place: Path) -> list[Path]:
    """Return a photo, or those of a folder without our own pictures; damaged ones among
    them are named and ignored, and lines tell of those of more than 8 bits.

    Raises:
        FileNotFoundError: If there is none.
    """
    option = f'--image {place}'
    paths = [place] if place.is_file() else list_photos(place)
    headers = headers_of(paths, option)
    if place.is_file():
        return paths  # if it is damaged, the error is its model's
    photos = list(without_damaged(headers, option))
    if not photos:
        raise FileNotFoundError(f'{option}: there is no image')
    return photos


def headers_of(paths: Sequence[Path], option: str) -> dict[Path, Optional[Header]]:
    """Return the headers of photos, None for one that can't be read. Lines that begin
    with an option tell of those of more than 8 bits."""
    headers = dict(zip(paths, read_headers(paths)))
    readable = {path: header for path, header in headers.items() if header}
    for line in depth_notes(list(readable), list(readable.values())):
        note(f'{option}: {line}')
    return headers


def without_damaged(
    headers: Mapping[Path, Optional[Header]], option: str
) -> dict[Path, Header]:
    """Return the photos that are whole, with their headers; a line that begins with an
    option names the others."""
    photos = {path: x for path, x in headers.items() if x and not x.ends_early}
    damaged = [path.name for path in headers if path not in photos]
    if damaged:
        names = ', '.join(damaged)
        note(f'{option}: ignored {len(damaged)} damaged photos: {names}')
    return photos


def list_photos(folder: Path, below: bool = False) -> list[Path]:
    """Return files in a folder, and in those ``below`` it, that are photos by their
    names, without our own pictures."""
    return [
        path
        for path in sorted(folder.rglob('*') if below else folder.glob('*'))
        # reading a pipe has no end
        if path.suffix.lower() in PHOTO_ENDINGS and path.is_file() and not is_own(path)
    ]


def is_own(path: Path) -> bool:
    """Return True for a picture that a command of ours wrote."""
    if path.suffix.lower() != '.png' or not path.is_file():
        return False
    with path.open('rb') as file:
        return MARK.encode() in file.read(4096)


def read_record(file: Path) -> Optional[dict[str, Any]]:
    """Return what a JSON file of predictions says, or None for no file of ours."""
    try:
        record = json.loads(file.read_text('utf-8'))
    except (OSError, RecursionError, ValueError):
        return None
    ours = isinstance(record, dict) and record.get('about') == MARK
    return record if ours and 'models' in record else None


def is_done(
    file: Path,
    record: Optional[dict[str, Any]],
    photo: Path,
    sources: Sequence[Mapping[str, Any]],
    score: float,
) -> bool:
    """Return True if the record in a file has predictions for a photo as it is now of
    these models, in all of what they are made of, and with this score.

    Raises:
        FileExistsError: If it has predictions of other models, which would be lost.
    """
    if record is None:
        return False
    names = [
        f'{entry.get("config")} with {entry.get("weights")}'
        for entry in record['models']
    ]
    earlier = origin(record['models'], record.get('score'), record.get('file'))
    current = origin(sources, score, state_of(photo))
    return is_up_to_date(earlier, current, str(file), ' and '.join(names))


def origin(
    sources: Sequence[Mapping[str, Any]], score: Optional[float], state: Any
) -> Origin:
    """Return what predictions of models for a photo are made of."""
    # a newer state of the same weights may replace what an older one has predicted
    models = [(source.get('config'), source.get('weights')) for source in sources]
    states = [(source.get('time'), source.get('settings')) for source in sources]
    return Origin(models, (score, states), state)
