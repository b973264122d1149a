"""Draw predictions of detectors or segmentors side by side on the same images.

Each image gets a figure: the image, and the predictions of every model as its library
draws them. Boxes and masks with a score of --score or more are drawn. Detectors and
segmentors may be mixed.

Written to --out: IMAGE_predictions.png, and IMAGE_predictions.json with boxes, scores
and classes, or the share of pixels of each class.

example:
  python tools/analysis_tools/compare_predictions.py \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import argparse
import tempfile
from pathlib import Path

import cv2
import numpy as np
import torch
from mmengine.registry import DATASETS, VISUALIZERS, DefaultScope
from mmengine.utils import ProgressBar

from mmlinattn.utils.cli import Parser
from mmlinattn.visualization import (
    add_arguments,
    input_errors,
    load_subjects,
    new_figure,
    save,
    save_numbers,
)
from mmlinattn.weights import read_checkpoint

PANEL = 4.0  # inches


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'compare_predictions')
    parser.add_argument(
        '--score',
        type=part,
        default=0.3,
        metavar='S',
        help='the lowest score of a detection that is drawn (default: %(default)s)',
    )
    return parser.parse_args(argv)


def part(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number in 0...1')
    return value


def is_segmentor(subject):
    return hasattr(subject.model, 'decode_head')


def check(subject):
    """Refuses models that neither detect nor segment.

    Raises:
        ValueError: If it is one.
    """
    heads = ('bbox_head', 'roi_head', 'decode_head')
    if not any(hasattr(subject.model, head) for head in heads):
        raise ValueError(
            f'{subject.config}: {type(subject.model).__name__} is neither a detector '
            'nor a segmentor: give a config of mmdet or mmseg'
        )


def dataset_meta(subject):
    """Names and colors of classes: the checkpoint's, or those of the test data."""
    meta = {}
    if subject.checkpoint:
        meta = read_checkpoint(subject.checkpoint, 'checkpoint').get('meta') or {}
    meta = meta.get('dataset_meta') or {}
    if meta.get('classes'):
        return meta
    dataset = subject.cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    given = dict(dataset.get('metainfo') or {})
    return {**getattr(DATASETS.get(dataset.type), 'METAINFO', {}), **given}


def predict(subject, path):
    """The library's data sample of an image, with its predictions."""
    sample = subject.pipeline(
        dict(img_path=str(path), img_id=0, reduce_zero_label=False)
    )
    batch = dict(inputs=[sample['inputs']], data_samples=[sample['data_samples']])
    with torch.no_grad():
        return subject.model.test_step(batch)[0].cpu()


def draw_prediction(subject, meta, image, sample, score):
    """The image (H, W, 3) in RGB, with predictions drawn by the library."""
    kind = 'SegLocalVisualizer' if is_segmentor(subject) else 'DetLocalVisualizer'
    visualizer = VISUALIZERS.build(dict(type=kind, name=kind))
    visualizer.dataset_meta = {
        key: meta[key] for key in ('classes', 'palette') if key in meta
    }
    options = {} if is_segmentor(subject) else dict(pred_score_thr=score)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, 'drawn.png'))
        visualizer.add_datasample(
            'drawn', image, sample, draw_gt=False, out_file=file, **options
        )
        return cv2.cvtColor(cv2.imread(file), cv2.COLOR_BGR2RGB)


def numbers_of(sample, meta, score):
    """What is drawn, in numbers."""
    classes = list(meta.get('classes', []))

    def name(label):
        return classes[label] if label < len(classes) else str(label)

    if 'pred_sem_seg' in sample:
        labels, counts = np.unique(sample.pred_sem_seg.data, return_counts=True)
        shares = counts / counts.sum()
        return dict(shares={name(k): s for k, s in zip(labels, shares.tolist())})
    found = sample.pred_instances
    found = found[found.scores >= score]
    return dict(
        boxes=found.bboxes.tolist(),
        scores=found.scores.tolist(),
        classes=[name(label) for label in found.labels.tolist()],
    )


def summary(numbers):
    if 'shares' in numbers:
        return f'{len(numbers["shares"])} classes'
    return f'{len(numbers["boxes"])} objects'


def draw(image, panels):
    height, width = image.shape[:2]
    figure = new_figure(PANEL * (1 + len(panels)), PANEL * height / width + 0.6)
    for axes, (title, pixels) in zip(
        figure.subplots(1, 1 + len(panels)), [('image', image), *panels]
    ):
        axes.imshow(pixels)
        axes.set_title(title, fontsize=9)
        axes.axis('off')
    return figure


def compare(path, subjects, metas, args):
    """The figure of an image, and its numbers by model."""
    image = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    panels, models = [], []
    for subject, meta in zip(subjects, metas):
        with DefaultScope.overwrite_default_scope(subject.cfg.default_scope):
            sample = predict(subject, path)
            drawn = draw_prediction(subject, meta, image, sample, args.score)
        numbers = numbers_of(sample, meta, args.score)
        panels.append((f'{subject.label}\n{summary(numbers)}', drawn))
        models.append(dict(subject.describe(), **numbers))
    return draw(image, panels), models


def run(args):
    subjects, files = load_subjects(args, whole=True)
    metas = []
    for subject in subjects:
        check(subject)
        with DefaultScope.overwrite_default_scope(subject.cfg.default_scope):
            metas.append(dataset_meta(subject))
    bar, results = ProgressBar(len(files)), []
    for path in files:
        results.append((path, *compare(path, subjects, metas, args)))
        bar.update()
    print()
    for path, figure, models in results:
        out = args.out / f'{path.stem}_predictions.png'
        for written in save(figure, out, args.svg):
            print(written)
        numbers = dict(image=path.name, score=args.score, models=models)
        print(save_numbers(numbers, out.with_suffix('.json')))


def main(argv=None):
    args = parse_args(argv)
    with input_errors():
        run(args)


if __name__ == '__main__':
    main()
