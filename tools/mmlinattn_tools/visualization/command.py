"""What the tools that look at models share on the command line."""

import argparse
import os.path as osp
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Optional

import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from torch import nn

from mmlinattn.engine.part_errors import LIBRARY_ERRORS, quiet
from mmlinattn.utils import check_file
from mmlinattn.weights import load_safely
from mmlinattn_tools.cli import (
    add_overwrite,
    errors_in_one_line,
    one_line,
    output_folder,
    protect,
)

from .images import Picture, find_images, image_pipeline, read_picture
from .models import load_model, read_model_config


def add_arguments(parser: argparse.ArgumentParser, name: str, *written: str) -> None:
    """Adds the arguments of :class:`Subject` and of what is written.

    Args:
        parser (argparse.ArgumentParser): The parser.
        name (str): Name of the tool.
        *written (str): Names of its files without an ending, where ``{}`` stands for
            the name of an image.
    """
    parser.set_defaults(written=written)
    parser.add_argument(
        'configs',
        nargs='+',
        metavar='CONFIG',
        help='path of a config of mmdet, mmseg, mmpretrain or mmlinattn; several ones '
        'are shown side by side',
    )
    parser.add_argument(
        '--image', required=True, metavar='PATH', help='an image, or a folder of images'
    )
    parser.add_argument(
        '--checkpoint',
        nargs='+',
        metavar='PATH',
        help="weights, one for each config, 'none' for none (default: none, random "
        'weights as training from scratch starts with)',
    )
    parser.add_argument(
        '--label',
        nargs='+',
        metavar='TEXT',
        help='name of each model in the figure (default: that of its config)',
    )
    parser.add_argument(
        '--shape',
        nargs='+',
        type=side,
        metavar='SIDE',
        help='height and width in pixels to which images are resized, or one number '
        "for both (default: as the config's test pipeline does)",
    )
    parser.add_argument(
        '--device', default='cpu', help='where models run (default: %(default)s)'
    )
    parser.add_argument(
        '--out',
        type=output_folder,
        default=Path('work_dirs', name),
        metavar='FOLDER',
        help='folder to write to (default: %(default)s)',
    )
    parser.add_argument('--svg', action='store_true', help='write .svg files, too')
    add_overwrite(parser)


def side(text: str) -> int:
    """Type of an argument that is a side of an image."""
    if not text.isdecimal() or int(text) < 32:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a number of pixels, 32 or more'
        )
    return int(text)


def position(text: str) -> tuple[float, float]:
    """Type of an argument that is a place in an image, as parts of its sides."""
    try:
        x, y = map(float, text.split(','))
    except ValueError:
        x = y = -1
    if not (0 <= x <= 1 and 0 <= y <= 1):
        raise argparse.ArgumentTypeError(f'{text!r} is not X,Y with both in 0...1')
    return x, y


class Subject(NamedTuple):
    """A model that a tool looks at.

    Attributes:
        label (str): Its name in figures.
        config (str): Path of its config.
        checkpoint (str | None): Path of its weights.
        cfg (Config): Its config.
        model (nn.Module): The model, in eval mode.
        pipeline (Compose): What reads its images.
        device (str): Where it is.
    """

    label: str
    config: str
    checkpoint: Optional[str]
    cfg: Config
    model: nn.Module
    pipeline: Compose
    device: str

    def read(self, path: Path) -> Picture:
        """An image as the model gets it."""
        return read_picture(self.model, self.pipeline, path, self.device)

    def describe(self) -> dict[str, Any]:
        """What the JSON file says of the model."""
        weights = self.checkpoint or 'random'
        return dict(label=self.label, config=self.config, weights=weights)


@contextmanager
def input_errors() -> Iterator[None]:
    """Context of a whole tool, in which errors of the input end in one line."""
    with errors_in_one_line(ValueError), quiet():
        try:
            yield
        except LIBRARY_ERRORS as error:
            message = error_text(error)
            raise ValueError(message or type(error).__name__) from error


def load_subjects(
    args: argparse.Namespace, whole: bool = False
) -> tuple[list[Subject], list[Path]]:
    """Models and images that the arguments name.

    Args:
        args (argparse.Namespace): See :func:`add_arguments`.
        whole (bool): See :func:`.models.load_model`.

    Returns:
        tuple[list[Subject], list[Path]]: Models, and files of images.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a model can't be built or doesn't fit its checkpoint, a file is
            no image, or arguments don't go together.
    """
    load_safely()
    num = len(args.configs)
    checkpoints = _one_each('--checkpoint', args.checkpoint, num) or ['none'] * num
    labels = _one_each('--label', args.label, num) or _names(args.configs)
    shape = check_shape(args.shape)
    check_device(args.device)
    files = find_images(args.image)
    stems = {x.format(path.stem) for x in args.written for path in files}
    for ending in ('png', 'json', 'svg') if args.svg else ('png', 'json'):
        protect(args, *(args.out / f'{stem}.{ending}' for stem in sorted(stems)))
    for path in (x for x in checkpoints if x != 'none'):
        check_file('checkpoint', path)
    subjects = [
        load_subject(
            config,
            None if checkpoint == 'none' else checkpoint,
            label,
            shape,
            args.device,
            whole,
        )
        for config, checkpoint, label in zip(args.configs, checkpoints, labels)
    ]
    return subjects, files


def check_shape(sides: Optional[Sequence[int]]) -> Optional[tuple[int, int]]:
    """(H, W) of the values of ``--shape``.

    Raises:
        ValueError: If there are more than two.
    """
    if not sides:
        return None
    if len(sides) > 2:
        raise ValueError(f'--shape takes one or two numbers, got {len(sides)}')
    return sides[0], sides[-1]


def check_device(device: str) -> None:
    """Refuses a device that can't be used.

    Raises:
        ValueError: If it can't.
    """
    try:
        torch.zeros(1, device=device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(f'--device {device}: {error}') from error


def load_subject(
    config: str,
    checkpoint: Optional[str],
    label: str,
    shape: Optional[tuple[int, int]] = None,
    device: str = 'cpu',
    whole: bool = False,
) -> Subject:
    """A model from its files.

    Args:
        config (str): Path of the config.
        checkpoint (str, optional): Path of the weights. Default: random ones.
        label (str): Name of the model in figures.
        shape (tuple[int], optional): See :func:`.images.image_pipeline`.
        device (str): Where it is to run.
        whole (bool): See :func:`.models.load_model`.

    Raises:
        ValueError: If it can't be built or doesn't fit its checkpoint; the message
            names the config.
    """
    try:
        cfg = read_model_config(config)
        model = load_model(cfg, checkpoint, whole).to(device)
        pipeline = image_pipeline(cfg, shape)
    except LIBRARY_ERRORS as error:
        message = error_text(error)
        named = message if config in message else f'{config}: {message}'
        raise ValueError(named) from error
    return Subject(label, config, checkpoint, cfg, model, pipeline, device)


def _one_each(
    option: str, values: Optional[list[str]], num: int
) -> Optional[list[str]]:
    if values and len(values) != num:
        raise ValueError(
            f'{option} takes one value for each config, {num}, got {len(values)}'
        )
    return values


def _names(configs: list[str]) -> list[str]:
    """Names of configs; those that occur twice get a number."""
    names = [osp.splitext(osp.basename(config))[0] for config in configs]
    return [
        name if names.count(name) == 1 else f'{name} ({names[: i + 1].count(name)})'
        for i, name in enumerate(names)
    ]


def error_text(error: Exception) -> str:
    """An error's text in one line; a KeyError's own would be in quotes."""
    keyed = isinstance(error, KeyError) and error.args
    return one_line(error.args[0] if keyed else error)
