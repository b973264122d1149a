"""What ``help`` and editors list of a class: all options, with types and defaults."""

from inspect import signature

import pytest

import mmlinattn.models
from mmlinattn.models import BaseBackbone, LinearSOFTPlusPlus, ProjectedAttention
from mmlinattn.registry import MODELS

OURS = [
    kind
    for kind in MODELS.module_dict.values()
    if kind.__module__.startswith(mmlinattn.models.__name__)
]
# (class, option) where a default differs from that of the base
OTHER_DEFAULTS = {
    ('CrossShapedWindowAttention', 'lepe'),
    ('ELFATT', 'lepe'),
    ('GaussianAttention', 'shared_qk'),
    ('NystromAttention', 'lepe'),
    ('VisionTransformer', 'with_cls_token'),
}


def test_all_options_are_listed():
    """Those of the bases, too, with their types and defaults."""
    for kind in OURS:
        for name, parameter in signature(kind).parameters.items():
            assert name != 'kwargs', kind
            assert parameter.annotation is not parameter.empty, (kind, name)
    parameters = signature(LinearSOFTPlusPlus).parameters
    names = ('solver', 'num_landmarks', 'with_cp')
    assert [parameters[name].default for name in names] == ['cholesky', 49, False]


def test_options_of_bases_have_the_same_defaults():
    """Constructors write them out."""
    different = {
        (kind.__name__, name)
        for kind in OURS
        for base in (BaseBackbone, ProjectedAttention)
        if issubclass(kind, base)
        for name, parameter in signature(base).parameters.items()
        if name in signature(kind).parameters
        and parameter.default is not parameter.empty
        and parameter.default != signature(kind).parameters[name].default
    }
    assert different == OTHER_DEFAULTS


def test_another_default_gives_way_to_an_argument():
    """By its name or its place; unknown ones are refused."""
    arch = dict(embed_dims=[32], depths=[1], num_heads=[1])
    options = dict(sampling_ratios=(2,), kernel_sizes=(3,), img_size=32)
    for model in (
        LinearSOFTPlusPlus(arch, attn_norm=False, solver='auto', **options),
        LinearSOFTPlusPlus(arch, False, solver='auto', **options),
    ):
        attention = model.stages[0].blocks[0].attn
        assert not attention.attn_norm
        assert attention.ridge == 0.001
    with pytest.raises(TypeError, match="unexpected keyword argument 'atn_norm'"):
        LinearSOFTPlusPlus(arch, atn_norm=False)
