"""Draw predictions of models side by side on the same images.

Each image gets a picture: the image, and the predictions of every model. Boxes and
masks with a score of --score or more are drawn as MMDetection or MMRotate draws them;
label maps have a legend, and a classifier's most likely classes are listed. Detectors,
segmentors and classifiers may be mixed.

It goes on in a folder --out that has the predictions of some images. Those with another
--score, size or state of the weights are made again, and those of other models are kept
unless --overwrite is given.

It writes IMAGE_predictions.png, IMAGE_labels.png with the ids of a label map, and
IMAGE_predictions.json with the objects, the share of pixels of each class, or the best
classes.

example:
  mmlinattn compare \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, Optional

from mmlinattn.runs import preparation as runs  # first: it checks mmcv

# isort: split
import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.device import get_device
from mmengine.registry import VISUALIZERS, DefaultScope
from mmengine.utils import track_iter_progress
from PIL import Image

from mmlinattn import ops
from mmlinattn.cli import parser as cli
from mmlinattn.cli.figures import save
from mmlinattn.cli.pictures import (
    Color,
    Panel,
    draw_label_map,
    save_label_map,
    save_picture,
    side_by_side,
)
from mmlinattn.cli.run_arguments import note
from mmlinattn.deployment.predictor import above, as_json, state_of
from mmlinattn.engine.preflight import build_model, error_in
from mmlinattn.parts import type_name
from mmlinattn.utils import library_of, load_config
from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.files import DRAFTS
from mmlinattn.utils.log import quiet
from mmlinattn.weights import load_safely

from .photo_files import find_photos, is_done, read_record

OUT = Path('work_dirs', 'compare_predictions')
# steps of a pipeline that read the truth or change it
OF_TRUTH = ('Annotation', 'ConvertBoxType', 'ConvertMask2BoxType')
SCRATCH = 'none'  # in place of a checkpoint: the weights before a training


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    text = 'config of mmdet, mmseg, mmpretrain or mmlinattn; several are compared'
    add('configs', nargs='+', metavar='CONFIG', help=text)
    add('--image', required=True, metavar='PATH', help='an image, or a folder of them')
    text = "weights, one for each config (default: 'none', those before a training)"
    add('--checkpoint', nargs='+', metavar='PATH', help=text)
    text = 'folder to write to (default: predictions, beside a single checkpoint, or '
    text += f'{OUT})'
    add('--out', type=cli.output_folder, metavar='PATH', help=text)
    text = 'the lowest score of a detection that is drawn (default: %(default)s)'
    kind = cli.number(float, 0, 1)
    add('--score', type=kind, default=0.3, metavar='S', help=text)
    text = 'where models run (default: a GPU where there is one, as in training)'
    add('--device', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


@dataclass(frozen=True)
class Source:
    """What a model's predictions are made with, for the JSON files.

    Attributes:
        config (str): The path of the config, or its name in a package.
        weights (str): The path of the checkpoint, or 'none'.
        time (float, optional): When that file was written.
        settings (str): The MD5 sum of what the config says of model and transforms.
    """

    config: str
    weights: str
    time: Optional[float]
    settings: str

    @classmethod
    def of(cls, config: str, checkpoint: str, cfg: Config, steps: Any) -> 'Source':
        """The source of a model that reads photos by transforms."""
        weights = Path(checkpoint)
        settings = repr((steps, cfg.model.to_dict(), cfg.get('data_preprocessor')))
        return cls(
            config=str(Path(config).resolve()) if Path(config).is_file() else config,
            weights=str(weights.resolve()) if weights.is_file() else checkpoint,
            time=weights.stat().st_mtime if weights.is_file() else None,
            settings=hashlib.md5(settings.encode()).hexdigest(),
        )


class Subject:
    """A model in eval mode that predicts photos by the transforms of its test data.

    Without a checkpoint, 'none', it has the initial weights of a training.

    Attributes:
        meta (dict): Names and colors of the classes.
        source (Source): What it is made of.

    Raises:
        ValueError: If the config can't be built, or the checkpoint is not from it.
    """

    def __init__(
        self, config: str, checkpoint: str = SCRATCH, device: str = 'cpu'
    ) -> None:
        load_safely()
        cfg = load_config(config)
        self.scope = library_of(cfg)
        ops.check(self.scope)
        torch.manual_seed(0)
        with error_in(cfg, config):
            self.model = build_model(cfg).eval().to(device)
            other = runs.what_else(self.model, self.scope)
            if other:
                raise ValueError(f'{type(self.model).__name__} predicts {other}')
            learned_meta: dict[str, Any] = {}
            if checkpoint == SCRATCH:
                self.model.init_weights()
            else:
                learned_meta = runs.load_whole(self.model, checkpoint)
            dataset = runs.test_dataset(cfg)
            self.meta = runs.dataset_meta(dataset, self.scope, learned_meta)
            steps = [
                step
                for step in dataset.pipeline
                if not any(word in type_name(step) for word in OF_TRUTH)
            ]
            self.pipeline = Compose(steps)
        self.source = Source.of(config, checkpoint, cfg, steps)

    @property
    def classes(self) -> Any:
        """Names of the classes, by label."""
        return self.meta.get('classes') or ()

    @torch.no_grad()
    def predict(self, path: Path) -> Any:
        """The data sample of a photo."""
        photo = dict(img_path=str(path), img_id=0, reduce_zero_label=False)
        with DefaultScope.overwrite_default_scope(self.scope):
            packed = self.pipeline(photo)
            batch = dict(
                inputs=[packed['inputs']], data_samples=[packed['data_samples']]
            )
            return self.model.test_step(batch)[0].cpu()

    def draw_boxes(self, pixels: np.ndarray, sample: Any, score: float) -> np.ndarray:
        """A photo (H, W, 3), uint8, RGB, with a detector's predictions as MMDetection
        draws them, or MMRotate rotated ones."""
        drawn: list[np.ndarray] = []
        with DefaultScope.overwrite_default_scope(self.scope):
            is_rotated = sample.pred_instances.bboxes.shape[-1] == 5
            kind = 'RotLocalVisualizer' if is_rotated else 'DetLocalVisualizer'
            visualizer = VISUALIZERS.build(dict(type=kind, name=kind))
            visualizer.add_image = lambda name, image, step=0: drawn.append(image)
            visualizer.dataset_meta = self.meta
            visualizer.add_datasample(
                '', pixels, sample, draw_gt=False, pred_score_thr=score
            )
        return drawn[0]

    def draw_labels(
        self, pixels: np.ndarray, label_map: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[str, Color]]]:
        """A photo with the colors of a label map, and their legend."""
        return draw_label_map(pixels, label_map, self.classes, self.meta.get('palette'))


def run_folder(checkpoints: Sequence[str]) -> Path:
    """The folder for the predictions of a single run, or that for several."""
    path = Path(checkpoints[0])
    is_alone = len(checkpoints) == 1 and path.is_file()
    return path.parent / 'predictions' if is_alone else OUT


def summary(prediction: dict[str, Any]) -> str:
    """Numbers of a prediction in words, below the name of its model."""
    if 'classes' in prediction:
        lines = [
            f'{shorten(entry["name"], 28, placeholder="...")}: {entry["score"]:.1%}'
            for entry in prediction['classes']
        ]
        return '\n'.join(lines)
    return ', '.join(f'{name}: {len(entries)}' for name, entries in prediction.items())


@dataclass(frozen=True)
class Comparison:
    """The predictions of models for a photo.

    Attributes:
        picture (Image): The photo, and its predictions beside it.
        record (dict): Their numbers, in JSON's types.
        label_maps (dict[int, ndarray]): Label maps (H, W), by place of their model.
    """

    picture: Image.Image
    record: dict[str, Any]
    label_maps: dict[int, np.ndarray]


def compare(path: Path, subjects: Sequence[Subject], score: float) -> Comparison:
    """Predicts a photo with all models."""
    pixels = mmcv.imread(str(path), channel_order='rgb')
    panels = [Panel(pixels, ['image'])]
    models: list[dict[str, Any]] = []
    label_maps: dict[int, np.ndarray] = {}
    for i, subject in enumerate(subjects):
        sample = subject.predict(path)
        predictions = runs.predictions_of(sample)
        picture, legend = pixels, list[tuple[str, Color]]()
        if 'label_map' in predictions:
            label_maps[i] = predictions['label_map']
            picture, legend = subject.draw_labels(pixels, label_maps[i])
        elif 'boxes' in predictions:
            predictions = above(predictions, score)
            picture = subject.draw_boxes(pixels, sample, score)
        prediction = as_json(predictions, subject.classes)
        title = Path(subject.source.config).stem
        lines = [] if legend else summary(prediction).splitlines()
        panels.append(Panel(picture, [title, *lines], legend))
        models.append({**asdict(subject.source), **prediction})
    record = dict(image=path.name, file=state_of(path), score=score, models=models)
    return Comparison(side_by_side(panels), record, label_maps)


@dataclass(frozen=True)
class Outputs:
    """The files that are written for a photo."""

    numbers: Path
    picture: Path
    label_maps: list[Path]  # one for each model

    @classmethod
    def of(cls, folder: Path, name: str, num_models: int) -> 'Outputs':
        """The files for a photo of a name in a folder."""
        endings = [f'_{i + 1}' if num_models > 1 else '' for i in range(num_models)]
        return cls(
            numbers=folder / f'{name}_predictions.json',
            picture=folder / f'{name}_predictions.png',
            label_maps=[folder / f'{name}_labels{ending}.png' for ending in endings],
        )

    def write(self, comparison: Comparison) -> None:
        """Writes predictions; the numbers are the last, which say that all is there."""
        self.numbers.unlink(missing_ok=True)  # they may be of other models
        for i, label_map in comparison.label_maps.items():
            save_label_map(label_map, self.label_maps[i])
        save_picture(comparison.picture, self.picture)
        save(comparison.record, self.numbers)


def find_left(
    photos: Sequence[Path], subjects: Sequence[Subject], args: argparse.Namespace
) -> dict[Path, Outputs]:
    """The photos that are left to predict, and their files."""
    stems = Counter(photo.stem for photo in photos)  # a.jpg and a.png differ
    sources = [asdict(subject.source) for subject in subjects]
    left = {}
    num_outdated = 0
    for photo in photos:
        name = photo.stem if stems[photo.stem] == 1 else photo.name
        outputs = Outputs.of(args.out, name, len(subjects))
        record = None if args.overwrite else read_record(outputs.numbers)
        if not is_done(outputs.numbers, record, photo, sources, args.score):
            left[photo] = outputs
            num_outdated += record is not None
    if len(left) < len(photos):
        num_earlier = len(photos) - len(left)
        text = f'{num_earlier} images are predicted already, {len(left)} remain'
        print(f'{args.out}: {text}')
    if num_outdated:
        print(
            f'{args.out}: {num_outdated} images have changed, or were predicted with '
            'another --score, size or state of the weights: they are predicted again'
        )
    return left


def predict_all(
    left: dict[Path, Outputs],
    subjects: Sequence[Subject],
    args: argparse.Namespace,
    most_failures: int,
) -> int:
    """Predicts photos, and writes each at once, so that an interruption loses none;
    returns the number of those that fail, each of which costs a line.

    Raises:
        ValueError: If so many fail that there are no predictions.
    """
    failed = 0
    for photo in track_iter_progress(list(left), file=sys.stderr):
        outputs = left[photo]
        cli.protect(args, outputs.numbers, outputs.picture, *outputs.label_maps)
        try:
            comparison = compare(photo, subjects, args.score)
        except Exception as error:
            failed += 1
            text = f'{photo}: not predicted: {type(error).__name__}: {error}'
            if is_own_fault(error):
                raise
            if failed == most_failures:
                raise ValueError(text) from error
            print(file=sys.stderr)  # behind the progress
            note(text)
            continue
        outputs.write(comparison)
    return failed


def run(args: argparse.Namespace) -> None:
    """Predicts the photos that have no predictions of these models."""
    checkpoints = args.checkpoint or [SCRATCH] * len(args.configs)
    if len(checkpoints) != len(args.configs):
        text = f'one value for each config, {len(args.configs)}, got {len(checkpoints)}'
        raise ValueError(f'--checkpoint takes {text}')
    args.out = args.out or run_folder(checkpoints)
    photos = find_photos(Path(args.image).expanduser())
    device = args.device or get_device()
    subjects = [
        Subject(config, checkpoint, device)
        for config, checkpoint in zip(args.configs, checkpoints)
    ]
    for draft in args.out.glob(DRAFTS):  # of a process that was killed
        draft.unlink(missing_ok=True)
    left = find_left(photos, subjects, args)
    failed = predict_all(left, subjects, args, len(photos))
    text = f', {failed} could not be predicted' if failed else ''
    num = len(left) - failed
    print(f'{args.out}: wrote pictures and numbers of {num} images{text}')


def main(argv: Optional[Sequence[str]] = None) -> None:
    """The command."""
    args = parse_args(argv)
    errors = cli.errors_in_one_line(*cli.INPUT_ERRORS)
    with errors, quiet():
        run(args)


if __name__ == '__main__':
    main()
