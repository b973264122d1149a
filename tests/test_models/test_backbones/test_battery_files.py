"""Every registered backbone compiled, exported, traced and in half precision."""

import pytest
import torch
from miniature_backbones import (
    ALL,
    BACKBONES,
    CASES,
    KINDS,
    OLD_TORCH,
    ONE_STACK,
    UNSCALED_BACKBONES,
    assert_all_close,
    build,
    compile_whole,
    images,
    random_loss,
    shallow,
)
from rounded_convolutions import RoundedConvolutions
from torch import nn

from mmlinattn.deployment import ExportedModel, export, parity
from mmlinattn.deployment.half import half_scopes, halve_file
from mmlinattn.functional.precision import is_half

# those that differ from another one in an attention, which test_zoo.py compiles
ALIKE = ('MAViT', 'ViTTT', 'VSSD')


# every function with a backward pass of its own
TRAINED_COMPILED = {
    'SOFTPlusPlus': {},
    'LinearSOFTPlusPlus': {},
    'RAVLT': {},
    'CSWinTransformer': dict(attention='elfatt'),
    'CaiT': {},
}


# The compiler takes its time. A newer one follows the others for training or an export.
COMPILED = ('MLLA', 'HViTTT', 'SOFT')
if OLD_TORCH:
    COMPILED = 'PyramidTransformer', 'VisionTransformer', 'CaiT', 'SOFTPlusPlus'


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(x, marks=() if x in COMPILED else pytest.mark.full)
        for x in UNSCALED_BACKBONES
    ],
)
def test_compiled_as_run(name):
    model, x = build(name, out_indices=ALL, **shallow(name)), images()
    with torch.no_grad():
        assert_all_close(compile_whole(model)(x), model(x), 1e-4)


@pytest.mark.skipif(OLD_TORCH, reason='not with this compiler')
@pytest.mark.parametrize('name', TRAINED_COMPILED)
def test_trained_compiled(name):
    options = {**shallow(name), **TRAINED_COMPILED[name]}
    model = build(name, out_indices=ALL, **options).double().train()
    x, grads = images().double(), []
    for run in (compile_whole(model), model):
        model.zero_grad()
        torch.manual_seed(1)
        outs = run(x)
        random_loss(outs).backward()
        grads.append([*outs, *(p.grad for p in model.parameters())])
    for result, expected in zip(*grads):
        torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-9)


FORMATS = dict(onnx=[pytest.mark.modern_full])
if hasattr(torch.compiler, 'is_exporting'):
    FORMATS['export'] = []
# these take long: of a class in several forms, one is enough
OTHERS = dict(FORMATS, onnx=[pytest.mark.full], export=[pytest.mark.full])
ONE_FORM = {*KINDS}.difference(ALIKE, ['CSWinTransformer', 'SOFT'])
EXPORTS = [
    pytest.param(name, kind, marks=(FORMATS if name in ONE_FORM else OTHERS)[kind])
    for name in CASES
    for kind in FORMATS
    if kind != 'export' or name not in COMPILED
]
EXPORTS += [
    pytest.param(name, 'export', marks=pytest.mark.full)
    for name in COMPILED
    if 'export' in FORMATS
]


@pytest.mark.parametrize('name, kind', EXPORTS)
def test_exported(name, kind, tmp_path):
    """It takes images of any size, if the format allows them."""
    if kind == 'onnx':
        pytest.importorskip('onnxruntime')
    options = {} if name == 'SOFT' else shallow(name)
    model = ExportedModel(build(name, out_indices=ALL, **options))
    run = export(model, tmp_path / f'model.{kind}', kind, (65, 97))
    sizes = [(1, 65, 97)]
    if kind != 'export':
        sizes += [(2, 96, 129), (1, 32, 32), (3, 257, 33), (1, 200, 333)]
    for size in sizes:
        assert max(parity(model, run, images(*size)).values()) <= 1e-4
    if kind == 'onnx':
        check_half(model, tmp_path / 'model.onnx', SHARED_NAMES.get(name, 0))


# projections in float32 because another stage's of the same name needs it
SHARED_NAMES = dict(SOFT=1)


def check_half(model, path, num_shared):
    """Layers that autocast computes in half precision can be so in the file, computed
    as on a GPU at worst."""
    from mmlinattn.deployment.rounding import Rounded

    layers = []
    hooks = [
        module.register_forward_hook(lambda *call: layers.append(is_half(call[2])))
        for module in model.modules()
        if isinstance(module, (nn.Linear, nn.Conv2d))
    ]
    with torch.autocast('cpu', torch.bfloat16):
        model(images(1, 65, 97))
    for hook in hooks:
        hook.remove()
    halve_file(path, half_scopes(model, images(1, 65, 97), (65, 97)))
    rounded = Rounded(path)
    assert rounded.num_products == sum(layers) - num_shared
    x = images(2, 96, 129)
    outputs, largest, sums = rounded.run(x.numpy())
    assert max(largest, sums) <= torch.finfo(torch.float16).max
    assert_all_close(list(map(torch.from_numpy, outputs)), model(x), 1e-2)


@ONE_STACK
@pytest.mark.filterwarnings('error::torch.jit.TracerWarning')
@BACKBONES
def test_a_trace_takes_no_size_for_a_constant(name):
    with torch.no_grad():
        model = build(name, out_indices=ALL, **shallow(name))
        torch.jit.trace(model, images(), check_trace=False)


HALVES = [pytest.param(torch.bfloat16, marks=ONE_STACK)]
if not OLD_TORCH:
    HALVES.append(torch.float16)


def extreme_images(height=64, width=96):
    """Six kinds of them, (1, 3, H, W) each."""
    pixel = torch.zeros(1, 3, height, width)
    pixel[..., height // 2, width // 2] = 1
    odd = (torch.arange(height)[:, None] + torch.arange(width)) % 2
    return (
        torch.full_like(pixel, 0.7),
        torch.zeros_like(pixel),
        torch.full_like(pixel, 2.64),  # saturated
        1e4 * images(1, height, width),
        pixel,
        (2.0 * odd - 1).expand_as(pixel),  # checkerboard
    )


def run_half(model, x, dtype, loss_scale=1.0):
    """Outputs and gradients under autocast, convolutions as on a GPU."""
    model.zero_grad()
    with RoundedConvolutions(dtype):
        with torch.autocast('cpu', dtype):
            outs = model(x)
        (loss_scale * random_loss(outs)).backward()
    return outs, {key: p.grad for key, p in model.named_parameters()}


@pytest.mark.parametrize('dtype', HALVES, ids=str)
@BACKBONES
def test_half_precision_of_extreme_images(name, dtype):
    model = build(name)
    # the BatchNorms of its stem amplify gradients of images with little contrast
    loss_scale = 2**-6 if name.startswith('EfficientViT') else 1.0
    batches = extreme_images()
    # in training, BatchNorm would take the others for one image
    runs = [(False, torch.cat(batches))]
    runs += [(True, x.expand(2, -1, -1, -1)) for x in batches]
    for training, x in runs:
        model.train(training)
        outs, grads = run_half(model, x, dtype, loss_scale)
        assert all(out.isfinite().all() for out in outs)
        for key, grad in grads.items():
            assert grad.isfinite().all(), (key, training)


@pytest.mark.parametrize('dtype', HALVES, ids=str)
@pytest.mark.parametrize('training', (False, True), ids=('eval', 'train'))
@BACKBONES
def test_half_precision_is_close(name, training, dtype):
    model = build(name).train(training)
    x = torch.nn.functional.interpolate(images(2, 16, 24), (64, 96), mode='bicubic')
    torch.manual_seed(1)
    single = model(x)
    random_loss(single).backward()
    expected = [p.grad for p in model.parameters()]
    torch.manual_seed(1)
    outs, grads = run_half(model, x, dtype)
    bound = {torch.bfloat16: 1, torch.float16: 1 / 4}[dtype]
    if name.startswith('EfficientViT'):  # it has a BatchNorm behind most convolutions
        bound = max(bound, 1 / 2)
    # BatchNorm of two small images multiplies rounding errors
    largest = 0.1 if training else 0.05
    for out, want in zip(outs, single):
        assert (out - want).norm() < largest * bound * want.norm()
    error = torch.cat([(a - b).flatten() for a, b in zip(grads.values(), expected)])
    norm = torch.cat([b.flatten() for b in expected]).norm()
    assert error.norm() < 0.2 * bound * norm
