"""Write a config that trains one of our models on your photos.

    new_config.py --data my/coco --task det --backbone softpp-t --out mine.py

--task  content of the folder --data
det     COCO or labelme files (*.json), VOC or CVAT files (*.xml), the VGG Image
        Annotator's (*.json, *.csv), or YOLO files (*.txt, with names in a *.yaml or
        classes.txt), or a table of boxes (*.csv); with outlines, masks are learned, too
seg     photos, and label maps of the same names, but for endings such as _image and
        _mask, in folders with a word such as labels, masks, annotations, segmentation,
        gt or truth: an id in each pixel, 255 where there is none, or colors; or
        outlines, in a form of det
cls     photos in one folder for each class, or a table (*.csv) of photos and classes

Folders or files that are called train, val or test make the splits, or the lists
train.txt, val.txt and test.txt; without any, every fifth photo is held back. The config
inherits one of ours; its data lists are written to a folder beside it, with its name
and _data. Your own files do not change.
"""

import os
import shlex
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import median
from string import Template

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools import cli  # first: a line tells that libraries are missing

# isort: split
from rich.console import Console
from rich.table import Table

from mmlinattn.utils import load_config
from mmlinattn_tools.own_data import Note, Options, OwnData, write

SMALLEST = 128  # pixels to which the short side of small photos is enlarged
ITERATIONS, EPOCHS = 4000, (12, 100)
# without a GPU: channels of pyramid and heads, and where the base configs have others
NARROW = 128
CHANNELS = ('out_channels', 'in_channels', 'feat_channels', 'conv_out_channels')
DETECTOR = dict.fromkeys(CHANNELS, 256)
WIDE = {'retinanet': DETECTOR, 'mask-rcnn': DETECTOR, 'upernet': dict(channels=512)}


@dataclass(frozen=True)
class Task:
    """What all configs of a task have in common."""

    ending: str  # of the names of ours
    num_classes: int  # in them
    method: str  # the default one
    longest: int  # side of a photo in pixels
    shortest: int
    square: bool  # photos are cut to squares
    on_cpu: float  # megapixels in a batch, and for each GB of a GPU
    on_gpu: float
    largest_batch: int


TASKS = dict(
    det=Task('_coco', 80, 'retinanet', 1333, 800, False, 0.7, 0.2, 16),
    seg=Task('_ade20k-512x512', 150, 'upernet', 2048, 512, False, 0.7, 0.2, 16),
    cls=Task('_in1k', 1000, 'classifier', 10**5, 224, True, 1.6, 0.5, 128),
)


def render(parts, title, model, rate, **values):
    """The source of a config, from the template that all have and those of the parts,
    in new_config/; title, model and rate are source, too."""
    folder = Path(__file__).with_suffix('')
    common, *parts = (
        (folder / f'{name}.template').read_text('utf-8') for name in ('common', *parts)
    )
    values = {key: repr(x) for key, x in values.items()}
    values.update(title=title, model=model, rate=rate)
    whole = Template(common).safe_substitute(parts=''.join(parts))
    return Template(whole).substitute(values)


def parse_args(argv=None):
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('--data', type=Path, required=True, help='folder of photos and annotations')
    add('--task', choices=TASKS, required=True, help='objects, areas or whole photos')
    text = 'its name in our configs (default: %(default)s, which has public weights)'
    add('--backbone', default='swin-t-elfatt', help=text)
    text = 'method, its name in our configs (default: chosen by the annotations)'
    add('--detector', metavar='METHOD', help=text)
    add('--out', type=cli.output_file, required=True, help='config to write, NAME.py')
    text = 'classes in the order of labels (default: those in the annotations)'
    add('--classes', nargs='+', metavar='NAME', help=text)
    text = 'ids in label maps that are no label, besides 255'
    add('--ignore', nargs='+', type=int, default=[], metavar='ID', help=text)
    add('--images', metavar='FOLDER', help='where in --data the photos are')
    text = "where in --data the annotations are: a folder, a file, or such as '*.xml'"
    add('--labels', metavar='PATH', help=text)
    add('--masks', metavar='FOLDER', help='where in --data the label maps are')
    add('--column', metavar='NAME', help='column of a table that has the class')
    text = 'a picture to write, of 16 photos with their labels'
    add('--show', type=cli.output_file, metavar='NAME.png', help=text)
    text = 'resize label maps of another size than their photos'
    add('--resize-masks', action='store_true', help=text)
    text = 'colors of classes in label maps, in the order of labels'
    add('--colors', nargs='+', metavar='NAME=R,G,B', help=text)
    text = 'passes over the photos (default: depends on their number)'
    add('--epochs', type=cli.number(int, 1, 10**6), help=text)
    text = "weights of the backbone, or 'none' (default: public ones, if any)"
    add('--pretrained', metavar='PATH', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def find_bases(task):
    """Our configs with the shortest schedules, by method and backbone."""
    paths = (ROOT / 'configs').glob(f'*/*{TASKS[task].ending}.py')
    first = ['classifier'] * (task == 'cls')
    order = sorted(paths, key=lambda x: ('1x' not in x.stem, len(x.stem), x))
    return {tuple([*first, *x.stem.split('_')][:2]): x for x in order[::-1]}


def find_pretrained(args, cfg):
    """Weights to start from: the given ones, those of the base config, or those of a
    detector's with the same backbone."""
    given = args.pretrained or cfg.get('pretrained')
    if not given and args.task == 'cls':
        others = {**find_bases('seg'), **find_bases('det')}
        others = [path for (_, x), path in others.items() if x == args.backbone]
        given = load_config(str(others[-1])).get('pretrained') if others else None
    return None if given == 'none' else given


def heads(node, old, wide, place='_base_.model'):
    """Source of a model's config entries that depend on the classes, or on the width of
    its heads, or ''."""
    found = {}
    for key, x in node.items():
        where = f'{place}.{key}'
        if key in ('num_classes', 'num_things_classes') and x == old:
            found[key] = 'num_classes'
        elif x == wide.get(key, ''):
            found[key] = 'width'
        elif key == 'class_weight' and isinstance(x, list) and len(x) == old + 1:
            found[key] = f'[*[1.0] * num_classes, {x[-1]}]'
        elif isinstance(x, dict):
            found[key] = heads(x, old, wide, where)
        elif isinstance(x, list) and "'num_classes'" in str(x):
            found[key] = f'[dict(x, num_classes=num_classes) for x in {where}]'
    text = ', '.join(f'{key}={x}' for key, x in found.items() if x)
    return text and f'dict({text})'


def choose_sizes(task, sides, num, memory):
    """Sides (long, short) and (H, W) of a photo of the median size (W, H) as models see
    it, and the photos in the batch of a device with this many GB (a CPU: 0), of ``num``
    photos for its training."""
    kind, least = TASKS[task], min(sides)
    zoom = min(kind.longest / max(sides), kind.shortest / least)
    w, h = (round(side * min(zoom, max(1, SMALLEST / least))) for side in sides)
    scale = max(h, w), min(h, w)
    megapixels = scale[1] * scale[kind.square] / 1e6
    room = (memory * kind.on_gpu or kind.on_cpu) / megapixels
    most = kind.largest_batch if memory else kind.largest_batch / 4
    # BatchNorm needs two values
    batch = max(int(min(room, most, num / 8)), 1 if task == 'det' else 2)
    return scale, (min(h, kind.shortest), min(w, kind.shortest)), batch


def write_config(args, data, lists, devices, memory):
    """The source of a config for devices with this many GB (a CPU: 0)."""
    task = args.task
    method = args.detector or ('mask-rcnn' if data.has_masks else TASKS[task].method)
    bases = find_bases(task)
    if (method, args.backbone) not in bases:
        near = [' '.join(x) for x in sorted(bases) if {*x} & {method, args.backbone}]
        raise ValueError(
            f'no config has --detector {method} and --backbone {args.backbone}; there '
            f'are {", ".join(near or sorted({x for x, _ in bases}))}'
        )
    path = bases[method, args.backbone]
    cfg = load_config(str(path))
    masks = task == 'det' and 'segm' in cfg.val_evaluator.metric
    if masks and not data.has_masks:
        raise ValueError(f'--detector {method} needs outlines, found only boxes')
    pretrained = find_pretrained(args, cfg)
    if not pretrained:
        text = 'the backbone trains from scratch, which takes many photos'
        data.notes.append(Note(text))
    parts, wide = [task], {} if memory else WIDE.get(method, {})
    model = f'model = {heads(cfg.model, TASKS[task].num_classes, wide)}'
    if not memory:
        text = '--epochs and --backbone softpp-micro-linear shorten it'
        data.notes.append(Note(f'no GPU: training may take hours; {text}'))
        less = []
        if wide:
            comment = 'channels of pyramid and heads, few for training without a GPU'
            model = f'width = {NARROW}  # {comment}\n{model}'
            less.append(f'pyramid and heads have {NARROW} channels')
        if isinstance((cfg.model.get('train_cfg') or {}).get('rcnn'), dict):
            parts.append('fewer_regions')
            less.append('the config takes 32 regions of a photo, not 512')
        for change in less:
            text = f'no GPU: {change}, which is faster and less exact'
            data.notes.append(Note(text))

    sizes = [photo.size for photo in chain(*data.splits.values())]
    width, height = (round(median(x)) for x in zip(*sizes))
    num = len(data.splits['train'])
    scale, crop, batch = choose_sizes(task, (width, height), num / devices, memory)
    if num < batch * devices:
        raise ValueError(f'{num} photos for training are fewer than a batch of {batch}')
    passes = ITERATIONS // (num // (batch * devices))
    epochs = args.epochs or min(max(passes, EPOCHS[0]), EPOCHS[1])
    base_batch = cfg.auto_scale_lr.base_batch_size
    rate = f'{cfg.optim_wrapper.optimizer.lr:g} * (batch / {base_batch}) ** 0.5'
    counts = ', '.join(f'{len(x)} for {split}' for split, x in data.splits.items())
    return render(
        parts,
        title=f'{method} with {args.backbone}; photos: {counts}',
        base=f'mmlinattn::{path.parent.name}/{path.name}',
        pretrained=pretrained,  # weights of the backbone
        classes=tuple(data.classes),
        model=model,
        width=width,  # of the median photo
        height=height,
        scale=scale,  # (long, short) side
        crop=crop,  # (H, W)
        root=f'{args.data.resolve().as_posix()}/',
        lists=f'{lists.resolve().as_posix()}/',
        masks=masks,
        batch=batch,  # on each device
        test_batch=batch if task == 'cls' else 1,
        devices=devices,
        workers=max(1, min(4, (os.cpu_count() or 1) // 2 // devices)),
        num=num,
        epochs=epochs,
        val_interval=max(1, epochs // 12),
        rate=rate if pretrained else f'{rate} * 4  # to train from scratch',
        clip=(cfg.optim_wrapper.get('clip_grad') or {}).get('max_norm', 1.0),
    )


def find_devices():
    """The number of GPUs and the GB of the first; (1, 0) for a CPU."""
    import torch

    if not torch.cuda.is_available():
        return 1, 0
    memory = torch.cuda.get_device_properties(0).total_memory
    return torch.cuda.device_count(), memory / 2**30


def tell(data):
    """Prints what was found, and decisions about it."""
    files = sorted(
        (kind, len(x)) for kind, x in data.folder.files.items() if x and kind
    )
    print('files:', ', '.join(f'{num} {kind}' for kind, num in files))
    header, *rows = data.overview()
    table = Table(*header, box=None)
    for row in rows[:60]:
        table.add_row(*row)
    if rows[60:]:
        table.add_row(f'{len(rows) - 60} more classes')
    Console(highlight=False, markup=False, emoji=False).print(table)
    print(f'{len(data.classes)} classes: {", ".join(data.classes)}')
    for note in data.notes:
        print(f'new_config.py: {note}')


def main(argv=None):
    args = parse_args(argv)
    out, lists = args.out, args.out.with_name(f'{args.out.stem}_data')
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        if not args.data.is_dir():
            raise FileNotFoundError(f'--data {args.data}: there is no such folder')
        if out.suffix != '.py':
            raise ValueError(f'--out {out}: the name of a config must end in .py')
        if args.data.resolve() in out.resolve().parents:
            raise ValueError(f'--out {out} is in the folder --data: give another place')
        cli.protect(args, out, *filter(None, [args.show]))
        with cli.error_of(f'--data {args.data}, '):
            data = OwnData.from_folder(Options.from_args(args))
        devices, memory = find_devices()
        text = write_config(args, data, lists, devices, memory)
        tell(data)
        cli.claim_folder(lists, 'new_config.json')
        write(data, lists)
        out.write_text(text, 'utf-8')
        if args.show:
            from mmlinattn_tools.own_data.pictures import show

            show(data, args.show)
    print(f'new_config.py: {text[3:].partition(";")[0]}')
    tools = shlex.quote(os.path.relpath(ROOT / 'tools'))
    name, python = shlex.quote(str(out)), shlex.quote(sys.executable)
    print('To train it; it ends with the commands to test, predict and export:')
    if devices > 1:
        print(f'bash {tools}/dist_train.sh {name} {devices}')
    else:  # with the Python that has the libraries
        print(f'{python} {tools}/train.py {name}')


if __name__ == '__main__':
    main()
