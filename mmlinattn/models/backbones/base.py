"""What every backbone shares: options, input checks, weights, freezing."""
import torch
from mmengine.logging import print_log
from mmengine.model import BaseModule
from mmengine.runner import CheckpointLoader
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn
from torch.utils.checkpoint import checkpoint

MIN_SIDE = 32

DEFAULT_INIT = [
    dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.),
    dict(type='Constant', layer='LayerNorm', val=1., bias=0.),
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
    if isinstance(arch, str):
        if arch not in arch_zoo:
            raise ValueError(
                f'arch must be one of {sorted(arch_zoo)} or a dict, got '
                f'{arch!r}')
        return arch_zoo[arch]
    missing = [key for key in keys if key not in arch]
    if missing:
        raise ValueError(
            f'a dict arch needs {list(keys)}, but {missing} are missing from '
            f'arch={dict(arch)}')
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
        init_cfg (dict, optional): Initialization of MMEngine. 'Pretrained'
            must bring every parameter: a missing one is an error.
    """

    out_types = ('featmap', 'avg_featmap')

    def __init__(self,
                 in_channels,
                 num_stages,
                 out_indices=None,
                 out_type='featmap',
                 frozen_stages=-1,
                 norm_eval=False,
                 with_cp=False,
                 init_cfg=None):
        super().__init__(init_cfg or DEFAULT_INIT)
        if out_type not in self.out_types:
            raise ValueError(
                f'out_type must be one of {self.out_types}, got {out_type!r}')
        last = num_stages - 1
        if out_indices is None:
            out_indices = range(num_stages) if out_type == 'featmap' else (last, )
        out_indices = tuple(out_indices)
        if not out_indices or any(
                not isinstance(i, int) or not 0 <= i <= last
                for i in out_indices) or list(out_indices) != sorted(
                    set(out_indices)):
            raise ValueError(
                f'out_indices must be increasing stage numbers in 0...{last}, '
                f'got {out_indices}')
        if out_type == 'cls_token' and out_indices != (last, ):
            raise ValueError(
                "out_type='cls_token' returns the class token of the last "
                f'stage only: out_indices must be ({last},), got {out_indices}')
        if not -1 <= frozen_stages <= num_stages:
            raise ValueError(
                f'frozen_stages must be in -1...{num_stages}, got '
                f'{frozen_stages}')
        self.in_channels = in_channels
        self.num_stages = num_stages
        self.out_indices = out_indices
        self.out_type = out_type
        self.frozen_stages = frozen_stages
        self.norm_eval = norm_eval
        self.with_cp = with_cp

    def stage_of(self, param_name):
        """The stage a parameter belongs to; -1 for what comes before the
        first block, ``num_stages`` for what comes after the last one."""
        raise NotImplementedError

    def layer_of(self, param_name):
        """(layer, number of layers), layer 0 being the embedding."""
        raise NotImplementedError

    def get_layer_depth(self, param_name, prefix='backbone.'):
        """Depth of a parameter, for layer-wise learning rate decay.

        Args:
            param_name (str): Name in the whole model.
            prefix (str): What precedes the backbone's own names.

        Returns:
            tuple[int, int]: The layer, 0 being the embedding, and the number
            of layers, the head included. Parameters outside the backbone are
            in the last layer.
        """
        num_layers = self.layer_of('')[1] + 1
        if not param_name.startswith(prefix):
            return num_layers - 1, num_layers
        return self.layer_of(param_name[len(prefix):])[0], num_layers

    def freeze(self):
        """Takes parameters out of training: frozen stages, and stages past
        the last one returned, which would never see a gradient."""
        for name, param in self.named_parameters():
            stage = self.stage_of(name)
            unused = max(self.out_indices) < stage < self.num_stages
            frozen = self.frozen_stages > 0 and stage < self.frozen_stages
            if unused or frozen or (self.frozen_stages == 0 and stage == -1):
                param.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        for name, module in self.named_modules():
            if not name:
                continue
            # a trailing dot makes a module's name a parameter's
            stage = self.stage_of(f'{name}.')
            frozen = self.frozen_stages >= 0 and stage < max(
                self.frozen_stages, 0)
            if frozen or (self.norm_eval and isinstance(module, _BatchNorm)):
                module.training = False
        return self

    def run_block(self, block, x, hw_shape):
        """Runs a block, recomputing it in the backward pass if asked to."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(block, x, hw_shape, use_reentrant=False)
        return block(x, hw_shape)

    def check_image(self, x):
        """Refuses batches that no stage could work on.

        Raises:
            ValueError: If x is not (B, in_channels, H, W) with B >= 1 and
                H, W >= 32, or has values that are not finite.
        """
        if x.dim() != 4 or x.size(1) != self.in_channels or not x.size(0):
            raise ValueError(
                f'x must be (B, {self.in_channels}, H, W) with B >= 1, got '
                f'{tuple(x.shape)}')
        if min(x.shape[2:]) < MIN_SIDE:
            raise ValueError(
                f'x must be at least {MIN_SIDE} x {MIN_SIDE} pixels, got '
                f'H x W = {x.size(2)} x {x.size(3)}')
        if not (x.is_meta or torch.jit.is_tracing() or x.isfinite().all()):
            bad = (~x.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise ValueError(
                f'x must be finite, but images {bad} of the batch have NaN or '
                'infinite values')

    def init_weights(self):
        cfg = self.init_cfg
        if isinstance(cfg, dict) and cfg.get('type') == 'Pretrained':
            self.load_pretrained(
                cfg['checkpoint'], cfg.get('prefix'),
                cfg.get('map_location', 'cpu'))
            self._is_init = True
        else:
            super().init_weights()

    def load_pretrained(self, checkpoint, prefix=None, map_location='cpu'):
        """Loads pretrained weights, and says so.

        Args:
            checkpoint (str): Path or address of a checkpoint.
            prefix (str, optional): Prefix of the backbone's keys. Default:
                'backbone.' if there are such keys, none otherwise.
            map_location (str): Device to load to.

        Raises:
            FileNotFoundError: If there is no such file.
            KeyError: If keys are missing, as in another family's checkpoint.
        """
        loaded = CheckpointLoader.load_checkpoint(checkpoint, map_location)
        state_dict = loaded.get('state_dict', loaded)
        if prefix is None:
            prefix = 'backbone.'
            if not any(key.startswith(prefix) for key in state_dict):
                prefix = ''
        elif prefix and not prefix.endswith('.'):
            prefix += '.'
        state_dict = {
            key[len(prefix):]: value
            for key, value in state_dict.items() if key.startswith(prefix)
        }
        try:
            missing, unexpected = self.load_state_dict(state_dict, strict=False)
        except RuntimeError as error:
            raise KeyError(
                f'checkpoint={checkpoint!r} does not fit this '
                f'{type(self).__name__}: {error}') from None
        fresh = [key for key in missing if self.starts_at_zero(key)]
        missing = [
            key for key in missing
            if key not in fresh and not key.endswith('num_batches_tracked')
        ]
        if missing:
            raise KeyError(
                f'checkpoint={checkpoint!r} with prefix={prefix!r} lacks '
                f'{len(missing)} parameters of this {type(self).__name__}: '
                f'{missing[:3]}...; it has {sorted(state_dict)[:3]}... '
                'Official checkpoints must go through '
                'tools/model_converters/convert_official.py first')
        print_log(
            f'{type(self).__name__}: loaded {len(state_dict)} entries from '
            f'{checkpoint}; not used: {unexpected or "none"}; start at zero: '
            f'{fresh or "none"}', 'current')

    @staticmethod
    def starts_at_zero(param_name):
        """Whether a parameter is a scaling vector, the identity at zero."""
        return param_name.rpartition('.')[2] in ('omega', 'dc_scale', 'hc_scale')


def add_norm(module, name, dims, eps):
    """Adds a LayerNorm under a name of mm's convention, and returns it."""
    norm = nn.LayerNorm(dims, eps=eps)
    module.add_module(name, norm)
    return norm
