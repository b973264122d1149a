"""Names in annotations, and the photos on the disk that they mean."""

import os
from collections import defaultdict
from pathlib import Path, PureWindowsPath
from typing import Any, Optional
from urllib.parse import unquote

from .folder import PHOTO, Folder
from .records import Match
from .words import PHOTO_WORDS, has_word, plain, stem_of


class PhotoIndex:
    """The photos of a folder by their names without endings.

    Args:
        folder (Folder): The folder.
        photos (list[Path], optional): Those of its photos to choose from (default:
            all).
    """

    def __init__(self, folder: Folder, photos: Optional[list[Path]] = None) -> None:
        self.folder = folder
        self.photos = folder.files[PHOTO] if photos is None else photos
        self.by_stem: dict[str, list[Path]] = defaultdict(list)
        for path in self.photos:
            self.by_stem[stem_of(path.name)].append(path)

    def has(self, name: str) -> bool:
        """Return whether there are photos of this name, whatever their folder and
        ending."""
        return stem_of(PureWindowsPath(name).name) in self.by_stem

    def find(self, name: str, near: Path) -> Optional[Path]:
        """Return the photo that a file or folder ``near`` names.

        It is the one with the longest common end of their paths; of several, the one in
        the split of the file, or the one nearest to it.

        Raises:
            ValueError: If several photos are as near.
        """
        if not self.has(name):
            name = unquote(name)  # "a%20b.jpg"
        parts = PureWindowsPath(name).parts or ('',)  # of any system
        paths = self.by_stem.get(stem_of(parts[-1]), [])
        if len(paths) < 2:
            return paths[0] if paths else None
        ranks = {path: self._rank(path, parts, near) for path in paths}
        best, second, *_ = sorted(paths, key=ranks.__getitem__, reverse=True)
        if ranks[best] == ranks[second]:
            raise ValueError(
                f'{near}: {parts[-1]} is the name of several photos, such as {best} '
                f'and {second}: --images names the folder of the photos'
            )
        return best

    def _rank(self, path: Path, parts: tuple[str, ...], near: Path) -> tuple[Any, ...]:
        """Return how well a photo fits a name of these parts, best last."""
        root, splits = self.folder.root, self.folder.splits
        place = near if near.is_dir() else near.parent
        wanted = (*place.relative_to(root).parts, *parts)
        return (
            _common_end(wanted, path.relative_to(root).parts),
            path.name == parts[-1],
            splits.of(path.parent) == splits.of(near),
            has_word(self.folder.below_base(path), PHOTO_WORDS),
            len(Path(os.path.commonpath([path, near])).parts),
        )

    def match(self, name: str, near: Path, **labels: Any) -> Match:
        """Return a match of the photo that a file or folder ``near`` names; ``labels``
        are other fields of the match."""
        path, splits = self.find(name, near), self.folder.splits
        split = splits.of(near) or (splits.of(path.parent) if path else None)
        return Match(path, name=str(name), **{'split': split, 'source': near, **labels})


def _common_end(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    """Return the number of parts that two paths have in common at their ends."""
    ends = [
        (stem_of(parts[-1]), *map(plain, parts[-2::-1]), '')
        for parts in (first, second)
    ]
    count = 0
    for one, other in zip(*ends):
        if one != other:
            break
        count += 1
    return count
