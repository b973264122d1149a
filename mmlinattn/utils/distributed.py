"""Several processes without GPUs, which MMEngine's launchers do not support."""

import os
from datetime import timedelta
from typing import Any, Optional

import torch.distributed as dist
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import MMDistributedDataParallel, revert_sync_batchnorm
from torch import nn

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


def run_on_cpus(cfg: Config) -> None:
    """Lets the processes that torch's launcher started run without GPUs.

    Without an accelerator, they join over gloo, which MMEngine then leaves as it is.
    The model gets the wrapper :class:`AnyDeviceDistributedDataParallel`, unless the
    config names another one. With an accelerator, the function does nothing.

    Args:
        cfg (Config): Config of the run; its ``model_wrapper_cfg`` is changed.

    Raises:
        ValueError: If the launcher needs a GPU, or did not start this process.
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
    wrapper = dict(cfg.get('model_wrapper_cfg') or {})
    if wrapper.get('type', 'MMDistributedDataParallel') == 'MMDistributedDataParallel':
        # MMEngine's own choices where a config makes none
        wrapper.setdefault('broadcast_buffers', False)
        unused = cfg.get('find_unused_parameters', False)
        wrapper.setdefault('find_unused_parameters', unused)
        wrapper['type'] = 'mmlinattn.AnyDeviceDistributedDataParallel'
        cfg.model_wrapper_cfg = wrapper
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
