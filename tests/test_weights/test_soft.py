import json

import pytest
import torch
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint

from mmlinattn import weights
from mmlinattn.weights.families import FAMILIES
from mmlinattn.weights.rows import inside

pytestmark = pytest.mark.modern

SOLVERS = pytest.mark.parametrize('solver', ['newton', 'spectral'])


@pytest.fixture(scope='module')
def official(soft):
    return soft.weights()


@pytest.fixture
def check_outputs(relative_error):
    """Compares a converted file with what official code made of its weights."""

    @torch.no_grad()
    def check(checkpoint, arch, image, stages, logits, tolerance, **options):
        backbone = dict(type='mmlinattn.SOFT', arch=arch, **options)
        init_cfg = dict(
            type='Pretrained', checkpoint=str(checkpoint), prefix='backbone.'
        )
        model = MODELS.build({**backbone, 'init_cfg': init_cfg})
        model.init_weights()
        classifier = MODELS.build(
            dict(
                type='mmpretrain.ImageClassifier',
                backbone={**backbone, 'out_type': 'cls_token'},
                head=dict(
                    type='mmpretrain.LinearClsHead',
                    num_classes=logits.size(1),
                    in_channels=arch['embed_dims'][-1],
                ),
                data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
            )
        )
        load_checkpoint(classifier, str(checkpoint), strict=True)
        maps = model.eval()(image)
        assert len(maps) == len(stages)
        errors = [relative_error(m, s) for m, s in zip(maps, stages)]
        errors.append(relative_error(classifier.eval()(image), logits))
        assert max(errors) < tolerance, errors

    return check


@SOLVERS
@pytest.mark.parametrize('image', ['noise', 'smooth'])
@pytest.mark.parametrize('variant', ['soft', 'softpp'])
def test_outputs_of_official_code(
    soft, official, convert, check_outputs, variant, image, solver
):
    pytest.importorskip('mmpretrain')
    convert(official)
    outputs = {
        key.rpartition('_')[2]: value
        for key, value in soft.outputs().items()
        if key.startswith(f'{variant}_{image}_')
    }
    logits = outputs.pop('logits')
    check_outputs(
        convert.dst,
        soft.ARCH,
        soft.image(image),
        [outputs[key] for key in sorted(outputs)],
        logits,
        tolerance=1e-5,
        attn_norm=variant == 'softpp',
        solver=solver,
    )


def test_keys_of_full_model(soft):
    """Every key and shape of the official soft_tiny, without its 13M weights."""
    shapes = json.loads((soft.HERE / 'soft_keys.json').read_text())
    state_dict = {
        key: torch.empty(shape, device='meta')
        for key, shape in shapes['soft_tiny'].items()
    }
    converted = weights.convert(state_dict, 'soft')
    assert converted.pop('head.fc.weight').shape == (1000, 512)
    assert converted.pop('head.fc.bias').shape == (1000,)
    with torch.device('meta'):
        model = MODELS.build(dict(type='mmlinattn.SOFT', arch='tiny'))
    assert {key: value.shape for key, value in converted.items()} == {
        f'backbone.{key}': value.shape for key, value in model.state_dict().items()
    }
    arch = FAMILIES['soft'].arch(inside(converted, 'backbone.'))
    assert arch == {key: model.arch_zoo['tiny'][key] for key in arch}


def test_merged_projection(official):
    converted = weights.convert(official, 'soft')
    query, key_value = converted['backbone.stages.3.blocks.0.attn.qkv.weight'].split(
        [32, 64]
    )
    assert torch.equal(query, official['block4.0.attn.q.weight'])
    assert torch.equal(key_value, official['block4.0.attn.kv.weight'])


@pytest.mark.parametrize(
    'key',
    [
        'cls_token',
        'norm.bias',
        'head.bias',
        'block1.0.att.mha.W_q.weight',
        'block3.0.att.mha.attn.conv.weight',
        'block4.0.attn.kv.bias',
        'patch_embed2.proj.1.running_var',
    ],
)
def test_missing_key(official, refused, key):
    assert f'missing 1 ({key}), left over 0' in refused(
        {name: value for name, value in official.items() if name != key}
    )


@pytest.mark.parametrize('prefix', ['block3.0.', 'block2.', 'patch_embed4.'])
def test_missing_module(official, refused, prefix):
    line = refused({k: v for k, v in official.items() if not k.startswith(prefix)})
    assert f'({prefix}' in line and 'left over 0' in line
