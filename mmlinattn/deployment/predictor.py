"""Runs a file of ``tools/deployment/export.py --whole`` on images.

This module needs onnxruntime and NumPy, and Pillow to read image files, but neither
torch nor any other part of this package: it can be copied to where the model is used.

    python predictor.py model.onnx photos --out predictions

writes predictions.json and pictures of the predictions. Letters: N boxes, K classes.
"""

import argparse
import colorsys
import json
import sys
from pathlib import Path
from typing import Any, NoReturn, Optional, Union

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    if __name__ != '__main__':
        raise
    sys.exit(f'{sys.executable}: {error}: pip install numpy onnxruntime pillow')

RESULT = 'predictions.json'
SUFFIXES = ('.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp')


class Predictor:
    """A model in a file, from an image to its predictions.

    Args:
        file (str | Path): An ONNX file that takes whole images.
        providers (list[str], optional): For ONNX Runtime, best first. Default: the CPU.
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
        self.session = onnxruntime.InferenceSession(
            str(file), options, providers=providers or ['CPUExecutionProvider']
        )
        (taken,) = self.session.get_inputs()
        if (taken.name, taken.type) != ('image', 'tensor(uint8)'):
            raise ValueError(
                f'{str(file)!r} takes {taken.name}, {taken.type}, not whole images: '
                'export the model with --whole'
            )
        self.outputs = [output.name for output in self.session.get_outputs()]
        metadata = self.session.get_modelmeta().custom_metadata_map
        self.notes = json.loads(metadata.get('notes', '{}'))
        self.classes = self.notes.get('classes', [])

    def __call__(
        self, image: Union[np.ndarray, str, Path], threshold: float = 0.0
    ) -> dict[str, np.ndarray]:
        """The predictions for an image.

        Args:
            image (ndarray | str | Path): (H, W, 3), RGB, uint8, of any size; or a file.
            threshold (float): Boxes with lower scores are left out.

        Returns:
            dict[str, ndarray]: A detector's ``boxes`` (N, 4), float32, as x1, y1, x2,
                y2 in pixels, ``scores`` (N,), float32, ``labels`` (N,), int64, best
                first, and ``masks`` (N, H, W), bool, if it has masks. A segmentor's
                ``label_map`` (H, W), int32. A classifier's ``scores`` (K,), float32.

        Raises:
            ValueError: If the array has another shape or dtype.
        """
        if not isinstance(image, np.ndarray):
            image = read_image(image)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise ValueError(
                f'an image must be (H, W, 3) uint8, got {image.shape} {image.dtype}'
            )
        found = dict(zip(self.outputs, self.session.run(None, {'image': image})))
        if 'boxes' in found:
            kept = found['scores'] >= threshold
            found = {name: value[kept] for name, value in found.items()}
        if 'masks' in found:
            height, width, _ = image.shape
            least = self.notes.get('mask_threshold', 0.5)
            found['masks'] = paste(
                found['masks'], found['boxes'], (height, width), least
            )
        return found


def paste(
    cells: np.ndarray, boxes: np.ndarray, shape: tuple[int, int], threshold: float
) -> np.ndarray:
    """Masks of boxes, resized bilinearly and put at their places.

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
    """The pixels that a side of a box touches, and the weights (pixels, cells)."""
    begin, end = max(int(first) - 1, 0), min(int(np.ceil(last)) + 1, pixels)
    places = np.arange(begin, end, dtype=np.float32) + np.float32(0.5)
    places = (places - first) / np.float32(max(last - first, 1e-6)) * cells - 0.5
    distances = np.abs(places[:, None] - np.arange(cells, dtype=np.float32))
    return slice(begin, end), np.maximum(1 - distances, 0).astype(np.float32)


def read_image(path: Union[str, Path]) -> np.ndarray:
    """An image file as (H, W, 3), RGB, uint8, the pixels that OpenCV reads.

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
        if pixels.dtype.kind == 'f' or pixels.min() < 0 or pixels.max() >= 2**16:
            raise ValueError(f'{str(path)!r}: pixels of 32 bits are not read')
        return np.repeat((pixels >> 8).astype(np.uint8)[..., None], 3, axis=2)


def as_json(found: dict[str, np.ndarray], classes: list[str]) -> dict[str, Any]:
    """Predictions in JSON's types: masks as COCO's uncompressed runs, the five best
    classes of a classifier, the share of each class in a label map."""

    def name(label: int) -> str:
        return classes[label] if label < len(classes) else str(label)

    if 'label_map' in found:
        labels, counts = np.unique(found['label_map'], return_counts=True)
        shares = (counts / counts.sum()).tolist()
        return {'shares': dict(zip(map(name, labels.tolist()), shares))}
    scores = found['scores']
    if 'boxes' not in found:
        best = np.argsort(-scores)[:5].tolist()
        return {'classes': [dict(name=name(i), score=float(scores[i])) for i in best]}
    objects = [
        dict(name=name(label), score=score, box=box)
        for label, score, box in zip(*(found[x].tolist() for x in _BOX_OUTPUTS))
    ]
    for entry, mask in zip(objects, found.get('masks', ())):
        entry['mask'] = dict(size=list(mask.shape), counts=_runs(mask))
    return {'objects': objects}


_BOX_OUTPUTS = ('labels', 'scores', 'boxes')


def _runs(mask: np.ndarray) -> list[int]:
    """Lengths of runs of zeros and of ones in turn, down the columns."""
    flat = np.concatenate([[False], mask.T.ravel()])
    changes = np.flatnonzero(flat[1:] != flat[:-1])
    return np.diff(np.concatenate([[0], changes, [mask.size]])).tolist()


def save_labels(labels: np.ndarray, path: Path) -> None:
    """Writes a label map (H, W) as a gray image, of 16 bits if 8 are too few."""
    from PIL import Image

    dtype = np.uint8 if labels.max() < 256 else np.uint16
    Image.fromarray(labels.astype(dtype)).save(path)


def draw(image: np.ndarray, found: dict[str, np.ndarray], classes: list[str]) -> Any:
    """A Pillow picture of an image and the predictions for it."""
    from PIL import Image, ImageDraw

    colors = np.array(
        [colorsys.hsv_to_rgb(i * 0.618 % 1, 0.8, 0.9) for i in range(256)]
    )
    colors = (255 * colors).astype(np.uint8)
    pixels = image.copy()
    if 'label_map' in found:
        pixels = pixels // 2 + colors[found['label_map'] % 256] // 2
    for mask, label in zip(found.get('masks', ()), found.get('labels', ())):
        pixels[mask] = pixels[mask] // 2 + colors[label % 256] // 2
    picture = Image.fromarray(pixels)
    pen = ImageDraw.Draw(picture)

    def write(entry: dict[str, Any], place: Any, color: Any) -> None:
        text = f'{entry["name"]} {entry["score"]:.2f}'
        pen.text(place, text, fill='white', stroke_width=1, stroke_fill=color)

    told = as_json(found, classes)
    for label, entry in zip(found.get('labels', ()), told.get('objects', ())):
        color = tuple(colors[label % 256].tolist())
        pen.rectangle(entry['box'], outline=color, width=2)
        write(entry, entry['box'][:2], color)
    for i, entry in enumerate(told.get('classes', ())):
        write(entry, (4, 4 + 12 * i), 'black')
    return picture


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description='Predict with the ONNX file of a whole model: write '
        'predictions.json, and pictures of the predictions.'
    )
    parser.add_argument('file', help='the ONNX file')
    parser.add_argument('images', type=Path, help='an image, or a folder of images')
    parser.add_argument(
        '--out', type=Path, default='predictions', help='new folder, or one to continue'
    )
    parser.add_argument(
        '--threshold', type=float, default=0.3, help='least score of a box (0.3)'
    )
    args = parser.parse_args(argv)

    def fail(message: object) -> NoReturn:
        parser.exit(2, f'{parser.prog}: error: {" ".join(str(message).split())}\n')

    paths = [args.images]
    if args.images.is_dir():
        paths = sorted(
            x for x in args.images.rglob('*') if x.suffix.lower() in SUFFIXES
        )
    if not paths or not all(path.is_file() for path in paths):
        fail(f'{str(args.images)!r} has no images: {", ".join(SUFFIXES)}')
    told: dict[str, Any] = {}
    result = args.out / RESULT
    if result.is_file():
        if Path(args.file).exists() and (
            Path(args.file).stat().st_mtime > result.stat().st_mtime
        ):
            fail(f'{str(result)!r} is older than the model: give another --out')
        told = json.loads(result.read_text('utf-8'))
    elif args.out.exists() and (not args.out.is_dir() or any(args.out.iterdir())):
        fail(f'--out {str(args.out)!r} exists, without {RESULT}')
    names = {
        path: str(path.relative_to(args.images) if path != args.images else path.name)
        for path in paths
    }
    paths = [x for x in paths if names[x] not in told]
    if told:
        print(f'{result}: it has {len(told)} images, {len(paths)} are left')
    try:
        predictor = Predictor(args.file)
    except Exception as error:  # errors of ONNX Runtime have no common class
        fail(error)
    unread = 0
    try:
        for i, path in enumerate(paths, 1):
            try:
                image = read_image(path)
            except (OSError, SyntaxError, ValueError) as error:
                why = ' '.join(str(error).split())
                print(f'\r{parser.prog}: not read: {path}: {why}', file=sys.stderr)
                unread += 1
                continue
            try:
                found = predictor(image, args.threshold)
            except Exception as error:  # such as of a strip that a model can't take
                height, width, _ = image.shape
                why = f'{width} x {height} pixels: {" ".join(str(error).split())}'
                print(f'\r{parser.prog}: not predicted: {path}: {why}', file=sys.stderr)
                unread += 1
                continue
            name = names[path]
            picture = args.out / f'{name}.png'
            picture.parent.mkdir(parents=True, exist_ok=True)
            draw(image, found, predictor.classes).save(picture)
            if 'label_map' in found:
                save_labels(found['label_map'], args.out / f'{name}.labels.png')
            told[name] = as_json(found, predictor.classes)
            print(f'\r{i} of {len(paths)}', end='', file=sys.stderr, flush=True)
    finally:  # an interruption loses no predictions
        if told:
            result.write_text(json.dumps(told), encoding='utf-8')
    print(file=sys.stderr)
    if not told:
        fail('none of the images can be read and predicted')
    text = f', {unread} images could not be read or predicted' if unread else ''
    print(f'{args.out}: {RESULT} and {len(told)} pictures{text}')


if __name__ == '__main__':
    main()
