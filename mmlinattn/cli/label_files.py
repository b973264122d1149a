"""Notes the label files that a config was made of, and tells whether they changed."""

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from mmlinattn.utils.files import whole_file

# in the folder of a config's data lists, and marks it as this tool's own
RECORD = 'new_config.json'
KEY = 'label_files'


def note_files(paths: Iterable[Path], folder: Path) -> None:
    """Write sizes, times and digests of files to the record in a folder."""
    files = {str(path.resolve()): state_of(path) for path in sorted(paths)}
    with whole_file(folder / RECORD) as draft:
        draft.write_text(json.dumps({KEY: files}))


def state_of(path: Path) -> list[Any]:
    """Return size in bytes, time of the last change in ns, and digest of a file."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, sha256(path.read_bytes()).hexdigest()]


def changed_files(folder: Path) -> list[str]:
    """Return the files of a record whose content is another one now, or that are
    missing. A file of an equal size and time is not read."""
    try:
        content = json.loads((folder / RECORD).read_text())
    except (OSError, ValueError):  # no record, or none of ours
        return []
    files = content.get(KEY, {}) if isinstance(content, dict) else {}
    return [path for path, state in files.items() if has_changed(path, *state)]


def has_changed(path: str, size: int, time: int, digest: str) -> bool:
    """Return whether a file is missing or has another content than noted."""
    try:
        status = os.stat(path)
        if (status.st_size, status.st_mtime_ns) == (size, time):
            return False
        return status.st_size != size or state_of(Path(path))[2] != digest
    except OSError:
        return True
