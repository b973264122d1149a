"""What a plan is made of."""

from typing import Any, Callable, NamedTuple

import torch

# Sizes of images, the most important first, and batches.
IMAGES = ((800, 1344), (512, 512), (224, 224))
BATCHES = (2, 1, 16)
DTYPES = ('bfloat16', 'float32')


class LeftOut(Exception):
    """What can't be measured here, and why; no fault of what is measured."""


class Settings(NamedTuple):
    """How all parts are measured.

    Attributes:
        device (torch.device): Where.
        small (bool): Small inputs and few repetitions, to see that it works.
    """

    device: torch.device
    small: bool

    def pick(self, full: Any, small: Any) -> Any:
        """The value for this size of run."""
        return small if self.small else full


class Unit(NamedTuple):
    """What is measured at once and never twice.

    Attributes:
        key (str): Its name in its part.
        run (Callable): Measures it; returns its rows, dicts of plain values. A row
            with 'problem' says that what was measured is wrong.
    """

    key: str
    run: Callable[[], list]


class Part(NamedTuple):
    """Units that belong together.

    Attributes:
        name (str): As in '--parts'.
        about (str): What it measures, in a line.
        units (Callable): Takes :class:`Settings` to units, the most important
            first.
        headline (Callable): Takes the rows of all units to a few words.
    """

    name: str
    about: str
    units: Callable[[Settings], list]
    headline: Callable[[list], str]
