"""Write a config that trains one of our models on your photos.

    new_config.py --data my/coco --task det --backbone softpp-t --out mine.py

--task  content of the folder --data
det     COCO or labelme files (*.json), VOC or CVAT files (*.xml), the VGG Image
        Annotator's (*.json, *.csv), or YOLO files (*.txt, with names in a *.yaml or
        classes.txt), or a table of boxes (*.csv); with outlines, masks are learned, too
rot     DOTA files (*.txt), YOLO's of oriented boxes, rotated boxes of CVAT, labelme or
        roLabelImg, or outlines in a form of det, which get the smallest rectangles
        around them; it needs MMRotate
seg     photos, and label maps of the same names, but for endings such as _image and
        _mask, in folders with a word such as labels, masks, annotations, segmentation,
        gt or truth: an id in each pixel, 255 where there is none, or colors; or a
        folder of masks for each class; or outlines, in a form of det
cls     photos in one folder for each class, a table (*.csv) or list (*.txt) of photos
        and classes, or photos whose names begin or end with one of --classes

Folders or files that are called train, val or test make the splits, or the lists
train.txt, val.txt and test.txt; without any, every fifth photo is held back. The config
inherits one of ours; its data lists are written to a folder beside it, with its name
and _data. Your own files do not change.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools import cli  # first: a line tells that libraries are missing

# isort: split
from rich.console import Console
from rich.table import Table

from mmlinattn_tools.label_files import RECORD, note_files
from mmlinattn_tools.own_config import (
    TASKS,
    Choices,
    Devices,
    whole_config,
    write_config,
)
from mmlinattn_tools.own_data import Note, Options, OwnData, write

CLASSES = 60  # in the table on the screen


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
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
    text = 'rotate label maps as EXIF data rotate their photos'
    add('--rotate-masks', action='store_true', help=text)
    text = 'treat id 255 in label maps as a class'
    add('--use-255', action='store_true', help=text)
    text = 'colors of classes in label maps, in the order of labels'
    add('--colors', nargs='+', metavar='NAME=R,G,B', help=text)
    text = 'passes over the photos (default: depends on their number)'
    add('--epochs', type=cli.number(int, 1, 10**6), help=text)
    text = "weights of the backbone, or 'none' (default: public ones, if any)"
    add('--pretrained', metavar='PATH', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def find_devices() -> Devices:
    """The GPUs of this machine, or its CPU."""
    import torch

    if not torch.cuda.is_available():
        return Devices(number=1, memory=0)
    memory = torch.cuda.get_device_properties(0).total_memory
    return Devices(number=torch.cuda.device_count(), memory=memory / 2**30)


def report(data: OwnData, notes: Iterable[Note]) -> None:
    """Prints what the folder has, and notes on decisions."""
    kinds = sorted(
        (kind, len(paths))
        for kind, paths in data.folder.files.items()
        if paths and kind
    )
    print('files:', ', '.join(f'{num} {kind}' for kind, num in kinds))
    header, *rows = data.overview()
    table = Table(*header, box=None)
    for row in rows[:CLASSES]:
        table.add_row(*row)
    if rows[CLASSES:]:
        table.add_row(f'{len(rows) - CLASSES} more classes')
    Console(highlight=False, markup=False, emoji=False).print(table)
    print(f'{len(data.classes)} classes: {", ".join(data.classes)}')
    for note in notes:
        print(f'new_config.py: {note}')


def check_paths(data: Path, out: Path) -> None:
    """Raises an error for a folder of data or a file for the config that can't be
    one."""
    if not data.is_dir():
        raise FileNotFoundError(f'--data {data}: there is no such folder')
    if out.suffix != '.py':
        raise ValueError(f'--out {out}: the name of a config must end in .py')
    if data.resolve() in out.resolve().parents:
        raise ValueError(f'--out {out} is in the folder --data: give another place')


def print_command(out: Path, devices: Devices) -> None:
    """Prints how to train a config."""
    tools = shlex.quote(os.path.relpath(ROOT / 'tools'))
    name, python = shlex.quote(str(out)), shlex.quote(sys.executable)
    print('To train it; it ends with the commands to test, predict and export:')
    if devices.number > 1:
        print(f'bash {tools}/dist_train.sh {name} {devices.number}')
    else:  # with the Python that has the libraries
        print(f'{python} {tools}/train.py {name}')


def main(argv: Optional[Sequence[str]] = None) -> None:
    """The command."""
    args = parse_args(argv)
    out, lists = args.out, args.out.with_name(f'{args.out.stem}_data')
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        check_paths(args.data, out)
        cli.protect(args, out, *filter(None, [args.show]))
        with cli.error_of(f'--data {args.data}, '):
            data = OwnData.from_folder(Options.from_args(args))
        devices = find_devices()
        config = write_config(data, Choices.from_args(args), lists, devices)
        report(data, [*data.notes, *config.notes])
        cli.check_claim(lists, RECORD)
        with whole_config(out, lists) as (draft, folder):
            write(data, folder)
            note_files(data.label_files, folder)
            draft.write_text(config.source, 'utf-8')
        if args.show:
            from mmlinattn_tools.own_data.pictures import show

            show(data, args.show)
    print(f'new_config.py: {config.source[3:].partition(";")[0]}')
    print_command(out, devices)


if __name__ == '__main__':
    main()
