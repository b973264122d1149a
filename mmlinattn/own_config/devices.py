"""What trains: GPUs or a CPU."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Devices:
    """What trains: GPUs and the GB of one of them, or a CPU with 0 GB."""

    number: int
    memory: float

    @property
    def are_gpus(self) -> bool:
        """Whether there is a GPU."""
        return self.memory > 0

    @classmethod
    def find(cls) -> 'Devices':
        """Return the GPUs of this machine, or its CPU."""
        if not torch.cuda.is_available():
            return cls(number=1, memory=0)
        memory = torch.cuda.get_device_properties(0).total_memory
        return cls(number=torch.cuda.device_count(), memory=memory / 2**30)
