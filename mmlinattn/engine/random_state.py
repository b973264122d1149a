"""State of the random generators of a training's processes."""

import random
from typing import Any

import numpy as np
import torch


def get_random_state() -> dict[str, Any]:
    """Return the state of this process's generators in Python, NumPy and torch.

    It consists of plain data and tensors, which can be read without running code.
    """
    version, numbers, gauss = random.getstate()
    # mm's transforms draw from this generator
    keys: Any
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    state: dict[str, Any] = dict(
        python=[version, list(numbers), gauss],
        numpy=[name, torch.from_numpy(keys.astype(np.int64)), *rest],
        torch=torch.get_rng_state(),
    )
    if torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Set this process's generators to a state of :func:`get_random_state`."""
    version, numbers, gauss = state['python']
    random.setstate((version, tuple(numbers), gauss))
    name, keys, *rest = state['numpy']
    numbers = keys.cpu().numpy().astype(np.uint32)
    np.random.set_state((name, numbers, *rest))  # noqa: NPY002
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state['cuda'].cpu())
