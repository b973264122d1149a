"""What studies of several trainings share: options, files that are whole, and tuned
rates."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Optional


def study_parser(description: Optional[str]) -> argparse.ArgumentParser:
    """Return a parser with the options of all studies."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--out', type=Path, required=True)
    return parser


class Study:
    """Trainings, and the file of their results.

    Args:
        out: The file; what it has is not measured again.
        empty: The results at first.
    """

    def __init__(self, out: Path, empty: dict[str, Any]) -> None:
        import torch  # other users of this module start without it

        self.out, self.results = out, empty
        if out.exists():
            self.results = json.loads(out.read_text('utf-8'))
        self.results['torch'] = torch.__version__

    @property
    def weights_folder(self) -> Path:
        """The folder of weights."""
        return self.out.with_suffix('.weights')

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_results(self.out, self.results)

    def complete(
        self,
        title: str,
        rows: dict[str, dict[str, Any]],
        arms: Mapping[str, Callable[[int], Any]],
        num_seeds: int,
    ) -> None:
        """Add the results by arm and seed that rows lack."""
        for seed in range(num_seeds):
            for arm, result_of in arms.items():
                row = rows.setdefault(arm, {})
                if str(seed) not in row:
                    row[str(seed)] = result_of(seed)
                    self.save()
                    print(title, arm, seed, row[str(seed)], flush=True)


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
