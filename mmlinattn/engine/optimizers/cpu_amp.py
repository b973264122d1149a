"""Mixed precision on a CPU."""

from contextlib import contextmanager
from typing import Any

import torch
from mmengine.logging import print_log
from mmengine.optim import OptimWrapper
from torch import nn

from mmlinattn.functional.precision import Float32Convolutions
from mmlinattn.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module()
class CPUAmpOptimWrapper(OptimWrapper):
    """Trains on a CPU in bfloat16, which MMEngine's ``AmpOptimWrapper`` refuses.

    Matrix products are autocast. Convolutions stay in float32, see
    :class:`mmlinattn.functional.precision.Float32Convolutions`. Bfloat16 has the range
    of float32, so losses need no scale.

    Args:
        **kwargs: See ``mmengine.optim.OptimWrapper``.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        print_log(
            'mixed precision on a CPU: matrix products in bfloat16, convolutions in '
            "float32, because oneDNN's are not reliable in bfloat16",
            logger='current',
        )

    @contextmanager
    def optim_context(self, model: nn.Module) -> Any:
        """The context of the forward pass.

        Args:
            model (nn.Module): The model that trains.
        """
        with (
            super().optim_context(model),
            torch.autocast('cpu', torch.bfloat16),
            Float32Convolutions(),
        ):
            yield
