"""Swin's windows on maps of any size, as in the libraries' own models.

The files are read as users' are: by name, with every key accounted for.
"""

from functools import partial

import pytest
import timm
import torch
from loading import load_backbone
from mmengine.registry import MODELS

import mmlinattn.timm  # noqa: F401
from mmlinattn.deployment import ExportedModel, export, parity
from mmlinattn.models import CSWinTransformer, SwinTransformer, WindowAttention

ARCH = dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 4])
# of one window or less in the last stage, of one row of windows, of several
SIZES = [(32, 32), (64, 512), (128, 160), (224, 224), (70, 250), (256, 288)]
CLASSIFIER = dict(arch=ARCH, out_indices=(0, 1, 2, 3))
THEIRS = {
    'mmdet': dict(ARCH, window_size=7),
    'mmseg': dict(ARCH, window_size=7),
    'mmpretrain': dict(CLASSIFIER, pad_small_map=True),
}


@pytest.fixture
def ours(tmp_path):
    """Our model in float64 with the weights of another one, which gets any values."""

    def load(model, **options):
        for parameter in model.parameters():
            parameter.data.add_(0.2 * torch.randn_like(parameter))
        path = tmp_path / 'swin.pth'
        torch.save(dict(state_dict=model.state_dict()), path)
        model.double().eval()
        return load_backbone(SwinTransformer, path, arch=ARCH, **options).double()

    return load


def error(outs, expected):
    return max(((a - b).norm() / b.norm()).item() for a, b in zip(outs, expected))


@pytest.mark.parametrize('library', THEIRS)
@torch.no_grad()
def test_as_in_detectors_and_segmentors(ours, library):
    """The default of a backbone that returns maps."""
    theirs = MODELS.build(dict(type=f'{library}.SwinTransformer', **THEIRS[library]))
    model = ours(theirs)
    for size in SIZES:
        x = torch.randn(2, 3, *size, dtype=torch.float64)
        assert error(model(x), theirs(x)) < 1e-10, size


@torch.no_grad()
def test_as_in_the_classifier_of_mmpretrain(ours):
    """It refuses maps that are smaller than a window."""
    theirs = MODELS.build(dict(type='mmpretrain.SwinTransformer', **CLASSIFIER))
    model = ours(theirs, pad_small_map=False)
    for size in ((224, 224), (224, 300), (256, 288)):
        x = torch.randn(2, 3, *size, dtype=torch.float64)
        assert error(model(x), theirs(x)) < 1e-10, size
    padded = ours(theirs)
    x = torch.randn(1, 3, 224, 224, dtype=torch.float64)
    assert error(padded(x), theirs(x)) > 1e-3


@pytest.mark.parametrize('side', [32, 64])
@torch.no_grad()
def test_shrunk_windows_as_in_timm(ours, side):
    """Of square images whose large maps are whole windows: timm shifts maps before it
    pads them. The tables of its smaller windows are parts of ours."""
    build = partial(
        timm.models.SwinTransformer,
        window_size=4,
        embed_dim=8,
        depths=ARCH['depths'],
        num_heads=ARCH['num_heads'],
    )
    large, small = build(img_size=128), build(img_size=side)
    options = dict(out_type='avg_featmap', pad_small_map=False)
    model = ours(large, img_size=128, **options)
    state_dict, wanted = large.state_dict(), small.state_dict()
    for key, x in wanted.items():
        if key.endswith('bias_table') and len(x) < len(state_dict[key]):
            span = round(len(x) ** 0.5)
            cut = (7 - span) // 2
            table = state_dict[key].unflatten(0, (7, 7))
            state_dict[key] = table[cut : cut + span, cut : cut + span].flatten(0, 1)
    small.load_state_dict({key: state_dict[key] for key in wanted})
    small.double().eval()
    x = torch.randn(2, 3, side, side, dtype=torch.float64)
    expected = small.forward_features(x).mean((1, 2))
    assert error(model(x), [expected]) < 1e-10


def windows(model):
    return [x for x in model.modules() if isinstance(x, WindowAttention)]


@pytest.mark.parametrize('attention', ['local', 'agent', 'flatten', 'inline'])
def test_the_option(attention):
    """It reaches all windows of a preset, and has no weights."""
    build = partial(SwinTransformer, ARCH, attention)
    models = [build(), build(pad_small_map=True), build(pad_small_map=False)]
    for model, expected in zip(models, (True, True, False)):
        assert {x.pad_small_map for x in windows(model)} == {expected}
        assert model.state_dict().keys() == models[0].state_dict().keys()
    timm_model = timm.create_model('swin_tiny_local', arch=ARCH)
    assert not any(x.pad_small_map for x in windows(timm_model))
    # CSWin's stripes are padded in both kinds of models
    assert not windows(CSWinTransformer(dict(ARCH, num_heads=[2, 2, 4, 4])))


@pytest.mark.parametrize('pad_small_map', [True, False])
def test_gradients(pad_small_map):
    attention = WindowAttention(
        4, 2, window_size=3, shift_size=1, pad_small_map=pad_small_map
    ).double()
    for hw_shape in ((2, 2), (3, 3), (2, 7), (5, 4)):
        x = torch.randn(2, hw_shape[0] * hw_shape[1], 4, dtype=torch.float64)
        call = partial(attention, hw_shape=hw_shape)
        assert torch.autograd.gradcheck(call, x.requires_grad_())


@pytest.mark.full
@pytest.mark.openmmlab
@pytest.mark.filterwarnings('error::torch.jit.TracerWarning')
def test_shrunk_windows_in_a_file(tmp_path):
    """A file serves for maps of any size; that of the other option is tested with all
    backbones."""
    pytest.importorskip('onnxruntime')
    model = ExportedModel(SwinTransformer(ARCH, pad_small_map=False).eval())
    run = export(model, tmp_path / 'model.onnx', shape=(256, 288))
    for size in SIZES:
        assert max(parity(model, run, torch.randn(2, 3, *size)).values()) <= 1e-5, size
