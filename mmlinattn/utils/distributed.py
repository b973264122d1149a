"""Several processes without GPUs, which MMEngine's launchers do not support."""

import os
from datetime import timedelta
from typing import Any, Optional, Union

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import MMDistributedDataParallel, revert_sync_batchnorm
from mmengine.model.wrappers import MMFullyShardedDataParallel
from mmengine.utils import digit_version
from torch import nn
from torch.distributed.fsdp import StateDictType
from torch.distributed.fsdp.api import (
    OptimStateDictConfig,
    StateDictConfig,
    StateDictSettings,
)

from mmlinattn.registry import MODEL_WRAPPERS

# Environment variables that torch's launcher sets in each process.
_LAUNCHED = ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')


@MODEL_WRAPPERS.register_module()
class AnyDeviceDistributedDataParallel(MMDistributedDataParallel):
    """MMEngine's wrapper, which also wraps a model on a CPU.

    On a CPU, ``device_ids`` have no meaning. SyncBN, which only GPUs have, becomes
    BatchNorm over a process's own share of the batch; MMEngine does the same if there
    is one process. On a GPU, the wrapper is MMEngine's.

    Args:
        module (nn.Module): The model.
        device_ids (list[int], optional): Where it is; unused on a CPU.
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
    """MMEngine's wrapper of FSDP, which also wraps a model where no GPU is.

    There, SyncBN becomes BatchNorm, as in :class:`AnyDeviceDistributedDataParallel`.

    Args:
        module (nn.Module): The model.
        device_id (int | torch.device, optional): Where it is to be; unused if there is
            no accelerator.
        **kwargs: Arguments of MMEngine's wrapper.
    """

    def __init__(
        self,
        module: nn.Module,
        device_id: Union[int, torch.device, None] = None,
        **kwargs: Any,
    ) -> None:
        if get_device() == 'cpu':
            module, device_id = revert_sync_batchnorm(module), torch.device('cpu')
        super().__init__(module=module, device_id=device_id, **kwargs)

    @staticmethod
    def set_state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: Optional[StateDictConfig] = None,
        optim_state_dict_config: Optional[OptimStateDictConfig] = None,
    ) -> StateDictSettings:
        """As of torch. On a CPU, whole state dicts are copied: PyTorch would give out
        memory that it frees afterwards, where they are to be moved to the CPU."""
        if get_device() == 'cpu':
            for config in (state_dict_config, optim_state_dict_config):
                if config is not None:
                    config.offload_to_cpu = False
        return MMFullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )


# What FSDP needs of gloo is there since torch 2.2.
_GLOO_GATHERS = digit_version(torch.__version__) >= digit_version('2.2')
# By MMEngine's strategy: its wrapper, and ours, which a CPU has too.
_WRAPPERS = {
    'DDPStrategy': ('MMDistributedDataParallel', 'AnyDeviceDistributedDataParallel'),
    'FSDPStrategy': ('MMFullyShardedDataParallel', 'AnyDeviceFullyShardedDataParallel'),
}


def run_on_cpus(cfg: Config) -> None:
    """Lets the processes that torch's launcher started run without GPUs.

    Without an accelerator, they join over gloo, which MMEngine then leaves as it is.
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
    if cfg.launcher != 'pytorch':
        raise ValueError(
            f'launcher={cfg.launcher!r} needs a GPU for each process and torch finds '
            'none; on CPUs only pytorch works (torchrun, tools/dist_train.sh)'
        )
    missing = [name for name in _LAUNCHED if name not in os.environ]
    if missing:
        raise ValueError(
            f'launcher={cfg.launcher!r}, but {", ".join(missing)} are not set: start '
            'with torchrun or tools/dist_train.sh, or without --launcher'
        )
    _wrap_on_cpus(cfg)
    if not dist.is_initialized():
        timeout = cfg.get('env_cfg', {}).get('dist_cfg', {}).get('timeout')
        limit: dict[str, Any] = (
            {} if timeout is None else dict(timeout=timedelta(seconds=timeout))
        )
        dist.init_process_group('gloo', **limit)
    if dist.get_rank() == 0:
        print(
            f'No GPU: {dist.get_world_size()} processes run on CPUs, over gloo; '
            'SyncBN becomes BN'
        )


def _wrap_on_cpus(cfg: Config) -> None:
    """Names the wrapper of the model where the runner looks for it."""
    holder, key, strategy = cfg, 'model_wrapper_cfg', 'DDPStrategy'
    if cfg.get('runner_type') == 'FlexibleRunner':
        cfg.strategy = cfg.get('strategy') or dict(type=strategy)
        holder, key = cfg.strategy, 'model_wrapper'
        strategy = holder.get('type')
    if strategy not in _WRAPPERS:
        raise ValueError(
            f'strategy.type={strategy!r} needs a GPU for each process and torch finds '
            f'none; on CPUs only {" and ".join(_WRAPPERS)} work'
        )
    if strategy == 'FSDPStrategy' and not _GLOO_GATHERS:
        raise ValueError(
            f'strategy.type={strategy!r} needs a GPU for each process, or torch 2.2 or '
            f'newer, whose gloo can gather shards; this is torch {torch.__version__}'
        )
    theirs, ours = _WRAPPERS[strategy]
    wrapper = dict(holder.get(key) or {})
    if wrapper.get('type', theirs) != theirs:
        return
    if strategy == 'DDPStrategy':
        # MMEngine's own choices where a config makes none
        wrapper.setdefault('broadcast_buffers', False)
        unused = cfg.get('find_unused_parameters', False)
        wrapper.setdefault('find_unused_parameters', unused)
    wrapper['type'] = f'mmlinattn.{ours}'
    holder[key] = wrapper
