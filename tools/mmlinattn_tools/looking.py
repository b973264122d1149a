"""What commands that look at models share: arguments, models, images and output.

Legend: (H, W) size in pixels.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import DATASETS, DefaultScope
from torch import Tensor, nn

from mmlinattn.engine.part_errors import LIBRARY_ERRORS, quiet
from mmlinattn.engine.preflight import build_model
from mmlinattn.utils import load_config
from mmlinattn.weights import (
    find_state_dict,
    fit,
    load_pretrained,
    load_safely,
    read_checkpoint,
)

from .cli import add_overwrite, errors_in_one_line, number, output_folder, protect
from .figures import save, save_numbers

IMAGES = ('.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp')
RESIZING = ('Resize', 'ResizeEdge', 'FixScaleResize', 'CenterCrop', 'RandomResize')


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds the arguments that :func:`load_subjects` and :func:`run` take."""
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
    parser.add_argument('--svg', action='store_true', help='write .svg files, too')
    add_common_arguments(parser, name)


def add_common_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    """Adds what the demo takes, too: --shape, --device, --out and --overwrite."""
    parser.add_argument(
        '--shape',
        nargs='+',
        type=number(int, 32, 10**5),
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
    add_overwrite(parser)


def position(text: str) -> tuple[float, float]:
    """Type of an argument X,Y: a place in an image, as parts of its sides."""
    x, y = map(number(float, 0, 1), text.split(','))
    return x, y


class Picture(NamedTuple):
    """One image as a model gets it."""

    inputs: Tensor  # (1, 3, H, W), preprocessed, padded at the right and the bottom
    data_samples: Any  # what the heads get beside it
    pixels: np.ndarray  # (H, W, 3), uint8, RGB, before normalization and padding


@dataclass
class Subject:
    """A model that a command looks at, in eval mode."""

    config: str  # a path, as that of the checkpoint
    checkpoint: Optional[str]  # None: initialized as for training, with seed 0
    label: str  # in figures
    shape: Optional[Sequence[int]] = None  # of images; None: as the tests have it
    device: str = 'cpu'
    whole: bool = False  # refuse a checkpoint of the backbone alone

    def __post_init__(self) -> None:
        load_safely()
        self.cfg = load_config(self.config)
        self.scope = self.cfg.get('default_scope') or 'mmengine'
        try:
            model = load_model(self.cfg, self.checkpoint, self.whole)
            self.model: Any = model.to(self.device)
            with DefaultScope.overwrite_default_scope(self.scope):
                self.pipeline = image_pipeline(self.cfg, self.shape)
        except LIBRARY_ERRORS as error:
            text = error.args[0] if isinstance(error, KeyError) else error
            raise ValueError(f'{self.config}: {text}') from error

    @property
    def backbone(self) -> nn.Module:
        """The part of the model that has its attentions, or all of it."""
        return getattr(self.model, 'backbone', self.model)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Names and colors of classes: the checkpoint's, or those of the test data."""
        found: Any = read_checkpoint(self.checkpoint) if self.checkpoint else {}
        meta = (found.get('meta') or {}).get('dataset_meta') or {}
        if meta.get('classes'):
            return meta
        dataset = dataset_of(self.cfg)
        with DATASETS.switch_scope_and_registry(self.scope) as registry:
            kind = registry.get(dataset['type'])
        return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}

    def class_name(self, label: int) -> str:
        """Name of a class, or its number where no name is known."""
        classes = self.meta.get('classes') or ()
        return str(classes[label]) if label < len(classes) else str(label)

    def batch(self, path: Path) -> dict[str, Any]:
        """An image as the model's ``test_step`` takes it."""
        sample = self.pipeline(
            dict(img_path=str(path), img_id=0, reduce_zero_label=False)
        )
        return dict(
            inputs=[sample['inputs'].to(self.device)],
            data_samples=[sample['data_samples']],
        )

    def read(self, path: Path) -> Picture:
        """An image as the model's ``forward`` takes it."""
        batch = self.batch(path)
        # files are read as BGR
        pixels = batch['inputs'][0].flip(0).permute(1, 2, 0).byte().cpu().numpy()
        ready = self.model.data_preprocessor(batch, False)
        return Picture(ready['inputs'], ready['data_samples'], pixels)

    def describe(self) -> dict[str, Any]:
        """What the JSON file says of the model."""
        weights = self.checkpoint or 'random'
        return dict(label=self.label, config=self.config, weights=weights)


def load_model(
    cfg: Config, checkpoint: Optional[str] = None, whole: bool = False
) -> nn.Module:
    """The model of a config, with its weights; see :class:`Subject`."""
    if 'model' not in cfg:
        raise ValueError('it has no model')
    torch.manual_seed(0)
    model: Any = build_model(cfg).eval()
    if checkpoint is None:
        if hasattr(model, 'init_weights'):
            model.init_weights()
        return model
    found = read_checkpoint(checkpoint, 'checkpoint')
    weights, _ = find_state_dict(found)
    heads = {key for key in model.state_dict() if not key.startswith('backbone.')}
    if not whole and hasattr(model, 'backbone') and heads.isdisjoint(weights):
        load_pretrained(model.backbone, checkpoint)
        return model
    fitted = fit(model, found)
    if not fitted.whole:
        raise ValueError(
            f'checkpoint={checkpoint!r} is not of this {type(model).__name__}: '
            f'{fitted.describe()}. Give one that was trained with this config'
        )
    model.load_state_dict(fitted.state_dict, strict=False)
    return model


def dataset_of(cfg: Config) -> dict[str, Any]:
    """The test data of a config, without their wrappers."""
    dataset = cfg.get('test_dataloader', {}).get('dataset', {})
    while 'pipeline' not in dataset and 'dataset' in dataset:
        dataset = dataset['dataset']
    return dataset


def image_pipeline(cfg: Config, shape: Optional[Sequence[int]] = None) -> Compose:
    """The transforms of a config's test data, without annotations."""
    transforms = []
    for step in dataset_of(cfg).get('pipeline', []):
        name = str(step.get('type')).rpartition('.')[2]
        if 'Annotation' not in name and not (shape and name in RESIZING):
            transforms.append(step)
    if not transforms:
        raise ValueError('its test_dataloader has no pipeline that reads images')
    if shape:
        if len(shape) > 2:
            raise ValueError(f'--shape takes one or two numbers, got {len(shape)}')
        scale = shape[-1], shape[0]
        transforms.insert(1, dict(type='Resize', scale=scale, keep_ratio=False))
    return Compose(transforms)


def load_subjects(
    args: argparse.Namespace, whole: bool = False
) -> tuple[list[Subject], list[Path]]:
    """Models and images that arguments of :func:`add_arguments` name."""
    num = len(args.configs)
    checkpoints = args.checkpoint or ['none'] * num
    labels = args.label or [Path(config).stem for config in args.configs]
    for option, values in (('--checkpoint', checkpoints), ('--label', labels)):
        if len(values) != num:
            raise ValueError(
                f'{option} takes one value for each config, {num}, got {len(values)}'
            )
    place = Path(args.image).expanduser()
    files = [place]
    if place.is_dir():
        files = sorted(x for x in place.iterdir() if x.suffix.lower() in IMAGES)
    if not files or not place.exists():
        raise FileNotFoundError(f'--image {place}: there is no image')
    subjects = [
        Subject(
            config,
            None if checkpoint == 'none' else checkpoint,
            label,
            args.shape,
            args.device,
            whole,
        )
        for config, checkpoint, label in zip(args.configs, checkpoints, labels)
    ]
    return subjects, files


# The name of files, and what is in them.
Output = tuple[str, Optional[Figure], Optional[dict[str, Any]]]


def run(
    args: argparse.Namespace, draw: Callable[[argparse.Namespace], Iterable[Output]]
) -> None:
    """Runs a command: draws all figures, then writes them and their numbers.

    Errors of the input end in one line, and nothing is written.
    """
    svg = getattr(args, 'svg', False)
    with errors_in_one_line(*LIBRARY_ERRORS), quiet():
        outputs = [(args.out / name, *drawn) for name, *drawn in draw(args)]
        for path, *_ in outputs:
            endings = ('png', 'json', 'svg') if svg else ('png', 'json')
            protect(args, *(Path(f'{path}.{ending}') for ending in endings))
        for path, figure, numbers in outputs:
            if figure:
                print(*save(figure, path, svg), sep='\n')
            if numbers:
                print(save_numbers(numbers, path))
