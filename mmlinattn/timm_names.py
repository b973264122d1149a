"""Names of our models in timm, and the configs and backbones behind them.

A name consists of the class, the size, the attention or scaling, and the image's side
if that is not 224.
"""

from functools import partial
from typing import Any, NamedTuple, Optional


class Family(NamedTuple):
    """Models of one class in timm.

    Attributes:
        kind: The class of their backbone.
        first_conv: Name of its first convolution.
        has_token: Whether the classifiers read a class token.
        stride: Pixels between the places of the last map.
        has_tables: Whether windows or tables of positions are made for an image's size.
        has_neck: Whether the last norm of the classifiers is a neck's BatchNorm.
        neck_channels: Channels that it makes; None: those of the last map.
    """

    kind: str
    first_conv: str
    has_token: bool = False
    stride: int = 32
    has_tables: bool = True
    has_neck: bool = False
    neck_channels: Optional[int] = None


# by how their names begin
FAMILIES = {
    'soft': Family('SOFT', 'stages.0.embedding.0.0', has_token=True),
    'softpp': Family('SOFTPlusPlus', 'stages.0.embedding.0.0', has_token=True),
    'swin': Family('SwinTransformer', 'stages.0.embedding.layer.0'),
    'cswin': Family('CSWinTransformer', 'stages.0.embedding.layer.0'),
    'mlla': Family('MLLA', 'stages.0.embedding.first.0', has_tables=False),
    'vssd': Family('VSSD', 'stages.0.embedding.first.0', has_tables=False),
    'ravlt': Family(
        'RAVLT',
        'stages.0.embedding.0.0',
        has_tables=False,
        has_neck=True,
        neck_channels=1024,
    ),
    'mavit': Family(
        'MAViT',
        'stages.0.embedding.0.0',
        has_tables=False,
        has_neck=True,
        neck_channels=2048,
    ),
    'hvittt': Family(
        'HViTTT', 'stages.0.embedding.first.0', has_tables=False, has_neck=True
    ),
    'vittt': Family('ViTTT', 'patch_embed.layer.0', stride=16),
    'deit': Family('VisionTransformer', 'patch_embed.layer.0', has_token=True),
    'cait': Family('CaiT', 'patch_embed.layer.0', has_token=True),
}


def family_of(kind: str) -> Family:
    """Return facts about a class of backbones; of one without names here, the usual
    ones."""
    known = {family.kind: family for family in FAMILIES.values()}
    return known.get(kind, Family(kind, first_conv=''))


def row(
    config: str,
    arch: str,
    attention: Optional[str] = None,
    img_size: Optional[int] = None,
    ending: str = '_in1k',
    **options: Any,
) -> tuple[str, dict[str, Any]]:
    """Return a config, and its backbone without the settings of the training."""
    options.update(arch=arch, attention=attention, img_size=img_size)
    backbone = {key: value for key, value in options.items() if value is not None}
    return config + ending, backbone


tuned = partial(row, ending='_finetune_in1k-384px')
deit = partial(row, arch='deit-small')
linear = partial(row, type='LinearSOFTPlusPlus')

# All classifiers that have configs. Ablations have none: see the test of this table.
MODELS = {
    'soft_huge': row('soft-h', 'huge'),
    'soft_huge_norm': row('soft-h-norm', 'huge', attn_norm=True),
    'soft_large': row('soft-l', 'large'),
    'soft_large_norm': row('soft-l-norm', 'large', attn_norm=True),
    'soft_medium': row('soft-m', 'medium'),
    'soft_medium_norm': row('soft-m-norm', 'medium', attn_norm=True),
    'soft_small': row('soft-s', 'small'),
    'soft_small_norm': row('soft-s-norm', 'small', attn_norm=True),
    'soft_tiny': row('soft-t', 'tiny'),
    'soft_tiny_norm': row('soft-t-norm', 'tiny', attn_norm=True),
    'softpp_large': row('softpp-l', 'large'),
    'softpp_large_linear': linear('softpp-l-linear', 'large'),
    'softpp_medium': row('softpp-m', 'medium'),
    'softpp_medium_linear': linear('softpp-m-linear', 'medium'),
    'softpp_micro_linear': linear('softpp-micro-linear', 'micro'),
    'softpp_small': row('softpp-s', 'small'),
    'softpp_small_linear': linear('softpp-s-linear', 'small'),
    'softpp_tiny': row('softpp-t', 'tiny'),
    'softpp_tiny_linear': linear('softpp-t-linear', 'tiny'),
    'swin_base_agent': row('swin-b-agent', 'base', 'agent'),
    'swin_base_agent_384': tuned('swin-b-agent', 'base', 'agent', 384),
    'swin_base_efficient': row('swin-b-efficient', 'base', 'efficient'),
    'swin_base_efficient_384': tuned('swin-b-efficient', 'base', 'efficient'),
    'swin_base_elfatt': row('swin-b-elfatt', 'base', 'elfatt'),
    'swin_base_elfatt_384': tuned('swin-b-elfatt', 'base', 'elfatt', block_sizes=576),
    'swin_base_flatten': row('swin-b-flatten', 'base', 'flatten'),
    'swin_base_flatten_384': tuned('swin-b-flatten', 'base', 'flatten', 384),
    'swin_base_global': row('swin-b-global', 'base', 'global'),
    'swin_base_global_384': tuned('swin-b-global', 'base', 'global'),
    'swin_base_inline': row('swin-b-inline', 'base', 'inline'),
    'swin_base_local': row('swin-b-local', 'base', 'local'),
    'swin_base_local_384': tuned('swin-b-local', 'base', 'local', 384),
    'swin_base_polaformer': row('swin-b-polaformer', 'base', 'polaformer'),
    'swin_small_attnscale': row('swin-s-attnscale', 'small', attn_scale=True),
    'swin_small_featscale': row('swin-s-featscale', 'small', feat_scale=True),
    'swin_small_inline': row('swin-s-inline', 'small', 'inline'),
    'swin_small_local': row('swin-s', 'small', 'local'),
    'swin_small_polaformer': row('swin-s-polaformer', 'small', 'polaformer'),
    'swin_tiny_agent': row('swin-t-agent', 'tiny', 'agent'),
    'swin_tiny_efficient': row('swin-t-efficient', 'tiny', 'efficient'),
    'swin_tiny_elfatt': row('swin-t-elfatt', 'tiny', 'elfatt'),
    'swin_tiny_flatten': row('swin-t-flatten', 'tiny', 'flatten'),
    'swin_tiny_global': row('swin-t-global', 'tiny', 'global'),
    'swin_tiny_inline': row('swin-t-inline', 'tiny', 'inline'),
    'swin_tiny_local': row('swin-t-local', 'tiny', 'local'),
    'swin_tiny_polaformer': row('swin-t-polaformer', 'tiny', 'polaformer'),
    'cswin_base_agent': row('cswin-b-agent', 'b36292', 'agent'),
    'cswin_base_agent_384': tuned('cswin-b-agent', 'b36292', 'agent', 384),
    'cswin_base_efficient': row('cswin-b-efficient', 'b36292', 'efficient'),
    'cswin_base_efficient_384': tuned('cswin-b-efficient', 'b36292', 'efficient'),
    'cswin_base_elfatt': row('cswin-b-elfatt', 'b36292', 'elfatt'),
    'cswin_base_elfatt_384': tuned(
        'cswin-b-elfatt', 'b36292', 'elfatt', block_sizes=576
    ),
    'cswin_base_flatten': row('cswin-b-flatten', 'b36292', 'flatten'),
    'cswin_base_flatten_384': tuned('cswin-b-flatten', 'b36292', 'flatten', 384),
    'cswin_base_global': row('cswin-b-global', 'b36292', 'global'),
    'cswin_base_global_384': tuned('cswin-b-global', 'b36292', 'global'),
    'cswin_base_inline': row('cswin-b-inline', 'b36292', 'inline'),
    'cswin_base_inline_384': tuned('cswin-b-inline', 'b36292', 'inline', 384),
    'cswin_base_local': row('cswin-b-local', 'b36292', 'local'),
    'cswin_base_local_384': tuned('cswin-b-local', 'b36292', 'local', 384),
    'cswin_small_inline': row('cswin-s-inline', 's36292', 'inline'),
    'cswin_tiny_agent': row('cswin-t-agent', 't24181', 'agent'),
    'cswin_tiny_efficient': row('cswin-t-efficient', 't24181', 'efficient'),
    'cswin_tiny_elfatt': row(
        'cswin-t-elfatt', 't24181', 'elfatt', block_sizes=(49, 49, 196)
    ),
    'cswin_tiny_flatten': row('cswin-t-flatten', 't24181', 'flatten'),
    'cswin_tiny_global': row('cswin-t-global', 't24181', 'global'),
    'cswin_tiny_inline': row('cswin-t-inline', 't24181', 'inline'),
    'cswin_tiny_local': row('cswin-t-local', 't24181', 'local'),
    'mlla_base': row('mlla-b', 'base'),
    'mlla_small': row('mlla-s', 'small'),
    'mlla_tiny': row('mlla-t', 'tiny'),
    'vssd_base': row('vssd-b', 'base'),
    'vssd_base_mesa': row('vssd-b-mesa', 'base'),
    'vssd_micro': row('vssd-micro', 'micro'),
    'vssd_small': row('vssd-s', 'small'),
    'vssd_small_mesa': row('vssd-s-mesa', 'small'),
    'vssd_tiny': row('vssd-t', 'tiny'),
    'vssd_tiny_mesa': row('vssd-t-mesa', 'tiny'),
    'ravlt_base': row('ravlt-b', 'base'),
    'ravlt_large': row('ravlt-l', 'large'),
    'ravlt_small': row('ravlt-s', 'small'),
    'ravlt_tiny': row('ravlt-t', 'tiny'),
    'mavit_base': row('mavit-b', 'base'),
    'mavit_large': row('mavit-l', 'large'),
    'mavit_small': row('mavit-s', 'small'),
    'mavit_tiny': row('mavit-t', 'tiny'),
    'hvittt_base': row('hvittt-b', 'base'),
    'hvittt_small': row('hvittt-s', 'small'),
    'hvittt_tiny': row('hvittt-t', 'tiny'),
    'vittt_base': row('vittt-b', 'base'),
    'vittt_small': row('vittt-s', 'small'),
    'vittt_tiny': row('vittt-t', 'tiny'),
    'deit_s12': deit('deit-s12', num_layers=12),
    'deit_s12_attnscale': deit('deit-s12-attnscale', attn_scale=True, num_layers=12),
    'deit_s12_featscale': deit('deit-s12-featscale', feat_scale=True, num_layers=12),
    'deit_s24': deit('deit-s24', num_layers=24),
    'deit_s24_attnscale': deit('deit-s24-attnscale', attn_scale=True, num_layers=24),
    'deit_s24_featscale': deit('deit-s24-featscale', feat_scale=True, num_layers=24),
    'cait_s24': row('cait-s24', 's24'),
    'cait_s24_attnscale': row('cait-s24-attnscale', 's24', attn_scale=True),
    'cait_s24_featscale': row('cait-s24-featscale', 's24', feat_scale=True),
    'cait_xxs24': row('cait-xxs24', 'xxs24'),
    'cait_xxs24_attnscale': row('cait-xxs24-attnscale', 'xxs24', attn_scale=True),
    'cait_xxs24_featscale': row('cait-xxs24-featscale', 'xxs24', feat_scale=True),
}
