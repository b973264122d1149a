"""State of the random generators of a training's processes."""

import random
from typing import Any

import numpy as np
import torch
from mmengine.dist import all_gather_object

State = dict[str, Any]


def get_random_state() -> State:
    """The state of this process's generators: of Python, NumPy and torch.

    It consists of plain data and tensors, which can be read without running code.

    Returns:
        dict: The state, for :func:`set_random_state`.
    """
    version, numbers, gauss = random.getstate()
    # mm's transforms draw from it
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    state: State = dict(
        python=[version, list(numbers), gauss],
        numpy=[name, torch.from_numpy(keys.astype(np.int64)), *rest],
        torch=torch.get_rng_state(),
    )
    if torch.cuda.is_available():
        state['cuda'] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: State) -> None:
    """Sets this process's generators.

    Args:
        state (dict): What :func:`get_random_state` returned. Without a GPU, the state
            of a GPU's generator has no effect.
    """
    version, numbers, gauss = state['python']
    random.setstate((version, tuple(numbers), gauss))
    name, keys, *rest = state['numpy']
    numbers = keys.cpu().numpy().astype(np.uint32)
    np.random.set_state((name, numbers, *rest))  # noqa: NPY002
    torch.set_rng_state(state['torch'].cpu())
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state['cuda'].cpu())


def gather_random_states() -> list[State]:
    """The states of all processes of a training, by rank.

    All processes must call it.
    """
    return all_gather_object(get_random_state())
