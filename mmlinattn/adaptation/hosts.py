"""Configs of the OpenMMLab libraries' own backbones, as those of ours.

Weights of these backbones get our names when they are loaded: see
:mod:`mmlinattn.weights`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mmlinattn.parts import CLASSES, SCOPE, find, type_name

Options = Mapping[str, Any]

SWIN_SIZES = {
    **dict.fromkeys(['t', 'tiny'], (96, [2, 2, 6, 2], [3, 6, 12, 24])),
    **dict.fromkeys(['s', 'small'], (96, [2, 2, 18, 2], [3, 6, 12, 24])),
    **dict.fromkeys(['b', 'base'], (128, [2, 2, 18, 2], [4, 8, 16, 32])),
    **dict.fromkeys(['l', 'large'], (192, [2, 2, 18, 2], [6, 12, 24, 48])),
}
# channels, layers, heads, channels of the FFN
VIT_SIZES = {
    **dict.fromkeys(['s', 'small'], (768, 8, 8, 2304)),
    **dict.fromkeys(['b', 'base', 'deit-b', 'deit-base'], (768, 12, 12, 3072)),
    **dict.fromkeys(['l', 'large'], (1024, 24, 16, 4096)),
    **dict.fromkeys(['h', 'huge'], (1280, 32, 16, 5120)),
    **dict.fromkeys(['deit-t', 'deit-tiny'], (192, 12, 3, 768)),
    **dict.fromkeys(
        ['deit-s', 'deit-small', 'dinov2-s', 'dinov2-small'], (384, 12, 6, 1536)
    ),
}
# options that both have under one name
COMMON: tuple[str, ...] = ('in_channels', 'out_indices', 'drop_rate')
COMMON += ('drop_path_rate', 'with_cp', 'frozen_stages')


class Host(NamedTuple):
    """A backbone of the libraries.

    Attributes:
        convert: From its options, without those that it ``shares``, to ours.
        defaults: Its options that ours lack, with the values that ours compute with.
        shares: Options that stay as they are.
        ignored: Options that change nothing once weights are loaded.
    """

    convert: Callable[[Options], dict[str, Any]]
    defaults: dict[str, Any]
    shares: tuple[str, ...] = COMMON
    ignored: tuple[str, ...] = ()


def our_backbone(cfg: Options, scope: str = '') -> dict[str, Any]:
    """Return the config of a backbone of ours that computes what a library's own does.

    Args:
        cfg: Config of a backbone. One of ours stays as it is.
        scope: Where a type without a scope is looked up, 'mmdet', 'mmseg' or
            'mmpretrain'.

    Raises:
        ValueError: If there is none for the backbone or one of its options.
    """
    name = type_name(cfg)
    library, _, _ = str(cfg.get('type')).rpartition('.')
    library = library or scope
    is_ours = library in ('', SCOPE) and find(f'{SCOPE}.{name}') is not None
    if is_ours and name in CLASSES:
        return dict(cfg)
    host = HOSTS.get((library, name))
    if host is None:
        known = ', '.join('.'.join(key) for key in HOSTS)
        raise ValueError(
            f'{library}.{name}: no backbone of {SCOPE} has its projections; there are '
            f'counterparts of {known}'
        )
    try:
        return converted(host, cfg)
    except ValueError as error:
        raise ValueError(f'{library}.{name} as a teacher: {error}') from error


def converted(host: Host, cfg: Options) -> dict[str, Any]:
    """Return our config of a library's backbone."""
    without = ('type', 'init_cfg', '_scope_', *host.ignored)
    options = {key: value for key, value in cfg.items() if key not in without}
    shared = {key: options.pop(key) for key in host.shares if key in options}
    for key, default in host.defaults.items():
        value = options.pop(key, default)
        if value != default:
            raise ValueError(f'{key}={value!r}: {SCOPE} has {default!r} and no other')
    return {**host.convert(options), **shared}


def _converted_swin(options: Options, sizes: tuple[Any, Any, Any]) -> dict[str, Any]:
    dims, depths, heads = sizes
    window = options.get('window_size', 7)
    if not isinstance(window, int):
        raise ValueError(f'window_size={window!r}: {SCOPE} has one for all stages')
    return dict(
        type=f'{SCOPE}.SwinTransformer',
        arch=dict(embed_dims=dims, depths=list(depths), num_heads=list(heads)),
        img_size=32 * window,  # whose last map is one window
    )


def swin_of_detectors(options: Options) -> dict[str, Any]:
    """Return our config for options of MMDetection's and MMSegmentation's Swin."""
    check_known(options, ('embed_dims', 'depths', 'num_heads', 'window_size'))
    dims = options.get('embed_dims', 96)
    depths = options.get('depths', (2, 2, 6, 2))
    heads = options.get('num_heads', (3, 6, 12, 24))
    made = _converted_swin(options, (dims, depths, heads))
    return dict(made, drop_path_rate=0.1)


def swin_of_classifiers(options: Options) -> dict[str, Any]:
    """Return our config for options of MMPreTrain's Swin."""
    check_known(options, ('arch', 'window_size', 'pad_small_map', 'stage_cfgs'))
    stages = dict(options.get('stage_cfgs') or {})
    blocks = dict(stages.pop('block_cfgs', {}))
    options = {**options, **{x: blocks.pop(x) for x in ('window_size',) if x in blocks}}
    if stages or blocks:
        raise ValueError(f"stage_cfgs={options['stage_cfgs']!r} is not {SCOPE}'s")
    arch = options.get('arch', 'tiny')
    keys = ('embed_dims', 'depths', 'num_heads')
    sizes = tuple(arch[key] for key in keys) if isinstance(arch, Mapping) else None
    made = _converted_swin(options, sizes or size_of(arch, SWIN_SIZES))
    pads = options.get('pad_small_map', False)
    return dict(made, pad_small_map=pads, out_indices=(3,), drop_path_rate=0.1)


def vit(options: Options) -> dict[str, Any]:
    """Return our config for options of MMPreTrain's Vision Transformer, such as DeiT
    and DINOv2."""
    known = ('arch', 'img_size', 'patch_size', 'layer_scale_init_value', 'out_type')
    check_known(options, (*known, 'with_cls_token'))
    arch = options.get('arch', 'base')
    keys = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
    sizes = tuple(arch[key] for key in keys) if isinstance(arch, Mapping) else None
    dims, layers, heads, hidden = sizes or size_of(arch, VIT_SIZES)
    block: dict[str, Any] = dict(ffn_ratio=hidden / dims)
    if options.get('layer_scale_init_value'):
        block.update(layer_scale=options['layer_scale_init_value'])
    made: dict[str, Any] = dict(
        type=f'{SCOPE}.VisionTransformer',
        arch=dict(embed_dims=dims, num_layers=layers, num_heads=heads),
        img_size=options.get('img_size', 224),
        patch_size=options.get('patch_size', 16),
        block=block,
        out_type=options.get('out_type', 'cls_token'),
        out_indices=(-1,),
    )
    if not options.get('with_cls_token', True):
        made.update(with_cls_token=False)
    return made


def size_of(arch: Any, sizes: Mapping[str, tuple]) -> tuple:
    """Return the sizes of an architecture by its name; a ValueError for one that ours
    can't have."""
    if str(arch).lower() not in sizes:
        raise ValueError(f'arch={arch!r}: {SCOPE} has {", ".join(sizes)}')
    return sizes[str(arch).lower()]


def check_known(options: Options, known: tuple[str, ...]) -> None:
    """Raise a ValueError for an option that ours can't have."""
    for key, value in options.items():
        if key not in known:
            raise ValueError(f'{key}={value!r}: {SCOPE} has no such option')


OF_DETECTORS = Host(
    swin_of_detectors,
    dict(
        patch_size=4,
        mlp_ratio=4,
        strides=(4, 2, 2, 2),
        qkv_bias=True,
        qk_scale=None,
        patch_norm=True,
        attn_drop_rate=0.0,
        use_abs_pos_embed=False,
        act_cfg=dict(type='GELU'),
        norm_cfg=dict(type='LN'),
    ),
    ignored=('convert_weights', 'pretrained', 'pretrain_img_size'),
)
HOSTS = {
    ('mmdet', 'SwinTransformer'): OF_DETECTORS,
    ('mmseg', 'SwinTransformer'): OF_DETECTORS,
    ('mmpretrain', 'SwinTransformer'): Host(
        swin_of_classifiers,
        dict(
            patch_size=4,
            out_after_downsample=False,
            use_abs_pos_embed=False,
            interpolate_mode='bicubic',
            norm_cfg=dict(type='LN'),
            patch_cfg=dict(),
        ),
        (*COMMON, 'norm_eval'),
        ignored=('img_size',),  # there is no table of absolute positions
    ),
    ('mmpretrain', 'VisionTransformer'): Host(
        vit,
        dict(
            qkv_bias=True,
            norm_cfg=dict(type='LN', eps=1e-6),
            final_norm=True,
            interpolate_mode='bicubic',
            layer_cfgs=dict(),
            patch_cfg=dict(),
            pre_norm=False,
        ),
    ),
}
