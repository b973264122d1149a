"""Compares the outputs of an exported file in OpenVINO and in ONNX Runtime.

FILE is one of ``mmlinattn export --whole``. Both compute in float32; by default,
OpenVINO may take bfloat16 on a processor that has it. It needs neither torch nor this
package:

    pip install onnxruntime openvino pillow
    python benchmarks/openvino_files.py FILE PHOTOS
"""

import argparse
from pathlib import Path

import numpy as np
import onnxruntime
import openvino
from PIL import Image


def differences(session, model, pixels):
    """Return the largest difference of each output, or its shapes where they differ."""
    names = [output.name for output in session.get_outputs()]
    expected = dict(zip(names, session.run(None, {'image': pixels})))
    outputs = model({'image': pixels})
    result = {}
    for name, first in expected.items():
        second = np.asarray(outputs[name])
        if first.shape != second.shape:
            result[name] = f'{first.shape} and {second.shape}'
        elif first.size:
            result[name] = float(np.abs(first.astype(float) - second).max())
    return result


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('file', type=Path, metavar='FILE')
    parser.add_argument('photos', type=Path, nargs='+', metavar='PHOTOS')
    args = parser.parse_args(argv)
    print(f'openvino {openvino.__version__}, onnxruntime {onnxruntime.__version__}')
    session = onnxruntime.InferenceSession(
        str(args.file), providers=['CPUExecutionProvider']
    )
    model = openvino.Core().compile_model(
        str(args.file), 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'}
    )
    for path in args.photos:
        pixels = np.asarray(Image.open(path).convert('RGB'))
        print(path.name, differences(session, model, pixels))


if __name__ == '__main__':
    main()
