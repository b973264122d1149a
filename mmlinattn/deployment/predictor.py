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
# what a folder of predictions was made with
RECORD = 'made_with.json'
PROVIDERS = dict(cuda='CUDAExecutionProvider', cpu='CPUExecutionProvider')
SUFFIXES = ('.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp')


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
        if providers is None:
            there = onnxruntime.get_available_providers()
            providers = [x for x in PROVIDERS.values() if x in there]
        self.session = onnxruntime.InferenceSession(
            str(file), options, providers=providers
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


def gray_image(labels: np.ndarray) -> Any:
    """The ids of a label map (H, W) as a gray Pillow image, of 16 bits if 8 are too
    few."""
    from PIL import Image

    dtype = np.uint8 if labels.max(initial=0) < 256 else np.uint16
    return Image.fromarray(labels.astype(dtype))


def save_labels(labels: np.ndarray, path: Path) -> None:
    """Writes a label map (H, W) as a gray image."""
    gray_image(labels).save(path)


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


def find_images(place: Path) -> dict[str, Path]:
    """An image, or those of a folder by their names in it, without what this command
    wrote there."""
    if not place.is_dir():
        return {place.name: place} if place.is_file() else {}
    paths = sorted(x for x in place.rglob('*') if x.suffix.lower() in SUFFIXES)
    written = {x.parent for x in place.rglob(RESULT)}
    return {
        str(path.relative_to(place)): path
        for path in paths
        if path.is_file() and not written.intersection(path.parents)
    }


def state_of(path: Path) -> list[float]:
    """Size and time of a file, which tell whether it has changed."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime]


def read_earlier(
    out: Path, made_with: dict[str, Any], images: dict[str, Path]
) -> tuple[dict[str, Any], str]:
    """Predictions of images that have not changed, in a folder to continue, and a note
    on those that are made again; a FileExistsError for a folder of other files or of
    another model."""
    result, record = out / RESULT, out / RECORD
    if not result.is_file():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FileExistsError(f'--out {str(out)!r} exists, without {RESULT}')
        return {}, ''
    earlier = json.loads(record.read_text('utf-8')) if record.is_file() else {}
    told = json.loads(result.read_text('utf-8'))
    same = earlier.get('threshold') == made_with['threshold']
    lost = not same and set(told) - set(images)
    if earlier.get('digest') != made_with['digest'] or lost:
        model = earlier.get('model', 'an unknown model')
        raise FileExistsError(
            f'--out {str(out)!r} has predictions of {model} with --threshold '
            f'{earlier.get("threshold")}, or of an older state of it: give another '
            '--out, or --overwrite to replace them'
        )
    if not same:
        return {}, f'were made with --threshold {earlier.get("threshold")}'
    states = earlier.get('images', {})
    changed = [
        name
        for name in told
        if name in images and states.get(name) != state_of(images[name])
    ]
    for name in changed:
        del told[name]
    made_with['images'] = {name: states.get(name) for name in told}
    return told, f'were made of {len(changed)} other images' if changed else ''


def predict_all(
    predictor: Predictor, images: dict[str, Path], args: Any, told: dict[str, Any]
) -> int:
    """Adds the predictions for images, and writes their pictures; returns the number of
    those that can't be read or predicted, each of which is told in a line."""
    failed = 0
    for i, (name, path) in enumerate(images.items(), 1):
        step = 'read'
        try:
            image = read_image(path)
            step = 'predicted'
            found = predictor(image, args.threshold)
        except Exception as error:  # those of ONNX Runtime have no common class
            why = ' '.join(str(error).split())
            if step == 'predicted':  # such as a strip that a model can't take
                why = f'{image.shape[1]} x {image.shape[0]} pixels: {why}'
            print(f'\rpredictor.py: not {step}: {path}: {why}', file=sys.stderr)
            failed += 1
            continue
        picture = args.out / f'{name}.png'
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(image, found, predictor.classes).save(picture)
        if 'label_map' in found:
            save_labels(found['label_map'], args.out / f'{name}.labels.png')
        told[name] = as_json(found, predictor.classes)
        print(f'\r{i} of {len(images)}', end='', file=sys.stderr, flush=True)
    return failed


def parse_args(argv: Optional[list[str]]) -> tuple[argparse.ArgumentParser, Any]:
    parser = argparse.ArgumentParser(
        description='Predict with the ONNX file of a whole model: write '
        f'{RESULT}, and pictures of the predictions.'
    )
    add = parser.add_argument
    add('file', type=Path, help='the ONNX file')
    add('images', type=Path, help='an image, or a folder of images')
    text = 'new folder, or one to continue'
    add('--out', type=Path, default='predictions', help=text)
    add('--threshold', type=float, default=0.3, help='least score of a box (0.3)')
    text = 'cpu, or cuda with onnxruntime-gpu (default: a GPU where there is one)'
    add('--device', choices=tuple(PROVIDERS), help=text)
    text = 'replace the predictions of another model'
    add('--overwrite', action='store_true', help=text)
    return parser, parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    parser, args = parse_args(argv)

    def fail(message: object) -> NoReturn:
        parser.exit(2, f'{parser.prog}: error: {" ".join(str(message).split())}\n')

    images = find_images(args.images)
    if not images:
        fail(f'{str(args.images)!r} has no images: {", ".join(SUFFIXES)}')
    told: dict[str, Any] = {}
    result, why = args.out / RESULT, ''
    try:
        providers = [PROVIDERS[args.device]] if args.device else None
        predictor = Predictor(args.file, providers)
        digest = hashlib.md5(args.file.read_bytes()).hexdigest()
        made_with = dict[str, Any](model=args.file.name, digest=digest, images={})
        made_with['threshold'] = args.threshold
        if not args.overwrite:
            told, why = read_earlier(args.out, made_with, images)
    except Exception as error:  # errors of ONNX Runtime have no common class
        fail(error)
    left = {name: path for name, path in images.items() if name not in told}
    if why:
        print(f'{result}: predictions {why}, and are made again')
    if told:
        print(f'{result}: it has {len(told)} images, {len(left)} are left')
    failed = 0
    try:
        failed = predict_all(predictor, left, args, told)
    finally:  # an interruption loses no predictions
        if told:
            states = {name: state_of(images[name]) for name in images if name in told}
            made_with['images'].update(states)
            result.write_text(json.dumps(told), encoding='utf-8')
            (args.out / RECORD).write_text(json.dumps(made_with), encoding='utf-8')
    print(file=sys.stderr)
    if not told:
        fail('none of the images can be read and predicted')
    text = f', {failed} images could not be read or predicted' if failed else ''
    print(f'{args.out}: {RESULT} and {len(told)} pictures{text}')


if __name__ == '__main__':
    main()
