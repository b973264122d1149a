"""Puts a config and the folder of its data in place together."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from mmlinattn.cli.label_files import RECORD
from mmlinattn.utils.files import drafts_of

SPLITS = ('train', 'val', 'test')
# what this tool writes to the folder
OWN = {'labels', RECORD}
OWN |= {f'{split}.{ending}' for split in SPLITS for ending in ('json', 'txt')}


@contextmanager
def whole_config(config: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Let a config and the folder of its data appear only when both are whole.

    The caller writes the yielded drafts, a file and a folder. A process that is killed
    leaves the old config with the old folder, the new config with the new folder, or,
    for a moment, no config. A killed or interrupted one leaves a draft of the config,
    of which a training tells. Files of others in the old folder are kept.

    Args:
        config (Path): The file, which may exist.
        folder (Path): The folder, which may exist.
    """
    config, folder = config.resolve(), folder.resolve()
    for place in (config, folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        for kind in ('part', 'old'):  # of a process that was killed
            for left in drafts_of(place, kind):
                remove(left)
    name = uuid4().hex[:8]
    drafts = [x.with_name(f'.{x.name}.{name}.part') for x in (config, folder)]
    earlier = [x.with_name(f'.{x.name}.{name}.old') for x in (config, folder)]
    try:
        drafts[0].touch()
        drafts[1].mkdir()
        (drafts[1] / RECORD).write_text('{}')
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name not in OWN:
                copy(entry, drafts[1] / entry.name)
        yield drafts[0], drafts[1]
        # without a config, nothing trains on what is exchanged
        exchange((config, folder), earlier, drafts)
    except Exception:
        remove(drafts[0])
        raise
    finally:
        for path in (drafts[1], *earlier):
            remove(path)


def exchange(
    places: tuple[Path, Path], earlier: list[Path], drafts: list[Path]
) -> None:
    """Move a config and a folder away, and their drafts in their places; if a step
    fails, moves all back."""
    config, folder = places
    steps = [(config, earlier[0]), (folder, earlier[1])]
    steps = [step for step in steps if step[0].exists()]
    steps += [(drafts[1], folder), (drafts[0], config)]
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in steps:
            source.rename(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            target.rename(source)
        raise


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder; links stay links."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
