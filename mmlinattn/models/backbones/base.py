"""What every backbone shares: options, input checks, weights, freezing."""

import math
import warnings

import torch
from mmengine.model import BaseModule, PretrainedInit
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn
from torch.utils.checkpoint import checkpoint

from mmlinattn.weights.pretrained import (
    explain_unexpected,
    load_pretrained,
    rename_inside,
)

MIN_SIDE = 32

DEFAULT_INIT = [
    dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0),
    dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
]


def resolve_arch(arch, arch_zoo, keys):
    """Looks a named architecture up, or checks a given one.

    Args:
        arch (str | dict): A key of ``arch_zoo``, or an architecture.
        arch_zoo (dict): Architectures by name.
        keys (tuple[str]): What an architecture has to say.

    Returns:
        dict: The architecture.

    Raises:
        ValueError: If the name is unknown or a key is missing.
    """
    if not isinstance(arch, dict):
        names = sorted(arch_zoo)
        if arch not in names:
            choice = f' or one of {names}' if names else ''
            raise ValueError(f'arch must be a dict{choice}, got {arch!r}')
        return arch_zoo[arch]
    missing = [key for key in keys if key not in arch]
    if missing:
        raise ValueError(
            f'a dict arch needs {list(keys)}, but {missing} are missing from '
            f'arch={dict(arch)}'
        )
    return dict(arch)


class BaseBackbone(BaseModule):
    """Options and services that all backbones have.

    A subclass builds ``stages``, says which parameters belong to stages
    (:meth:`stage_of`) and to layers (:meth:`layer_of`), and runs them.

    Args:
        in_channels (int): Channels of the input image.
        num_stages (int): Number of stages.
        out_indices (Sequence[int], optional): Stages whose maps are returned.
            Default: all of them, or the last one for other ``out_type``.
        out_type (str): 'featmap', maps (B, C_i, H_i, W_i); 'avg_featmap',
            their means (B, C_i); 'cls_token', the class token (B, C).
        frozen_stages (int): -1 trains all; 0 freezes what comes before the
            first block; i freezes the first i stages too.
        norm_eval (bool): Keeps BatchNorm in eval mode while training.
        with_cp (bool): Recomputes blocks in the backward pass.
        init_cfg (dict | list[dict], optional): Initialization of MMEngine.
            'Pretrained' takes what :func:`mmlinattn.weights.load_pretrained`
            takes, and accounts for every parameter.
    """

    out_types = ('featmap', 'avg_featmap')

    def __init__(
        self,
        in_channels,
        num_stages,
        out_indices=None,
        out_type='featmap',
        frozen_stages=-1,
        norm_eval=False,
        with_cp=False,
        init_cfg=None,
    ):
        super().__init__(init_cfg or DEFAULT_INIT)
        if out_type not in self.out_types:
            raise ValueError(
                f'out_type must be one of {self.out_types}, got {out_type!r}'
            )
        last = num_stages - 1
        if out_indices is None:
            out_indices = range(num_stages) if out_type == 'featmap' else (last,)
        stages = range(num_stages)
        if (
            not isinstance(out_indices, (list, tuple, range))
            or list(out_indices) != [i for i in stages if i in out_indices]
            or not out_indices
        ):
            raise ValueError(
                'out_indices must be a list of increasing stage numbers in '
                f'0...{last}, got {out_indices!r}'
            )
        out_indices = tuple(out_indices)
        if out_type == 'cls_token' and out_indices != (last,):
            raise ValueError(
                "out_type='cls_token' returns the class token of the last "
                f'stage only: out_indices must be ({last},), got {out_indices}'
            )
        if frozen_stages not in range(-1, num_stages + 1):
            raise ValueError(
                f'frozen_stages must be in -1...{num_stages}, got {frozen_stages!r}'
            )
        self.in_channels = in_channels
        self.num_stages = num_stages
        self.out_indices = out_indices
        self.out_type = out_type
        self.frozen_stages = frozen_stages
        self.norm_eval = norm_eval
        self.with_cp = with_cp
        self._register_load_state_dict_pre_hook(self._take_foreign_names)

    def stage_of(self, param_name):
        """The stage a parameter belongs to; -1 for what comes before the
        first block, ``num_stages`` for what comes after the last one."""
        raise NotImplementedError

    def layer_of(self, param_name):
        """(layer, number of layers): layer 0 is the embedding, the last one
        what comes after the last block."""
        raise NotImplementedError

    def get_layer_depth(self, param_name, prefix='backbone.'):
        """Depth of a parameter, for layer-wise learning rate decay.

        Args:
            param_name (str): Name in the whole model.
            prefix (str): What precedes the backbone's own names.

        Returns:
            tuple[int, int]: The layer, 0 being the embedding, and the number
            of layers. The final norm and all that is outside the backbone are
            in the last layer, as in mmpretrain.
        """
        inside = param_name.startswith(prefix)
        return self.layer_of(param_name[len(prefix) :] if inside else '')

    def freeze(self):
        """Takes parameters out of training: frozen stages, and stages past
        the last one returned, which would never see a gradient."""
        for name, param in self.named_parameters():
            stage = self.stage_of(name)
            unused = max(self.out_indices) < stage < self.num_stages
            if unused or stage < self.frozen_stages:
                param.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        for name, module in self.named_modules():
            if not name:
                continue
            # a trailing dot makes a module's name a parameter's
            frozen = self.stage_of(f'{name}.') < self.frozen_stages
            if frozen or (self.norm_eval and isinstance(module, _BatchNorm)):
                module.training = False
        return self

    def run_block(self, block, x, hw_shape):
        """Runs a block, recomputing it in the backward pass if asked to."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(block, x, hw_shape, use_reentrant=False)
        return block(x, hw_shape)

    def add_norm(self, index, dims, eps):
        """Adds the LayerNorm of a returned map, under mm's name for it."""
        self.add_module(f'norm{index}', nn.LayerNorm(dims, eps=eps))

    def readout(self, x, hw_shape, index):
        """Tokens (B, N, C) of one of ``out_indices`` as ``out_type`` says."""
        norm = getattr(self, f'norm{index}', None)
        if norm is not None:
            x = norm(x)
        if self.out_type == 'cls_token':
            return x[:, 0]
        x = x[:, x.size(1) - math.prod(hw_shape) :]  # without extra tokens
        if self.out_type == 'avg_featmap':
            return x.mean(1)
        return x.mT.unflatten(-1, hw_shape).contiguous()

    def check_image(self, x):
        """Refuses batches that no stage could work on.

        Raises:
            ValueError: If x is not (B, in_channels, H, W) with B >= 1 and
                H, W >= 32, or has values that are not finite.
        """
        if x.dim() != 4 or x.size(1) != self.in_channels or not x.size(0):
            raise ValueError(
                f'x must be (B, {self.in_channels}, H, W) with B >= 1, got '
                f'{tuple(x.shape)}'
            )
        if min(x.shape[2:]) < MIN_SIDE:
            raise ValueError(
                f'x must be at least {MIN_SIDE} x {MIN_SIDE} pixels, got '
                f'H x W = {x.size(2)} x {x.size(3)}'
            )
        if not (x.is_meta or torch.jit.is_tracing() or x.isfinite().all()):
            bad = (~x.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise ValueError(
                f'x must be finite, but images {bad} of the batch have NaN or '
                'infinite values'
            )

    def init_weights(self):
        cfgs = self.init_cfg
        if isinstance(cfgs, dict):
            cfgs = [cfgs]
        pretrained = [
            cfg for cfg in cfgs if cfg['type'] in ('Pretrained', PretrainedInit)
        ]
        if not pretrained:
            super().init_weights()
            return

        def initialize():
            # a checkpoint brings what it has: other entries are for what it lacks
            others = [cfg for cfg in cfgs if cfg not in pretrained]
            self.init_cfg = others or DEFAULT_INIT
            super(BaseBackbone, self).init_weights()
            self.init_cfg = cfgs

        for cfg in pretrained:
            load_pretrained(
                self,
                cfg['checkpoint'],
                cfg.get('prefix'),
                cfg.get('map_location', 'cpu'),
                initialize,
            )
        self._is_init = True

    def load_pretrained(self, checkpoint, prefix=None, map_location='cpu'):
        """The old name of :func:`mmlinattn.weights.load_pretrained`."""
        warnings.warn(
            'BaseBackbone.load_pretrained moved to mmlinattn.weights.load_pretrained; '
            'the old name goes with version 0.3',
            DeprecationWarning,
            stacklevel=2,
        )
        load_pretrained(self, checkpoint, prefix, map_location)

    def _take_foreign_names(
        self, state_dict, prefix, metadata, strict, missing, unexpected, errors
    ):
        """Converts official weights that a whole model is loaded from.

        Those under the backbone's prefix get our names; those under none never come
        here, and end with a word on what to do.
        """
        if any(key.startswith(prefix) for key in state_dict):
            rename_inside(state_dict, prefix)
        elif prefix:
            advice = explain_unexpected(unexpected)
            if advice:
                raise ValueError(advice)
