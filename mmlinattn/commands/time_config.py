"""Time a config on this machine: predictions and training steps, with their memory.

A prediction is that of the first photo of the config's test data, from pixels to
results. A training step takes the first batch of its training data, backward pass and
optimizer included. Reading photos is not in the times. The same model with Swin-T in
the place of its backbone is measured beside it, in turn. With --checkpoint, so is the
trained model, which finds more or fewer objects: compare Swin-T with the untrained one.

example:
  mmlinattn time mine.py --checkpoint work_dirs/mine/best_coco_bbox_mAP_epoch_12.pth
"""

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any, Optional

from mmlinattn.cli import parser as cli
from mmlinattn.cli.figures import save
from mmlinattn.cli.run_arguments import note
from mmlinattn.runs.step_time import (  # first: it checks mmcv
    Peak,
    TimedModel,
    Variant,
    describe_machine,
    measure_peak,
    num_parameters,
)

# isort: split
import torch
from mmengine.device import get_device
from rich.console import Console
from rich.progress import track
from rich.table import Table

ROUNDS = 5
MB = 2**20
SWIN = 'with Swin-T'
COLUMNS = (
    *('model', 'params, M', 'predict, ms', 'memory, MB'),
    *('train, ms/photo', 'memory, MB'),
)


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('config', metavar='CONFIG', help='path of the config')
    add('--checkpoint', metavar='PATH', help='weights of the trained model')
    kind = cli.number(int, 1, 1000)
    text = 'times that each step is measured (default: %(default)s)'
    add('--rounds', type=kind, default=ROUNDS, help=text)
    text = "threads of a CPU (default: PyTorch's own number)"
    add('--threads', type=cli.number(int, 1, 1024), help=text)
    text = 'where models run (default: a GPU where there is one, as in training)'
    add('--device', help=text)
    add('--no-swin', action='store_true', help='measure the config alone')
    add('--out', type=cli.output_file, metavar='NAME.json', help='file of the numbers')
    cli.add_cfg_options(parser, 'train_dataloader.batch_size=4')
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def variants_of(args: argparse.Namespace) -> list[Variant]:
    """Return the models to measure."""
    options = args.cfg_options or {}
    variants = [Variant('untrained', args.config, options)]
    if not args.no_swin:
        variants.append(Variant(SWIN, args.config, options, with_swin=True))
    if args.checkpoint:
        variants.append(Variant('trained', args.config, options, args.checkpoint))
    return variants


def build_models(variants: Sequence[Variant], device: str) -> dict[Variant, TimedModel]:
    """Return the models, without Swin-T if it does not fit."""
    models = {}
    for variant in variants:
        try:
            models[variant] = TimedModel(variant, device)
        except ValueError as error:
            if not variant.with_swin:
                raise
            note(f'Swin-T is not measured: {error}')
    return models


def measure(
    models: dict[Variant, TimedModel], rounds: int
) -> dict[Variant, list[tuple[float, float]]]:
    """Return seconds of a prediction and of a training step, in rounds of all
    models."""
    times: dict[Variant, list[tuple[float, float]]] = {key: [] for key in models}
    console = Console(stderr=True)
    for _ in track(range(rounds + 1), 'rounds', console=console):
        for variant, model in models.items():
            times[variant].append((model.predict(), model.train()))
    return {variant: rows[1:] for variant, rows in times.items()}  # the first warms up


def row_of(
    variant: Variant, model: TimedModel, times: list[tuple[float, float]], peak: Peak
) -> dict[str, Any]:
    """Return the numbers of a model: seconds, and bytes or None."""
    predict, train = zip(*times)
    return dict(
        model=variant.title,
        parameters=num_parameters(model.model),
        predict=median(predict),
        predict_memory=peak.predict,
        train=median(train) / model.batch_size,
        train_memory=peak.train,
    )


def cells_of(row: dict[str, Any]) -> list[str]:
    """Return a row of the table on the screen."""
    memory = [
        '-' if row[key] is None else f'{row[key] / MB:.0f}'
        for key in ('predict_memory', 'train_memory')
    ]
    milliseconds = [f'{1000 * row[key]:.0f}' for key in ('predict', 'train')]
    return [
        row['model'],
        f'{row["parameters"] / 1e6:.1f}',
        *(milliseconds[0], memory[0]),
        *(milliseconds[1], memory[1]),
    ]


def run(args: argparse.Namespace) -> None:
    """Measure all models, and print a table."""
    device = args.device or get_device()
    threads = args.threads or torch.get_num_threads()
    torch.set_num_threads(threads)
    models = build_models(variants_of(args), device)
    peaks = {variant: measure_peak(variant, device) for variant in models}
    times = measure(models, args.rounds)
    rows = [
        row_of(variant, model, times[variant], peaks[variant])
        for variant, model in models.items()
    ]
    first = next(iter(models.values()))
    machine = describe_machine(device, threads)
    print(
        f'{args.config}: a photo of {shape_of(first.photo)}; training with '
        f'{first.batch_size} photos, the first of {shape_of(first.batch)}; medians of '
        f'{args.rounds} rounds; {machine}'
    )
    table = Table(*COLUMNS, box=None)
    for row in rows:
        table.add_row(*cells_of(row))
    Console(highlight=False, markup=False, emoji=False).print(table)
    if args.out:
        content = dict(machine=machine, rounds=args.rounds, models=rows)
        save(content, args.out)


def shape_of(batch: Any) -> str:
    """Return width and height of a batch's first photo, as a model gets it."""
    height, width = batch['inputs'][0].shape[-2:]
    return f'{width} x {height}'


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    if args.out:
        cli.protect(args, args.out)
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        run(args)


if __name__ == '__main__':
    main()
