"""The papers' claims in miniature: small, seeded experiments on one machine.

Each claim is measured for some seeds, and its verdict follows from the numbers by the
rule of benchmarks/claims/claim.py. A run that was stopped goes on where it was: what is
finished of a seed is kept in the claim's JSON file, as long as settings, data and
machine are the same. Weights and shapes are kept in --work-dir.

Written to --out: claims.md, all claims on one page, and of each claim NAME that has a
finished seed claims/NAME.json, claims/NAME.md and claims/NAME.png. Notes of yours in
claims/NAME.txt, beside the results, become a part of the pages; --overwrite keeps them.

claims (minutes are estimates for three seeds on two cores):
{claims}

examples:
  python benchmarks/claims/run.py --claim inverse cost
  python benchmarks/claims/run.py --out docs                # the project's own page
  python benchmarks/claims/run.py --claim backbones --data data/coco --device cuda
  python benchmarks/claims/run.py --out docs --report       # only writes the pages
"""

import json
import os
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from side_by_side.command import device
from side_by_side.rates import machine
from side_by_side.report import write_json

from mmlinattn_tools.cli import Parser, errors_in_one_line, output_folder, threads

from .claim import MAX_SEEDS, Context, finished
from .data import ROOT, Data
from .registry import CLAIMS
from .report import page, section


def describe():
    """The help text."""
    lines = [
        f'  {claim.name:14}{claim.minutes:4.0f} min  {claim.title}'
        for claim in CLAIMS.values()
    ]
    return __doc__.format(claims='\n'.join(lines))


def parse_args(argv=None):
    parser = Parser(description=describe())
    parser.add_argument(
        '--claim',
        nargs='+',
        choices=CLAIMS,
        default=list(CLAIMS),
        metavar='NAME',
        help='which ones (default: all)',
    )
    parser.add_argument('--seeds', type=int, default=3, help='default: 3')
    parser.add_argument(
        '--device',
        type=device,
        default='cpu',
        metavar='DEVICE',
        help='cpu or cuda (default: cpu)',
    )
    parser.add_argument(
        '--threads', type=threads, default=2, help="the CPU's threads (default: 2)"
    )
    parser.add_argument(
        '--data',
        type=Path,
        metavar='DIR',
        help='folder in the layout of COCO 2017, in place of shapes',
    )
    parser.add_argument(
        '--work-dir',
        type=output_folder,
        default=ROOT / 'work_dirs' / 'claims',
        metavar='DIR',
        help='folder for shapes and weights (default: work_dirs/claims)',
    )
    parser.add_argument(
        '--out',
        type=output_folder,
        metavar='DIR',
        help='folder for results (default: results, in --work-dir)',
    )
    parser.add_argument(
        '--overwrite',
        action='store_true',
        help='replace results of other settings, data, or another machine',
    )
    parser.add_argument(
        '--report', action='store_true', help='measure nothing, only write the pages'
    )
    parser.add_argument(
        '--smoke',
        action='store_true',
        help='a few steps of tiny models, to see that everything works; the figures '
        'mean nothing',
    )
    args = parser.parse_args(argv)
    if not 1 <= args.seeds <= MAX_SEEDS:
        parser.error(f'--seeds must be 1 to {MAX_SEEDS}, got {args.seeds}')
    if args.out is None:
        args.out = args.work_dir / 'results'
    return args


class Record:
    """The JSON file of a claim: what was measured, on what, with what settings.

    Args:
        claim (Claim): The claim.
        folder (Path): Of the file.
    """

    def __init__(self, claim, folder):
        self.claim = claim
        self.file = folder / 'claims' / f'{claim.name}.json'
        self.content = None
        if self.file.is_file():
            try:
                self.content = json.loads(self.file.read_text('utf-8'))
                self.content['runs'], self.content['settings']
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f'{self.file} is not a record of this command: remove it, or give '
                    'another --out'
                ) from error

    def begin(self, stands, overwrite):
        """Goes on with what is there, or starts anew.

        Args:
            stands (dict): Settings, data and machine.
            overwrite (bool): Whether those of another run may be replaced.

        Raises:
            FileExistsError: If they differ and may not be replaced.
        """
        stands = json.loads(json.dumps(stands))
        if self.content is not None:
            differs = [key for key, x in stands.items() if self.content.get(key) != x]
            if not differs:
                return
            if not overwrite:
                raise FileExistsError(
                    f'{self.file} has results of other {" and ".join(differs)}: give '
                    '--overwrite to replace them, or another --out'
                )
        self.content = dict(stands, runs={}, seconds={})

    def add(self, seed, unit, numbers, seconds):
        """Keeps a finished piece of work, on the disk too."""
        # as they will be read again, with text for keys
        numbers = json.loads(json.dumps(numbers))
        self.content['runs'].setdefault(str(seed), {})[unit] = numbers
        self.content['seconds'].setdefault(str(seed), {})[unit] = round(seconds, 1)
        self.write()

    def notes(self):
        """What a person wrote of these results, '' if nothing."""
        file = self.file.with_suffix('.txt')
        return file.read_text('utf-8').strip() if file.is_file() else ''

    def write(self):
        write_json(self.file, self.content, depth=3)

    def has(self, seed, unit):
        return unit in self.content['runs'].get(str(seed), {})

    def complete(self):
        """Numbers of the seeds that are finished."""
        if self.content is None:
            return {}
        return finished(
            self.content['runs'], self.claim.units(self.content['settings'])
        )


def settings_of(claim, smoke):
    """Settings of a claim, with those that differ in a smoke test."""
    return {**claim.settings, **(claim.smoke if smoke else {})}


def make_data(claim, args, settings):
    """The images of a claim.

    Raises:
        FileNotFoundError: If ``--data`` is no such folder.
    """
    return Data(
        args.work_dir,
        args.data,
        {kind: settings['images'][kind][0] for kind in claim.data},
        {kind: settings['images'][kind][1] for kind in claim.data},
        settings.get('shapes'),
    )


def progress_bars(console):
    return Progress(
        TextColumn('{task.description}'),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def work_of(args, records):
    """Every piece of work that is not done: claim, seed and unit."""
    return [
        (CLAIMS[name], seed, unit)
        for name in args.claim
        for seed in range(args.seeds)
        for unit in CLAIMS[name].units(records[name].content['settings'])
        if not records[name].has(seed, unit)
    ]


def measure(args, records):
    """Does what is not done, and writes after every piece."""
    console = Console(stderr=True)
    todo = work_of(args, records)
    minutes = sum(share_of(claim, records) for claim, _, _ in todo)
    console.print(
        f'{len(todo)} pieces of work to do, estimated '
        f'{0.0 if args.smoke else minutes:.0f} minutes on two cores'
    )
    data = {}
    for claim, _, _ in todo:
        if claim.name in data:
            continue
        data[claim.name] = make_data(
            claim, args, records[claim.name].content['settings']
        )
        for kind in claim.data:
            data[claim.name].prepare(kind)
    start = time.time()
    with progress_bars(console) as bars:
        whole = bars.add_task('all', total=len(todo))
        for claim, seed, unit in todo:
            context = Context(
                records[claim.name].content['settings'],
                seed,
                args.device,
                args.work_dir,
                data[claim.name],
                tracker(bars),
            )
            torch.manual_seed(seed)
            began = time.time()
            numbers = claim.measure(unit, context)
            seconds = time.time() - began
            records[claim.name].add(seed, unit, numbers, seconds)
            bars.advance(whole)
            console.print(
                f'{claim.name}, seed {seed}, {unit}: {seconds:.0f} s (estimate '
                f'{60 * share_of(claim, records):.0f} s on two cores), '
                f'{(time.time() - start) / 60:.1f} min so far',
                highlight=False,
            )


def share_of(claim, records):
    """Minutes that a piece of work of a claim takes on the average."""
    return claim.minutes / 3 / len(claim.units(records[claim.name].content['settings']))


def tracker(bars):
    """A function that wraps an iterable with a bar below the one of the whole."""

    def track(sequence, description=''):
        task = bars.add_task(description, total=len(sequence))
        try:
            for item in sequence:
                yield item
                bars.advance(task)
        finally:
            bars.remove_task(task)

    return track


def write_pages(out, records):
    """Writes Markdown and plot of every claim with a finished seed, and the page."""
    for record in records.values():
        runs = record.complete()
        if not runs:
            continue
        record.claim.plot(runs, record.file.with_suffix('.png'))
        text = section(record.claim, record.content, runs, record.notes(), level=1)
        record.file.with_suffix('.md').write_text(text, 'utf-8')
    out.mkdir(parents=True, exist_ok=True)
    (out / 'claims.md').write_text(
        page(
            [
                (record.claim, record.content, record.complete(), record.notes())
                for record in records.values()
            ]
        ),
        'utf-8',
    )


def main(argv=None):
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    if args.device.type == 'cpu':
        # mm's runner would take a GPU where it finds one
        os.environ['CUDA_VISIBLE_DEVICES'] = ''
    with errors_in_one_line(OSError, ValueError):
        records = {name: Record(claim, args.out) for name, claim in CLAIMS.items()}
        if not args.report:
            begin(args, records)
            measure(args, records)
        write_pages(args.out, records)
    print(f'written: {args.out / "claims.md"}')


def begin(args, records):
    """Compares what is there with what is asked for, before anything is measured."""
    for name in args.claim:
        claim = CLAIMS[name]
        settings = settings_of(claim, args.smoke)
        data = make_data(claim, args, settings)
        records[name].begin(
            dict(
                smoke=args.smoke,
                settings=settings,
                data={kind: data.describe(kind) for kind in claim.data},
                machine=machine(args.device),
            ),
            args.overwrite,
        )


if __name__ == '__main__':
    main()
