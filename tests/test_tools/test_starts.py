"""What new-config starts from."""

from pathlib import Path

import pytest
import torch

from mmlinattn.hub import find_folder
from mmlinattn.own_config import Devices, starts
from mmlinattn.own_config.bases import choose_base
from mmlinattn.own_config.starting import Beginning
from mmlinattn.own_config.starts import Wish, choose_start
from mmlinattn.public_weights import read_models

CPU, GPU, LARGE = Devices(1, 0), Devices(1, 12), Devices(1, 80)
MODELS = {model.name: model for model in read_models(find_folder())}


def choose(task, devices=GPU, has_masks=False, num=100, **wish):
    return choose_start(task, Wish(**wish), has_masks, num, devices)


def described(start):
    name = start.model.name if start.model else start.weights
    return f'{start.method} {start.backbone}', start.is_whole, name


@pytest.mark.parametrize(
    'task, devices, has_masks, num, expected, name',
    [
        ('det', GPU, False, 100, 'faster-rcnn', 'mask-rcnn_mlla-t_fpn_ms-crop-3x_coco'),
        ('det', GPU, True, 100, 'mask-rcnn', 'mask-rcnn_mlla-t_fpn_ms-crop-3x_coco'),
        ('det', LARGE, True, 100, 'mask-rcnn', 'mask-rcnn_mlla-t_fpn_ms-crop-3x_coco'),
        ('det', LARGE, True, 5000, 'mask-rcnn', 'mask-rcnn_mlla-s_fpn_ms-crop-3x_coco'),
        ('det', CPU, False, 100, 'retinanet', 'efficientvit-b1_in1k'),
        ('det', CPU, True, 100, 'mask-rcnn', 'efficientvit-b1_in1k'),
        *(
            ('seg', devices, False, num, 'efficientvit-head', f'efficientvit-{name}')
            for devices, num, name in (
                (GPU, 100, 'head_efficientvit-b3_1x_ade20k-512x512'),
                (LARGE, 5000, 'head_efficientvit-l2_1x_ade20k-512x512'),
                (CPU, 100, 'head_efficientvit-b1_1x_ade20k-512x512'),
            )
        ),
        ('cls', GPU, False, 100, 'classifier', 'hvittt-t_in1k'),
        ('cls', CPU, False, 100, 'classifier', 'efficientvit-b1_in1k'),
        ('rot', GPU, False, 100, 'rotated-retinanet', None),
        ('rot', CPU, False, 100, 'rotated-retinanet', None),
    ],
)
def test_defaults(task, devices, has_masks, num, expected, name):
    """They have a license, and suit devices and photos."""
    start = choose(task, devices, has_masks, num)
    assert start.method == expected
    assert (start.model and start.model.name) == name
    if name is None:
        assert start.backbone == 'swin-t-elfatt' and start.weights is None
        return
    assert start.model.license and start.weights == start.model.address
    assert start.is_whole == (start.model.task == task)
    assert start.backbone == start.model.backbone


@pytest.mark.parametrize(
    'task, wish, expected',
    [
        # a whole model of the pair, or what the config of ours starts from
        ('det', dict(backbone='swin-t-local'), ('faster-rcnn', True)),
        ('det', dict(backbone='hvittt-s'), ('faster-rcnn', True)),
        ('det', dict(backbone='swin-t-elfatt'), ('retinanet', False)),
        ('det', dict(backbone='softpp-t'), ('retinanet', False)),
        (
            'det',
            dict(backbone='swin-t-local', method='retinanet'),
            ('retinanet', False),
        ),
        # without a license, only where it is named
        ('det', dict(backbone='vssd-t', method='faster-rcnn'), ('faster-rcnn', False)),
        ('det', dict(backbone='vssd-t', start='coco'), ('faster-rcnn', True)),
        ('det', dict(start='retinanet_ravlt-t_fpn_1x_coco'), ('retinanet', True)),
        # backbones of models of another task
        ('det', dict(start='imagenet'), ('faster-rcnn', False)),
        ('det', dict(start='ade20k'), ('retinanet', False)),
        ('seg', dict(start='coco'), ('upernet', False)),
        ('seg', dict(start='cityscapes'), ('efficientvit-head', True)),
        ('rot', dict(start='coco', backbone='ravlt-s'), ('rotated-retinanet', False)),
        ('cls', dict(start='efficientvit-b1_in1k-288px'), ('classifier', True)),
        ('seg', dict(start='none'), ('upernet', False)),
        ('seg', dict(pretrained='x.pth'), ('upernet', False)),
    ],
)
def test_wishes(task, wish, expected):
    start = choose(task, **wish)
    assert (start.method, start.is_whole) == expected
    if 'backbone' in wish:
        assert start.backbone == wish['backbone']
    if wish.get('start') in MODELS:
        assert start.model == MODELS[wish['start']]
    elif wish.get('start') in starts.NAMES:
        assert start.model.data == wish['start']
    else:
        known = 'none' if 'start' in wish else wish.get('pretrained')
        assert start.is_whole or start.weights == known


def test_cityscapes_without_a_gpu():
    """The smallest model, whose config no other data have."""
    start = choose('seg', CPU, start='cityscapes')
    assert start.backbone == 'efficientvit-b0' and start.config == start.model.config
    assert start.data_set == 'mmseg.CityscapesDataset'
    assert choose('seg', CPU).config is None


@pytest.mark.parametrize(
    'wish, error, message',
    [
        (dict(start='coco', pretrained='x'), ValueError, 'both name weights: give one'),
        (
            dict(start='cityscapes', method='mask-rcnn', backbone='softpp-t'),
            ValueError,
            'no public weights of cityscapes are for mask-rcnn with softpp-t: mm',
        ),
        (dict(start='cocoo'), FileNotFoundError, 'did you mean coco?'),
        (dict(start='no.pth'), FileNotFoundError, '--start no.pth: there is no such f'),
        (dict(start='vittt-t_in1k'), ValueError, 'no config for --task det and the o'),
    ],
)
def test_wrong_wishes(wish, error, message):
    with pytest.raises(error, match=message):
        choose('det', **wish)


def test_a_file_that_was_downloaded_by_hand(tmp_path):
    """Its name says which model it is, and so does an address."""
    path = tmp_path / 'mask_rcnn_swin-t-p4-w7_fpn_1x_coco_20210902_120937-9d6b7cfa.pth'
    torch.save(dict(state_dict={}), path)
    for place in (str(path), f'https://elsewhere/{path.name}'):
        start = choose('det', start=place)
        assert start.weights == place and start.is_whole
        assert start.model.address.endswith(path.name)


@pytest.mark.parametrize('width', [None, 128])
def test_an_own_checkpoint(tmp_path, width):
    """It says which model it is of, unless another one is chosen."""
    path = tmp_path / 'epoch_1.pth'
    text = "lr = 1\nmodel_name = 'mask-rcnn softpp-t'\n"
    text += f'width = {width}\n' if width else ''
    torch.save(dict(meta=dict(cfg=text), state_dict={}), path)
    start = choose('det', CPU, start=str(path))
    assert described(start) == ('mask-rcnn softpp-t', True, str(path))
    assert start.width == width and start.data_set is None
    start = choose('det', CPU, start=str(path), backbone='soft-t')
    assert described(start) == ('retinanet soft-t', True, str(path))
    torch.save(dict(state_dict={}), path)
    assert choose('det', CPU, start=str(path)).backbone == 'swin-t-elfatt'
    Path(path).write_bytes(b'')
    with pytest.raises(ValueError, match='--start=.* is empty'):
        choose('det', CPU, start=str(path))


@pytest.mark.parametrize(
    'task, devices, wish, rate',
    [
        ('det', CPU, {}, '0.0001 * (batch / 16) ** 0.5 * 10'),
        (
            'det',
            CPU,
            dict(start='none', backbone='efficientvit-b1'),
            '0.0001 * (batch / 16) ** 0.5 * 10 * 4  # to train from scratch',
        ),
        ('det', GPU, {}, '0.0001 * (batch / 16) ** 0.5'),
        ('det', GPU, dict(backbone='swin-t-elfatt'), '0.0001 * (batch / 16) ** 0.5'),
        ('seg', CPU, {}, '6e-05 * (batch / 16) ** 0.5'),
        (
            'cls',
            CPU,
            {},
            '0.002 * (batch / 1024) ** 0.5 / 10  # by convention, to fine-tune a '
            'classifier',
        ),
    ],
)
def test_rates(task, devices, wish, rate):
    """EfficientViT's detectors learn at ten times the rate of our config, whole
    classifiers at a tenth."""
    start = choose(task, devices, **wish)
    base = choose_base(task, start.method, start.backbone, False, start.config)
    beginning = Beginning(task, start, base)
    assert beginning.rate() == rate
    assert bool(beginning.factors()) == (task == 'cls')
