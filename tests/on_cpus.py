"""Lets the processes of torch's launcher shard parameters without GPUs, once it is
imported. A config imports it by ``custom_imports``."""

import os

import torch
import torch.distributed as dist
from mmengine.model import revert_sync_batchnorm
from mmengine.model.wrappers import MMFullyShardedDataParallel
from mmengine.registry import MODEL_WRAPPERS

if 'RANK' in os.environ and not dist.is_initialized():
    dist.init_process_group('gloo')


@MODEL_WRAPPERS.register_module()
class FullyShardedOnCPU(MMFullyShardedDataParallel):
    """MMEngine's wrapper of FSDP on a CPU."""

    def __init__(self, module, **kwargs):
        kwargs['device_id'] = torch.device('cpu')
        super().__init__(module=revert_sync_batchnorm(module), **kwargs)

    @staticmethod
    def set_state_dict_type(module, state_dict_type, *configs):
        """Whole state dicts are copied: if they were offloaded, PyTorch would return
        memory that it frees afterwards."""
        for config in filter(None, configs):
            config.offload_to_cpu = False
        return MMFullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, *configs
        )
