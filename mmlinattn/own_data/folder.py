"""The files of a folder, and the places among them that options name."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Optional

from .path_splits import PathSplits
from .records import Options
from .words import PHOTO_ENDINGS, stem_of

PHOTO = 'photo'  # the kind of all files of photos; other kinds are endings

# the mask of an object, which is called after the file of its photo
LABELME_MASK = re.compile(r'(.+)_mask_\d+')


class Folder:
    """A user's folder.

    Attributes:
        root (Path): The folder itself.
        files (dict[str, list[Path]]): Files by their ending, or 'photo'.
        broken (list[Path]): Links to files that are not there.
        splits (PathSplits): The splits that names of files and folders say.
        options (Options): The options that choose among the files.

    Raises:
        ValueError: If ``--images`` names a place that is not there.
    """

    def __init__(self, options: Options) -> None:
        self.root, self.options = options.data, options
        self.files: dict[str, list[Path]] = defaultdict(list)
        self.broken: list[Path] = []
        for path in sorted(walk(self.root)):
            ending = path.suffix.lower()
            if is_hidden(path.relative_to(self.root)):
                continue
            if not path.exists():
                self.broken.append(path)
            elif path.is_file():  # reading a pipe has no end
                self.files[PHOTO if ending in PHOTO_ENDINGS else ending].append(path)
        self.splits = PathSplits(self.root, self._all_files())
        if options.task != 'seg':
            self.files[PHOTO] = self.select(self.files[PHOTO], 'images')
        # folders that all photos have in common say nothing about one of them
        folders = [str(path.parent) for path in self.files[PHOTO]]
        self.base = Path(os.path.commonpath(folders)) if folders else self.root

    def select(self, paths: list[Path], option: str) -> list[Path]:
        """Return paths in the place that an option names: a folder or file, wherever it
        lies, or a pattern; all paths without the option.

        Raises:
            ValueError: If there is no such place.
        """
        name: Optional[str] = getattr(self.options, option)
        if not name:
            return paths
        place = self.root / name
        if place.exists() or '*' in name:
            return [
                path
                for path in paths
                if place in (path, *path.parents) or path.match(name)
            ]
        if not any(self._lies_in(path, name) for path in self._all_files()):
            raise ValueError(f'--{option} {place}: there is no such place')
        return [path for path in paths if self._lies_in(path, name)]

    def labelme_masks(self) -> set[Path]:
        """Return the masks of single objects that LabelMe's files name."""
        stems, masks = {stem_of(path.name) for path in self.files['.xml']}, set()
        for path in self.files[PHOTO] if stems else ():
            name = LABELME_MASK.fullmatch(stem_of(path.name))
            if name and name[1] in stems:
                masks.add(path)
        return masks

    def _all_files(self) -> Iterator[Path]:
        return chain.from_iterable(self.files.values())

    def _lies_in(self, path: Path, name: str) -> bool:
        """Return whether a path has the parts of a name one after another."""
        parts, wanted = path.relative_to(self.root).parts, Path(name).parts
        starts = range(len(parts) - len(wanted) + 1)
        return any(parts[i : i + len(wanted)] == wanted for i in starts)

    def below_base(self, path: Path) -> str:
        """Return the folder of a photo below the one that all have in common."""
        return path.parent.as_posix()[len(str(self.base)) :]

    def content(self) -> str:
        """Return the numbers of files, and options, for an error."""
        counts = {
            kind: len(paths) for kind, paths in sorted(self.files.items()) if paths
        }
        text = ', '.join(f'{count} {kind}' for kind, count in counts.items())
        if set(counts) == {PHOTO}:
            text += ' files: mmlinattn predict takes photos without labels'
        places = '--images, --labels and --masks name the folders of each'
        if self.broken:
            text += f'; {len(self.broken)} links lead to no file'
        return f'it has {text or "nothing"}; {places}'


def is_hidden(path: Path) -> bool:
    """Return whether a file or one of its folders is hidden, or macOS's own."""
    return any(part.startswith('.') or part == '__MACOSX' for part in path.parts)


def walk(root: Path) -> Iterator[Path]:
    """Yield files of a folder; links to folders that hold them are ignored."""
    for folder, below, names in os.walk(root, followlinks=True):
        below[:] = _without_circles(folder, below)
        yield from (Path(folder, name) for name in names)


def _without_circles(folder: str, below: Iterable[str]) -> list[str]:
    here, others = os.path.realpath(folder), []
    for name in below:
        inside = os.path.realpath(os.path.join(folder, name))
        if os.path.commonpath([inside, here]) != inside:
            others.append(name)
    return others
