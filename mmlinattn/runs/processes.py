"""Several processes of one run on a CPU, which MMEngine's launchers can't start."""

import os
from typing import Any

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import MMDistributedDataParallel, revert_sync_batchnorm
from mmengine.registry import MODEL_WRAPPERS


class DataParallelOnCPU(MMDistributedDataParallel):
    """MMEngine's wrapper on a CPU; SyncBN, which needs GPUs, becomes BatchNorm.

    Args:
        module (nn.Module): The model.
        device_ids (list, optional): Not used; those of GPUs.
        **kwargs: Of MMEngine's wrapper.
    """

    def __init__(self, module: Any, device_ids: Any = None, **kwargs: Any) -> None:
        super().__init__(module=revert_sync_batchnorm(module), **kwargs)


def use_cpus(cfg: Config) -> None:
    """Let the processes of torch's launcher train or test without GPUs, by gloo."""
    distributed = torch.distributed
    if cfg.launcher != 'pytorch' or get_device() != 'cpu' or 'RANK' not in os.environ:
        return
    if not distributed.is_initialized():
        distributed.init_process_group('gloo')
    if cfg.get('model_wrapper_cfg') is None and 'strategy' not in cfg:
        # here, so that an import leaves the registry as it is
        MODEL_WRAPPERS.register_module(module=DataParallelOnCPU, force=True)
        cfg.model_wrapper_cfg = dict(
            type='DataParallelOnCPU',
            broadcast_buffers=False,
            find_unused_parameters=cfg.get('find_unused_parameters', False),
        )
