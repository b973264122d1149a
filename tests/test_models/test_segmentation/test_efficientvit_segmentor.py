"""EfficientViT's decode head and segmentor; test_weights has official outputs."""

import efficientvit_fixture as efficientvit
import pytest
import torch
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint
from torch.nn.functional import interpolate

from mmlinattn.weights import convert

HEAD = dict(
    type='mmlinattn.EfficientViTHead',
    in_channels=[8, 16, 24],
    in_index=(0, 1, 2),
    channels=8,
    num_classes=efficientvit.NUM_CLASSES,
    **{
        key: value
        for key, value in efficientvit.HEADS['b'].items()
        if key != 'channels'
    },
)
BACKBONE = dict(
    type='mmlinattn.EfficientViT',
    arch=dict(efficientvit.ARCHS['b'], series='b'),
    out_indices=(1, 2, 3),
)


def build_head(**options):
    return MODELS.build({**HEAD, **options})


@torch.no_grad()
def test_maps_of_any_size():
    """Smaller maps are enlarged to the first one's size, and added."""
    head = build_head(last_ratio=None, num_blocks=0).double().eval()
    sizes = ((9, 13), (5, 7), (3, 4))
    maps = [
        torch.randn(2, channels, *size).double()
        for channels, size in zip(HEAD['in_channels'], sizes)
    ]
    expected = sum(
        interpolate(layer(x), sizes[0], mode='bicubic', align_corners=False)
        for layer, x in zip(head.laterals, maps)
    )
    torch.testing.assert_close(head(maps), head.conv_seg(expected))


@pytest.mark.parametrize('options', efficientvit.HEADS.values(), ids='series_{}'.format)
def test_every_parameter_learns(options):
    head = build_head(**options).train()
    maps = [torch.randn(2, dims, 6, 8) for dims in HEAD['in_channels']]
    out = head(maps)
    (out * torch.randn_like(out)).sum().backward()
    for key, parameter in head.named_parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.any(), key


@torch.no_grad()
def test_half_precision():
    head = build_head().eval()
    maps = [torch.randn(1, dims, 6, 8) for dims in HEAD['in_channels']]
    expected = head(maps)
    with torch.autocast('cpu', torch.bfloat16):
        out = head(maps)
    assert (out - expected).norm() < 0.05 * expected.norm()


def test_wrong_block():
    with pytest.raises(ValueError, match="block must be 'mb' or 'fused', got 'mbconv'"):
        build_head(block='mbconv')


@pytest.mark.parametrize('place', ('official', 'converted'))
def test_loads_official_files(place, tmp_path):
    """By MMEngine's own loader, every key; and what it saves itself."""
    model = MODELS.build(
        dict(
            type='mmlinattn.EfficientViTSegmentor', backbone=BACKBONE, decode_head=HEAD
        )
    )
    weights = efficientvit.weights('efficientvit_b_segmentor')
    expected = convert(weights, 'efficientvit')
    if place == 'converted':
        weights = expected
    torch.save(dict(state_dict=weights), tmp_path / 'weights.pth')
    load_checkpoint(model, str(tmp_path / 'weights.pth'), 'cpu', strict=True)
    for key, value in model.state_dict().items():
        assert value.equal(expected[key].to(value)), key
