"""Folders that a tool writes to and later recognizes as its own."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional, Union

from mmlinattn.utils.files import whole_file


class OwnFolder:
    """A folder in which a tool may replace what it wrote itself, and nothing else.

    The tool's record in it, a JSON object, says that the folder is its own. Without
    one, a folder that holds anything is someone else's.

    Args:
        path (str | Path): The folder; it need not exist.
        record (str): Name of the record's file.
    """

    def __init__(self, path: Union[str, Path], record: str) -> None:
        self.path = Path(path)
        self.file = self.path / record

    def read(self) -> Optional[dict[str, Any]]:
        """Reads the record.

        Returns:
            dict | None: None if the folder is empty or does not exist.

        Raises:
            FileExistsError: If the path is not a folder, or someone else's.
        """
        if self.file.is_file():
            try:
                record = json.loads(self.file.read_bytes())
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise FileExistsError(
                    f'{self.file} is not the record of this tool: give another --out'
                )
            return record
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FileExistsError(
                f'{self.path} is not an empty folder and was not written by this '
                'tool: give another --out'
            )
        return None

    def write(self, record: dict[str, Any]) -> None:
        """Writes the record, whole or not at all.

        Args:
            record (dict): Values that JSON can hold.
        """
        with whole_file(self.file) as draft:
            draft.write_text(json.dumps(record))

    def missing(self, names: Iterable[str]) -> list[str]:
        """Finds out which files are missing.

        Args:
            names (Iterable[str]): Files, relative to the folder.

        Returns:
            list[str]: Names.
        """
        return [name for name in names if not (self.path / name).is_file()]

    def remove(self, names: Iterable[str]) -> None:
        """Removes files and folders, and folders that this leaves empty.

        Of a link, only the link itself is removed.

        Args:
            names (Iterable[str]): What the tool wrote, relative to the folder. Names
                that do not exist are skipped.

        Raises:
            FileExistsError: If one is not inside the folder. Nothing is removed
                then.
        """
        root = self.path.resolve()
        paths = [self.path / name for name in names]
        for path in paths:
            parent = path.parent.resolve()
            if path.name in ('', '..') or root not in (parent, *parent.parents):
                raise FileExistsError(
                    f'{path} is not inside {root}: give another --out, or remove '
                    'what leads out of it'
                )
        for path in paths:
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
            parent = path.parent
            while parent != self.path and parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
                parent = parent.parent
