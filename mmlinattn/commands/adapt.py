"""Replace the attentions of a trained backbone, and align the new ones with it.

    mmlinattn adapt --teacher mine.py --weights best.pth --attention ELFATT \\
        --data my/photos --out student.pth

The student is the teacher's backbone with another attention, and starts with all other
weights of the teacher. First, its attentions learn the outputs of the teacher's, block
by block; then all of the student learns the teacher's maps. Both read photos without
labels. What is written can be fine-tuned, as any weights: the student with the other
parts of the teacher's model (NAME.pth), a config (NAME.py), and a plot of the errors
(NAME.png). An error of 0 is the teacher's output, and 1 is no better than zeros.
"""

import argparse
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

from mmlinattn.cli import parser as cli
from mmlinattn.cli import program
from mmlinattn.cli.run_arguments import note
from mmlinattn.runs import alignment as runs  # first: it checks mmcv

# isort: split
from mmengine.device import get_device
from rich.console import Console
from rich.table import Table

from mmlinattn.adaptation import aligned_pairs, carry_weights, student_config
from mmlinattn.parts import build_model
from mmlinattn.runs.backbone_time import Cost, measure_costs
from mmlinattn.runs.training import ERRORS
from mmlinattn.utils import load_config
from mmlinattn.utils.files import whole_file
from mmlinattn.utils.names import shortlist
from mmlinattn.weights import read_checkpoint

from .photo_files import headers_of, list_photos, without_damaged
from .students import (
    STAGES,
    Photos,
    Plan,
    next_command,
    split_photos,
    write_stages,
    write_student,
    write_teacher,
)
from .teachers import Loaded, find_teacher, load_teacher

MB = 2**20
CHECKED = 20_000  # photos that are read beforehand
RECORD = 'adapt.json'
# options that a resumed run must have in common with its beginning
FIXED = [
    *('teacher', 'weights', 'attention', 'attention_options', 'data', 'size'),
    *('batch_size', 'lr', 'seed', 'epochs', 'features_epochs'),
]


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    text = "a config, or a name: in 'mmlinattn weights', in timm, or of our configs"
    add('--teacher', required=True, metavar='CONFIG_OR_NAME', help=text)
    text = 'its weights: a path, an address or timm://MODEL (default: those it names)'
    add('--weights', metavar='PATH', help=text)
    text = (
        'class of the new attention, or one for each stage of a pyramid; or a name of '
        "the backbone's option attention; or LinearSOFTPlusPlus, of SOFT++"
    )
    add('--attention', required=True, nargs='+', metavar='NAME', help=text)
    text = 'options of the attention, such as block_size=49'
    add(
        '--attention-options',
        nargs='+',
        type=cli.key_value,
        action=cli.KeepBlanks,
        metavar='KEY=VALUE',
        help=text,
    )
    text = 'folder of photos, also in folders below it; no labels'
    add('--data', type=Path, required=True, metavar='FOLDER', help=text)
    text = 'file to write, NAME.pth'
    add('--out', type=cli.output_file, required=True, metavar='NAME.pth', help=text)
    count = cli.number(int, 1, 10**6)
    text = 'passes over the photos for the attentions (default: %(default)s)'
    add('--epochs', type=count, default=10, help=text)
    text = 'and for the maps; 0 leaves them out (default: that of --epochs)'
    add('--features-epochs', type=cli.number(int, 0, 10**6), help=text)
    text = 'side of the crops in pixels (default: that of the teacher)'
    add('--size', type=cli.number(int, 32, 4096), help=text)
    text = 'photos of a step (default: %(default)s)'
    add('--batch-size', type=count, default=32, help=text)
    text = 'rate of the attentions; that of the maps changes alike (default: those of '
    text += "our configs, which the stages' configs show)"
    add('--lr', type=cli.number(float, 1e-9, 10), help=text)
    add('--seed', type=cli.number(int, 0, 2**31), default=0, help='(default: 0)')
    text = 'size at which time and memory are measured (default: the median photo, '
    text += 'within 800 x 1333)'
    side = cli.number(int, 32, 10**5)
    add('--shape', nargs=2, type=side, metavar=('HEIGHT', 'WIDTH'), help=text)
    text = 'go on after the run was ended, with the same options'
    add('--resume', action='store_true', help=text)
    text = 'where it runs (default: a GPU where there is one)'
    add('--device', choices=('cpu', 'cuda'), help=text)
    text = 'processes that read photos (default: by the cores; 0: none, and a resumed '
    text += 'run ends with the same bits)'
    add('--workers', type=cli.number(int, 0, 256), help=text)
    text = 'automatic mixed precision, on a GPU'
    add('--amp', action='store_true', help=text)
    text = 'folder of checkpoints and logs (default: work_dirs/adapt_NAME)'
    add('--work-dir', type=cli.output_folder, help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def complete(args: argparse.Namespace) -> Path:
    """Fill options that depend on others, check the files to write, and return the
    folder of the run.

    Raises:
        FileExistsError: If files or the folder are those of an earlier run.
        ValueError: If the name of the file can't be one.
    """
    out: Path = args.out
    if out.suffix != '.pth':
        raise ValueError(f'--out {out}: the name must end in .pth')
    if args.device == 'cuda' and get_device() != 'cuda':
        raise ValueError('--device cuda: PyTorch finds no GPU here; --device cpu runs')
    if args.features_epochs is None:
        args.features_epochs = args.epochs
    if args.workers is None:
        args.workers = max(1, min(4, (os.cpu_count() or 1) // 2))
    cli.check_free(args, *(out.with_suffix(x) for x in ('.pth', '.py', '.png')))
    work_dir = args.work_dir or Path('work_dirs', f'adapt_{out.stem}')
    if args.resume:
        return work_dir
    if work_dir.is_dir() and any(work_dir.iterdir()):
        if not args.overwrite:
            raise FileExistsError(
                f'{work_dir} is the folder of an earlier run: --resume goes on with '
                'it, and --overwrite begins anew'
            )
        cli.check_claim(work_dir, RECORD)
        for name in STAGES:
            shutil.rmtree(work_dir / name, ignore_errors=True)
    return work_dir


def check_record(args: argparse.Namespace, work_dir: Path, photos: Photos) -> None:
    """Compare options and photos of a resumed run with those of its beginning, or note
    them.

    Raises:
        FileExistsError: If the folder has other files.
        ValueError: If they differ.
    """
    path = work_dir / RECORD
    options = {key: getattr(args, key) for key in FIXED}
    options = json.loads(json.dumps(options, default=str))
    names = repr((photos.training, photos.held_back)).encode()
    digest = hashlib.md5(names).hexdigest()
    cli.check_claim(work_dir, RECORD)
    if args.resume and path.is_file():
        record = json.loads(path.read_text('utf-8'))
        earlier = record.get('options', {})
        for key, value in options.items():
            if earlier.get(key) != value:
                raise ValueError(
                    explain_difference(key, value, earlier.get(key), work_dir)
                )
        if record.get('photos') != digest:
            raise ValueError(
                f'--data {args.data}: the run in {work_dir} began with other photos: '
                'begin anew, with --overwrite and without --resume'
            )
        return
    if args.resume:
        note(f'--resume finds no run in {work_dir}: it begins')
    cli.claim_folder(work_dir, RECORD)
    write_record(work_dir, dict(options=options, photos=digest))


def explain_difference(key: str, value: Any, earlier: Any, work_dir: Path) -> str:
    """Return what to do about an option whose value differs from the earlier one, that
    the resumed run began with; None stands for the option's absence."""
    option = f'--{key.replace("_", "-")}'
    current = f'no {option}' if value is None else f'{option} {as_typed(value)}'
    remedy = f'without {option}: leave it out'
    if earlier is not None:
        remedy = f'with {as_typed(earlier)}: give that'
    return (
        f'{current}: the run in {work_dir} began {remedy}, or --overwrite without '
        '--resume'
    )


def as_typed(value: Any) -> str:
    """Return an option's value as it is typed."""
    values = value if isinstance(value, list) else [value]
    return ' '.join(
        '='.join(map(str, one)) if isinstance(one, list) else str(one) for one in values
    )


def write_record(work_dir: Path, record: dict[str, Any]) -> None:
    """Note what a resumed run needs to know, whole or not at all."""
    with whole_file(work_dir / RECORD) as draft:
        draft.write_text(json.dumps(record), 'utf-8')


def list_data(folder: Path) -> list[Path]:
    """Return the photos of the folder by their names.

    Raises:
        FileNotFoundError: If there is no such folder, or no photo in it.
    """
    if not folder.expanduser().is_dir():
        raise FileNotFoundError(f'--data {folder}: there is no such folder')
    paths = list_photos(folder.expanduser(), below=True)
    if not paths:
        raise FileNotFoundError(f'--data {folder}: there is no photo in it')
    return [path.resolve() for path in paths]


def read_photos(folder: Path, paths: Sequence[Path]) -> Photos:
    """Return photos without damaged ones; of very many, only some are read.

    Raises:
        FileNotFoundError: If all are damaged.
    """
    option = f'--data {folder}'
    step = -(-len(paths) // CHECKED)
    headers = headers_of(paths[::step], option)
    whole = without_damaged(headers, option)
    if step > 1:
        note(
            f'{option}: {len(headers)} of {len(paths)} photos were read; another one '
            'that is damaged ends the run'
        )
    not_damaged = [path for path in paths if path in whole or path not in headers]
    if not whole:
        raise FileNotFoundError(f'{option}: all photos in it are damaged')
    return split_photos(not_damaged, [header.size for header in whole.values()])


def check_pairs(loaded: Loaded, student: dict[str, Any]) -> None:
    """Say which attentions of a teacher become others, and what of the student is
    new; a ValueError for a student that is no other one's."""
    model = build_model(student)
    pairs = aligned_pairs(loaded.backbone, model)
    new = carry_weights(loaded.backbone, model)
    kinds = sorted({type(pair.student).__name__ for pair in pairs})
    print(
        f'{program.name()}: {len(pairs)} attentions become {" and ".join(kinds)}; new '
        f'weights: {shortlist(new)} of {len(model.state_dict())} entries'
    )


def shape_of(args: argparse.Namespace, photos: Photos) -> tuple[int, int]:
    """Return the size at which time and memory are measured, (H, W)."""
    if args.shape:
        return tuple(args.shape)
    width, height = photos.median
    zoom = min(1333 / max(width, height), 800 / min(width, height), 1)
    return max(round(height * zoom), 32), max(round(width * zoom), 32)


def print_errors(before: Any, after: Any, title: str) -> None:
    """Print a table of errors before and after."""
    table = Table(title, 'before', 'after', box=None)
    for key in before:
        table.add_row(key, *(f'{x[key]:.4f}' for x in (before, after)))
    Console(highlight=False, markup=False, emoji=False).print(table)


def print_costs(costs: dict[str, Cost], shape: tuple[int, int], device: str) -> None:
    """Print a table of time and memory."""
    size = f'{shape[1]} x {shape[0]}'
    table = Table(f'{size}, {device}', 'parameters, M', 'ms', 'MB', box=None)
    for name, cost in costs.items():
        memory = '-' if cost.memory is None else f'{cost.memory / MB:.0f}'
        cells = f'{cost.parameters / 1e6:.1f}', f'{1000 * cost.seconds:.0f}', memory
        table.add_row(name, *cells)
    Console(highlight=False, markup=False, emoji=False).print(table)


def align(plan: Plan, stages: Sequence[runs.Stage], device: str) -> dict[str, Any]:
    """Run the stages, and return the errors of photos that are held back, before and
    after, and those of each epoch."""
    record = json.loads((plan.work_dir / RECORD).read_text('utf-8'))
    held_back = str(plan.photos.lists(plan.work_dir)[1])
    models = {}
    for stage in stages:
        cfg = load_config(str(stage.config))
        loader = runs.photos_in_order(cfg, held_back, plan.args.size)
        models[stage.name] = runs.alignment_of(cfg, device), loader
        errors = record.setdefault(stage.name, {})
        if 'before' not in errors:
            errors['before'] = runs.measure(*models[stage.name])
    write_record(plan.work_dir, record)
    for stage in stages:
        if not (plan.args.resume and stage.is_done()):
            record[stage.name]['epochs'] = runs.run_stage(
                stage, plan.args.resume, plan.args.amp
            )
            write_record(plan.work_dir, record)
    last = read_checkpoint(str(stages[-1].last()), '--work-dir')['state_dict']
    aligned: dict[str, Any] = dict(weights=last)
    for name, (model, loader) in models.items():
        model.load_state_dict(last)
        aligned[name] = dict(record[name], after=runs.measure(model, loader))
    return aligned


def adapt(plan: Plan, loaded: Loaded) -> None:
    """Align the student, and write and say what came of it."""
    args, out = plan.args, plan.args.out
    device = args.device or get_device()
    write_teacher(loaded, plan.work_dir)
    stages = write_stages(plan)
    aligned = align(plan, stages, device)
    names = [stage.name for stage in stages]
    epochs = {name: aligned[name].get('epochs', []) for name in names}
    runs.draw(epochs, out.with_suffix('.png'))
    shape = shape_of(args, plan.photos)
    backbones = dict(teacher=plan.teacher.backbone, student=plan.student)
    costs = measure_costs(backbones, shape, device)
    write_student(plan, loaded, aligned['weights'], out)
    print(f'\nerrors of {len(plan.photos.held_back)} photos that were held back:')
    for name in names:
        title = 'block' if name == 'attention' else 'map'
        print_errors(aligned[name]['before'], aligned[name]['after'], title)
    print_costs(costs, shape, device)
    rest = ' with the other parts of the teacher' if loaded.is_whole else ''
    print(f'student:  {out}{rest}, made from {plan.teacher.describe()}')
    print(f'config:   {out.with_suffix(".py")}')
    print(f'plot:     {out.with_suffix(".png")}')
    print(next_command(plan, out))


def begin(args: argparse.Namespace) -> tuple[Plan, Loaded]:
    """Check all inputs, and return what the run is made of."""
    work_dir = complete(args)
    teacher = find_teacher(args.teacher, args.weights)
    args.size = args.size or teacher.size
    with cli.error_of('--attention: '):
        student = student_config(
            teacher.backbone, args.attention, args.attention_options
        )
    paths = list_data(args.data)
    loaded = load_teacher(teacher)
    with cli.error_of(f'--attention {" ".join(args.attention)}: '):
        check_pairs(loaded, student)
    photos = read_photos(args.data, paths)
    check_record(args, work_dir, photos)
    return Plan(teacher, student, photos, work_dir, args), loaded


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    if args.device == 'cpu':
        os.environ['CUDA_VISIBLE_DEVICES'] = ''
    with cli.errors_in_one_line(*cli.INPUT_ERRORS, *ERRORS):
        adapt(*begin(args))


if __name__ == '__main__':
    main()
