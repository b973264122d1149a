"""Base class of all backbones: options, input checks, weights, freezing."""

import os
from typing import Any, Optional, Union

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmlinattn.functional import to_map, without_extra_tokens
from mmlinattn.functional.tracing import can_read_values, is_exported
from mmlinattn.weights.naming import name_backbone, name_classifier
from mmlinattn.weights.pretrained import load_pretrained

from ..layers.initialization import entries_of, is_pretrained
from ..layers.padding import PaddedModule
from ..layers.recomputation import recomputed
from ..layers.types import HW, Indices
from .options import resolve_indices

MIN_SIDE = 32

DEFAULT_INIT = [
    dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0),
    dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
]


class BaseBackbone(PaddedModule):
    """Options and methods that all backbones have.

    A subclass builds ``stages``, lists their ``stage_channels`` and
    ``stage_strides``, says which parameters belong to stages
    (:meth:`stage_of`) and to layers (:meth:`layer_of`), and runs them. Its constructor
    ends with :meth:`freeze`.

    Args:
        in_channels (int): Channels of the input image.
        num_stages (int): Number of stages.
        out_indices (int | Sequence[int], optional): Stages whose maps are
            returned; negative ones count from the last. Default: all of them, or
            the last one for other ``out_type``.
        out_type (str): 'featmap', maps (B, C_i, H_i, W_i); 'avg_featmap',
            their means (B, C_i); 'cls_token', the class token (B, C); 'raw', the
            tokens (B, N_i, C_i), a class token first.
        frozen_stages (int): -1 trains all; 0 freezes the layers before the first
            block; i freezes the first i stages too.
        norm_eval (bool): Keeps BatchNorm in eval mode while training.
        with_cp (bool): Recomputes blocks in the backward pass, to save memory.
        mask_padding (bool | str): Leaves out of each image the rows at its bottom and
            the columns at its right that are zero in all channels: a preprocessor's
            padding. Maps are zero there. 'evaluation' does so in evaluation mode, so
            that training sees other features; True always, False never.
        init_cfg (dict | list[dict], optional): Initial values, as in MMEngine.
            'Pretrained' loads by :func:`mmlinattn.weights.load_pretrained`, and
            accounts for every parameter.
        with_cls_token (bool): Whether 'cls_token' is possible.

    Attributes:
        arch_zoo (dict[str, dict]): Architectures by name.
        arch_keys (tuple[str]): The entries of an architecture.
        default_init (list[dict]): The default ``init_cfg``, which also initializes what
            pretrained weights lack.
        min_side (int): Smallest height and width of an image in pixels.
        refuses_nan (bool): Whether images with NaN or infinite values are an error.
        feature_channels (tuple[int]): Channels of the returned maps.
        feature_strides (tuple[int]): Their strides: a side becomes ceil(side / stride).
    """

    arch_zoo: dict[str, dict] = {}
    arch_keys: tuple[str, ...] = ()
    default_init: list[dict] = DEFAULT_INIT
    min_side = MIN_SIDE
    refuses_nan = True
    out_types = ('featmap', 'avg_featmap', 'cls_token', 'raw')
    # mmpretrain's classifiers call it with all that they load
    _checkpoint_filter = staticmethod(name_classifier)

    def __init__(
        self,
        in_channels: int,
        num_stages: int,
        out_indices: Optional[Indices] = None,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        mask_padding: Union[bool, str] = 'evaluation',
        init_cfg: Union[dict, list, None] = None,
        with_cls_token: bool = False,
    ) -> None:
        super().__init__(mask_padding, init_cfg or self.default_init)
        if out_type not in self.out_types:
            raise ValueError(
                f'out_type must be one of {self.out_types}, got {out_type!r}'
            )
        if out_type == 'cls_token' and not with_cls_token:
            raise ValueError(
                "out_type='cls_token' needs a backbone with a class token; "
                "without one, 'avg_featmap' serves a classification head"
            )
        last = num_stages - 1
        if out_indices is None:
            out_indices = range(num_stages) if out_type == 'featmap' else (last,)
        out_indices = resolve_indices(out_indices, num_stages)
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
        self.with_cls_token = with_cls_token
        self._register_load_state_dict_pre_hook(name_backbone)

    @classmethod
    def resolve_arch(cls, arch: Union[str, dict]) -> dict:
        """Return an architecture by its name, or a dict with the entries of one; else a
        ValueError."""
        if not isinstance(arch, dict):
            names = sorted(cls.arch_zoo)
            if arch not in names:
                choice = f' or one of {names}' if names else ''
                raise ValueError(f'arch must be a dict{choice}, got {arch!r}')
            return dict(cls.arch_zoo[arch])
        keys = cls.arch_keys
        wrong = [f'{key!r} is missing' for key in keys if key not in arch]
        wrong += [f'{key!r} is none of them' for key in arch if key not in keys]
        if wrong:
            raise ValueError(
                f'a dict arch has the entries {list(keys)}; {", ".join(wrong)} in '
                f'arch={dict(arch)}'
            )
        return dict(arch)

    @property
    def feature_channels(self) -> tuple[int, ...]:
        return tuple(self.stage_channels[i] for i in self.out_indices)

    @property
    def feature_strides(self) -> tuple[int, ...]:
        return tuple(self.stage_strides[i] for i in self.out_indices)

    def stage_of(self, param_name: str) -> int:
        """Return the stage a parameter belongs to; -1 before the first block,
        ``num_stages`` after the last one."""
        raise NotImplementedError

    def layer_of(self, param_name: str) -> tuple[int, int]:
        """(layer, number of layers): layer 0 is the embedding, the last one all
        that follows the last block."""
        raise NotImplementedError

    def get_layer_depth(
        self, param_name: str, prefix: str = 'backbone.'
    ) -> tuple[int, int]:
        """Return the depth of a parameter, for layer-wise learning rate decay: its
        layer, 0 being the embedding, and the number of layers. The final norm and all
        that is outside the backbone, which has names with this prefix, are in the last
        one, as in mmpretrain."""
        inside = param_name.startswith(prefix)
        return self.layer_of(param_name[len(prefix) :] if inside else '')

    def freeze(self) -> None:
        """Freeze parameters: those of frozen stages, and those of stages after the last
        returned one, which never get a gradient."""
        for name, param in self.named_parameters():
            stage = self.stage_of(name)
            unused = max(self.out_indices) < stage < self.num_stages
            if unused or stage < self.frozen_stages:
                param.requires_grad = False

    def train(self, mode: bool = True) -> 'BaseBackbone':
        super().train(mode)
        self.freeze()  # the constructor of a subclass may have added parameters
        for name, module in self.named_modules():
            if not name:
                continue
            # a trailing dot makes a module's name a parameter's
            frozen = self.stage_of(f'{name}.') < self.frozen_stages
            if frozen or (self.norm_eval and isinstance(module, _BatchNorm)):
                module.training = False
        return self

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W), H and W at least 32, to one output for each of
        ``out_indices``, of the kind ``out_type``."""
        self.check_image(x)
        return self.run_without_padding(x)

    def run_block(self, block: nn.Module, *args: Any) -> Tensor:
        """Run a block; with ``with_cp``, the backward pass computes it again."""
        if self.with_cp and torch.is_grad_enabled():
            return recomputed(block, *args)
        return block(*args)

    def add_norm(self, index: int, dims: int, eps: float) -> None:
        """Add the LayerNorm of a returned map, under the name that mm gives it."""
        self.add_module(f'norm{index}', nn.LayerNorm(dims, eps=eps))

    def returned(self) -> list[tuple[bool, Optional[nn.Module]]]:
        """Return a pair for each stage up to the last returned one: True if it is
        returned, and the norm of its map or None."""
        # in one loop: a compiler may take a separate stage number for a variable
        return [
            (i in self.out_indices, getattr(self, f'norm{i}', None))
            for i in range(max(self.out_indices) + 1)
        ]

    def readout(
        self, x: Tensor, hw_shape: HW, norm: Optional[nn.Module] = None
    ) -> Tensor:
        """Turn tokens (B, N, C) of a returned stage into the output of ``out_type``."""
        if norm is not None:
            x = norm(x)
        if self.out_type == 'cls_token':
            return x[:, 0]
        if self.out_type == 'raw':
            return x
        x = without_extra_tokens(x, hw_shape)
        if self.out_type == 'avg_featmap':
            return x.mean(1)
        return to_map(x, hw_shape).contiguous()

    def check_image(self, x: Tensor) -> None:
        """Raise a ValueError for x unless it is (B, in_channels, H, W) with B >= 1 and
        H, W >= 32, and all values are finite.

        With ``refuses_nan``, values are checked on a CPU only, because on a GPU the
        check would stall every step. The environment variable ``MMLINATTN_DEBUG=1``
        turns it on everywhere.
        """
        if is_exported():
            return
        if x.dim() != 4 or x.size(1) != self.in_channels or not x.size(0):
            raise ValueError(
                f'x must be (B, {self.in_channels}, H, W) with B >= 1, got '
                f'{tuple(x.shape)}'
            )
        # a compiler learns a bound of each side, not which one is shorter
        if x.size(2) < MIN_SIDE or x.size(3) < MIN_SIDE:
            raise ValueError(
                f'x must be at least {MIN_SIDE} x {MIN_SIDE} pixels, got '
                f'H x W = {x.size(2)} x {x.size(3)}'
            )
        if not self.refuses_nan or not can_read_values(x):
            return
        if not x.is_cpu and os.environ.get('MMLINATTN_DEBUG') != '1':
            return
        if not x.isfinite().all():
            bad = (~x.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise ValueError(
                f'x must be finite, but images {bad} of the batch have NaN or '
                'infinite values'
            )

    def init_weights(self) -> None:
        entries = entries_of(self.init_cfg)
        pretrained = [entry for entry in entries if is_pretrained(entry)]
        if not pretrained:
            super().init_weights()
            return
        init_cfg = self.init_cfg

        def initialize() -> None:
            # other entries initialize the parameters that the checkpoint lacks
            others = [entry for entry in entries if entry not in pretrained]
            self.init_cfg = others or self.default_init
            super(BaseBackbone, self).init_weights()
            self.init_cfg = init_cfg

        for entry in pretrained:
            options = {
                key: option
                for key, option in entry.items()
                if key not in ('type', 'map_location')
            }
            load_pretrained(self, initialize=initialize, **options)
            entry.pop('earlier', None)  # a function, which can't be pickled
        self._is_init = True
