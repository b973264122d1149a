"""Writes files whole or not at all."""

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Union
from uuid import uuid4

# in the first bytes of files that may be overwritten
MARK = 'written by mmlinattn'
# names of drafts, in the folder of the file
DRAFTS = '.*.????????.part'


def drafts_of(path: Path, kind: str = 'part') -> list[Path]:
    """Return the drafts of a file or folder: of a process that writes it, or was
    killed."""
    return sorted(path.parent.glob(f'.{glob.escape(path.name)}.????????.{kind}'))


@contextmanager
def whole_file(path: Union[str, Path]) -> Iterator[Path]:
    """Let a file appear under its name only when it is whole and on the disk.

    The caller writes the yielded draft, in the same folder, which is made if missing.
    At the end of the context, it takes the file's name in one step. A process that is
    killed before leaves the old file, and perhaps a draft. No two processes share a
    draft.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f'.{path.name}.{uuid4().hex[:8]}.part')
    try:
        yield draft
        with draft.open('rb+') as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    # the new name must be on the disk too, where the file system can do that
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
