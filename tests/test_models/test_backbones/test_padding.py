"""The valid region of an image has the same features in any batch."""

import copy
import math

import miniature_backbones as battery
import pytest
import torch
from loading import load_module
from torch import nn
from torch.nn.functional import pad

from mmlinattn.models.layers.padding import (
    after_stride,
    has_padding,
    is_sharded,
    valid_sizes,
)

syncs = load_module('tests/test_models/test_host_syncs.py')
# every backbone, attention and scaling
MODELS = dict(syncs.CASES)
MODELS.update(
    {
        f'{name}-all-scaled': dict(battery.CASES[name], **battery.SCALED)
        for name in battery.UNSCALED_BACKBONES
    }
)
SIZE = (45, 70)
# kernels round by batch size
TOLERANCES = {torch.float32: 3e-5, torch.float64: 1e-10}
# areas of about 1.1, 1.5, 2 and 4 times that size
CANVASES = ((48, 72), (67, 70), (64, 98), (90, 140))


def padded(images, canvas):
    return torch.stack(
        [pad(x, (0, canvas[1] - x.size(2), 0, canvas[0] - x.size(1))) for x in images]
    )


def batch_around(image, canvas):
    """An image after others: of its size, of another shape, as large as the canvas."""
    others = [(45, 70), (40, canvas[1]), canvas]
    return [*(image.new_empty(3, *size).normal_() for size in others), image]


def assert_same_features(outs, alone, index, tolerance):
    for out, expected in zip(outs, alone):
        height, width = expected.shape[2:]
        valid = out[index, :, :height, :width]
        error = (valid - expected[0]).abs().max() / expected.abs().max()
        assert error <= tolerance
        assert not out[index, :, height:].any() and not out[index, :, :, width:].any()


@pytest.mark.parametrize('name', MODELS)
def test_features_do_not_depend_on_the_batch(name, monkeypatch):
    monkeypatch.setitem(battery.CASES, name, MODELS[name])
    model = battery.build(name, out_indices=battery.ALL)
    for dtype, tolerance in TOLERANCES.items():
        model = model.to(dtype)
        image = torch.randn(3, *SIZE, dtype=dtype)
        with torch.no_grad():
            alone = model(image[None])
            for canvas in CANVASES:
                outs = model(padded(batch_around(image, canvas), canvas))
                assert_same_features(outs, alone, -1, tolerance)


def build_small(name='SOFTPlusPlus', **options):
    return battery.build(name, **options).double()


# those whose BatchNorm trains have the batch's statistics
@pytest.mark.parametrize('name', battery.UNSCALED_BACKBONES)
def test_gradients_do_not_depend_on_the_batch(name):
    model = build_small(name, mask_padding=True, norm_eval=True).train()
    photos = batch_around(torch.randn(3, *SIZE).double(), (90, 100))
    weights = torch.randn(200).double()

    def loss(outs):
        # far beyond an image, maps are zero
        return sum((out**2).sum((0, 1, 2)) @ weights[: out.size(3)] for out in outs)

    loss(model(padded(photos, (90, 100)))).backward()
    together = [x.grad.clone() for x in model.parameters() if x.grad is not None]
    model.zero_grad()
    for photo in photos:
        loss(model(photo[None])).backward()
    alone = [x.grad for x in model.parameters() if x.grad is not None]
    scale = max(grad.abs().max() for grad in alone)
    for grad, expected in zip(together, alone):
        assert (grad - expected).abs().max() <= 1e-10 * scale


@pytest.mark.parametrize('out_type', ('avg_featmap', 'raw', 'cls_token'))
@pytest.mark.parametrize('name', ('SOFTPlusPlus', 'VisionTransformer', 'CaiT'))
def test_other_outputs_do_not_depend_on_the_batch(name, out_type):
    model = build_small(name, out_type=out_type)
    canvas = (90, 100)
    image = torch.randn(3, *SIZE).double()
    with torch.no_grad():
        alone = model(image[None])[0][0]
        out = model(padded(batch_around(image, canvas), canvas))[0][-1]
    if out_type == 'raw':
        stride = model.feature_strides[0]
        hw_shape, whole = after_stride((SIZE, canvas), stride)
        num_extra = alone.size(0) - math.prod(hw_shape)
        maps = out[num_extra:].unflatten(0, whole)[: hw_shape[0], : hw_shape[1]]
        out = torch.cat((out[:num_extra], maps.flatten(0, 1)))
    torch.testing.assert_close(out, alone)


def test_mask_padding_chooses_the_mode():
    images = padded(batch_around(torch.randn(3, *SIZE).double(), (64, 80)), (64, 80))
    model = build_small('SwinTransformer')
    masked, plain = model(images)[0], model.run(images)[0]
    assert not torch.allclose(masked[-1, :, :8, :8], plain[-1, :, :8, :8])
    for option, in_training in ((True, True), (False, False), ('evaluation', False)):
        other = battery.build_like(
            model.float(), 'SwinTransformer', mask_padding=option
        )
        other = other[0].double()
        expected = masked if option else plain
        torch.testing.assert_close(other(images)[0], expected)
        expected = masked if in_training else plain
        torch.testing.assert_close(other.train()(images)[0], expected)
        model.double()


@pytest.mark.parametrize('option', (1, 1.5, 'never', None))
def test_wrong_mask_padding_is_refused(option):
    with pytest.raises(ValueError, match='mask_padding must be True, False'):
        battery.build('SwinTransformer', mask_padding=option)


def test_a_batch_norm_in_training_has_the_statistics_of_the_batch():
    canvas = (64, 80)
    images = padded(batch_around(torch.randn(3, *SIZE).double(), canvas), canvas)
    model = build_small(mask_padding=True).train()
    plain = copy.deepcopy(model)
    calls = []
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_forward_hook(lambda *args: calls.append(args[0]))
    model(images)
    # each layer once, as processes that synchronize it need
    assert len(calls) == len(set(calls)) > 0
    plain.run(images)
    first, expected = (
        next(x for x in m.modules() if isinstance(x, nn.BatchNorm2d))
        for m in (model, plain)
    )
    torch.testing.assert_close(first.running_mean, expected.running_mean)
    # blocks with statistics of their own are left as they are
    model.stages[0].blocks.append(nn.BatchNorm2d(8).train())
    assert model.sizes_without_padding(images) is None


def test_sharded_blocks_run_once(monkeypatch):
    class FSDPModule:
        pass

    class ShardedBlock(FSDPModule, nn.Identity):
        pass

    images = torch.zeros(2, 3, 64, 80).double()
    images[:, :, :40] = 1
    whole, model = build_small(), build_small()
    model.stages[1].blocks.append(ShardedBlock())
    assert not is_sharded(model)  # there is one process
    assert model.sizes_without_padding(images) == [(40, 80)] * 2
    monkeypatch.setattr(torch.distributed, 'is_initialized', lambda: True)
    assert is_sharded(model) and not is_sharded(whole)
    assert model.sizes_without_padding(images) is None


SIZES = {
    'all of it': (torch.randn(3, 40, 50), (40, 50)),
    'zeros at the right': (pad(torch.randn(3, 40, 41), (0, 9)), (40, 41)),
    'zeros below': (pad(torch.randn(3, 35, 50), (0, 0, 0, 5)), (35, 50)),
    'both': (pad(torch.randn(3, 35, 41), (0, 9, 0, 5)), (35, 41)),
    'fewer than 32': (pad(torch.randn(3, 20, 9), (0, 41, 0, 20)), (32, 32)),
    'zeros before it': (pad(torch.randn(3, 20, 20), (30, 0, 20, 0)), (40, 50)),
    'a black photo, normalized': (torch.full((3, 40, 50), -2.1), (40, 50)),
    'a uniform border': (
        pad(torch.randn(3, 35, 41), (0, 9, 0, 5), value=114),
        (40, 50),
    ),
    'one channel': (
        torch.cat((torch.zeros(2, 40, 50), torch.randn(1, 40, 50))),
        (40, 50),
    ),
    'zeros alone': (torch.zeros(3, 40, 50), (40, 50)),
}


@pytest.mark.parametrize('case', SIZES)
def test_padding_is_what_is_zero_in_all_channels_at_the_end(case):
    image, size = SIZES[case]
    images = torch.stack((image, torch.randn(3, 40, 50)))
    assert valid_sizes(images, 32) == [size, (40, 50)]
    assert has_padding(images) == (size != (40, 50) or case == 'zeros alone')


def test_an_image_of_zeros_is_an_image():
    images = torch.zeros(1, 3, 64, 64).double()
    model = build_small()
    assert_same_features(model(images), model.run(images), 0, 0)
