import pytest

# Fresh interpreters: only there it shows that no import is needed.
LIBRARY = """
import sys
import torch
from mmengine.registry import HOOKS, OPTIM_WRAPPER_CONSTRUCTORS, init_default_scope
from {library}.registry import MODELS

assert not any(name.startswith('mmlinattn') for name in sys.modules)
small = dict(
    embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4])
assert MODELS.get('mmlinattn.SOFTPlusPlus').__name__ == 'SOFTPlusPlus'
model = MODELS.build(dict(type='mmlinattn.SOFTPlusPlus', arch=small))
assert [len(x[0]) for x in model(torch.rand(1, 3, 64, 64))] == [8, 16, 24, 32]
assert 'SOFTPlusPlus' not in MODELS.module_dict

# parts of our models need no scope, whatever the task's scope is
init_default_scope({library!r})
attention = dict(type='SoftmaxAttention', qkv_bias=False)
model = MODELS.build(
    dict(
        type='mmlinattn.PyramidTransformer',
        arch=small,
        stem=dict(type='ConvEmbedding', kernel_size=4, stride=4),
        norm_cfg=dict(type='GN', num_groups=2),
        attention=[attention, dict(type='mmlinattn.SoftmaxAttention'),
                   attention, attention]))
model.train()(torch.rand(1, 3, 64, 64))

# in our scope, everything is built: hooks of MMEngine among others
OPTIM_WRAPPER_CONSTRUCTORS.get('mmlinattn.LayerDecayOptimWrapperConstructor').decay
init_default_scope('mmlinattn')
HOOKS.build(dict(type='IterTimerHook'))
MODELS.build(dict(type='PyramidTransformer', arch=small))
print(type(model.stages[0].blocks[0].attn).__module__)
"""


@pytest.mark.parametrize(
    'library', [pytest.param('mmengine', marks=pytest.mark.modern_full), 'mmdet']
)
def test_library_finds_our_models(library, run_python):
    last = run_python(LIBRARY.format(library=library)).split()[-1]
    assert last == 'mmlinattn.models.attentions.softmax'


def test_config_wins_over_the_enclosing_model():
    from mmlinattn.registry import build_model

    cfg = dict(type='SoftmaxAttention', num_heads=2)
    attention = build_model(cfg, embed_dims=8, num_heads=4)
    assert attention.num_heads == 2
    assert cfg == dict(type='SoftmaxAttention', num_heads=2)


def test_the_default_scope_stays(monkeypatch):
    """All threads share it: another one may be building a detector."""
    from mmengine.registry import DefaultScope
    from torch import nn

    from mmlinattn.models import SoftmaxAttention
    from mmlinattn.registry import MODELS

    scopes = []

    class Attention(SoftmaxAttention):
        def __init__(self, *args, **kwargs):
            scopes.append(DefaultScope.get_current_instance().scope_name)
            super().__init__(*args, **kwargs)

    class Act(nn.ReLU):
        pass

    class Norm(nn.BatchNorm2d):
        pass

    for kind in (Attention, Act, Norm):
        monkeypatch.setitem(MODELS.module_dict, f'My{kind.__name__}', kind)
    cfg = dict(
        type='mmlinattn.PyramidTransformer',
        arch=dict(embed_dims=[8, 8], depths=[1, 1], num_heads=[1, 1]),
        stem=dict(type='ConvStem', act_cfg=dict(type='MyAct')),
        block=dict(act_cfg=dict(type='MyAct')),
        norm_cfg=dict(type='MyNorm'),
        attention=dict(type='MyAttention'),
    )
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(cfg)
        cfg.update(attention=dict(type='FPN'))
        with pytest.raises(KeyError, match='FPN is not in the mmlinattn::model'):
            MODELS.build(cfg)
    assert scopes == ['mmdet', 'mmdet']
    assert {Attention, Act, Norm} < {type(x) for x in model.modules()}
