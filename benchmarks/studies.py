"""What studies of several trainings share: files that are whole, and tuned rates."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix('.part')
    part.write_text(json.dumps(results, indent=1) + '\n', 'utf-8')
    part.replace(path)


def tune(
    losses: dict[str, float],
    loss_at: Callable[[float], float],
    save: Callable[[], object],
    rates: Iterable[float],
    most_rates: int,
    digits: int,
) -> float:
    """Return the rate with the least loss, on a grid at whose edges it is not, unless
    the grid has as many rates as it may. The smaller one of equals is the best.

    Args:
        losses: By rate, those that are known; others are added.
        loss_at: The loss of a training at a rate.
        save: Called after each training.
        rates: The first grid.
        most_rates: How many rates it may have.
        digits: Losses that differ in further ones are equal.
    """
    grid = sorted({*rates, *map(float, losses)})
    while True:
        for rate in grid:
            if str(rate) not in losses:
                losses[str(rate)] = loss_at(rate)
                save()
        best = min(grid, key=lambda rate: round(losses[str(rate)], digits))
        if best not in (grid[0], grid[-1]) or len(grid) >= most_rates:
            return best
        grid.append(best / 2 if best == grid[0] else best * 2)
        grid.sort()
