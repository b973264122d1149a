"""Weights as 8-bit integers."""

import logging
from pathlib import Path


def quantize(path: Path, quantized: Path) -> None:
    """Dynamic quantization of an ONNX file.

    Weights of linear layers become 8-bit integers, one scale per channel, and their
    inputs do when the model runs. Convolutions and products of two activations stay
    in float32.

    Args:
        path (Path): The ONNX file.
        quantized (Path): The file to write.

    Raises:
        ImportError: If onnxruntime is missing.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises a preprocessing that is not needed
    try:
        quantize_dynamic(
            str(path),
            str(quantized),
            op_types_to_quantize=['MatMul', 'Gemm'],
            per_channel=True,
            weight_type=QuantType.QInt8,
            extra_options=dict(MatMulConstBOnly=True),
        )
    finally:
        root.setLevel(level)
