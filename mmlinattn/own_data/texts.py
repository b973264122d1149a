"""Texts of any system, and the numbers in them."""

import codecs
import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8 or UTF-16, or what Latin-1 makes of it."""
    content = path.read_bytes()
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode('utf-16' if wide else 'utf-8-sig')
    except UnicodeDecodeError:
        return content.decode('latin-1')


def as_numbers(values: Iterable[Any]) -> Optional[list[float]]:
    """Return finite numbers, which may be written as text; None for anything else."""
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def read_rows(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Return the cells of a table's lines, without blanks around them.

    Raises:
        ValueError: If a cell is too long to be one.
    """
    try:
        rows = list(csv.reader(lines, delimiter=separator))
    except csv.Error as error:
        raise ValueError(f'it is no table: {error}') from error
    return [[cell.strip() for cell in row] for row in rows]
