"""Predictions of detectors, segmentors and classifiers, as pictures and numbers.

Legend: (H, W) size in pixels.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mmengine.registry import DATASETS, VISUALIZERS, DefaultScope

from mmlinattn.weights import read_checkpoint

from .command import Subject
from .figures import COLORS, new_figure, tidy
from .images import read_pixels

PANEL = 4.0  # inches
LINE = 0.18  # inches of a line of a title
SHOWN = 5  # classes of a classifier's prediction


def kind_of(subject: Subject) -> str:
    """What a model does: 'segmentor', 'detector', 'classifier', or '' if unknown."""
    model: Any = subject.model
    if hasattr(model, 'decode_head'):
        return 'segmentor'
    if hasattr(model, 'bbox_head') or hasattr(model, 'roi_head'):
        return 'detector'
    return 'classifier' if getattr(model, 'head', None) is not None else ''


def dataset_meta(subject: Subject) -> dict[str, Any]:
    """Names and colors of classes: the checkpoint's, or those of the test data."""
    meta: dict[str, Any] = {}
    if subject.checkpoint:
        found = read_checkpoint(subject.checkpoint, 'checkpoint')
        meta = found.get('meta') or {}
    meta = meta.get('dataset_meta') or {}
    if meta.get('classes'):
        return meta
    dataset = subject.cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    given = dict(dataset.get('metainfo') or {})
    scope = subject.cfg.get('default_scope', 'mmengine')
    with DATASETS.switch_scope_and_registry(scope) as registry:
        kind = registry.get(dataset.type)
    return {**getattr(kind, 'METAINFO', {}), **given}


def class_name(meta: dict[str, Any], label: int) -> str:
    """Name of a class, or its number where no name is known."""
    classes = meta.get('classes') or ()
    return str(classes[label]) if label < len(classes) else str(label)


def predict(subject: Subject, path: Path) -> Any:
    """The library's data sample of an image, with its predictions."""
    scope = subject.cfg.get('default_scope', 'mmengine')
    with DefaultScope.overwrite_default_scope(scope), torch.no_grad():
        sample = subject.pipeline(
            dict(img_path=str(path), img_id=0, reduce_zero_label=False)
        )
        batch = dict(inputs=[sample['inputs']], data_samples=[sample['data_samples']])
        model: Any = subject.model
        return model.test_step(batch)[0].cpu()


def draw_prediction(
    subject: Subject, meta: dict[str, Any], image: np.ndarray, sample: Any, score: float
) -> np.ndarray:
    """An image with predictions as the library draws them.

    Args:
        subject (Subject): A detector or a segmentor.
        meta (dict): See :func:`dataset_meta`.
        image (np.ndarray): (H, W, 3), uint8, RGB.
        sample: See :func:`predict`.
        score (float): The lowest score of a detection that is drawn.

    Returns:
        np.ndarray: (H, W, 3), uint8, RGB.
    """
    segments = kind_of(subject) == 'segmentor'
    kind = 'SegLocalVisualizer' if segments else 'DetLocalVisualizer'
    scope = subject.cfg.get('default_scope', 'mmengine')
    with (
        DefaultScope.overwrite_default_scope(scope),
        tempfile.TemporaryDirectory() as folder,
    ):
        visualizer = VISUALIZERS.build(dict(type=kind, name=kind))
        visualizer.dataset_meta = {
            key: meta[key] for key in ('classes', 'palette') if key in meta
        }
        options = {} if segments else dict(pred_score_thr=score)
        file = str(Path(folder, 'drawn.png'))
        visualizer.add_datasample(
            'drawn', image, sample, draw_gt=False, out_file=file, **options
        )
        return read_pixels(Path(file))


def prediction_numbers(
    sample: Any, meta: dict[str, Any], score: float
) -> dict[str, Any]:
    """What is predicted, in numbers.

    Returns:
        dict: Of a segmentor ``shares``, parts of the pixels by class; of a detector
        ``boxes``, (x1, y1, x2, y2) in pixels of the image, ``scores`` and ``classes``;
        of a classifier ``probabilities`` of the likeliest classes.
    """
    if 'pred_sem_seg' in sample:
        labels, counts = np.unique(sample.pred_sem_seg.data, return_counts=True)
        shares = (counts / counts.sum()).tolist()
        return dict(shares=_by_name(meta, labels.tolist(), shares))
    if 'pred_score' in sample:
        values, labels = sample.pred_score.sort(descending=True)
        likeliest = labels[:SHOWN].tolist(), values[:SHOWN].tolist()
        return dict(probabilities=_by_name(meta, *likeliest))
    found = sample.pred_instances
    found = found[found.scores >= score]
    return dict(
        boxes=found.bboxes.tolist(),
        scores=found.scores.tolist(),
        classes=[class_name(meta, label) for label in found.labels.tolist()],
    )


def _by_name(
    meta: dict[str, Any], labels: list[int], values: list[float]
) -> dict[str, float]:
    """Names are kept apart where two classes have one."""
    names: dict[str, float] = {}
    for label, value in zip(labels, values):
        name = class_name(meta, label)
        names[f'{name} ({label})' if name in names else name] = value
    return names


def summary(numbers: dict[str, Any]) -> str:
    """Numbers of :func:`prediction_numbers` in a line."""
    if 'probabilities' in numbers:
        return str(next(iter(numbers['probabilities'])))
    what, one, more = (
        ('shares', 'class', 'classes')
        if 'shares' in numbers
        else ('boxes', 'object', 'objects')
    )
    num = len(numbers[what])
    return f'{num} {one if num == 1 else more}'


class Prediction(NamedTuple):
    """What a model says of an image.

    Attributes:
        label (str): Name of the model.
        numbers (dict): See :func:`prediction_numbers`.
        pixels (np.ndarray | None): See :func:`draw_prediction`; None of a classifier.
    """

    label: str
    numbers: dict[str, Any]
    pixels: Optional[np.ndarray]


def look_at(
    subject: Subject, meta: dict[str, Any], path: Path, score: float
) -> Prediction:
    """Predicts and draws; arguments as those of the functions above.

    Raises:
        ValueError: If the model neither detects, segments nor classifies.
    """
    kind = kind_of(subject)
    if not kind:
        raise ValueError(
            f'{subject.config}: {type(subject.model).__name__} is neither a detector, '
            'a segmentor nor a classifier'
        )
    sample = predict(subject, path)
    pixels = None
    if kind != 'classifier':
        pixels = draw_prediction(subject, meta, read_pixels(path), sample, score)
    numbers = prediction_numbers(sample, meta, score)
    return Prediction(subject.label, numbers, pixels)


def draw_predictions(image: np.ndarray, predictions: Sequence[Prediction]) -> Figure:
    """Draws an image and the predictions of models side by side.

    Args:
        image (np.ndarray): (H, W, 3), uint8, RGB.
        predictions (list[Prediction]): One for each model.
    """
    height, width = image.shape[:2]
    columns = 1 + len(predictions)
    titles = [f'{x.label}\n{summary(x.numbers)}' for x in predictions]
    room = 0.3 + LINE * max(title.count('\n') + 1 for title in titles)
    figure = new_figure(PANEL * columns, max(PANEL * height / width, 2.0) + room)
    first, *others = figure.subplots(1, columns, squeeze=False)[0]
    _show(first, image, 'image')
    for axes, prediction, title in zip(others, predictions, titles):
        if prediction.pixels is None:
            _draw_probabilities(axes, prediction.numbers['probabilities'], title)
        else:
            _show(axes, prediction.pixels, title)
    return figure


def _show(axes: Axes, pixels: np.ndarray, title: str) -> None:
    axes.imshow(pixels)
    axes.set_title(title, fontsize=9)
    axes.axis('off')


def _draw_probabilities(axes: Axes, values: dict[str, float], title: str) -> None:
    names = [shorten(name, 28, placeholder='...') for name in values]
    places = range(len(names))
    axes.barh(places, list(values.values()), color=COLORS[0], height=0.6)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    tidy(axes, title, 'probability', '')
    axes.title.set_fontsize(9)
    axes.set_xlim(0, 1.05 * max(values.values()))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(axis='y', visible=False)
