"""The papers' claims in miniature: small, seeded experiments on one machine.

Each claim is measured for some seeds, and its parts are judged from the numbers by the
rule of benchmarks/claims/claim.py. A run that was stopped goes on where it was: what is
finished of a seed is kept in the claim's JSON file, as long as settings, data and
machine are the same. Weights and shapes are kept in --work-dir.

Written to --out: claims.md, and claims/NAME.json and claims/NAME.png, or other formats,
of each claim that has a finished seed. Notes of yours in claims/NAME.txt become a part
of the page.

claims (minutes are estimates for three seeds on two cores):
{claims}

examples:
  python benchmarks/claims/run.py --claim inverse cost
  python benchmarks/claims/run.py --claim sizes --data data/imagenette --device cuda
  python benchmarks/claims/run.py --out docs --report       # only writes the page
"""

import json
import time
from pathlib import Path

import torch
from common import ROOT
from side_by_side.command import device
from side_by_side.plot import plot_lines
from side_by_side.rates import machine
from side_by_side.report import add_format, write_json

from mmlinattn_tools.cli import Parser, errors_in_one_line, output_folder, threads

from .claim import MAX_SEEDS, Context
from .data import Data
from .experiments import cost, inverse, oversmoothing, sizes
from .report import page

CLAIMS = {
    module.CLAIM.name: module.CLAIM for module in (cost, inverse, oversmoothing, sizes)
}


def parse_args(argv=None):
    lines = [f'  {x.name:14}{x.minutes:4.0f} min  {x.title}' for x in CLAIMS.values()]
    parser = Parser(description=__doc__.format(claims='\n'.join(lines)))
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
        help='folder with images in train/CLASS/ and val/CLASS/, in place of shapes',
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
    add_format(parser)
    parser.add_argument(
        '--report', action='store_true', help='measure nothing, only write the page'
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
    args.out = args.out or args.work_dir / 'results'
    return args


class Record:
    """The JSON file of a claim: what was measured, on what, with what settings.

    Args:
        claim (Claim): The claim.
        folder (Path): Of the page.

    Attributes:
        content (dict | None): Of the file.

    Raises:
        ValueError: If the file is none of this command.
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

    def begin(self, overwrite, **stands):
        """Goes on with what is there, or starts anew.

        Args:
            overwrite (bool): Whether results of others may be replaced.
            **stands (dict): Settings, data and machine.

        Raises:
            FileExistsError: If there are results of others that may not be replaced.
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
        write_json(self.file, self.content, depth=3)

    def left(self, seed):
        """What is to do of a seed."""
        done = self.content['runs'].get(str(seed), {})
        units = self.claim.units(self.content['settings'])
        return [unit for unit in units if unit not in done]

    def complete(self):
        """Numbers of the seeds that are finished."""
        runs = self.content['runs'] if self.content else {}
        return {seed: runs[seed] for seed in runs if not self.left(seed)}

    def notes(self):
        """What a person wrote of these results, '' if nothing."""
        file = self.file.with_suffix('.txt')
        return file.read_text('utf-8').strip() if file.is_file() else ''


def measure(args, records):
    """Does what is not done, and writes after every piece."""
    data = {}
    for record in records:
        settings = dict(record.claim.settings)
        if args.smoke:
            settings.update(record.claim.smoke)
        if 'images' in settings:
            data[record.claim.name] = Data(
                args.work_dir, args.data, settings['images'], settings.get('shapes')
            )
        found = data.get(record.claim.name)
        record.begin(
            args.overwrite,
            smoke=args.smoke,
            settings=settings,
            data=found.describe() if found else {},
            machine=machine(args.device),
        )
    for record in records:
        name, settings = record.claim.name, record.content['settings']
        for seed in range(args.seeds):
            where = seed, args.device, args.work_dir, data.get(name)
            for unit in record.left(seed):
                torch.manual_seed(seed)
                start = time.time()
                numbers = record.claim.measure(unit, Context(settings, *where))
                record.add(seed, unit, numbers, time.time() - start)
                seconds = f'{time.time() - start:.0f} s'
                print(f'{name}, seed {seed}, {unit}: {seconds}', flush=True)


def main(argv=None):
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    with errors_in_one_line(OSError, ValueError):
        records = {name: Record(claim, args.out) for name, claim in CLAIMS.items()}
        if not args.report:
            measure(args, [records[name] for name in args.claim])
        for record in records.values():
            if record.complete():
                panels = record.claim.panels(record.complete())
                for ending in args.format:
                    plot_lines(panels, record.file.with_suffix(f'.{ending}'))
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / 'claims.md').write_text(page(records.values()), 'utf-8')
    print(f'written: {args.out / "claims.md"}')


if __name__ == '__main__':
    main()
