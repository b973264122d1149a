"""What is measured: suites of cases, each beside the baseline it is held to."""
from typing import Callable, Dict, List, NamedTuple

import torch
from mmengine.registry import MODELS


class Case(NamedTuple):
    """Variants of one thing, on one input, measured in turn.

    Attributes:
        name (str): What is measured.
        variants (dict[str, Callable]): By name, what makes a module; the
            first one is the baseline of the ratios.
        shape (tuple[int]): Shape of the input, (B, C, H, W).
    """
    name: str
    variants: Dict[str, Callable]
    shape: tuple


def backbone(**cfg):
    """A function that builds a backbone from its config."""
    return lambda: MODELS.build(dict(cfg, type=f'mmlinattn.{cfg["type"]}'))


def antioversmoothing() -> List[Case]:
    """The paper's models without and with each technique.

    The scaling vectors are drawn at random: at zero a compiler could leave
    them out.
    """
    models = {
        'DeiT-S': dict(type='VisionTransformer', arch='deit-small'),
        'Swin-S': dict(type='SwinTransformer', arch='small'),
        'CaiT-S24': dict(type='CaiT', arch='s24', out_type='cls_token'),
    }
    return [
        Case(
            name, {
                'plain': backbone(**cfg),
                'AttnScale': scaled(backbone(**cfg, attn_scale=True)),
                'FeatScale': scaled(backbone(**cfg, feat_scale=True)),
            }, (1, 3, 224, 224)) for name, cfg in models.items()
    ]


def scaled(build):
    """Like ``build``, its scaling vectors drawn from N(0, 0.1)."""

    def build_scaled():
        model = build()
        with torch.no_grad():
            for name, param in model.named_parameters():
                if model.is_scaling_vector(name):
                    param.normal_(std=0.1)
        return model

    return build_scaled


SUITES = dict(antioversmoothing=antioversmoothing)
