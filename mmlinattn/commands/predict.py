"""Predict photos with an exported file, or with a config and its weights.

  mmlinattn predict FILE.onnx IMAGES     needs onnxruntime and NumPy alone
  mmlinattn predict CONFIG --checkpoint PATH --image IMAGES

IMAGES is an image, or a folder of images. With --help, either form lists its options:
the second one is that of mmlinattn compare.
"""

import sys
from collections.abc import Sequence
from typing import Optional

from mmlinattn.cli import program, start


def main(argv: Optional[Sequence[str]] = None) -> None:
    """The command."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not [word for word in words if not word.startswith('-')]:
        print(__doc__)
        sys.exit(0 if words else 2)
    if not any(word.lower().endswith('.onnx') for word in words):
        start.check_libraries()
        from . import compare_predictions

        compare_predictions.main(words)
        return
    try:
        from mmlinattn.deployment import predictor
    except ImportError as error:
        text = f'{error}: pip install numpy onnxruntime pillow'
        print(f'{program.name()}: error: {text}', file=sys.stderr)
        sys.exit(2)
    predictor.main(words)
