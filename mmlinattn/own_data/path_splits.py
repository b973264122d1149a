"""The splits that the names of files and folders say."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from .words import LONE_SPLIT, SPLIT_WORDS, split_of_name, stem_of


class PathSplits:
    """The splits that the names of files and folders below a root say."""

    def __init__(self, root: Path, paths: Iterable[Path]) -> None:
        self.root = root
        # splits by the rest of a name
        self.twins: dict[str, set[str]] = defaultdict(set)
        names = set[str]()
        for path in paths:
            names.update(path.relative_to(root).parts)
        for name in map(str.lower, names):
            for word in LONE_SPLIT.findall(name):
                self.twins[LONE_SPLIT.sub('*', name)].add(SPLIT_WORDS[word])

    def of(self, path: Path) -> Optional[str]:
        """Return the split of a path: that of its last part that says one."""
        for part in reversed(path.relative_to(self.root).parts):
            split = split_of_name(part_without_ending(part)) or self._of_twin(part)
            if split:
                return split
        return None

    def _of_twin(self, name: str) -> Optional[str]:
        """Return the split beside other words, if the same name has another split,
        too."""
        if len(self.twins.get(LONE_SPLIT.sub('*', name.lower()), ())) < 2:
            return None
        word = LONE_SPLIT.search(stem_of(name))
        return SPLIT_WORDS[word[1]] if word else None


def part_without_ending(name: str) -> str:
    """Return a name without the ending of an image or its labels, in its own case."""
    return name[: len(stem_of(name))]
