"""Train, test and draw a Mask R-CNN with a SOFT++ backbone on real files.

It writes a small dataset of circles, squares and triangles in COCO's layout, and a
config for it with new-config. It trains from scratch, prints box and mask AP on
held-back images, and keeps pictures of the predictions. The same commands with other
options at their end are for photos of your own.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional, Union

from mmlinattn.cli import parser as cli
from mmlinattn.cli import program

# files to replace; the command for shapes replaces the data, in coco/
RESULTS = ('train', 'test', 'predictions')
SIMPLE = (
    'model.roi_head.bbox_head.fc_out_channels=512',
    # a short last line
    'val_evaluator.0.classwise=False',
    'val_evaluator.1.classwise=False',
    'test_evaluator.0.classwise=False',
    'test_evaluator.1.classwise=False',
    # from scratch, on simple pictures
    'optim_wrapper.optimizer.lr=1e-3',
    'randomness.seed=0',
)


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    out = find_root() / 'work_dirs' / 'quickstart'
    text = 'folder for data, checkpoints and pictures (default: %(default)s)'
    add('--out', type=cli.output_folder, default=out, help=text)
    count = cli.number(int, 1, 10**6)
    add('--epochs', type=count, default=5, help='passes over the images (5)')
    text = 'other settings of the config, such as model.backbone.attn_scale=True'
    add(
        '--cfg-options',
        nargs='+',
        type=cli.key_value,
        default=[],
        metavar='KEY=VALUE',
        help=text,
    )
    return parser.parse_args(argv)


def find_root() -> Path:
    """Return the clone whose script was started, or the current folder."""
    tools = program.find_tools()
    is_clone = tools is not None and (tools.parent / 'setup.py').is_file()
    return tools.parent if tools is not None and is_clone else Path.cwd()


def run(title: str, verb: str, *options: Union[str, int, Path]) -> None:
    """Run a command of ours; the logs of trainings and tests are in their folders."""
    command = [*program.words_of(verb), *map(str, options)]
    print(f'\n== {title}\n$ {shlex.join(command)}', flush=True)
    if subprocess.run(command).returncode:
        sys.exit(f'{title} failed')


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    out, epochs = args.out.resolve(), args.epochs
    with cli.errors_in_one_line(OSError):
        cli.claim_folder(out, 'quickstart.json')
    for name in RESULTS:
        shutil.rmtree(out / name, ignore_errors=True)
    data, config, train = out / 'coco', out / 'shapes.py', out / 'train'
    shapes = ('--layout', 'shapes', '--size', 128, 128, '--out', data)
    numbers = ('--num-train', 160, '--num-val', 48)
    run('Data', 'shapes', *shapes, *numbers)
    model = ('--task', 'det', '--backbone', 'softpp-t', '--epochs', epochs)
    files = ('--no-estimate', '--overwrite', '--out', config, '--data', data)
    run('Config', 'new-config', *model, *files)
    settings = [*SIMPLE, f'train_cfg.val_interval={epochs}', *args.cfg_options]
    options = ('--cfg-options', *settings)
    run('Training', 'train', config, '--work-dir', train, *options)
    checkpoint = (train / 'last_checkpoint').read_text().strip()
    folders = ('--work-dir', out / 'test', '--show-dir', out / 'predictions')
    run('Testing', 'test', config, checkpoint, *folders, *options)
    print(f'\nCheckpoint:  {checkpoint}\nPredictions: {out / "predictions"}')
    print('(truth on the left, prediction on the right)')


if __name__ == '__main__':
    main()
