"""Predict photos with an exported file, or with a config and its weights.

  mmlinattn predict FILE.onnx IMAGES     needs onnxruntime and NumPy alone
  mmlinattn predict CONFIG --checkpoint PATH --image IMAGES

IMAGES is an image, or a folder of images. With --format coco, detections are written in
COCO's format, too. With --help, either form lists its options: the second one is that
of mmlinattn compare.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Optional

from mmlinattn.cli import program, start


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
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
    parser = predictor.make_parser()
    text = 'also write detections as files of COCO: pip install "mmlinattn[data]"'
    parser.add_argument('--format', choices=('coco',), help=text)
    args = parser.parse_args(words)
    if not args.format:
        predictor.run(parser, args)
        return
    from mmlinattn.cli import parser as cli

    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        write_coco(parser, args)


def write_coco(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Predict images with an exported detector, and write COCO's files in ``--out``.

    Raises:
        FileExistsError: If these are files of others.
        ImportError: If pycocotools, contourpy or OpenCV is missing.
        ValueError: If the model detects no objects.
    """
    from mmlinattn.cli import parser as cli
    from mmlinattn.deployment import predictor

    from .coco_files import CocoFiles, Detections

    try:
        model = predictor.open_model(args)
    except Exception as error:  # errors of ONNX Runtime have no common class
        raise ValueError(error) from error
    if 'boxes' not in model.outputs:
        raise ValueError(f'--format coco needs a detector, got {args.file}')
    files = CocoFiles.of(args.out)
    cli.check_free(args, *files.to_protect)
    predictor.run(parser, args, model)
    images = predictor.find_images(args.images)
    predictions = predictor.read_json(args.out / predictor.RESULT)
    detections = [
        Detections(name, images[name], prediction['objects'])
        for name, prediction in predictions.items()
    ]
    files.write(detections, model.classes)
    print(f'{files.dataset} and {files.results.name}: {len(detections)} images')
