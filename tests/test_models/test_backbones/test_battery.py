"""What holds for every backbone; a new one is one more line of CASES."""

import copy
import io
import math
import pickle
from typing import NamedTuple

import pytest
import torch
from mmengine.model import PretrainedInit
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from mmlinattn.deployment import ExportedModel, export, parity
from mmlinattn.functional.precision import Float32Convolutions
from mmlinattn.models.layers import PositionTable
from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern


class Case(NamedTuple):
    """A backbone of four stages in small, and what it promises.

    Attributes:
        cfg (dict): Its config.
        with_cls_token (bool): Whether it has a class token.
        num_blocks (int): Blocks in its stages.
        strides (tuple[int]): Strides of its maps.
    """

    cfg: dict
    with_cls_token: bool = True
    num_blocks: int = 5
    strides: tuple = (4, 8, 16, 32)


PYRAMID = dict(embed_dims=[8, 16, 24, 32], depths=[1, 2, 1, 1], num_heads=[1, 2, 3, 4])
SWIN = dict(embed_dims=8, depths=[2, 1, 1, 1], num_heads=[1, 2, 4, 4])
PLAIN = dict(embed_dims=24, num_layers=4, num_heads=3)
CASES = {
    'SOFT': Case(dict(type='SOFT', arch=PYRAMID, img_size=64)),
    'SOFTPlusPlus': Case(dict(type='SOFTPlusPlus', arch=PYRAMID)),
    'SOFTPlusPlus-no-cls': Case(
        dict(type='SOFTPlusPlus', arch=PYRAMID, sampling_ratios=(8, 4, 2, 2)),
        with_cls_token=False,
    ),
    'Pyramid': Case(
        dict(type='PyramidTransformer', arch=PYRAMID), with_cls_token=False
    ),
    'SOFT-linear': Case(
        dict(
            type='SOFT',
            arch=PYRAMID,
            img_size=64,
            attention=[
                dict(type='EfficientAttention', lepe=True),
                dict(type='NystromAttention', num_landmarks=16),
                dict(type='FocusedLinearAttention'),
                dict(type='PerformerAttention'),
            ],
        )
    ),
    'CSWin-ELFATT': Case(
        dict(
            type='CSWinTransformer',
            arch=dict(PYRAMID, depths=[1, 1, 2, 1]),
            attention='elfatt',
            block_sizes=(16, 9, 4),
        ),
        with_cls_token=False,
    ),
    'Pyramid-softmax': Case(
        dict(
            type='PyramidTransformer',
            arch=PYRAMID,
            attention=[
                dict(type='LinformerAttention', sr_ratio=4),
                dict(type='CrossShapedWindowAttention', stripe_width=3),
                dict(type='AgentAttention', num_agents=9),
                dict(type='SoftmaxAttention', lepe=True),
            ],
        ),
        with_cls_token=False,
    ),
    'Swin': Case(dict(type='SwinTransformer', arch=SWIN), with_cls_token=False),
    'ViT': Case(
        dict(type='VisionTransformer', arch=PLAIN, img_size=64, patch_size=8),
        num_blocks=4,
        strides=(8, 8, 8, 8),
    ),
    'CaiT': Case(
        dict(
            type='CaiT', arch=dict(PLAIN, num_class_layers=1), img_size=64, patch_size=8
        ),
        num_blocks=4,
        strides=(8, 8, 8, 8),
    ),
}
UNSCALED = dict(attn_scale=False, feat_scale=False)
SCALED = dict(attn_scale=True, feat_scale=True)
CASES.update(
    {
        f'{name}-scaled': CASES[name]._replace(cfg={**CASES[name].cfg, **SCALED})
        for name in ('SOFTPlusPlus', 'Swin', 'ViT', 'CaiT')
    }
)
ALL = (0, 1, 2, 3)
SIZES = ((32, 32), (33, 257), (257, 33), (64, 64), (65, 97), (129, 50))
BACKBONES = pytest.mark.parametrize('name', CASES)


def change_arch(name, **changes):
    """A case's arch, its entries or those of all stages changed."""
    arch = dict(CASES[name].cfg['arch'])
    for key, change in changes.items():
        old = arch[key]
        arch[key] = [change(x) for x in old] if isinstance(old, list) else change(old)
    return arch


def build(name, **options):
    """A backbone whose every parameter matters, in eval mode."""
    model = MODELS.build({**CASES[name].cfg, **options})
    model.init_weights()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def build_like(model, name, **options):
    """A backbone with another one's weights, and the names it lacks."""
    other = MODELS.build({**CASES[name].cfg, **options}).eval()
    missing, unexpected = other.load_state_dict(model.state_dict(), False)
    return other, missing, unexpected


def images(batch=2, height=64, width=96):
    return torch.randn(batch, 3, height, width)


def random_loss(outs):
    return sum((out.float() * torch.randn(out.shape)).sum() for out in outs)


def assert_all_close(results, expected, tolerance=1e-6):
    assert len(results) == len(expected)
    for result, want in zip(results, expected):
        error = (result - want).abs().max() / want.abs().max()
        assert error <= tolerance


def biases_without_gradient(model):
    """Their gradient is zero but for rounding: what follows takes them out again,
    a mean (BatchNorm in training) or a softmax (the first mix of talking heads)."""
    names = {
        name for name, _ in model.named_parameters() if name.endswith('mix_logits.bias')
    }
    if model.norm_eval:
        return names
    for name, module in model.named_modules():
        if isinstance(module, nn.Sequential):
            layers = list(module)
            names.update(
                f'{name}.{i}.bias'
                for i, layer in enumerate(layers[1:])
                if isinstance(layer, _BatchNorm) and isinstance(layers[i], nn.Conv2d)
            )
    return names


@pytest.mark.parametrize('height, width', SIZES, ids=lambda side: str(side))
@BACKBONES
def test_forward_at_any_size(name, height, width):
    model = build(name, out_indices=ALL)
    outs = model(images(1, height, width))
    assert model.num_stages == 4
    assert isinstance(outs, tuple) and len(outs) == 4
    for out, channels, stride in zip(outs, model.feature_channels, CASES[name].strides):
        sides = math.ceil(height / stride), math.ceil(width / stride)
        assert out.shape == (1, channels, *sides)
        assert out.isfinite().all()


TRAINED = {
    'default': dict(),
    'norm-eval': dict(norm_eval=True),
    'with-cp': dict(with_cp=True),
    'scales': SCALED,
    'first-map': dict(out_indices=(0,)),
    'maps-0-2': dict(out_indices=(0, 2)),
    'last-map': dict(out_indices=(3,)),
    'avg-featmap': dict(out_type='avg_featmap'),
    'cls-token': dict(out_type='cls_token'),
    'frozen-0': dict(frozen_stages=0),
    'frozen-2': dict(frozen_stages=2),
}


@pytest.mark.parametrize('mode', TRAINED)
@BACKBONES
def test_every_trainable_parameter_learns(name, mode):
    if mode == 'cls-token' and not CASES[name].with_cls_token:
        pytest.skip('has no class token')
    model = build(name, **TRAINED[mode]).train()
    random_loss(model(images(height=65))).backward()
    zero = biases_without_gradient(model)
    for key, parameter in model.named_parameters():
        if not parameter.requires_grad:
            assert parameter.grad is None, key
            continue
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert key in zero or parameter.grad.any(), key


@BACKBONES
def test_only_frozen_and_unused_parameters_do_not_train(name):
    assert all(p.requires_grad for p in build(name).parameters())
    model = build(name, out_indices=(0, 1))
    for key, parameter in model.named_parameters():
        assert parameter.requires_grad == (model.stage_of(key) not in (2, 3))


@pytest.mark.parametrize('indices', ((0,), (1,), (3,), (0, 2), [1, 2, 3]))
@BACKBONES
def test_out_indices(name, indices):
    full = build(name, out_indices=ALL)
    model, missing, _ = build_like(full, name, out_indices=indices)
    assert not missing
    x = images(1)
    outs, maps = model(x), full(x)
    assert model.out_indices == tuple(indices)
    assert model.feature_channels == tuple(full.feature_channels[i] for i in indices)
    assert_all_close(outs, [maps[i] for i in indices])


@pytest.mark.parametrize('name', ('SOFT', 'ViT'))
def test_out_indices_as_in_mmpretrain(name):
    assert build(name, out_indices=-1).out_indices == (3,)
    assert build(name, out_indices=2).out_indices == (2,)
    assert build(name, out_indices=(0, -2)).out_indices == (0, 2)


@BACKBONES
def test_out_type(name):
    full = build(name, out_indices=(3,))
    x = images(3)
    average, missing, unexpected = build_like(full, name, out_type='avg_featmap')
    assert not missing and not unexpected
    (out,) = average(x)
    assert average.feature_channels == full.feature_channels[-1:]
    torch.testing.assert_close(out, full(x)[-1].mean((2, 3)))
    if not CASES[name].with_cls_token:
        with pytest.raises(ValueError, match='cls_token.*avg_featmap'):
            build(name, out_type='cls_token')
        return
    (out,) = build_like(full, name, out_type='cls_token')[0](x)
    assert out.shape == (3, full.feature_channels[-1])
    assert not torch.allclose(out, average(x)[0], atol=1e-2)


@pytest.mark.parametrize('frozen_stages', range(-1, 5))
@BACKBONES
def test_frozen_stages(name, frozen_stages):
    model = build(name, frozen_stages=frozen_stages, out_indices=ALL)
    x = images()
    before = copy.deepcopy(model.state_dict())
    maps = model(x)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=1e-2)
    for _ in range(2):
        model.train()
        optimizer.zero_grad()
        random_loss(model(x)).backward()
        optimizer.step()
    frozen = {
        key
        for key in before
        if frozen_stages >= 0 and model.stage_of(key) < frozen_stages
    }
    for key, parameter in model.named_parameters():
        assert parameter.requires_grad == (key not in frozen)
    for key, value in model.state_dict().items():
        if key in frozen:
            assert value.equal(before[key])
            owner = model.get_submodule(key.rpartition('.')[0])
            assert owner is model or not owner.training
    model.eval()
    for i, (old, new) in enumerate(zip(maps, model(x))):
        # the norm of a returned map comes after all stages
        still = i < frozen_stages and not hasattr(model, f'norm{i}')
        assert new.equal(old) == still


@BACKBONES
def test_norm_eval(name):
    model = build(name, norm_eval=True).train()
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        pytest.skip('has no BatchNorm')
    before = copy.deepcopy([norm.state_dict() for norm in norms])
    model(images())
    assert not any(norm.training for norm in norms)
    assert all(p.requires_grad for norm in norms for p in norm.parameters())
    for norm, state in zip(norms, before):
        for key, value in norm.state_dict().items():
            assert value.equal(state[key])
    assert all(
        module.training
        for module in model.modules()
        if not isinstance(module, _BatchNorm)
    )
    assert any(
        m.training for m in build(name).train().modules() if isinstance(m, _BatchNorm)
    )


@BACKBONES
def test_with_cp_changes_nothing(name):
    plain = build(name, drop_path_rate=0.5).train()
    recomputed = build_like(plain, name, drop_path_rate=0.5, with_cp=True)[0]
    x = images(4)
    results = []
    for model in (plain, recomputed.train()):
        torch.manual_seed(3)
        outs = model(x)
        random_loss(outs).backward()
        results.append((*outs, *(p.grad for p in model.parameters())))
    for result, expected in zip(*results):
        torch.testing.assert_close(result, expected)


@pytest.mark.parametrize(
    'dtype, tolerance',
    (
        (torch.float64, 1e-12),
        (torch.float32, 1e-4),  # kernels that round by batch size, on smooth images
    ),
    ids=('float64', 'float32'),
)
@BACKBONES
def test_an_image_does_not_see_its_neighbors(name, dtype, tolerance):
    model = build(name).to(dtype)
    x = images(3, 65, 97)
    x[1] = torch.linspace(-1, 1, 97).sin()  # smooth
    x[2] *= 3
    x = x.to(dtype)
    with torch.no_grad():
        together = model(x)
        for i in range(3):
            alone = model(x[i : i + 1])
            assert_all_close([out[i : i + 1] for out in together], alone, tolerance)


UNSCALED_NAMES = [name for name in CASES if 'scaled' not in name]


# torch 2.1's compiler can't follow backward passes of our own, and takes its time
OLD_COMPILER = torch.__version__.startswith('2.1.')


# every function with a backward pass of its own
TRAINED_FIRST = ('SOFTPlusPlus', 'CSWin-ELFATT', 'CaiT')


def compile_whole(model):
    """In one graph, or not at all."""
    torch._dynamo.reset()
    backend = 'eager' if OLD_COMPILER else 'aot_eager'
    return torch.compile(model, backend=backend, fullgraph=True, dynamic=False)


@pytest.mark.parametrize('name', UNSCALED_NAMES)
def test_compiled_as_run(name):
    model, x = build(name, out_indices=ALL), images()
    with torch.no_grad():
        assert_all_close(compile_whole(model)(x), model(x), 1e-4)


@pytest.mark.skipif(OLD_COMPILER, reason='not with this compiler')
@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=() if name in TRAINED_FIRST else pytest.mark.full)
        for name in UNSCALED_NAMES
    ],
)
def test_trained_compiled(name):
    model, x = build(name, out_indices=ALL).double().train(), images().double()
    grads = []
    for run in (compile_whole(model), model):
        model.zero_grad()
        torch.manual_seed(1)
        random_loss(run(x)).backward()
        grads.append([p.grad for p in model.parameters()])
    for result, expected in zip(*grads):
        torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-9)


SHIPPED = ((2, 96, 129), (1, 32, 32), (1, 33, 257), (3, 257, 33), (1, 200, 333))


@pytest.mark.modern_full
@BACKBONES
def test_onnx_at_any_size(name, tmp_path):
    pytest.importorskip('onnxruntime')
    model = ExportedModel(build(name, out_indices=ALL))
    run = export(model, tmp_path / 'model.onnx', 'onnx', (96, 129))
    for size in SHIPPED:
        assert max(parity(model, run, images(*size)).values()) <= 1e-4


@pytest.mark.modern_full
@BACKBONES
def test_traced_at_any_size(name, tmp_path):
    model = ExportedModel(build(name, out_indices=ALL))
    run = export(model, tmp_path / 'model.pt', 'torchscript', (96, 129))
    for size in SHIPPED:
        assert max(parity(model, run, images(*size)).values()) <= 1e-4


@pytest.mark.filterwarnings('error::torch.jit.TracerWarning')
@BACKBONES
def test_a_trace_takes_no_size_for_a_constant(name):
    with torch.no_grad():
        torch.jit.trace(build(name, out_indices=ALL), images(), check_trace=False)


@pytest.mark.skipif(
    not hasattr(torch.compiler, 'is_exporting'), reason='torch.export needs torch 2.7'
)
@BACKBONES
def test_torch_export(name, tmp_path):
    model = ExportedModel(build(name, out_indices=ALL))
    run = export(model, tmp_path / 'model.pt2', 'export', (65, 97))
    assert max(parity(model, run, images(1, 65, 97)).values()) <= 1e-4


@BACKBONES
def test_nothing_stale_in_evaluation(name):
    model, x = build(name), images(1)
    with torch.no_grad():
        model(x)
        for seed in (1, 2):
            torch.manual_seed(seed)
            other = build(name)
            state = {key: value.clone() for key, value in other.state_dict().items()}
            model.load_state_dict(state, assign=True)
            assert_all_close(model(x), other(x))
        for parameter in other.parameters():
            parameter.mul_(1.1)
        vector_to_parameters(
            parameters_to_vector(other.parameters()), model.parameters()
        )
        assert_all_close(model(x), other(x))


@BACKBONES
def test_values_are_looked_at_where_that_is_cheap(name, monkeypatch):
    """On a GPU it would stall every step; any other device stands for it here."""
    model = build(name).to('meta')
    x = torch.empty(1, 3, 64, 64, device='meta')
    monkeypatch.setattr(torch.Tensor, 'is_meta', False)
    monkeypatch.setattr(torch.Tensor, 'isfinite', lambda x: pytest.fail('looked at'))
    model.check_image(x)
    monkeypatch.setenv('MMLINATTN_DEBUG', '1')
    with pytest.raises(pytest.fail.Exception, match='looked at'):
        model.check_image(x)


@BACKBONES
def test_state_dict_round_trip(name):
    model = build(name)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = build(name)
    other.load_state_dict(torch.load(file))
    x = images(1)
    for copied in (other, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        for result, expected in zip(copied(x), model(x)):
            assert result.equal(expected)


def test_a_copy_has_its_own_position_tables():
    """A hook that still belonged to the original would fit them wrongly."""
    model = MODELS.build(dict(CASES['SOFT'].cfg, img_size=64))
    small = MODELS.build(dict(CASES['SOFT'].cfg, img_size=32))
    copied = copy.deepcopy(model)
    for table in model.modules():
        if isinstance(table, PositionTable):
            table.hw_shape = (1, 1)
    copied.load_state_dict(small.state_dict())


# torch 2.1 has no float16 on a CPU
HALVES = (torch.bfloat16,) if OLD_COMPILER else (torch.bfloat16, torch.float16)


def extreme_images(height=64, width=96):
    """Six kinds of them, (1, 3, H, W) each."""
    pixel = torch.zeros(1, 3, height, width)
    pixel[..., height // 2, width // 2] = 1
    odd = (torch.arange(height)[:, None] + torch.arange(width)) % 2
    return dict(
        constant=torch.full_like(pixel, 0.7),
        zero=torch.zeros_like(pixel),
        saturated=torch.full_like(pixel, 2.64),
        scaled=1e4 * images(1, height, width),
        pixel=pixel,
        checkerboard=(2.0 * odd - 1).expand_as(pixel),
    )


def run_half(model, x, dtype):
    """Outputs and gradients under autocast, convolutions as on a GPU."""
    model.zero_grad()
    with Float32Convolutions(round_to=dtype):
        with torch.autocast('cpu', dtype):
            outs = model(x)
        random_loss(outs).backward()
    return outs, {key: p.grad for key, p in model.named_parameters()}


@pytest.mark.parametrize('dtype', HALVES, ids=str)
@BACKBONES
def test_half_precision_of_extreme_images(name, dtype):
    model = build(name)
    batches = extreme_images()
    # in training, BatchNorm would take the others for one image
    runs = [(False, torch.cat(list(batches.values())))]
    runs += [(True, x.expand(2, -1, -1, -1)) for x in batches.values()]
    for training, x in runs:
        model.train(training)
        outs, grads = run_half(model, x, dtype)
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
    # BatchNorm of two small images multiplies what rounding does
    largest = 0.1 if training else 0.05
    for out, want in zip(outs, single):
        assert (out - want).norm() < largest * bound * want.norm()
    error = torch.cat([(a - b).flatten() for a, b in zip(grads.values(), expected)])
    norm = torch.cat([b.flatten() for b in expected]).norm()
    assert error.norm() < 0.2 * bound * norm


def test_embeddings_keep_their_dtype_under_autocast():
    """Half-precision convolutions cost half of an unnormalized SOFT's gradient."""
    model = build('SOFT')
    seen = []
    for stage in model.stages:
        stage.embedding.register_forward_hook(lambda m, x, out: seen.append(out.dtype))
    with torch.autocast('cpu', torch.bfloat16):
        model(images(1))
    assert seen == 4 * [torch.float32]


@pytest.mark.parametrize(
    'option, vectors',
    (('attn_scale', {'omega'}), ('feat_scale', {'dc_scale', 'hc_scale'})),
)
@BACKBONES
def test_scales_start_at_the_identity(name, option, vectors):
    plain = build(name, **UNSCALED)
    scaled, missing, unexpected = build_like(plain, name, **{**UNSCALED, option: True})
    assert not unexpected
    assert {key.rpartition('.')[2] for key in missing} == vectors
    assert len(missing) == len(vectors) * CASES[name].num_blocks
    x = images(1)
    maps = plain(x)
    assert_all_close(scaled(x), maps)
    with torch.no_grad():
        for key in missing:
            scaled.get_parameter(key).fill_(0.5)
    for out, expected in zip(scaled(x), maps):
        assert not torch.allclose(out, expected, atol=1e-3)


@BACKBONES
def test_drop_path_only_in_training(name):
    model = build(name, drop_path_rate=0.5, norm_eval=True)
    x = images(4)
    maps = build_like(model, name)[0](x)
    assert_all_close(model(x), maps)
    model.train()
    assert not torch.allclose(model(x)[-1], model(x)[-1])
    still = build_like(model, name, norm_eval=True)[0].train()
    assert_all_close(still(x), maps)


@pytest.mark.parametrize('prefix', ('', 'backbone.', 'model.backbone.'))
@BACKBONES
def test_layer_depth(name, prefix):
    model = build(name)
    num_layers = CASES[name].num_blocks + 2
    depths = []
    for key, _ in model.named_parameters():
        depth, total = model.get_layer_depth(prefix + key, prefix)
        assert total == num_layers
        stage = model.stage_of(key)
        assert (depth == 0) == (stage == -1)
        assert (depth == num_layers - 1) == (stage == model.num_stages)
        depths.append(depth)
    assert set(depths) == set(range(num_layers))
    in_blocks = [d for d in depths if 0 < d < num_layers - 1]
    assert in_blocks == sorted(in_blocks)
    if prefix:
        last = (num_layers - 1, num_layers)
        assert model.get_layer_depth('head.fc.weight', prefix) == last


@pytest.mark.parametrize(
    'layout, prefix',
    (
        ('', None),
        ('', ''),
        ('backbone.', None),
        ('backbone.', 'backbone'),
        ('backbone.', 'backbone.'),
        ('model.backbone.', 'model.backbone'),
    ),
)
@BACKBONES
def test_pretrained(name, layout, prefix, tmp_path):
    model = build(name)
    state_dict = {layout + key: x for key, x in model.state_dict().items()}
    if layout:
        state_dict['head.fc.weight'] = torch.zeros(3, 3)
    path = str(tmp_path / 'weights.pth')
    torch.save(dict(state_dict=state_dict) if layout else state_dict, path)
    init_cfg = dict(type='Pretrained', checkpoint=path, prefix=prefix)
    loaded = MODELS.build(dict(CASES[name].cfg, init_cfg=init_cfg))
    loaded.init_weights()
    for key, value in loaded.state_dict().items():
        assert value.equal(model.state_dict()[key]), key


@pytest.fixture
def pretrained(tmp_path):
    """Builds a backbone from a state dict saved to a file."""

    def load(name, state_dict, init_type='Pretrained', in_list=False, **options):
        path = str(tmp_path / 'weights.pth')
        torch.save(state_dict, path)
        init_cfg = dict(type=init_type, checkpoint=path)
        if in_list:
            constant = dict(type='Constant', layer='Linear', val=7.0)
            init_cfg = [constant, init_cfg]
        model = MODELS.build({**CASES[name].cfg, **options, 'init_cfg': init_cfg})
        model.init_weights()
        return model

    return load


@pytest.mark.parametrize('in_list', (False, True))
@pytest.mark.parametrize('init_type', ('Pretrained', PretrainedInit))
def test_pretrained_in_its_other_spellings(pretrained, init_type, in_list):
    state_dict = build('SOFT').state_dict()
    loaded = pretrained('SOFT', state_dict, init_type, in_list).state_dict()
    assert all(loaded[key].equal(value) for key, value in state_dict.items())
    with pytest.raises(KeyError, match='lacks'):
        pretrained('SOFT', {'x': torch.ones(1)}, init_type, in_list)


@BACKBONES
def test_pretrained_starts_scaling_vectors_at_zero(name, pretrained):
    plain = build(name, **UNSCALED)
    scaled = pretrained(name, plain.state_dict(), **SCALED)
    x = images(1)
    assert_all_close(scaled.eval()(x), plain(x))


@BACKBONES
def test_pretrained_by_a_classifier(name, pretrained):
    """It has the norm of the last map alone; others start fresh."""
    classifier = build(name, out_indices=(3,))
    model = pretrained(name, classifier.state_dict(), out_indices=ALL).eval()
    x = images(1)
    assert_all_close(model(x)[-1:], classifier(x))
    fresh = model.state_dict().keys() - classifier.state_dict().keys()
    assert all(
        (model.get_parameter(key) == key.endswith('weight')).all() for key in fresh
    )


@BACKBONES
def test_pretrained_with_a_missing_key(name, pretrained):
    state_dict = build(name).state_dict()
    key = next(key for key in state_dict if 'ffn' in key)
    del state_dict[key]
    with pytest.raises(KeyError, match=f'weights.pth.*lacks 1 .*{key}'):
        pretrained(name, state_dict)


@BACKBONES
def test_pretrained_of_another_family(name, pretrained):
    official = {
        f'{key}.{kind}': torch.ones(8)
        for key in ('patch_embed1.proj', 'norm')
        for kind in ('weight', 'bias')
    }
    with pytest.raises(KeyError, match='lacks.*convert_official'):
        pretrained(name, official)
    wider = build(name, arch=change_arch(name, embed_dims=lambda x: 2 * x))
    with pytest.raises(KeyError, match='does not fit'):
        pretrained(name, wider.state_dict())


@BACKBONES
def test_pretrained_without_a_file(name):
    init_cfg = dict(type='Pretrained', checkpoint='nowhere/weights.pth')
    model = MODELS.build(dict(CASES[name].cfg, init_cfg=init_cfg))
    with pytest.raises(FileNotFoundError, match='nowhere/weights.pth'):
        model.init_weights()


@pytest.mark.parametrize(
    'x, message',
    (
        (torch.ones(1, 3, 31, 64), r'at least 32.*31 x 64'),
        (torch.ones(1, 3, 64, 31), r'at least 32.*64 x 31'),
        (torch.ones(1, 3, 0, 0), r'at least 32.*0 x 0'),
        (torch.ones(1, 4, 64, 64), r'\(B, 3, H, W\).*\(1, 4, 64, 64\)'),
        (torch.ones(3, 64, 64), r'\(B, 3, H, W\).*\(3, 64, 64\)'),
        (torch.ones(0, 3, 64, 64), r'B >= 1.*\(0, 3, 64, 64\)'),
    ),
    ids=('low', 'narrow', 'empty-map', 'channels', 'no-batch', 'empty-batch'),
)
@BACKBONES
def test_wrong_images(name, x, message):
    with pytest.raises(ValueError, match=message):
        build(name)(x)


@pytest.mark.parametrize('value', (float('nan'), float('inf')))
@BACKBONES
def test_images_that_are_not_finite(name, value):
    x = images(3)
    x[1, 2, 5, 7] = value
    with pytest.raises(ValueError, match=r'finite.*\[1\]'):
        build(name)(x)


@pytest.mark.parametrize(
    'option, value',
    (
        ('arch', 'gigantic'),
        ('arch', None),
        ('arch', ['tiny']),
        ('arch', dict(embed_dims=8)),
        ('out_indices', ()),
        ('out_indices', (4,)),
        ('out_indices', (-5,)),
        ('out_indices', (-1, 0)),
        ('out_indices', (1, 0)),
        ('out_indices', (1, 1)),
        ('out_indices', 4),
        ('out_indices', '3'),
        ('out_type', 'tokens'),
        ('frozen_stages', -2),
        ('frozen_stages', 5),
        ('frozen_stages', None),
        ('drop_path_rate', 1.5),
        ('drop_path_rate', -0.1),
    ),
)
@BACKBONES
def test_wrong_options(name, option, value):
    with pytest.raises(ValueError, match=option):
        build(name, **{option: value})


@BACKBONES
def test_misspelled_options(name):
    with pytest.raises(
        TypeError, match=r"'drop_path_rates'.*'drop_path_rate'.*'arch'.*'out_indices'"
    ):
        build(name, drop_path_rates=0.1)
    with pytest.raises(ValueError, match="'num_heds' is none of them"):
        build(name, arch=dict(CASES[name].cfg['arch'], num_heds=1))


@BACKBONES
def test_heads_that_do_not_divide_channels(name):
    arch = change_arch(name, num_heads=lambda _: 5)
    with pytest.raises(ValueError, match='num_heads=5.*embed_dims='):
        build(name, arch=arch)
