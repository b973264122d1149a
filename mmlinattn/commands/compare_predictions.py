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
classes. With --format coco, a detector's objects in all images are also written to
coco.json, a data set for annotation tools, and coco_results.json, for pycocotools.

example:
  mmlinattn compare \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import argparse
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
from mmengine.device import get_device
from mmengine.utils import track_iter_progress
from PIL import Image

from mmlinattn.cli import parser as cli
from mmlinattn.cli.figures import save
from mmlinattn.cli.pictures import (
    Color,
    Panel,
    save_label_map,
    save_picture,
    side_by_side,
)
from mmlinattn.cli.run_arguments import note
from mmlinattn.deployment.predictor import above, as_json, state_of
from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.files import DRAFTS
from mmlinattn.utils.log import quiet

from .coco_files import CocoFiles, Detections
from .photo_files import find_photos, is_done, read_record
from .subjects import SCRATCH, Subject

OUT = Path('work_dirs', 'compare_predictions')
FORMATS = ('coco',)
# scopes of models without boxes
WITHOUT_BOXES = ('mmseg', 'mmpretrain', 'mmcls')


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
    add('--format', choices=FORMATS, help='also write detections as files of COCO')
    text = 'where models run (default: a GPU where there is one, as in training)'
    add('--device', help=text)
    cli.add_overwrite(parser)
    return parser.parse_args(argv)


def run_folder(checkpoints: Sequence[str]) -> Path:
    """Return the folder for the predictions of a single run, or that for several."""
    path = Path(checkpoints[0])
    is_alone = len(checkpoints) == 1 and path.is_file()
    return path.parent / 'predictions' if is_alone else OUT


def summary(prediction: dict[str, Any]) -> str:
    """Return numbers of a prediction in words, below the name of its model."""
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
    """Predict a photo with all models."""
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
    def of_all(
        cls, folder: Path, photos: Sequence[Path], num_models: int
    ) -> 'dict[Path, Outputs]':
        """Return the files in a folder for each photo."""
        stems = Counter(photo.stem for photo in photos)  # a.jpg and a.png differ
        names = {
            photo: photo.stem if stems[photo.stem] == 1 else photo.name
            for photo in photos
        }
        return {
            photo: cls.of(folder, name, num_models) for photo, name in names.items()
        }

    @classmethod
    def of(cls, folder: Path, name: str, num_models: int) -> 'Outputs':
        """Return the files for a photo of a name in a folder."""
        endings = [f'_{i + 1}' if num_models > 1 else '' for i in range(num_models)]
        return cls(
            numbers=folder / f'{name}_predictions.json',
            picture=folder / f'{name}_predictions.png',
            label_maps=[folder / f'{name}_labels{ending}.png' for ending in endings],
        )

    def write(self, comparison: Comparison) -> None:
        """Write predictions; the numbers are the last, which say that all is there."""
        self.numbers.unlink(missing_ok=True)  # they may be of other models
        for i, label_map in comparison.label_maps.items():
            save_label_map(label_map, self.label_maps[i])
        save_picture(comparison.picture, self.picture)
        save(comparison.record, self.numbers)


def check_boxes(subjects: Sequence[Subject]) -> None:
    """Raise a ValueError for a model that detects no objects."""
    for subject in subjects:
        if subject.scope in WITHOUT_BOXES:
            raise ValueError(
                f'--format coco needs a detector, got {subject.source.config}, a model '
                f'of {subject.scope}: leave --format out'
            )


def coco_files(folder: Path, num_models: int) -> list[CocoFiles]:
    """Return the files of COCO, a pair for each model."""
    numbers = [f'{i + 1}' for i in range(num_models)] if num_models > 1 else ['']
    return [CocoFiles.of(folder, number) for number in numbers]


def write_coco(
    outputs: dict[Path, Outputs], subjects: Sequence[Subject], folder: Path
) -> None:
    """Write the detections of all images that are predicted in COCO's format."""
    records = {photo: read_record(files.numbers) for photo, files in outputs.items()}
    for i, files in enumerate(coco_files(folder, len(subjects))):
        images = [
            Detections(photo.name, photo, record['models'][i]['objects'])
            for photo, record in records.items()
            if record
        ]
        files.write(images, subjects[i].classes)
        print(f'{files.dataset} and {files.results.name}: {len(images)} images')


def find_left(
    outputs: dict[Path, Outputs], subjects: Sequence[Subject], args: argparse.Namespace
) -> dict[Path, Outputs]:
    """Return the photos that are left to predict, and their files, of all photos and
    files."""
    sources = [asdict(subject.source) for subject in subjects]
    left = {}
    num_outdated = 0
    for photo, files in outputs.items():
        record = None if args.overwrite else read_record(files.numbers)
        if not is_done(files.numbers, record, photo, sources, args.score):
            left[photo] = files
            num_outdated += record is not None
    if len(left) < len(outputs):
        num_earlier = len(outputs) - len(left)
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
    """Predict photos, and write each at once, so that an interruption loses none;
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
    """Predict the photos that have no predictions of these models."""
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
    if args.format:
        check_boxes(subjects)
        for coco in coco_files(args.out, len(subjects)):
            cli.check_free(args, *coco.to_protect)
    for draft in args.out.glob(DRAFTS):  # of a process that was killed
        draft.unlink(missing_ok=True)
    outputs = Outputs.of_all(args.out, photos, len(subjects))
    left = find_left(outputs, subjects, args)
    failed = predict_all(left, subjects, args, len(photos))
    text = f', {failed} could not be predicted' if failed else ''
    num = len(left) - failed
    print(f'{args.out}: wrote pictures and numbers of {num} images{text}')
    if args.format:
        write_coco(outputs, subjects, args.out)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    errors = cli.errors_in_one_line(*cli.INPUT_ERRORS)
    with errors, quiet():
        run(args)


if __name__ == '__main__':
    main()
