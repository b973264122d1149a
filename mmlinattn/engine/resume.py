"""Finds the checkpoint that a training continues from."""

import re
from pathlib import Path
from typing import Optional, Union


def find_checkpoint(work_dir: Union[str, Path]) -> Optional[str]:
    """Return the checkpoint of a training that ``last_checkpoint`` in its folder names,
    or, without such a file, the one with the largest number; None if there is none."""
    work_dir = Path(work_dir)
    pointer = work_dir / 'last_checkpoint'
    named = pointer.read_text().strip() if pointer.is_file() else ''
    if named:
        # a copied folder has its own, though the original may still exist
        own = work_dir / Path(named).name
        return str(own) if own.exists() else named
    checkpoints = [*work_dir.glob('epoch_*.pth'), *work_dir.glob('iter_*.pth')]
    return str(max(checkpoints, key=number_of)) if checkpoints else None


def number_of(checkpoint: Path) -> int:
    """Return the epoch or iteration in the name of a checkpoint; 0 if there is none."""
    numbers = re.findall(r'\d+', checkpoint.stem)
    return int(numbers[-1]) if numbers else 0
