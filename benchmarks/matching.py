"""Tests whether an attention can look up one token by another.

A map of random colors, whose regions are the cells of a Voronoi diagram. Two regions
share each color. One of them carries one of six values, which the tokens of the other
must give. All values are equally frequent in a map, so that a guess is right in one of
six cases, also if it knows the mean of all tokens. Colors are drawn anew for every map.

Models have two blocks of 64 channels and no positions but those of their attentions.
They are trained on maps of 14 x 14 tokens with 6 to 48 pairs of regions, and tested on
new ones with each number of pairs, on maps of 2 and 4 times the side, with as many
pairs, and on maps whose colors have noise. Rates are chosen by the loss of a training
with another seed; a grid whose best rate is at its edge is extended, to five rates at
most. Results are written after each training, and a second start adds what is missing.

    python benchmarks/matching.py --out docs/claims/matching.json

The exit code is 1 if softmax attention does not learn it (positive control), or the
mean of all values does (negative control).
"""

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from matching_models import ATTENTIONS, SIDE, Matcher
from studies import tune, write_results
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

# channels of a color, and values
NUM_COLORS, NUM_VALUES = 8, 6
# of regions with a common color; 24 are as many regions as there are landmarks
PAIRS = (6, 12, 24, 48)
RATES = (0.002, 0.004, 0.008)
MOST_RATES = 5
TUNING_SEED, TEST_SEED = 100, 200
# side of maps, noise of colors, and tokens for each number of pairs
TESTS = {
    '14': (SIDE, 0.0, 12544),
    '28': (2 * SIDE, 0.0, 12544),
    '56': (4 * SIDE, 0.0, 25088),
    '14, noise': (SIDE, 0.2, 12544),
}
# what the controls must reach, and may not exceed: a guess has 1 / 6, and four standard
# errors of 384 regions are 0.08
LEARNED, GUESSED = 0.98, 0.25


class Maps(NamedTuple):
    """Maps (B, H, W, colors + values), values (B, H, W), and which tokens show theirs,
    (B, H, W)."""

    tokens: Tensor
    values: Tensor
    shown: Tensor


def draw_maps(
    count: int, side: int, pairs: int, random: torch.Generator, noise: float = 0.0
) -> Maps:
    """Draw maps of ``side`` x ``side`` tokens, on the device of the generator.

    Args:
        noise: Standard deviation of what is added to colors, whose entries have 1.
    """
    num_tokens, options = side * side, dict(generator=random, device=random.device)
    # distinct tokens, so that every region has one at least
    centers = torch.rand(count, num_tokens, **options).topk(2 * pairs).indices
    grid = torch.arange(num_tokens, device=random.device)
    places = torch.stack((grid // side, grid % side), -1).float()
    regions = torch.cdist(places.expand(count, -1, -1), places[centers]).argmin(-1)
    color_of, shown = regions % pairs, regions < pairs
    colors = torch.randn(count, pairs, NUM_COLORS, **options)
    colors = colors.gather(1, color_of.unsqueeze(-1).expand(-1, -1, NUM_COLORS))
    # every value as often
    values = torch.rand(count, pairs, **options).argsort(-1) % NUM_VALUES
    values = values.gather(1, color_of)
    if noise:
        colors = colors + noise * torch.randn(colors.shape, **options)
    marks = one_hot(values, NUM_VALUES) * shown.unsqueeze(-1)
    tokens = torch.cat((colors, marks), -1)
    return Maps(*(x.unflatten(1, (side, side)) for x in (tokens, values, shown)))


def loss_of(model: Matcher, maps: Maps) -> Tensor:
    """Return the mean of the losses of tokens that show their value, and of those that
    do not. A model that sees no other tokens learns the first, which starts the
    training."""
    scores = model(maps.tokens)
    hidden = cross_entropy(scores[~maps.shown], maps.values[~maps.shown])
    return (hidden + cross_entropy(scores[maps.shown], maps.values[maps.shown])) / 2


def train(
    name: str, seed: int, rate: float, num_steps: int, batch: int, device: str
) -> Matcher:
    """Return a model after AdamW's steps; rates rise in the first tenth and fall to
    zero."""
    torch.manual_seed(seed)
    model = Matcher(name, NUM_COLORS + NUM_VALUES, NUM_VALUES).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), rate, weight_decay=0.01, foreach=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min(10 * (i + 1) / num_steps, (1 - i / num_steps) / 0.9, 1)
    )
    random = torch.Generator(device).manual_seed(seed)
    for step in range(num_steps):
        loss = loss_of(model, draw_maps(batch, SIDE, PAIRS[step % len(PAIRS)], random))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def test(model: Matcher, device: str) -> dict[str, dict[str, float]]:
    """Return shares of right tokens among those that do not show their value, by the
    test and by the number of pairs. The maps are the same for every model."""
    results: dict[str, dict[str, float]] = {}
    for key, (side, noise, num_tokens) in TESTS.items():
        count = max(num_tokens // side**2, 1)
        results[key] = {}
        for pairs in PAIRS:
            random = torch.Generator(device).manual_seed(TEST_SEED + pairs)
            maps = draw_maps(count, side, pairs, random, noise)
            right = model(maps.tokens).argmax(-1) == maps.values
            share = right[~maps.shown].double().mean()
            results[key][str(pairs)] = round(float(share), 4)
    return results


@torch.no_grad()
def test_loss(model: Matcher, device: str) -> float:
    """Return the loss on new maps, by which rates are chosen: accuracies of several are
    1."""
    random = torch.Generator(device).manual_seed(TUNING_SEED + 1)
    losses = [loss_of(model, draw_maps(16, SIDE, pairs, random)) for pairs in PAIRS]
    return round(float(torch.stack(losses).mean()), 5)


class Study:
    """Trainings of all attentions, and the file of their results.

    Args:
        args: Of the command line.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        keys = ('steps', 'tuning_steps', 'batch')
        settings = {key: vars(args)[key] for key in keys}
        self.results: dict[str, Any] = dict(settings=settings, attentions={})
        if args.out and args.out.exists():
            self.results = json.loads(args.out.read_text('utf-8'))
            if self.results['settings'] != settings:
                raise ValueError(
                    f'{args.out} has results of {self.results["settings"]}, not of '
                    f'{settings}: name another file'
                )
        on_gpu = args.device == 'cuda'
        device = torch.cuda.get_device_name() if on_gpu else platform.processor()
        self.results['machine'] = f'{device or platform.machine()}, {torch.__version__}'
        self.attentions = self.results['attentions']

    def row(self, name: str) -> dict[str, Any]:
        """Return what is known of an attention."""
        return self.attentions.setdefault(name, dict(rates={}, seeds={}))

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.args.out:
            write_results(self.args.out, self.results)

    def tune(self, name: str) -> float:
        """Return the rate with the least loss."""
        return tune(
            losses=self.row(name)['rates'],
            loss_at=lambda rate: self.loss_at(name, rate),
            save=self.save,
            rates=RATES,
            most_rates=MOST_RATES,
            digits=2,  # at the larger one of equals, other seeds may diverge
        )

    def loss_at(self, name: str, rate: float) -> float:
        """Return the loss after a training with the seed that rates are chosen by."""
        model = train(
            name,
            TUNING_SEED,
            rate,
            self.args.tuning_steps,
            self.args.batch,
            self.args.device,
        )
        loss = test_loss(model, self.args.device)
        print(f'{name}, rate {rate}: loss {loss:.3f}', flush=True)
        return loss if math.isfinite(loss) else 1e9

    def run(self, name: str, seed: int, rate: float) -> None:
        """Train and tests a model, unless there are its results."""
        seeds = self.row(name)['seeds']
        if str(seed) in seeds:
            return
        start = time.process_time()
        model = train(
            name, seed, rate, self.args.steps, self.args.batch, self.args.device
        )
        seconds = round(time.process_time() - start, 1)
        tests = test(model, self.args.device)
        seeds[str(seed)] = dict(rate=rate, seconds=seconds, **tests)
        self.save()
        print(f'{name}, seed {seed}, {seconds} s: {tests}', flush=True)


def failures_of(attentions: dict[str, Any]) -> list[str]:
    """Return what is wrong with the controls, if they were run."""
    failures = []
    for name, holds, text in (
        ('softmax', lambda share: share >= LEARNED, f'at least {LEARNED}'),
        ('mean of values', lambda share: share <= GUESSED, f'at most {GUESSED}'),
    ):
        for seed, tests in attentions.get(name, dict(seeds={}))['seeds'].items():
            failures += [
                f'{name}, seed {seed}, {pairs} pairs: {share}, must be {text}'
                for pairs, share in tests['14'].items()
                if not holds(share)
            ]
    return failures


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--attentions', nargs='+', choices=ATTENTIONS, metavar='NAME')
    parser.add_argument('--steps', type=int, default=500)
    parser.add_argument('--tuning-steps', type=int, default=500)
    parser.add_argument('--batch', type=int, default=4, help='maps of a step')
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--threads', type=int, default=1, help='of a CPU')
    parser.add_argument('--device', choices=('cpu', 'cuda'), default='cpu')
    parser.add_argument('--out', type=Path, help='JSON file, which is continued')
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    try:
        study = Study(args)
    except ValueError as error:
        parser.error(str(error))
    for seed in range(args.seeds):
        for name in args.attentions or ATTENTIONS:
            study.run(name, seed, study.tune(name))
    failures = failures_of(study.attentions)
    print(*failures, sep='\n')
    sys.exit(bool(failures))


if __name__ == '__main__':
    main()
