"""Several processes without GPUs, which MMEngine's launchers do not support."""

import os
from datetime import timedelta
from typing import Any, Optional

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import MMDistributedDataParallel, revert_sync_batchnorm
from mmengine.model.wrappers import MMFullyShardedDataParallel
from mmengine.utils import digit_version
from torch import nn
from torch.distributed.fsdp import StateDictType
from torch.distributed.fsdp.api import StateDictSettings

from mmlinattn.registry import MODEL_WRAPPERS

# Environment variables that torch's launcher sets in each process.
_LAUNCHED = ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')


@MODEL_WRAPPERS.register_module()
class AnyDeviceDistributedDataParallel(MMDistributedDataParallel):
    """MMEngine's wrapper, which also wraps a model on a CPU.

    On a CPU, ``device_ids`` are ignored. SyncBN needs GPUs, so it becomes BatchNorm
    over a process's own share of the batch; MMEngine does the same for a single
    process. On a GPU, the wrapper is MMEngine's.

    Args:
        module (nn.Module): The model.
        device_ids (list[int], optional): Its devices; unused on a CPU.
        **kwargs: Arguments of MMEngine's wrapper.
    """

    def __init__(
        self, module: nn.Module, device_ids: Optional[list[int]] = None, **kwargs: Any
    ) -> None:
        if next(module.parameters()).device.type == 'cpu':
            module, device_ids = revert_sync_batchnorm(module), None
        super().__init__(module=module, device_ids=device_ids, **kwargs)


@MODEL_WRAPPERS.register_module()
class AnyDeviceFullyShardedDataParallel(MMFullyShardedDataParallel):
    """MMEngine's wrapper of FSDP, which also wraps a model on a CPU.

    On a CPU, SyncBN becomes BatchNorm, as in :class:`AnyDeviceDistributedDataParallel`,
    and ``device_id`` is ignored.

    Args:
        module (nn.Module): The model.
        **kwargs: Arguments of MMEngine's wrapper.
    """

    def __init__(self, module: nn.Module, **kwargs: Any) -> None:
        if get_device() == 'cpu':
            module = revert_sync_batchnorm(module)
            kwargs['device_id'] = torch.device('cpu')
        super().__init__(module=module, **kwargs)

    @staticmethod
    def set_state_dict_type(
        module: nn.Module, state_dict_type: StateDictType, *configs: Any
    ) -> StateDictSettings:
        """See torch. On a CPU, whole state dicts are copied: if they were offloaded,
        PyTorch would return memory that it frees afterwards."""
        for config in filter(None, configs if get_device() == 'cpu' else ()):
            config.offload_to_cpu = False
        return MMFullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, *configs
        )


# FSDP works over gloo from torch 2.2 on.
_GLOO_GATHERS = digit_version(torch.__version__) >= digit_version('2.2')
# By MMEngine's strategy: its wrapper, and ours, which also runs on a CPU.
_WRAPPERS = {
    'DDPStrategy': ('MMDistributedDataParallel', 'AnyDeviceDistributedDataParallel'),
    'FSDPStrategy': ('MMFullyShardedDataParallel', 'AnyDeviceFullyShardedDataParallel'),
}


def run_on_cpus(cfg: Config) -> None:
    """Lets the processes that torch's launcher started run without GPUs.

    Without an accelerator, they join over gloo, which MMEngine then keeps.
    The model gets the wrapper :class:`AnyDeviceDistributedDataParallel`, or
    :class:`AnyDeviceFullyShardedDataParallel` with MMEngine's FlexibleRunner and
    FSDPStrategy, unless the config names another one. With an accelerator, the
    function does nothing.

    Args:
        cfg (Config): Config of the run; its ``model_wrapper_cfg`` or ``strategy`` is
            changed.

    Raises:
        ValueError: If the launcher or the strategy needs a GPU, or the launcher did
            not start this process.
    """
    if cfg.launcher == 'none' or get_device() != 'cpu':
        return
    needs = 'needs a GPU for each process and torch finds none; on CPUs only'
    if cfg.launcher != 'pytorch':
        raise ValueError(
            f'launcher={cfg.launcher!r} {needs} pytorch works (torchrun, '
            'tools/dist_train.sh)'
        )
    missing = [name for name in _LAUNCHED if name not in os.environ]
    if missing:
        raise ValueError(
            f'launcher={cfg.launcher!r}, but {", ".join(missing)} are not set: start '
            'with torchrun or tools/dist_train.sh, or without --launcher'
        )
    holder, key, strategy = cfg, 'model_wrapper_cfg', 'DDPStrategy'
    if cfg.get('runner_type') == 'FlexibleRunner':
        cfg.strategy = cfg.get('strategy') or dict(type=strategy)
        holder, key, strategy = cfg.strategy, 'model_wrapper', cfg.strategy.get('type')
    if strategy not in _WRAPPERS:
        raise ValueError(
            f'strategy.type={strategy!r} {needs} {" and ".join(_WRAPPERS)} work'
        )
    if strategy == 'FSDPStrategy' and not _GLOO_GATHERS:
        raise ValueError(
            f'strategy.type={strategy!r} needs a GPU for each process, or torch 2.2 or '
            f'newer, whose gloo can gather shards; this is torch {torch.__version__}'
        )
    theirs, ours = _WRAPPERS[strategy]
    wrapper = dict(holder.get(key) or {})
    if wrapper.get('type', theirs) == theirs:
        if strategy == 'DDPStrategy':  # MMEngine's defaults
            unused = cfg.get('find_unused_parameters', False)
            wrapper = dict(
                dict(broadcast_buffers=False, find_unused_parameters=unused), **wrapper
            )
        holder[key] = dict(wrapper, type=f'mmlinattn.{ours}')
    if not dist.is_initialized():
        timeout = cfg.get('env_cfg', {}).get('dist_cfg', {}).get('timeout')
        options = {} if timeout is None else dict(timeout=timedelta(seconds=timeout))
        dist.init_process_group('gloo', **options)
    if dist.get_rank() == 0:
        print(
            f'No GPU: {dist.get_world_size()} processes run on CPUs, over gloo; '
            'SyncBN becomes BN'
        )
