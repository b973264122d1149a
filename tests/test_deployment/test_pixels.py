"""Resizing in exported files against OpenCV and Pillow, pixel by pixel."""

import inspect

import cv2
import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from mmlinattn.deployment.openmmlab.pixels import Preparation, resize_opencv

SIZES = [
    ((60, 90), (128, 128)),
    ((375, 500), (267, 356)),
    ((64, 64), (32, 32)),  # where OpenCV takes the mean of four pixels
    ((50, 40), (50, 40)),
    ((37, 41), (200, 33)),
    ((5, 7), (11, 3)),
]


def noise(*shape, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (*shape, 3)).astype(np.uint8)


@pytest.mark.parametrize('old, new', SIZES)
def test_opencv(old, new):
    image = noise(*old)
    resized = resize_opencv(torch.from_numpy(image).int(), torch.tensor(new))
    assert (resized.numpy() == cv2.resize(image, new[::-1])).all()


@pytest.mark.parametrize('interpolation', ('bicubic', 'bilinear'))
@pytest.mark.parametrize('size', [(60, 90), (333, 500), (200, 131)])
def test_pillow_resize_edge_and_center_crop(size, interpolation):
    image = noise(*size)
    edge = dict(scale=71, edge='short', backend='pillow', interpolation=interpolation)
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='mmpretrain.ResizeEdge', **edge),
        dict(type='CenterCrop', crop_size=64),
    ]
    photo = Preparation(pipeline, dict(to_rgb=True))(torch.from_numpy(image))
    height, width = (max(71, int(71 * x / min(size))) for x in size)
    kernel = getattr(Image.Resampling, interpolation.upper())
    resized = np.array(Image.fromarray(image).resize((width, height), kernel))
    top, left = round((height - 64) / 2), round((width - 64) / 2)
    expected = resized[top : top + 64, left : left + 64].transpose(2, 0, 1)
    assert (photo.pixels[0].numpy() == expected).all()


@pytest.mark.parametrize(
    'step',
    [
        dict(type='ResizeEdge', scale=97, edge='short'),
        dict(type='ResizeEdge', scale=61, backend='pillow', interpolation='bicubic'),
        dict(type='Resize', scale=(200, 150), keep_ratio=True),
        dict(type='Resize', scale=(83, 71), backend='pillow'),
    ],
    ids=lambda step: f'{step["type"]}-{step.get("backend", "cv2")}',
)
def test_files_resize_to_the_same_pixels(step, tmp_path):
    """A weight in float32 would be another one in a few places of large photos."""
    pipeline = [step, dict(type='CenterCrop', crop_size=64)]
    prepare = Preparation(pipeline, {})
    path, options = tmp_path / 'pixels.onnx', {}
    if 'dynamo' in inspect.signature(torch.onnx.export).parameters:
        options['dynamo'] = False  # as in mmlinattn.deployment.export
    torch.onnx.export(
        prepare,
        torch.from_numpy(noise(70, 90)),
        path,
        opset_version=17,
        input_names=['image'],
        dynamic_axes=dict(image=[0, 1]),
        **options,
    )
    session = onnxruntime.InferenceSession(path)
    for seed, size in enumerate([(500, 474), (462, 400), (642, 812), (131, 97)]):
        image = noise(*size, seed=seed)
        pixels, *_ = session.run(None, dict(image=image))
        expected = prepare(torch.from_numpy(image)).pixels.numpy()
        assert pixels.shape == expected.shape and (pixels == expected).all()


def test_normalization_and_padding():
    image = noise(30, 45)
    pipeline = [dict(type='Resize', scale=(90, 60), keep_ratio=True)]
    preprocessor = dict(
        mean=[1.0, 2, 3], std=[4.0, 5, 6], pad_size_divisor=32, pad_value=7
    )
    pixels, size, original = Preparation(pipeline, preprocessor)(
        torch.from_numpy(image)
    )
    assert size.tolist() == [60, 90] and original.tolist() == [30, 45]
    assert pixels.shape == (1, 3, 64, 96)
    # files of OpenCV are BGR, and this model was trained on them as they are
    bgr = cv2.resize(image, (90, 60))[..., ::-1].astype(np.float32)
    expected = ((bgr - (1, 2, 3)) / (4, 5, 6)).transpose(2, 0, 1)
    assert np.allclose(pixels[0, :, :60, :90], expected, atol=1e-6)
    assert (pixels[..., 60:, :] == 7).all() and (pixels[..., 90:] == 7).all()


@pytest.mark.parametrize(
    'step, message',
    [
        (dict(type='Pad', size_divisor=32), 'Pad'),
        (dict(type='Resize', scale=(8, 8), interpolation='area'), 'area'),
        (dict(type='Resize', scale_factor=2.0), 'scale_factor'),
        (dict(type='ResizeEdge', scale=8, edge='long'), 'long'),
        (dict(type='CenterCrop', crop_size=8, auto_pad=True), 'auto_pad'),
        (dict(type='LoadImageFromFile', to_float32=True), 'to_float32'),
    ],
)
def test_wrong_steps(step, message):
    with pytest.raises(ValueError, match=message):
        Preparation([step], {})


@pytest.mark.parametrize('size, padded', [((20, 90), (32, 90)), ((40, 50), (40, 50))])
def test_small_photos_are_padded(size, padded):
    """As MMSegmentation pads them in a test."""
    preprocessor = dict(test_cfg=dict(size=(32, 32)), pad_val=7)
    photo = Preparation([], preprocessor)(torch.from_numpy(noise(*size)))
    assert photo.pixels.shape[2:] == padded and tuple(photo.size) == size
    assert (photo.pixels[..., size[0] :, :] == 7).all()


def test_a_photo_keeps_a_pixel():
    """Where a side would be resized to none."""
    step = dict(type='Resize', scale=(200, 100), keep_ratio=True)
    photo = Preparation([step], {})(torch.from_numpy(noise(1, 900)))
    assert photo.pixels.shape[2:] == (1, 200)
