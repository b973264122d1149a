"""What of an ONNX file is in half precision, and what it computes then."""

import re
from contextlib import nullcontext

import numpy as np
import onnx
import pytest
import torch
from loading import ROOT, load_module
from mmengine.model import BaseModule
from mmengine.registry import MODELS
from torch import nn

from mmlinattn.deployment import ExportedModel, export
from mmlinattn.deployment.half import OPERATORS
from mmlinattn.deployment.rounding import Rounded
from mmlinattn.functional.precision import autocast_disabled

ARCH = dict(embed_dims=[8, 16], depths=[1, 2], num_heads=[2, 2])
SOFT = dict(
    type='mmlinattn.SOFT',
    arch=ARCH,
    sampling_ratios=(4, 2),
    kernel_sizes=(3, 3),
    img_size=64,
)
NAMES = 'SOFT-T', 'SOFT++-T', 'SOFT++-T, linear', 'Swin-T, ELFATT', 'MLLA-T', 'RAVLT-S'
IMAGE = torch.rand(1, 3, 65, 97, generator=torch.Generator().manual_seed(0))
LARGEST = float(np.finfo(np.float16).max)


def write(model, path):
    """The nodes of a model's file that compute in float16."""
    export(ExportedModel(model), path, shape=(65, 97), half=True)
    return [
        node
        for node in onnx.load(str(path)).graph.node
        if node.op_type != 'Cast' and any(x.endswith('_half') for x in node.input)
    ]


class Layers(BaseModule):
    """Two layers of one name, such as two stages have; the second may need float32."""

    in_channels = 3

    def __init__(self, wide=False):
        super().__init__()
        self.first = nn.ModuleDict(dict(conv=nn.Conv2d(3, 4, 1)))
        self.second = nn.ModuleDict(dict(conv=nn.Conv2d(4, 5, 1)))
        self.wide = wide

    def forward(self, x):
        x = self.first['conv'](x)
        with autocast_disabled(x) if self.wide else nullcontext():
            return [self.second['conv'](x.float())]


def test_layers_of_one_name(tmp_path):
    nodes = write(Layers(), tmp_path / 'model.onnx')
    assert [node.op_type for node in nodes] == ['Conv', 'Conv']
    path = tmp_path / 'other.onnx'
    with pytest.raises(ValueError, match='no layer of this model can be in half'):
        write(Layers(wide=True), path)
    assert not path.exists()


def test_a_weight_beyond_float16(tmp_path):
    model = Layers()
    nn.init.constant_(model.first['conv'].weight, 1e5)
    (node,) = write(model, tmp_path / 'model.onnx')
    assert 'second.conv.weight' in node.input[1]


def test_overflow_is_seen(tmp_path):
    """By these tests: a processor without float16 does not show it."""
    model = Layers()
    nn.init.constant_(model.second['conv'].weight, 1e3)
    path = tmp_path / 'model.onnx'
    write(model, path)
    (output,), largest, sums = Rounded(path).run(1e3 * IMAGE.numpy())
    assert output.max() == largest == np.inf and sums > LARGEST


def test_what_stays_in_float32(tmp_path):
    """Among it the sums of SOFT without normalization, up to N times the values, and
    the projection that takes them."""
    model = MODELS.build(SOFT)
    for name, module in model.named_modules():
        if name.endswith('attn.v'):
            nn.init.constant_(module.bias, 1e3)
    sums = []
    projection = model.stages[0].blocks[0].attn.proj
    projection.register_forward_pre_hook(lambda _, args: sums.append(args[0].max()))
    expected = model.eval()(IMAGE)
    assert sums[0] > LARGEST
    path = tmp_path / 'model.onnx'
    nodes = write(model, path)
    outputs, *sizes = Rounded(path).run(IMAGE.numpy())
    assert max(sizes) < LARGEST
    for output, x in zip(outputs, expected):
        assert abs(output - x.detach().numpy()).max() <= 1e-2 * x.abs().max()
    graph = onnx.load(str(path)).graph
    for tensor in (*graph.input, *graph.output):
        assert tensor.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    weights = {x.name for x in graph.initializer}
    for node in nodes:
        assert node.op_type in OPERATORS
        # no product of two activations
        assert node.op_type in ('Relu', 'Reshape') or weights & {*node.input}
    layers = {re.sub(r'_\d+$', '', x.name.rpartition('/')[0]) for x in nodes}
    names = {layer.rpartition('/')[2] for layer in layers}
    assert names == {'q', 'v', 'conv', 'layers.0.0', 'layers.1'}


@pytest.mark.full
@pytest.mark.parametrize('is_segmentor', (False, True))
@pytest.mark.parametrize('name', (*NAMES, 'MAViT-T'))
def test_whole_sizes(name, is_segmentor, tmp_path, monkeypatch):
    """Of models that are scaled like trained ones."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    measured = load_module('benchmarks/half_files.py')
    torch.manual_seed(0)
    images = nn.functional.interpolate(torch.randn(4, 3, 28, 28), (224, 224))
    model = measured.build(name, is_segmentor, 10)
    measured.take_statistics(model, images)
    expected = measured.run(model, images[:1])
    path = tmp_path / 'model.onnx'
    export(ExportedModel(model), path, half=True)
    (output,), *sizes = Rounded(path).run(images[:1].numpy())
    assert max(sizes) < LARGEST
    assert measured.difference(torch.from_numpy(output), expected) <= 1e-2


@pytest.mark.full
@pytest.mark.parametrize('name', ('SOFT++-T', 'RAVLT-S'))
def test_trained_classifiers(name, monkeypatch):
    """Of small ones, after a few steps on photos of one color for each class."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    trained = load_module('benchmarks/half_trained.py')
    torch.manual_seed(0)
    classes = torch.arange(64) % 10
    colors = torch.randint(0, 256, (10, 1, 1, 3))
    photos = (colors[classes] + torch.randint(-20, 21, (64, 144, 144, 3))).clamp(0, 255)
    model = trained.build(name)
    trained.train(model, photos.byte(), classes, 4)
    row = trained.measure(model, photos[:4].byte(), classes[:4])
    assert row['error'] <= 1e-2 and row['other'] == 0 and row['photos'] == 4
    assert row['single'] == row['half'] and row['largest'] < LARGEST


def test_margins(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    measured = load_module('benchmarks/half_files.py')
    logits = torch.tensor([[[4.0, 1.0]], [[3.0, 8.0]], [[0.0, 7.5]]])[None]
    others = torch.tensor([[[False, True]]])
    assert measured.largest_margin(logits, others) == 0.5 / 8
    assert measured.largest_margin(logits, ~others) == 1 / 8
    assert measured.largest_margin(logits, others & ~others) == 0
