"""From images to tokens: patch embeddings and position tables.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

import torch
from mmcv.cnn import build_activation_layer, build_norm_layer
from torch import nn

from mmlinattn.registry import MODELS


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of a map (B, C, H, W)."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


def build_norm(norm_cfg, channels):
    """A norm layer for maps; ``type='LN'`` norms each position's channels."""
    if norm_cfg is None:
        return nn.Identity()
    if norm_cfg['type'] == 'LN':
        return LayerNorm2d(channels, eps=norm_cfg.get('eps', 1e-5))
    return build_norm_layer(norm_cfg, channels)[1]


def conv_norm_act(in_channels, out_channels, norm_cfg, act_cfg, **conv):
    """A convolution with bias, a norm layer and an activation.

    mmcv's ConvModule takes the bias, which the official weights have, for a
    mistake and warns of it every time.
    """
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, **conv),
        build_norm(norm_cfg, out_channels),
        build_activation_layer(act_cfg) if act_cfg else nn.Identity(),
    )


@MODELS.register_module()
class ConvStem(nn.Sequential):
    """Overlapping patch embedding of SOFT: three 3 x 3 Conv-BN-ReLU with
    strides 2, 1, 2, so a side becomes ceil(side / 4).

    Args:
        in_channels (int): Channels of the image.
        embed_dims (int): Channels of the map.
        mid_channels (int): Channels in between.
        norm_cfg (dict): Norm layer.
        act_cfg (dict): Activation layer.
    """

    def __init__(
        self,
        in_channels,
        embed_dims,
        mid_channels=32,
        norm_cfg=dict(type='BN'),
        act_cfg=dict(type='ReLU'),
    ):
        channels = (in_channels, mid_channels, mid_channels, embed_dims)
        super().__init__(
            *(
                conv_norm_act(
                    channels[i],
                    channels[i + 1],
                    norm_cfg,
                    act_cfg,
                    kernel_size=3,
                    stride=stride,
                    padding=1,
                )
                for i, stride in enumerate((2, 1, 2))
            )
        )


@MODELS.register_module()
class ConvEmbedding(nn.Module):
    """One Conv-BN-ReLU that takes a side to ceil(side / stride).

    With ``kernel_size`` above ``stride`` patches overlap; with both equal
    they don't. The map is zero-padded to whole strides first.

    Args:
        in_channels (int): Channels of the input map.
        embed_dims (int): Channels of the output map.
        kernel_size (int): Side of a patch.
        stride (int): Distance of two patches.
        norm_cfg (dict): Norm layer.
        act_cfg (dict): Activation layer.
        padding (int, optional): Zeros all around the map of whole strides.
            Default: none, or what centres the kernel where patches overlap.

    Raises:
        ValueError: If ``padding`` gives a map of whole strides another side
            than side / stride.
    """

    def __init__(
        self,
        in_channels,
        embed_dims,
        kernel_size=3,
        stride=2,
        norm_cfg=dict(type='BN'),
        act_cfg=dict(type='ReLU'),
        padding=None,
    ):
        super().__init__()
        if padding is None:
            padding = (kernel_size - 1) // 2 if kernel_size > stride else 0
        if not kernel_size - stride <= 2 * padding < kernel_size:
            raise ValueError(
                'padding must be at least (kernel_size - stride) / 2 and below '
                f'kernel_size / 2, got padding={padding} for kernel_size='
                f'{kernel_size} and stride={stride}'
            )
        self.stride = stride
        self.layer = conv_norm_act(
            in_channels,
            embed_dims,
            norm_cfg,
            act_cfg,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
        )

    def forward(self, x):
        pad_h, pad_w = (-side % self.stride for side in x.shape[2:])
        if pad_h or pad_w:
            x = nn.functional.pad(x, (0, pad_w, 0, pad_h))
        return self.layer(x)


@MODELS.register_module()
class PatchMerging(nn.Module):
    """Swin's merging: the channels of 2 x 2 neighbours are joined, normed and
    projected (arXiv 2103.14030). Odd maps are zero-padded.

    Args:
        in_channels (int): Channels of the input map.
        embed_dims (int): Channels of the output map.
        norm_cfg (dict): Norm layer.
    """

    def __init__(self, in_channels, embed_dims, norm_cfg=dict(type='LN', eps=1e-5)):
        super().__init__()
        self.norm = build_norm(norm_cfg, 4 * in_channels)
        self.reduction = nn.Linear(4 * in_channels, embed_dims, bias=False)

    def forward(self, x):
        pad_h, pad_w = (-side % 2 for side in x.shape[2:])
        x = nn.functional.pad(x, (0, pad_w, 0, pad_h))
        # official order of the four: rows change first
        neighbours = [x[:, :, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        x = self.norm(torch.cat(neighbours, dim=1))
        return self.reduction(x.movedim(1, -1)).movedim(-1, 1)


def learned_tokens(num_tokens, embed_dims):
    """A parameter (1, num_tokens, embed_dims), initialized."""
    tokens = torch.zeros(1, num_tokens, embed_dims)
    return nn.Parameter(nn.init.trunc_normal_(tokens, std=0.02))


class PositionTable(nn.Module):
    """Learned positions of a map and of extra tokens, resized to any map.

    Args:
        embed_dims (int): Channels C.
        hw_shape (tuple[int]): Size of the stored map.
        num_extra (int): Extra tokens, first in the table.
        mode (str): Interpolation of :func:`torch.nn.functional.interpolate`.
    """

    def __init__(self, embed_dims, hw_shape, num_extra=0, mode='bilinear'):
        super().__init__()
        self.hw_shape = tuple(hw_shape)
        self.num_extra = num_extra
        self.mode = mode
        height, width = self.hw_shape
        self.table = learned_tokens(num_extra + height * width, embed_dims)
        self._resized = None, None  # what it was made for, positions
        self._register_load_state_dict_pre_hook(self._fit_stored_table)

    def resize(self, table, stored, wanted):
        """A table for a map of size ``stored`` as one for size ``wanted``."""
        if tuple(stored) == tuple(wanted):
            return table
        extra, maps = table.split(
            [self.num_extra, table.size(1) - self.num_extra], dim=1
        )
        maps = nn.functional.interpolate(
            maps.mT.unflatten(-1, stored),
            size=wanted,
            mode=self.mode,
            align_corners=False,
        )
        return torch.cat((extra, maps.flatten(2).mT), dim=1)

    def forward(self, hw_shape):
        """Positions for a map (H, W): (1, num_extra + N, C).

        Without gradients they are computed once for maps of one size, until the
        parameter changes.
        """
        table = self.table
        if torch.is_grad_enabled() or table.is_inference():
            return self.resize(table, self.hw_shape, hw_shape)
        made_for = (tuple(hw_shape), table._version, torch.is_inference_mode_enabled())
        if self._resized[0] != made_for:
            self._resized = made_for, self.resize(table, self.hw_shape, hw_shape)
        return self._resized[1]

    def train(self, mode=True):
        # an EMA's changes through .data, made before eval(), show nowhere else
        self._resized = None, None
        return super().train(mode)

    def _apply(self, *args, **kwargs):
        # nor do those by to(), half() and the like
        self._resized = None, None
        return super()._apply(*args, **kwargs)

    def _fit_stored_table(self, state_dict, prefix, *args):
        """Fits a checkpoint's square table of another size to ours."""
        table = state_dict.get(f'{prefix}table')
        if table is None or table.shape == self.table.shape:
            return
        side = round((table.size(1) - self.num_extra) ** 0.5)
        if side**2 + self.num_extra == table.size(1):
            state_dict[f'{prefix}table'] = self.resize(
                table, (side, side), self.hw_shape
            )

    def extra_repr(self):
        return f'hw_shape={self.hw_shape}, num_extra={self.num_extra}'
