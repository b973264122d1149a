"""Types of signatures."""

from collections.abc import Sequence
from typing import Union

HW = tuple[int, int]  # height and width of a map
Indices = Union[int, Sequence[int]]
