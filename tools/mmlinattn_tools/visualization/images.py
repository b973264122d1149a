"""Images as a model sees them.

Legend: (H, W) size in pixels.
"""

import warnings
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope
from PIL import Image
from torch import Tensor, nn

ENDINGS = ('.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp')
_RESIZING = ('Resize', 'ResizeEdge', 'FixScaleResize', 'CenterCrop', 'RandomResize')


class Picture(NamedTuple):
    """One image as a model gets it.

    Attributes:
        name (str): Its file's name.
        inputs (Tensor): (1, 3, H, W), preprocessed.
        data_samples (list): What the heads get beside it.
        pixels (np.ndarray): (H, W, 3), uint8, RGB: the same without normalization.
    """

    name: str
    inputs: Tensor
    data_samples: Any
    pixels: np.ndarray


def find_images(path: str) -> list[Path]:
    """The image that a path names, or those of a folder in the order of their names.

    Args:
        path (str): A file or a folder.

    Raises:
        FileNotFoundError: If there is neither.
        ValueError: If a file is no image or has too many pixels, or a folder has no
            image.
    """
    place = Path(path).expanduser()
    if not place.exists():
        raise FileNotFoundError(f'image={path!r}: there is no such file or folder')
    files = [place]
    if place.is_dir():
        files = sorted(x for x in place.iterdir() if x.suffix.lower() in ENDINGS)
        if not files:
            raise ValueError(
                f'image={path!r}: the folder has no image ({", ".join(ENDINGS)})'
            )
    for file in files:
        _check_image(file)
    return files


def _check_image(file: Path) -> None:
    """Raises an error for a file that is no image, before it takes much memory."""
    sides: tuple[int, ...] = ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with Image.open(file) as image:
                sides = image.size
    except Image.DecompressionBombError as error:
        raise ValueError(
            f'image={str(file)!r} has too many pixels: give one of '
            f'{2 * (Image.MAX_IMAGE_PIXELS or 0) / 1e6:.0f} megapixels or fewer'
        ) from error
    except OSError:  # OpenCV may know its format
        pass
    small = sides and min(sides) < 8
    flag = cv2.IMREAD_COLOR if small else cv2.IMREAD_REDUCED_COLOR_8
    try:
        is_image = cv2.imdecode(np.fromfile(file, np.uint8), flag) is not None
    except cv2.error:
        is_image = False
    if not is_image:
        raise ValueError(
            f'image={str(file)!r} is not an image that OpenCV can read: give a '
            'PNG or JPEG file'
        )


def image_pipeline(cfg: Config, shape: Optional[tuple[int, int]] = None) -> Compose:
    """The transforms of a config's test data, without annotations.

    Args:
        cfg (Config): The config.
        shape (tuple[int], optional): (H, W) to resize images to, in place of the
            config's resizing and cropping.

    Raises:
        ValueError: If the config has no test data.
    """
    dataset = cfg.get('test_dataloader', {}).get('dataset', {})
    while 'pipeline' not in dataset and 'dataset' in dataset:
        dataset = dataset['dataset']
    transforms = [
        step
        for step in dataset.get('pipeline', [])
        if 'Annotation' not in _name_of(step)
        and not (shape and _name_of(step) in _RESIZING)
    ]
    if not transforms:
        raise ValueError('its test_dataloader has no pipeline that reads images')
    if shape:
        resize = dict(type='Resize', scale=shape[::-1], keep_ratio=False)
        transforms.insert(1, resize)
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope', 'mmengine')):
        return Compose(transforms)


def _name_of(transform: Any) -> str:
    return str(transform.get('type')).rpartition('.')[2]


def read_picture(
    model: nn.Module, pipeline: Compose, path: Path, device: Union[str, torch.device]
) -> Picture:
    """Reads an image as the tests of a model do.

    Args:
        model (nn.Module): With a data preprocessor, on the device.
        pipeline (Compose): See :func:`image_pipeline`.
        path (Path): The image.
        device (str | torch.device): Where the model is.
    """
    sample = pipeline(dict(img_path=str(path), img_id=0, reduce_zero_label=False))
    batch = dict(
        inputs=[sample['inputs'].to(device)], data_samples=[sample['data_samples']]
    )
    preprocessor: Any = model.data_preprocessor
    ready = preprocessor(batch, False)
    pixels = _pixels(preprocessor, ready['inputs'][0])
    return Picture(path.name, ready['inputs'], ready['data_samples'], pixels)


def read_pixels(path: Path) -> np.ndarray:
    """An image file as it is, (H, W, 3), uint8, RGB."""
    return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)


def thumbnail(image: np.ndarray, longest: int) -> np.ndarray:
    """An image (H, W, 3), made smaller if its longer side is above a limit."""
    scale = longest / max(image.shape[:2])
    if scale >= 1:
        return image
    height, width = (max(round(x * scale), 1) for x in image.shape[:2])
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)


def _pixels(preprocessor: Any, image: Tensor) -> np.ndarray:
    """Undoes normalization, (3, H, W) to (H, W, 3)."""
    if getattr(preprocessor, '_enable_normalize', False):
        image = image * preprocessor.std + preprocessor.mean
    flags = ('_channel_conversion', 'channel_conversion', 'to_rgb')
    if not any(getattr(preprocessor, flag, False) for flag in flags):
        image = image.flip(0)  # files are read as BGR
    pixels = image.round().clamp(0, 255).byte().permute(1, 2, 0)
    return pixels.cpu().numpy()
