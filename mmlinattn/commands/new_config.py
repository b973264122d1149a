"""Write a config that trains one of our models on your photos.

    mmlinattn new-config --data my/coco --task det --backbone softpp-t --out mine.py

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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

from rich.console import Console
from rich.table import Table

from mmlinattn.cli import parser as cli
from mmlinattn.cli import program
from mmlinattn.own_config import (
    NAMES,
    TASKS,
    Choices,
    Devices,
    check_paths,
    folder_of_lists,
    make_config,
    put_in_place,
)
from mmlinattn.own_data import Note, Options, OwnData
from mmlinattn.utils import load_config

CLASSES = 60  # in the table on the screen


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('--data', type=Path, required=True, help='folder of photos and annotations')
    add('--task', choices=TASKS, required=True, help='objects, areas or whole photos')
    text = f"whole model to start from: one that learned {', '.join(NAMES)}, 'none', a "
    text += (
        "name in 'mmlinattn weights', or the path or address of weights (default: a "
    )
    text += 'public model under a license, by task, devices and photos)'
    add('--start', metavar='WHAT', help=text)
    text = 'its name in our configs (default: that of --start)'
    add('--backbone', help=text)
    text = (
        'method, its name in our configs (default: that of --start, or by annotations)'
    )
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
    text = "weights of the backbone alone, or 'none' (default: see --start)"
    add('--pretrained', metavar='PATH', help=text)
    text = 'add AttnScale to the backbone; it starts with the same outputs'
    add('--attn-scale', action='store_true', help=text)
    text = 'add FeatScale to the backbone; it starts with the same outputs'
    add('--feat-scale', action='store_true', help=text)
    text = 'do not measure how long a training takes here'
    add('--no-estimate', action='store_true', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def report(data: OwnData, notes: Iterable[Note]) -> None:
    """Print what the folder has, and notes on decisions."""
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
        print(f'{program.name()}: {note}')


def print_estimate(out: Path) -> None:
    """Print what the training of a config takes on this machine."""
    # when it is needed: it imports the libraries
    from mmlinattn.runs.estimate import estimate_line

    print(f'{program.name()}: {estimate_line(load_config(str(out)))}')


def print_command(out: Path, devices: Devices) -> None:
    """Print how to train a config."""
    print('To train it; it ends with the commands to test, predict and export:')
    if devices.number > 1:
        print(program.train_on_gpus(str(out), devices.number))
    else:
        print(program.command('train', str(out)))


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    out = args.out
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        check_paths(args.data, out)
        cli.check_free(args, out, *filter(None, [args.show]))
        with cli.error_of(f'--data {args.data}, '):
            data = OwnData.from_folder(Options.from_args(args))
        devices = Devices.find()
        choices = Choices.from_args(args)
        config = make_config(data, choices, folder_of_lists(out), devices)
        report(data, [*data.notes, *config.notes])
        put_in_place(config, data, out)
        if args.show:
            from mmlinattn.own_data.pictures import show

            show(data, args.show)
    print(f'{program.name()}: {config.source[3:].partition(";")[0]}')
    if not args.no_estimate:
        with cli.errors_in_one_line(ImportError):
            print_estimate(out)
    print_command(out, devices)
