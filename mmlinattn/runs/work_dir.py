"""The folder of a training: one at a time, one best checkpoint, room on the disk."""

import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Optional

from mmengine.hooks import Hook

LOCK = '.lock'
EARLIER = 'earlier'  # a folder for best checkpoints of earlier trainings
FULL = (errno.ENOSPC, errno.EDQUOT)
_locks: list[Any] = []  # open files, whose locks end with the process


class FullDiskError(OSError):
    """There is no room for what a run writes."""


def lock(work_dir: str) -> None:
    """Claim the folder of a training, until this process ends.

    The system releases the lock of a killed process, and processes that it started do
    not hold it. On systems without such locks, nothing happens.

    Raises:
        FileExistsError: If another training writes to the folder.
    """
    try:
        import fcntl
    except ImportError:
        return
    file = Path(work_dir, LOCK).open('a+', encoding='utf-8')  # noqa: SIM115
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        with file:
            owner = file.read().strip()
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise FileExistsError(
                f'work_dir={work_dir!r} is in use by another training'
                f'{owner and f" ({owner})"}: wait for its end, or give another '
                '--work-dir'
            ) from error
        return
    file.truncate(0)
    file.write(f'process {os.getpid()} on {socket.gethostname()}')
    file.flush()
    _locks.append(file)


@contextmanager
def full_disk_in_a_line(work_dir: str, remedy: str) -> Iterator[None]:
    """Turn the error of a full disk into a :class:`FullDiskError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise FullDiskError(
            f'work_dir={work_dir!r}: {error.strerror}: free space, and {remedy}'
        ) from error


def raise_full_disk(logger: logging.Logger) -> None:
    """Let a logger raise the error of a full disk, which Python's would print, with a
    traceback, for each line of the log."""
    for handler in logger.handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handleError = _error_handler(handler)  # type: ignore[assignment]


def _error_handler(handler: logging.Handler) -> Callable[[logging.LogRecord], None]:
    def handle(record: logging.LogRecord) -> None:
        error: Optional[BaseException] = sys.exc_info()[1]
        if isinstance(error, OSError) and error.errno in FULL:
            raise error
        logging.Handler.handleError(handler, record)

    return handle


class EarlierBest(Hook):
    """Moves best checkpoints of earlier trainings out of the folder of a run, so that
    `best_*.pth` is of this one.

    Those that the config names stay where they are.

    Args:
        say (Callable): Takes a line on what was moved.
        warn (Callable): Takes a line on what stays.
    """

    def __init__(
        self, say: Callable[[str], object], warn: Callable[[str], object]
    ) -> None:
        self.say, self.warn = say, warn

    def before_train(self, runner: Any) -> None:
        """Move them, after all weights were read."""
        if runner.rank:
            return
        runtime_info = runner.message_hub.runtime_info  # of a resumed run, its own
        own = {
            Path(str(path)).name
            for key, path in runtime_info.items()
            if key.startswith('best_ckpt')
        }
        best = Path(runner.work_dir).glob('best_*')
        earlier = [path for path in best if path.name not in own]
        config = str(runner.cfg.to_dict())
        named = [path for path in earlier if path.name in config]
        moved = [move(path) for path in sorted(set(earlier) - set(named))]
        if moved:
            names = ', '.join(path.name for path in moved)
            self.say(f'{moved[0].parent}: best checkpoints of an earlier run: {names}')
        for path in named:
            self.warn(f'{path}, which the config names, is of an earlier run')


def move(path: Path) -> Path:
    """Move a file to the folder of earlier ones, under a name that is new there."""
    folder = path.with_name(EARLIER)
    folder.mkdir(exist_ok=True)
    target, number = folder / path.name, 1
    while target.exists():
        number += 1
        target = folder / f'{path.stem}-{number}{path.suffix}'
    with suppress(FileNotFoundError):
        path.rename(target)
    return target
