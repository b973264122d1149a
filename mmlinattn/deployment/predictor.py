"""Runs a file of ``tools/deployment/export.py --whole`` on images.

This module needs onnxruntime and NumPy, and Pillow to read image files, but neither
torch nor any other part of this package: it can be copied to where the model is used.

    python predictor.py model.onnx photos --out predictions

writes predictions.json and pictures of the predictions. Letters: N boxes, K classes.
"""

import argparse
import colorsys
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Optional, Union

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    if __name__ != '__main__':
        raise
    sys.exit(f'{sys.executable}: {error}: pip install numpy onnxruntime pillow')

RESULT = 'predictions.json'
# what a folder of predictions was made with
RECORD = 'made_with.json'
KEYS = ('model', 'digest', 'threshold', 'images')
# predictions of a run that has not ended, a line for each image
LOG = 'predictions.part.jsonl'
PROVIDERS = dict(cuda='CUDAExecutionProvider', cpu='CPUExecutionProvider')
SUFFIXES = (
    *('.bmp', '.jfif', '.jpe', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.pnm'),
    *('.ppm', '.tif', '.tiff', '.webp'),
)
BEST_CLASSES = 5  # of a classifier
FORMATS_OF_16_BITS = ('PNG', 'TIFF')
DEPTH = (
    '16 bits, of which the upper 8 are read, as OpenCV does: {} gray levels are left; '
    'if these are few, write files of 8 bits, in which the range of the numbers is 0 '
    'to 255'
)
GAP = 4  # pixels between lines of text

# arrays by the names that Predictor gives them
Predictions = dict[str, np.ndarray]


class Predictor:
    """A model in a file, from an image to its predictions.

    Args:
        file (str | Path): An ONNX file that takes whole images.
        providers (list[str], optional): For ONNX Runtime, best first. Default: a GPU
            of CUDA where there is one, then the CPU.
        threads (int): Threads of an operator; with 0, ONNX Runtime chooses.

    Attributes:
        classes (list[str]): Names of the classes, by label.

    Raises:
        ValueError: If the file is of another kind.
    """

    def __init__(
        self,
        file: Union[str, Path],
        providers: Optional[list[str]] = None,
        threads: int = 0,
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # a pattern for each size of an image would stay in memory
        options.enable_mem_pattern = False
        if providers is None:
            available = onnxruntime.get_available_providers()
            providers = [name for name in PROVIDERS.values() if name in available]
        self.session = onnxruntime.InferenceSession(
            str(file), options, providers=providers
        )
        (model_input,) = self.session.get_inputs()
        if (model_input.name, model_input.type) != ('image', 'tensor(uint8)'):
            raise ValueError(
                f'{str(file)!r} takes {model_input.name}, {model_input.type}, not '
                'whole images: export the model with --whole'
            )
        self.outputs = [output.name for output in self.session.get_outputs()]
        metadata = self.session.get_modelmeta().custom_metadata_map
        self.notes = json.loads(metadata.get('notes', '{}'))
        self.classes = self.notes.get('classes', [])

    def __call__(
        self, image: Union[np.ndarray, str, Path], threshold: float = 0.0
    ) -> Predictions:
        """Return the predictions for an image. A file of 16 bits leads to a warning.

        Args:
            image (ndarray | str | Path): (H, W, 3), RGB, uint8, of any size; or a file.
            threshold (float): Boxes with lower scores are ignored.

        Returns:
            dict[str, ndarray]: A detector's ``boxes`` (N, 4), float32, as x1, y1, x2,
                y2 in pixels, ``scores`` (N,), float32, ``labels`` (N,), int64, best
                first, and ``masks`` (N, H, W), bool, if it has masks. A segmentor's
                ``label_map`` (H, W), int32. A classifier's ``scores`` (K,), float32.

        Raises:
            ValueError: If the array has another shape or dtype, or the threshold is no
                number.
        """
        if np.isnan(threshold):
            raise ValueError('threshold must be a number, got nan')
        if not isinstance(image, np.ndarray):
            path, image = image, read_image(image)
            levels = count_levels(path, image)
            if levels:
                warnings.warn(f'{path} has {DEPTH.format(levels)}', stacklevel=2)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise ValueError(
                f'an image must be (H, W, 3) uint8, got {image.shape} {image.dtype}'
            )
        arrays = self.session.run(None, {'image': image})
        predictions = dict(zip(self.outputs, arrays))
        if 'boxes' in predictions:
            predictions = above(predictions, threshold)
        if 'masks' in predictions:
            height, width, _ = image.shape
            least = self.notes.get('mask_threshold', 0.5)
            predictions['masks'] = paste(
                predictions['masks'], predictions['boxes'], (height, width), least
            )
        return predictions


def above(predictions: Predictions, threshold: float) -> Predictions:
    """Return a detector's predictions with a score of the threshold or more."""
    chosen = predictions['scores'] >= threshold
    return {name: array[chosen] for name, array in predictions.items()}


def paste(
    cells: np.ndarray, boxes: np.ndarray, shape: tuple[int, int], threshold: float
) -> np.ndarray:
    """Return masks of boxes, resized bilinearly and put at their places.

    Args:
        cells (ndarray): (N, h, w), probabilities.
        boxes (ndarray): (N, 4), x1, y1, x2, y2.
        shape (tuple[int]): Height and width of the image.
        threshold (float): Least probability of a pixel of the object.

    Returns:
        ndarray: (N, H, W), bool.
    """
    masks = np.zeros((len(cells), *shape), bool)
    for mask, probabilities, (x1, y1, x2, y2) in zip(masks, cells, boxes):
        rows, y = _weights(y1, y2, shape[0], cells.shape[1])
        columns, x = _weights(x1, x2, shape[1], cells.shape[2])
        mask[rows, columns] = y @ probabilities @ x.T >= threshold
    return masks


def _weights(
    first: float, last: float, pixels: int, cells: int
) -> tuple[slice, np.ndarray]:
    """Return the pixels that a side of a box touches, and the weights (pixels,
    cells)."""
    begin, end = max(int(first) - 1, 0), min(int(np.ceil(last)) + 1, pixels)
    places = np.arange(begin, end, dtype=np.float32) + np.float32(0.5)
    places = (places - first) / np.float32(max(last - first, 1e-6)) * cells - 0.5
    distances = np.abs(places[:, None] - np.arange(cells, dtype=np.float32))
    return slice(begin, end), np.maximum(1 - distances, 0).astype(np.float32)


def read_image(path: Union[str, Path]) -> np.ndarray:
    """Return an image file as (H, W, 3), RGB, uint8, the pixels that OpenCV reads.

    It is turned according to its EXIF data, except a WebP file; of 16 bits, the upper
    8 are taken.

    Raises:
        OSError: If it is damaged, or no image.
        ValueError: If it has 32 bits, which OpenCV does not read.
    """
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = None  # satellites' images are no attacks
    with Image.open(path) as image:
        turned = image if image.format == 'WEBP' else ImageOps.exif_transpose(image)
        if turned.mode[0] not in 'FI':  # all but gray of 16 or 32 bits
            return np.array(turned.convert('RGB'))
        pixels = np.array(turned)
        # a TIFF file of 16 bits has another mode
        has_32_bits = pixels.dtype.kind == 'f' or (
            image.format == 'TIFF' and pixels.dtype.itemsize > 2
        )
        if has_32_bits or pixels.min() < 0 or pixels.max() >= 2**16:
            raise ValueError(f'{str(path)!r}: pixels of 32 bits are not read')
        return np.repeat((pixels >> 8).astype(np.uint8)[..., None], 3, axis=2)


def count_levels(path: Union[str, Path], image: np.ndarray) -> int:
    """Return how many gray levels :func:`read_image` leaves of a file of 16 bits; 0 for
    one of 8 bits."""
    from PIL import Image

    with Image.open(path) as file:
        if file.format not in FORMATS_OF_16_BITS:
            return 0
        # how pixels are packed, such as I;16 or RGB;16B
        packings = [
            arguments if isinstance(arguments, str) else (arguments or [''])[0]
            for *_, arguments in file.tile
        ]
    if not any(';16' in packing for packing in packings):
        return 0
    return max(
        np.count_nonzero(np.bincount(band.ravel())) for band in np.moveaxis(image, 2, 0)
    )


def as_json(predictions: Predictions, classes: list[str]) -> dict[str, Any]:
    """Return predictions in JSON's types: a detector's objects, the best classes of a
    classifier, or the share of each class in a label map."""
    if 'label_map' in predictions:
        shares = _shares(predictions['label_map']).items()
        return {'shares': {_class_name(label, classes): x for label, x in shares}}
    if 'boxes' in predictions:
        return {'objects': _objects(predictions, classes)}
    return {'classes': _best_classes(predictions['scores'], classes)}


def _class_name(label: int, classes: list[str]) -> str:
    return classes[label] if label < len(classes) else str(label)


def _shares(label_map: np.ndarray) -> dict[int, float]:
    """Return the share of pixels of each label that is in a label map."""
    labels, counts = np.unique(label_map, return_counts=True)
    return dict(zip(labels.tolist(), (counts / counts.sum()).tolist()))


def _best_classes(scores: np.ndarray, classes: list[str]) -> list[dict[str, Any]]:
    """Return the classes of the highest scores (K,), best first."""
    best = np.argsort(-scores)[:BEST_CLASSES].tolist()
    return [
        dict(name=_class_name(label, classes), score=float(scores[label]))
        for label in best
    ]


def _objects(predictions: Predictions, classes: list[str]) -> list[dict[str, Any]]:
    """Return a detector's objects, with masks as COCO's uncompressed runs."""
    objects: list[dict[str, Any]] = [
        dict(name=_class_name(label, classes), score=score, box=box)
        for label, score, box in _scored_boxes(predictions)
    ]
    for entry, mask in zip(objects, predictions.get('masks', ())):
        entry['mask'] = dict(size=list(mask.shape), counts=_runs(mask))
    return objects


def _runs(mask: np.ndarray) -> list[int]:
    """Return lengths of runs of zeros and of ones in turn, down the columns."""
    flat = np.concatenate([[False], mask.T.ravel()])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return np.diff(np.concatenate([[0], changes, [mask.size]])).tolist()


def gray_image(labels: np.ndarray) -> Any:
    """Return the ids of a label map (H, W) as a gray Pillow image, of 16 bits if 8 are
    too few."""
    from PIL import Image

    dtype = np.uint8 if labels.max(initial=0) < 256 else np.uint16
    return Image.fromarray(labels.astype(dtype))


def draw(image: np.ndarray, predictions: Predictions, classes: list[str]) -> Any:
    """Return a Pillow picture of an image and the predictions for it."""
    from PIL import Image, ImageDraw

    colors = np.array(
        [colorsys.hsv_to_rgb(i * 0.618 % 1, 0.8, 0.9) for i in range(256)]
    )
    colors = (255 * colors).astype(np.uint8)
    picture = Image.fromarray(_paint_areas(image, predictions, colors))
    pen, font = ImageDraw.Draw(picture), _font(picture.width)
    fills = [tuple(color) for color in colors.tolist()]
    for label, score, box in _scored_boxes(predictions):
        fill = fills[label % 256]
        pen.rectangle(box, outline=fill, width=max(2, picture.width // 400))
        text = f'{_class_name(label, classes)} {score:.2f}'
        _write_line(pen, text, box[:2], fill, font)
    top: float = GAP
    for line, label_of_line in _legend(predictions, classes):
        patch = None if label_of_line is None else fills[label_of_line % 256]
        top = _write_line(pen, line, (GAP, top), patch, font) + GAP
    return picture


def _scored_boxes(predictions: Predictions) -> Iterator[tuple[int, float, list[float]]]:
    """Yield the label, the score and the box of each of a detector's objects."""
    names = ('labels', 'scores', 'boxes') if 'boxes' in predictions else ()
    yield from zip(*(predictions[name].tolist() for name in names))


def _legend(
    predictions: Predictions, classes: list[str]
) -> list[tuple[str, Optional[int]]]:
    """Return lines for a whole image: the classes of a label map with their labels, or
    the best ones of a classifier, which have no color."""
    if 'label_map' in predictions:
        shares = _shares(predictions['label_map']).items()
        return [
            (f'{_class_name(label, classes)} {x:.0%}', label) for label, x in shares
        ]
    if 'boxes' in predictions:
        return []
    best = _best_classes(predictions['scores'], classes)
    return [(f'{entry["name"]} {entry["score"]:.2f}', None) for entry in best]


def _font(width: int) -> Any:
    """Return a font that can be read in a picture of a width in pixels; Pillow below
    10.1 has one size."""
    from PIL import ImageFont

    try:
        return ImageFont.load_default(max(12, width // 45))
    except TypeError:
        return ImageFont.load_default()


def _write_line(pen: Any, text: str, place: Any, fill: Any, font: Any) -> float:
    """Write white letters with a dark border on a patch, and return where it ends."""
    _, _, right, bottom = pen.textbbox(place, text, font=font, stroke_width=1)
    if fill is not None:
        pen.rectangle([*place, right + 1, bottom + 1], fill=fill)
    pen.text(place, text, 'white', font, stroke_width=1, stroke_fill='black')
    return bottom + 1


def _paint_areas(
    image: np.ndarray, predictions: Predictions, colors: np.ndarray
) -> np.ndarray:
    """Return an image (H, W, 3) under the colors (256, 3) of its label map or masks."""
    pixels = image.copy()
    if 'label_map' in predictions:
        pixels = pixels // 2 + colors[predictions['label_map'].astype(int) % 256] // 2
    if 'masks' in predictions:
        for mask, label in zip(predictions['masks'], predictions['labels']):
            pixels[mask] = pixels[mask] // 2 + colors[label % 256] // 2
    return pixels


def find_images(place: Path) -> dict[str, Path]:
    """Return an image, or those of a folder by their names in it, without what this
    command wrote there."""
    if not place.is_dir():
        return {place.name: place} if place.is_file() else {}
    paths = sorted(path for path in place.rglob('*') if path.suffix.lower() in SUFFIXES)
    written = {file.parent for file in place.rglob(RECORD) if read_record(file)}
    return {
        str(path.relative_to(place)): path
        for path in paths
        if path.is_file() and not written.intersection(path.parents)
    }


def state_of(path: Path) -> list[float]:
    """Return size and time of a file, which tell whether it has changed."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime]


class Origin(NamedTuple):
    """What predictions of an image were made of, in JSON's types."""

    model: Any  # what tells it from other models
    settings: Any  # what else the predictions depend on, such as the least score
    image: Any  # the state of its file


def is_up_to_date(earlier: Origin, current: Origin, place: str, title: str) -> bool:
    """Return whether earlier predictions at a place are those that would be made now;
    the title describes them.

    Raises:
        FileExistsError: If they are of another model.
    """
    if earlier.model != current.model:
        refuse_to_replace(place, title)
    return earlier == current


def refuse_to_replace(place: str, title: str) -> NoReturn:
    """Raise a FileExistsError for predictions that can't be made again."""
    raise FileExistsError(
        f'{place} has predictions of {title}: give another --out, or --overwrite to '
        'replace them'
    )


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Let a file appear under its name only when it is whole and on the disk; the
    caller writes the yielded draft."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        yield draft
        with draft.open('rb+') as file:
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any]:
    """Return the dict in a JSON file, or an empty one where there is none."""
    try:
        content = json.loads(path.read_text('utf-8'))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def read_record(path: Path) -> dict[str, Any]:
    """Return what a file of this command says of its folder, or an empty dict for a
    file of others."""
    record = read_json(path)
    ours = record.keys() == set(KEYS) and isinstance(record['images'], dict)
    return record if ours else {}


@dataclass
class Folder:
    """A folder of predictions, and what they were made with.

    ``digest`` is the MD5 sum of the model's file, ``threshold`` the least score of a
    box. By the images' names, ``images`` has the states of their files, and
    ``predictions`` what :func:`as_json` returns. Until a run ends, its predictions are
    in a log, from which the next run goes on if this one is killed.
    """

    path: Path
    model: str = 'an unknown model'
    digest: Optional[str] = None
    threshold: Optional[float] = None
    images: dict[str, Any] = field(default_factory=dict)
    predictions: dict[str, Any] = field(default_factory=dict)
    begun: bool = False

    @classmethod
    def read(cls, path: Path) -> 'Folder':
        """Return a folder that this command wrote, or an empty one.

        Raises:
            FileExistsError: If it has files of others.
        """
        record = read_record(path / RECORD)
        if not record:
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise FileExistsError(
                    f'--out {str(path)!r} exists, without the {RECORD} of this '
                    'command: give another --out'
                )
            return cls(path)
        folder = cls(path, **record)
        for name, prediction in read_json(path / RESULT).items():
            if name in folder.images:
                folder.predictions[name] = prediction
        folder.read_log()
        return folder

    def read_log(self) -> None:
        """Add the predictions of a run that was killed, perhaps within a line."""
        log = self.path / LOG
        for line in log.read_bytes().splitlines() if log.is_file() else ():
            try:
                name, state, prediction = json.loads(line)
            except ValueError:
                continue
            self.images[name], self.predictions[name] = state, prediction

    def take_over(self, earlier: 'Folder', images: dict[str, Path]) -> str:
        """Add predictions of an earlier run that are up to date; return a note on
        others, which are made again.

        Raises:
            FileExistsError: If they would be lost.
        """
        place = f'--out {str(self.path)!r}'
        title = f'{earlier.model} with --threshold {earlier.threshold}'
        title += ', or of an older state of it'
        outdated = 0
        for name, prediction in earlier.predictions.items():
            old = Origin(earlier.digest, earlier.threshold, earlier.images.get(name))
            state = state_of(images[name]) if name in images else old.image
            new = Origin(self.digest, self.threshold, state)
            if is_up_to_date(old, new, place, title):
                self.predictions[name] = prediction
                self.images[name] = state
            elif name in images:
                outdated += 1
            else:
                refuse_to_replace(place, title)
        if outdated and earlier.threshold != self.threshold:
            return f'were made with --threshold {earlier.threshold}'
        return f'were made of {outdated} other images' if outdated else ''

    def begin(self) -> None:
        """Before its first file, removes what this run does not take over."""
        if not self.begun:
            self.save()
            self.begun = True

    def add(self, name: str, state: Any, prediction: dict[str, Any]) -> None:
        """Add the prediction for an image, and keep it on the disk."""
        with (self.path / LOG).open('a', encoding='utf-8') as file:
            file.write(json.dumps([name, state, prediction]) + '\n')
        self.images[name], self.predictions[name] = state, prediction

    def save(self) -> None:
        """Write the predictions, and what they were made with, in an order in which
        nothing is lost and no model has another one's predictions at any moment."""
        steps = [self._write_result, self._write_record, self._remove_log]
        if not self.predictions:  # those on the disk may be of another model
            steps = [self._write_result, self._remove_log, self._write_record]
        for step in steps:
            step()

    def _write_result(self) -> None:
        if self.predictions:
            write_json(self.predictions, self.path / RESULT)
        else:
            (self.path / RESULT).unlink(missing_ok=True)

    def _write_record(self) -> None:
        write_json({key: getattr(self, key) for key in KEYS}, self.path / RECORD)

    def _remove_log(self) -> None:
        (self.path / LOG).unlink(missing_ok=True)


def refuse_others(path: Path) -> None:
    """Raise a FileExistsError for a folder with the predictions of another program,
    whose file may have the same name."""
    if (path / RESULT).exists() and not read_record(path / RECORD):
        raise FileExistsError(
            f'{path / RESULT} is of another program: give another --out'
        )


def write_json(content: dict[str, Any], path: Path) -> None:
    """Write a JSON file, whole or not at all."""
    with whole_file(path) as draft:
        draft.write_text(json.dumps(content), encoding='utf-8')


def save_png(picture: Any, path: Path) -> None:
    """Write a Pillow image, whole or not at all."""
    with whole_file(path) as draft:
        picture.save(draft, format='PNG')


def one_line(error: object) -> str:
    """Return a message without line breaks."""
    return ' '.join(str(error).split())


def predict_file(
    predictor: Predictor, path: Path, threshold: float
) -> tuple[np.ndarray, Predictions]:
    """Return the pixels of an image file, and the predictions for it.

    Raises:
        ValueError: If it can't be read, or is such as a strip that a model can't take.
    """
    try:
        image = read_image(path)
    except Exception as error:  # Pillow's have no common class
        raise ValueError(f'not read: {path}: {one_line(error)}') from error
    try:
        return image, predictor(image, threshold)
    except Exception as error:  # those of ONNX Runtime have none, either
        size = f'{image.shape[1]} x {image.shape[0]} pixels'
        raise ValueError(f'not predicted: {path}: {size}: {one_line(error)}') from error


def predict_all(predictor: Predictor, images: dict[str, Path], folder: Folder) -> int:
    """Add the predictions for images to a folder, with pictures of them; return the
    number of those that can't be read or predicted, each of which costs a line."""
    failed = 0
    levels: dict[Path, int] = {}  # of images of 16 bits
    for i, (name, path) in enumerate(images.items(), 1):
        try:
            state = state_of(path)
            image, predictions = predict_file(predictor, path, folder.threshold or 0)
        except (OSError, ValueError) as error:
            print(f'\rpredictor.py: {error}', file=sys.stderr)
            failed += 1
            continue
        folder.begin()
        picture = folder.path / f'{name}.png'
        save_png(draw(image, predictions, predictor.classes), picture)
        if 'label_map' in predictions:
            labels = gray_image(predictions['label_map'])
            save_png(labels, folder.path / f'{name}.labels.png')
        folder.add(name, state, as_json(predictions, predictor.classes))
        num_levels = count_levels(path, image)
        if num_levels:
            levels[path] = num_levels
        print(f'\r{i} of {len(images)}', end='', file=sys.stderr, flush=True)
    if levels:
        path, least = min(levels.items(), key=lambda item: item[1])
        text = f'{len(levels)} images, such as {path}, have {DEPTH.format(least)}'
        print(f'\rpredictor.py: {text}', file=sys.stderr)
    return failed


def share(text: str) -> float:
    """Type of an argument from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f'must be 0 to 1, got {text}')
    return value


def make_parser() -> argparse.ArgumentParser:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(
        description='Predict with the ONNX file of a whole model: write '
        f'{RESULT}, and pictures of the predictions.'
    )
    add = parser.add_argument
    add('file', type=Path, help='the ONNX file')
    add('images', type=Path, help='an image, or a folder of images')
    text = 'new folder, or one to continue'
    add('--out', type=Path, default='predictions', help=text)
    add('--threshold', type=share, default=0.3, help='score threshold of boxes (0.3)')
    text = 'cpu, or cuda with onnxruntime-gpu (default: a GPU where there is one)'
    add('--device', choices=tuple(PROVIDERS), help=text)
    text = 'replace the predictions of another model'
    add('--overwrite', action='store_true', help=text)
    return parser


def open_model(args: argparse.Namespace) -> Predictor:
    """Return the model of the file, on the device that was asked for."""
    return Predictor(args.file, [PROVIDERS[args.device]] if args.device else None)


def open_folder(args: argparse.Namespace, images: dict[str, Path]) -> Folder:
    """Return the folder to write to, with what is in it already."""
    digest = hashlib.md5(args.file.read_bytes()).hexdigest()
    folder = Folder(args.out, args.file.name, digest, args.threshold)
    if args.overwrite:
        refuse_others(args.out)
    else:
        note = folder.take_over(Folder.read(args.out), images)
        if note:
            print(f'{args.out / RESULT}: predictions {note}, and are made again')
    return folder


def main(argv: Optional[list[str]] = None) -> None:
    """Run the command."""
    parser = make_parser()
    run(parser, parser.parse_args(argv))


def run(
    parser: argparse.ArgumentParser,
    args: argparse.Namespace,
    predictor: Optional[Predictor] = None,
) -> None:
    """Predict images with a model that is open, or else with that of the arguments;
    errors end the program with a line of the parser's."""

    def fail(message: object) -> NoReturn:
        parser.exit(2, f'{parser.prog}: error: {one_line(message)}\n')

    images = find_images(args.images)
    if not images:
        fail(f'{str(args.images)!r} has no images: {", ".join(SUFFIXES)}')
    try:
        predictor = predictor or open_model(args)
        folder = open_folder(args, images)
    except Exception as error:  # errors of ONNX Runtime have no common class
        fail(error)
    num_earlier = len(folder.predictions)
    left = {name: images[name] for name in images if name not in folder.predictions}
    if num_earlier:
        text = f'{num_earlier} images are predicted already, {len(left)} remain'
        print(f'{args.out / RESULT}: {text}')
    try:
        try:
            failed = predict_all(predictor, left, folder)
        finally:  # an interruption loses no predictions
            if folder.predictions:
                folder.save()
    except OSError as error:  # such as of a full disk
        fail(f'--out {args.out}: {error}; the same command goes on from here')
    print(file=sys.stderr)
    if not folder.predictions:
        fail('none of the images can be read and predicted')
    text = f', {failed} images could not be read or predicted' if failed else ''
    print(f'{args.out}: {RESULT} and {len(folder.predictions)} pictures{text}')


if __name__ == '__main__':
    main()
