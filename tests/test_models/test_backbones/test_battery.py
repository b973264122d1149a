"""Properties of every registered backbone; registering a new one tests it.

test_battery_files.py has compiled and exported models and half precision.
"""

import copy
from contextlib import nullcontext
from inspect import signature

import pytest
import torch
from deterministic import deterministic_algorithms
from miniature_backbones import (
    ALL,
    BACKBONES,
    CASES,
    ONE_STACK,
    SCALED,
    UNSCALED,
    assert_all_close,
    blocks_of,
    build,
    build_like,
    has_cls_token,
    images,
    random_loss,
    strides,
)
from mmengine.model import PretrainedInit
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn

from mmlinattn.registry import MODELS
from mmlinattn.weights.pretrained import Comparison


def biases_without_gradient(model):
    """Their gradient is zero but for rounding: what follows takes them out again,
    a mean (BatchNorm in training) or a softmax (the first mix of talking heads)."""
    names = {
        name for name, _ in model.named_parameters() if name.endswith('mix_logits.bias')
    }
    for name, module in model.named_modules():
        if isinstance(module, nn.Sequential) and not model.norm_eval:
            layers = list(module)
            names.update(
                f'{name}.{i}.bias'
                for i, layer in enumerate(layers[1:])
                if isinstance(layer, _BatchNorm) and isinstance(layers[i], nn.Conv2d)
            )
    return names


TRAINED = {
    'default': dict(),
    'norm-eval': dict(norm_eval=True),
    'scales': SCALED,
    'maps-0-2': dict(out_indices=(0, 2)),
    'avg-featmap': dict(out_type='avg_featmap'),
    'cls-token': dict(out_type='cls_token'),
}


@pytest.mark.parametrize(
    'mode', ['default', *(pytest.param(x, marks=ONE_STACK) for x in [*TRAINED][1:])]
)
@BACKBONES
def test_every_trainable_parameter_learns(name, mode):
    if mode == 'cls-token' and not has_cls_token(build(name)):
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


def train_step(model, x):
    """Outputs and gradients, on the CPU."""
    torch.manual_seed(0)
    outs = [out.cpu() for out in model(x)]
    random_loss(outs).backward()
    grads = [p.grad.cpu() for p in model.parameters()]
    model.zero_grad()
    return [out.detach() for out in outs], grads


@BACKBONES
def test_deterministic_algorithms_change_nothing(name):
    model, x = build(name).double().train(), images(height=65).double()
    steps = []
    for context in (nullcontext(), deterministic_algorithms()):
        with context:
            steps.append(train_step(model, x))
    largest = max(grad.abs().max() for grad in steps[0][1])
    for expected, result in zip(*(outs + grads for outs, grads in steps)):
        torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-8 * largest)


@pytest.mark.gpu
@BACKBONES
def test_a_gpu_computes_what_a_cpu_does(name, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip('needs a GPU')
    # what deterministic products need
    monkeypatch.setenv('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    model, x = build(name).double().train(), images(height=65).double()
    runs = []
    for device in ('cpu', 'cuda', 'cuda'):
        with deterministic_algorithms() if device == 'cuda' else nullcontext():
            outs, grads = train_step(model.to(device), x.to(device))
        runs.append(outs + grads)
    largest = max(result.abs().max() for result in runs[0])
    for expected, result, again in zip(*runs):
        torch.testing.assert_close(result, expected, rtol=1e-6, atol=1e-7 * largest)
        assert torch.equal(result, again)


@ONE_STACK
@BACKBONES
def test_only_frozen_and_unused_parameters_do_not_train(name):
    assert all(p.requires_grad for p in build(name).parameters())
    model = build(name, out_indices=(0, 1))
    for key, parameter in model.named_parameters():
        assert parameter.requires_grad == (model.stage_of(key) not in (2, 3))


@ONE_STACK
@pytest.mark.parametrize('indices', ((0, 2), [1, 2, 3]))
@BACKBONES
def test_out_indices(name, indices):
    full = build(name, out_indices=ALL)
    model, missing, _ = build_like(full, name, out_indices=indices)
    assert not missing
    x = images(1)
    outs, maps = model(x), full(x)
    assert model.out_indices == tuple(indices)
    assert model.feature_channels == tuple(full.feature_channels[i] for i in indices)
    assert model.feature_strides == tuple(strides(name)[i] for i in indices)
    assert_all_close(outs, [maps[i] for i in indices])


@pytest.mark.parametrize(
    'indices, expected', ((-1, (3,)), (2, (2,)), ((0, -2), (0, 2)))
)
def test_out_indices_as_in_mmpretrain(indices, expected):
    assert build('SOFT', out_indices=indices).out_indices == expected


@ONE_STACK
@BACKBONES
def test_out_type(name):
    full = build(name, out_indices=(3,))
    x = images(3)
    average, missing, unexpected = build_like(full, name, out_type='avg_featmap')
    assert not missing and not unexpected
    (out,) = average(x)
    assert average.feature_channels == full.feature_channels[-1:]
    (expected,) = full(x)
    torch.testing.assert_close(out, expected.mean((2, 3)))
    (tokens,) = build_like(full, name, out_type='raw')[0](x)
    _, tokens = tokens.split((int(has_cls_token(full)), expected[0, 0].numel()), 1)
    torch.testing.assert_close(tokens.transpose(1, 2), expected.flatten(2))
    if not has_cls_token(full):
        with pytest.raises(ValueError, match='cls_token.*avg_featmap'):
            build(name, out_type='cls_token')
        return
    (out,) = build_like(full, name, out_type='cls_token')[0](x)
    assert out.shape == (3, full.feature_channels[-1])
    assert not torch.allclose(out, average(x)[0], atol=1e-2)


@ONE_STACK
@pytest.mark.parametrize('frozen_stages', (-1, 0, 2, 4))
@BACKBONES
def test_frozen_stages(name, frozen_stages):
    model = build(name, frozen_stages=frozen_stages, out_indices=ALL)
    x = images()
    before = copy.deepcopy(model.state_dict())
    maps = model(x)
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=1e-2) if trainable else None
    for _ in range(2 if trainable else 0):  # some have no norm after the stages
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


@ONE_STACK
@BACKBONES
def test_norm_eval(name):
    model = build(name, norm_eval=True).train()
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        pytest.skip('has no BatchNorm')
    before = copy.deepcopy([norm.state_dict() for norm in norms])
    model(images())
    assert all(p.requires_grad for norm in norms for p in norm.parameters())
    for norm, state in zip(norms, before):
        assert all(value.equal(state[key]) for key, value in norm.state_dict().items())
    assert all(module.training != (module in norms) for module in model.modules())


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


def test_values_are_looked_at_where_that_is_cheap(monkeypatch):
    """A GPU would stall in every step; another device stands for it here."""
    model = build('SOFT').to('meta')
    x = torch.empty(1, 3, 64, 64, device='meta')
    monkeypatch.setattr(torch.Tensor, 'is_meta', False)
    monkeypatch.setattr(torch.Tensor, 'isfinite', lambda x: pytest.fail('looked at'))
    model.check_image(x)
    monkeypatch.setenv('MMLINATTN_DEBUG', '1')
    with pytest.raises(pytest.fail.Exception, match='looked at'):
        model.check_image(x)


@ONE_STACK
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
    attended = [block for block in blocks_of(plain) if hasattr(block, 'attn')]
    assert attended and len(missing) == len(vectors) * len(attended)
    x = images(1)
    maps = plain(x)
    assert_all_close(scaled(x), maps)
    with torch.no_grad():
        for key in missing:
            scaled.get_parameter(key).fill_(0.5)
    first = min(map(plain.stage_of, missing))  # the first stage with attention
    for i, (out, expected) in enumerate(zip(scaled(x), maps)):
        assert torch.allclose(out, expected, atol=1e-5) == (i < first)


@ONE_STACK
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


@ONE_STACK
@BACKBONES
def test_layer_depth(name):
    model = build(name)
    num_layers = len(blocks_of(model)) + 2
    names = [name for name, _ in model.named_parameters()]
    has_norm = any(model.stage_of(name) == model.num_stages for name in names)
    for prefix in ('', 'backbone.', 'model.backbone.'):
        depths = []
        for key, _ in model.named_parameters():
            depth, total = model.get_layer_depth(prefix + key, prefix)
            assert total == num_layers
            stage = model.stage_of(key)
            assert (depth == 0) == (stage == -1)
            assert (depth == num_layers - 1) == (stage == model.num_stages)
            depths.append(depth)
        assert set(depths) == set(range(num_layers if has_norm else num_layers - 1))
        in_blocks = [d for d in depths if 0 < d < num_layers - 1]
        assert in_blocks == sorted(in_blocks)
        if prefix:
            last = (num_layers - 1, num_layers)
            assert model.get_layer_depth('head.fc.weight', prefix) == last


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
        model = MODELS.build({**CASES[name], **options, 'init_cfg': init_cfg})
        model.init_weights()
        return model

    return load


@ONE_STACK
@BACKBONES
def test_pretrained(name, pretrained):
    """By a file of the backbone, and by one of a whole model."""
    state_dict = build(name).state_dict()
    inside = {f'backbone.{key}': x for key, x in state_dict.items()}
    whole = dict(state_dict={**inside, 'head.fc.weight': torch.zeros(3)})
    for file in (state_dict, whole):
        for key, value in pretrained(name, file).state_dict().items():
            assert value.equal(state_dict[key]), key


@pytest.mark.parametrize('in_list', (False, True))
@pytest.mark.parametrize('init_type', ('Pretrained', PretrainedInit))
def test_pretrained_in_its_other_spellings(pretrained, init_type, in_list):
    state_dict = build('SOFT').state_dict()
    loaded = pretrained('SOFT', state_dict, init_type, in_list).state_dict()
    assert all(loaded[key].equal(value) for key, value in state_dict.items())


@ONE_STACK
@BACKBONES
def test_what_weights_lack_has_its_own_initial_values(name):
    """Those of a model that starts from no weights."""
    nothing = Comparison('', {}, [], [], {}, {})
    start = dict(type='Pretrained', checkpoint='x.pth', earlier=lambda: nothing)
    starts = []
    for init_cfg in (None, start, [start]):
        torch.manual_seed(0)
        model = MODELS.build({**CASES[name], 'init_cfg': init_cfg})
        model.init_weights()
        starts.append(model.state_dict())
    for other in starts[1:]:
        assert all(x.equal(other[key]) for key, x in starts[0].items())


@ONE_STACK
@BACKBONES
def test_pretrained_that_does_not_fit(name, pretrained):
    state_dict = build(name).state_dict()
    key = next(key for key in state_dict if 'ffn' in key)
    state_dict[key] = torch.zeros(3)
    with pytest.raises(KeyError, match='does not fit'):
        pretrained(name, state_dict)
    del state_dict[key]
    with pytest.raises(KeyError, match=key):
        pretrained(name, state_dict)


WRONG_IMAGES = (
    (torch.ones(1, 3, 31, 64), r'at least 32.*31 x 64'),
    (torch.ones(1, 3, 64, 31), r'at least 32.*64 x 31'),
    (torch.ones(1, 4, 64, 64), r'\(B, 3, H, W\).*\(1, 4, 64, 64\)'),
    (torch.ones(3, 64, 64), r'\(B, 3, H, W\).*\(3, 64, 64\)'),
    (torch.ones(0, 3, 64, 64), r'B >= 1.*\(0, 3, 64, 64\)'),
    (torch.full((1, 3, 64, 64), float('nan')), r'finite.*\[0\]'),
    (torch.full((1, 3, 64, 64), float('inf')), r'finite.*\[0\]'),
)


@ONE_STACK
@BACKBONES
def test_wrong_images(name):
    model = build(name)
    for x, message in WRONG_IMAGES:
        with pytest.raises(ValueError, match=message):
            model(x)


WRONG_OPTIONS = dict(
    arch=('gigantic', None, dict(embed_dims=8)),
    out_indices=((), (4,), (-1, 0), (1, 1), 4, '3'),
    out_type=('tokens',),
    frozen_stages=(-2, 5, None),
    drop_path_rate=(1.5, -0.1),
)


@ONE_STACK
@pytest.mark.parametrize('option', WRONG_OPTIONS)
@BACKBONES
def test_wrong_options(name, option):
    for value in WRONG_OPTIONS[option]:
        with pytest.raises(ValueError, match=option):
            build(name, **{option: value})


@ONE_STACK
@pytest.mark.parametrize(
    'name',
    [
        x
        for x in CASES
        if 'img_size' in signature(MODELS.get(CASES[x]['type'])).parameters
    ],
)
def test_img_size(name):
    expected, model = (build(name, img_size=size) for size in (64, [64, 64]))
    model.load_state_dict(expected.state_dict())
    for size in (0, '64', 64.0, (64, 96), [64]):
        with pytest.raises(ValueError, match='img_size must be the side of square'):
            build(name, img_size=size)


@ONE_STACK
@BACKBONES
def test_unknown_options(name):
    with pytest.raises(TypeError, match="'drop_path_rates'"):
        build(name, drop_path_rates=0.1)
    with pytest.raises(ValueError, match="'num_heds' is none of them"):
        build(name, arch=dict(CASES[name]['arch'], num_heds=1))
