"""A forward pass has few operators, which a GPU's host launches; counted, not timed.

Bounds are those of an image of 256 x 352 pixels in a second forward pass: the first one
makes rotary factors. Views launch nothing, and take a host's time.
"""

import pytest
import torch
from launches import Launches

from mmlinattn import models
from mmlinattn.functional import rotary

# mmdet's Swin-T has 475 operators without views, in 12 blocks
SWIN_PER_BLOCK = 475 / 12

# in evaluation without gradients: operators, the same with views; both of a forward and
# a backward pass
BOUNDS = {
    'LinearSOFTPlusPlus-tiny': (417, 1085, 1380, 3395),
    'MAViT-tiny': (354, 856, 1150, 2965),
    'MLLA-tiny': (593, 1660, 2028, 5727),
    'HViTTT-tiny': (803, 1880, 2960, 6570),
    'RAVLT-tiny': (350, 852, 1146, 2965),
    'SwinTransformer-elfatt': (243, 791, 752, 2483),
    'VSSD-micro': (410, 952, 1270, 3420),
}
# with 20 Newton steps of two products in a block: operators, the same with views
PRINTED = {'SOFT-tiny': (690, 1270), 'SOFTPlusPlus-tiny': (1160, 2080)}
# other models of ours, for the bound of a block alone
OTHERS = ('CSWinTransformer-elfatt', 'ViTTT-tiny')


def build(name):
    kind, _, option = name.partition('-')
    presets = getattr(getattr(models, kind), 'presets', {})
    options = dict(attention=option, arch='tiny') if option in presets else {}
    return getattr(models, kind)(**(options or dict(arch=option))).eval()


def count(model):
    x = torch.randn(1, 3, 256, 352)
    with torch.no_grad():
        model(x)
        with Launches() as forward:
            model(x)
    return forward


@pytest.mark.parametrize('name', BOUNDS)
def test_few_launches(name):
    model = build(name)
    forward = count(model)
    counts = forward.counts
    assert all(a <= b for a, b in zip(counts, BOUNDS[name])), (counts, forward.names)
    check_blocks(model, forward)


@pytest.mark.parametrize('name', PRINTED)
def test_products_of_the_inverse_have_no_views(name):
    counts = count(build(name)).counts
    assert all(a <= b for a, b in zip(counts, PRINTED[name])), counts


@pytest.mark.full
@pytest.mark.parametrize('name', BOUNDS)
def test_few_launches_of_a_training(name):
    model, x = build(name), torch.randn(1, 3, 256, 352)
    model(x)
    with Launches() as both:
        outs = model(x)
    total = sum(out.sum() for out in outs)
    with both:
        total.backward()
    counts = both.counts
    assert all(a <= b for a, b in zip(counts, BOUNDS[name][2:])), (counts, both.names)


@pytest.mark.parametrize('name', OTHERS)
def test_few_launches_a_block(name):
    model = build(name)
    check_blocks(model, count(model))


def check_blocks(model, forward):
    num_blocks = sum(hasattr(module, 'attn') for module in model.modules())
    assert forward.names.total() <= 1.5 * SWIN_PER_BLOCK * num_blocks, forward.names


def test_rotary_factors_are_kept_in_bounds(monkeypatch):
    monkeypatch.setattr(rotary, '_KEPT', {})
    for side in range(2, 30):
        rotary.rotate(torch.randn(side * side, 8), (side, side), 2)
    assert len(rotary._KEPT) == rotary._MOST_KEPT
    monkeypatch.setattr(rotary, '_LARGEST_KEPT', 3)
    rotary.rotate(torch.randn(1024, 8), (32, 32), 2)
    assert not any(key[:2] == (32, 32) for key in rotary._KEPT)


@pytest.mark.parametrize('dtype', (torch.float32, torch.float64))
def test_kept_factors_serve_each_mode(dtype, monkeypatch):
    """Those of another dtype, of inference mode or of a tensor without values are not
    taken."""
    monkeypatch.setattr(rotary, '_KEPT', {})
    x = torch.randn(35, 12, dtype=dtype)
    with torch.inference_mode():
        first = rotary.rotate(x, (5, 7), 3)
    rotary.rotate(x.to('meta'), (5, 7), 3)
    rotary.rotate(x.to(torch.float64), (5, 7), 3)
    leaf = x.clone().requires_grad_()
    rotary.rotate(leaf, (5, 7), 3).square().sum().backward()
    assert first.dtype == dtype
    assert rotary.rotate(x, (5, 7), 3).equal(first)
    torch.testing.assert_close(leaf.grad, 2 * x)  # a rotation keeps lengths
