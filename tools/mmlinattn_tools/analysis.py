"""Code of the commands that look at models: arguments, models, images, output.

Legend: (H, W) size in pixels.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
import torch
from matplotlib import style
from matplotlib.figure import Figure
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope
from torch import Tensor, nn

from mmlinattn.engine.preflight import LIBRARY_ERRORS, build_model
from mmlinattn.utils import load_config
from mmlinattn.utils.quiet import quiet
from mmlinattn.weights import (
    find_state_dict,
    fit,
    load_pretrained,
    load_safely,
    read_checkpoint,
)

from .cli import (
    Parser,
    add_overwrite,
    errors_in_one_line,
    number,
    output_file,
    output_folder,
    protect,
)
from .figures import STYLE, save
from .own_data import IMAGES, is_damaged
from .runs import dataset_meta, note, test_dataset

FIGURES = ('.png', '.pdf', '.svg')
RESIZING = ('Resize', 'ResizeEdge', 'FixScaleResize', 'CenterCrop', 'RandomResize')


def analysis_parser(description: Optional[str], name: str) -> Parser:
    """The arguments for :func:`load_subjects` and :func:`run`."""
    parser = Parser(description=description)
    add = parser.add_argument
    text = 'config of mmdet, mmseg, mmpretrain or mmlinattn; several are compared'
    add('configs', nargs='+', metavar='CONFIG', help=text)
    add('--image', required=True, metavar='PATH', help='an image, or a folder of them')
    text = (
        "weights, one for each config, 'none' for none (default: none, the random "
        'weights of a training from scratch)'
    )
    add('--checkpoint', nargs='+', metavar='PATH', help=text)
    text = 'name of each model in the figure (default: that of its config)'
    add('--label', nargs='+', metavar='TEXT', help=text)
    text = 'folder to write to, or a figure such as paper.pdf (default: %(default)s)'
    out = Path('work_dirs', name)
    add('--out', type=output, default=out, metavar='PATH', help=text)
    text = (
        'height and width in pixels to which images are resized, or one number for '
        "both (default: those of the config's test pipeline)"
    )
    add('--shape', nargs='+', type=number(int, 32, 10**5), metavar='SIDE', help=text)
    add('--device', default='cpu', help='where models run (default: %(default)s)')
    add_overwrite(parser)
    return parser


def output(text: str) -> Path:
    """Type of an argument: a folder, or a figure, depending on its ending."""
    return (output_file if Path(text).suffix in FIGURES else output_folder)(text)


class Picture(NamedTuple):
    """One image in a model's form."""

    inputs: Tensor  # (1, 3, H, W), preprocessed, padded at the right and the bottom
    data_samples: Any  # the second input of the heads
    pixels: np.ndarray  # (H, W, 3), uint8, RGB, before normalization and padding


@dataclass
class Subject:
    """A model that a command looks at, in eval mode."""

    config: str  # a path, like the checkpoint
    checkpoint: str  # 'none': initialized as for training, with seed 0
    label: str  # in figures
    shape: Optional[Sequence[int]] = None  # of images; None: the test pipeline's
    device: str = 'cpu'
    whole: bool = False  # refuse a checkpoint of the backbone alone

    def __post_init__(self) -> None:
        load_safely()
        self.cfg = load_config(self.config)
        self.scope = self.cfg.get('default_scope') or 'mmengine'
        self.meta: dict[str, Any] = {}  # names and colors of classes
        try:
            self.model = self._load_model().to(self.device)
            with DefaultScope.overwrite_default_scope(self.scope):
                self.pipeline = self._image_pipeline()
        except LIBRARY_ERRORS as error:
            text = error.args[0] if isinstance(error, KeyError) else error
            raise ValueError(f'{self.config}: {text}') from error

    def _load_model(self) -> Any:
        torch.manual_seed(0)
        model: Any = build_model(self.cfg).eval()
        if self.checkpoint == 'none':
            model.init_weights()
            return model
        found = read_checkpoint(self.checkpoint, 'checkpoint')
        self.meta = (found.get('meta') or {}).get('dataset_meta') or {}
        heads = {key for key in model.state_dict() if not key.startswith('backbone.')}
        if not self.whole and heads.isdisjoint(find_state_dict(found)[0]):
            load_pretrained(model.backbone, self.checkpoint)
            return model
        fitted = fit(model, found)
        if not fitted.whole:
            raise ValueError(
                f'checkpoint={self.checkpoint!r} is not from this '
                f'{type(model).__name__}: {fitted.describe()}. Give one that was '
                'trained with this config'
            )
        model.load_state_dict(fitted.state_dict, strict=False)
        return model

    def _image_pipeline(self) -> Compose:
        """The transforms of the config's test data, without annotations."""
        dataset = test_dataset(self.cfg)
        self.meta = dataset_meta(dataset, self.scope, self.meta)
        transforms = []
        for step in dataset['pipeline']:
            name = str(step.get('type')).rpartition('.')[2]
            if 'Annotation' not in name and not (self.shape and name in RESIZING):
                transforms.append(step)
        if self.shape:
            if len(self.shape) > 2:
                raise ValueError(
                    f'--shape takes one or two numbers, got {len(self.shape)}'
                )
            scale = self.shape[-1], self.shape[0]
            transforms.insert(1, dict(type='Resize', scale=scale, keep_ratio=False))
        return Compose(transforms)

    @property
    def backbone(self) -> nn.Module:
        """The part of the model that has its attentions, or all of it."""
        return getattr(self.model, 'backbone', self.model)

    def class_name(self, label: int) -> str:
        """Name of a class, or its number if it has no name."""
        classes = self.meta.get('classes') or ()
        return str(classes[label]) if label < len(classes) else str(label)

    def batch(self, path: Path) -> dict[str, Any]:
        """An image as input of the model's ``test_step``."""
        sample = self.pipeline(
            dict(img_path=str(path), img_id=0, reduce_zero_label=False)
        )
        return dict(
            inputs=[sample['inputs'].to(self.device)],
            data_samples=[sample['data_samples']],
        )

    def read(self, path: Path) -> Picture:
        """An image as input of the model's ``forward``."""
        batch = self.batch(path)
        # files are read as BGR
        pixels = batch['inputs'][0].flip(0).permute(1, 2, 0).byte().cpu().numpy()
        ready = self.model.data_preprocessor(batch, False)
        return Picture(ready['inputs'], ready['data_samples'], pixels)

    def describe(self, **found: Any) -> dict[str, Any]:
        """The entries of the JSON file on the model, and the results."""
        weights = self.checkpoint
        return dict(label=self.label, config=self.config, weights=weights, **found)


def load_subjects(
    args: argparse.Namespace, whole: bool
) -> tuple[list[Subject], list[Path]]:
    """Models and images that the arguments of :func:`analysis_parser` name."""
    num = len(args.configs)
    checkpoints = args.checkpoint or ['none'] * num
    labels = args.label or [Path(config).stem for config in args.configs]
    for option, values in (('--checkpoint', checkpoints), ('--label', labels)):
        if len(values) != num:
            raise ValueError(
                f'{option} takes one value for each config, {num}, got {len(values)}'
            )
    files = find_photos(Path(args.image).expanduser())
    named = zip(args.configs, checkpoints, labels)
    return [Subject(*x, args.shape, args.device, whole) for x in named], files


def find_photos(place: Path) -> list[Path]:
    """A photo, or those of a folder; damaged ones among them are named and left out."""
    if place.is_file():
        return [place]
    found = [x for x in sorted(place.glob('*')) if x.suffix.lower() in IMAGES]
    damaged = [x for x in found if is_damaged(x)]
    if damaged:
        names = ', '.join(x.name for x in damaged)
        note(f'--image {place}: left out {len(damaged)} damaged photos: {names}')
    if len(found) == len(damaged):
        raise FileNotFoundError(f'--image {place}: there is no image')
    return [x for x in found if x not in damaged]


def output_stem(path: Path, files: Sequence[Path]) -> str:
    """What the names of a photo's output begin with; a.jpg and a.png differ."""
    return path.stem if [x.stem for x in files].count(path.stem) == 1 else path.name


# The name of files, a figure, and its numbers.
Output = tuple[str, Figure, dict[str, Any]]


def run(
    parser: argparse.ArgumentParser,
    argv: Optional[Sequence[str]],
    draw: Callable[[argparse.Namespace, list[Subject], list[Path]], Iterable[Output]],
    whole: bool = False,
) -> None:
    """Runs a command: loads models and images, draws figures, and writes them and their
    numbers.

    Errors of the input end in one line. Figures are written one by one, so that an
    interruption loses none.
    """
    args = parser.parse_args(argv)
    out = args.out
    with errors_in_one_line(*LIBRARY_ERRORS), quiet(), style.context(STYLE):
        subjects, files = load_subjects(args, whole)
        for name, figure, numbers in draw(args, subjects, files):
            path = out / f'{name}.png'
            if out.suffix in FIGURES:  # several figures add their own names
                path = out.with_stem(out.stem + f'_{name}' * (len(files) > 1))
            outputs: dict[Path, Any] = {path: figure}
            outputs[path.with_suffix('.json')] = numbers
            protect(args, *outputs)
            for path, content in outputs.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                save(content, path)
                print(path)
