"""Runs an exported model on photographs without torch: onnxruntime, NumPy and Pillow.

    python tools/deployment/export.py CONFIG CHECKPOINT --whole --out mine.onnx
    python examples/onnx_without_torch.py mine.onnx photo.jpg another.png

`predictor.py` needs nothing of this package: copy it beside your program.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

sys.modules['torch'] = None  # shows that nothing imports it


def load_predictor(path):
    """Return the class of a file that need not be installed."""
    spec = importlib.util.spec_from_file_location('predictor', path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Predictor


def lines(predictions, classes):
    """Return the predictions for a photograph, a line each, whatever the task."""
    if 'label_map' in predictions:
        ids = predictions['label_map']
        shares = [((ids == k).mean(), name) for k, name in enumerate(classes)]
        return [f'{name}: {share:.1%} of the pixels' for share, name in shares if share]
    if 'boxes' not in predictions:
        best = predictions['scores'].argmax()
        return [f'{classes[best]}: {predictions["scores"][best]:.2f}']
    boxes = predictions['boxes'].round(1).tolist()
    rows = zip(predictions['labels'], predictions['scores'], boxes)
    return [f'{classes[k]} {score:.2f} {box}' for k, score, box in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('model', help='.onnx file of export.py --whole')
    parser.add_argument('photos', nargs='+')
    parser.add_argument('--score', type=float, default=0.3, help='least score of a box')
    args = parser.parse_args()
    file = Path(__file__).parents[1] / 'mmlinattn' / 'deployment' / 'predictor.py'
    predictor = load_predictor(file)(args.model)
    for photo in args.photos:
        print(photo)
        for line in lines(predictor(photo, args.score), predictor.classes):
            print(f'  {line}')


if __name__ == '__main__':
    main()
