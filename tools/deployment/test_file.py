"""Test files that tools/deployment/export.py --whole wrote, beside their model.

The test of CONFIG runs with the model and CHECKPOINT, as tools/test.py runs it but with
one image at a time, and then with each FILE in the place of the model. Printed are the
metrics of each, and how far the predictions of a file are from those of the model. A
box is compared with the nearest one of its label; those that have none within a pixel
are counted.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData

from mmlinattn.deployment import Predictor
from mmlinattn.engine.part_errors import LIBRARY_ERRORS
from mmlinattn.utils import check_file, load_config
from mmlinattn.weights import load_safely

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import (
    Parser,
    add_cfg_options,
    add_overwrite,
    errors_in_one_line,
    output_file,
    protect,
)
from mmlinattn_tools.runs import make_runner

NAMES = dict(boxes='bboxes', scores='scores', labels='labels', masks='masks')


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('config', metavar='CONFIG', help='path of the config')
    parser.add_argument('checkpoint', metavar='CHECKPOINT', help='path of the weights')
    parser.add_argument('files', metavar='FILE', nargs='+', help='ONNX files')
    parser.add_argument(
        '--out', type=output_file, metavar='JSON', help='file for the numbers, too'
    )
    parser.add_argument(
        '--trust',
        action='store_true',
        help='unpickle all that is in CHECKPOINT, which can run any code',
    )
    add_overwrite(parser)
    add_cfg_options(parser, 'test_dataloader.num_workers=0')
    return parser.parse_args(argv)


def read(sample):
    """The predictions in a library's data sample, as a file gives them."""
    if 'pred_instances' in sample:
        found = sample.pred_instances
        pairs = ((key, found.get(name)) for key, name in NAMES.items())
        return {key: np.asarray(x) for key, x in pairs if x is not None}
    if 'pred_sem_seg' in sample:
        return dict(label_map=np.asarray(sample.pred_sem_seg.data[0]))
    return dict(scores=np.asarray(sample.pred_score))


def write(sample, found):
    """Puts what a file predicts into a data sample."""
    found = {key: torch.from_numpy(x) for key, x in found.items()}
    if 'boxes' in found:
        renamed = {NAMES[key]: x for key, x in found.items()}
        sample.pred_instances = InstanceData(**renamed)
    elif 'label_map' in found:
        sample.pred_sem_seg = PixelData(data=found['label_map'][None].long())
    else:
        scores = found['scores']
        sample.set_pred_score(scores).set_pred_label(scores.argmax())
    return sample


def compare(found, expected):
    """Differences of the predictions for an image: counts, and largest values."""
    if 'label_map' in expected:
        differs = found['label_map'] != expected['label_map']
        return dict(pixels=differs.size, pixels_that_differ=int(differs.sum()))
    if 'boxes' not in expected:
        return dict(score=float(abs(found['scores'] - expected['scores']).max()))
    ours, theirs = len(found['boxes']), len(expected['boxes'])
    gaps = np.full((ours + 1, theirs), np.inf)  # the last row serves empty results
    gaps[:ours] = abs(found['boxes'][:, None] - expected['boxes']).max(-1)
    gaps[:ours][found['labels'][:, None] != expected['labels']] = np.inf
    i = gaps.argmin(0)
    j = np.flatnonzero(gaps.min(0) < 1)
    i = i[j]
    row = dict(
        boxes=theirs,
        boxes_without_counterpart=max(ours, theirs) - len({*i}),
        box=float(gaps[i, j].max(initial=0)),
        score=float(abs(found['scores'][i] - expected['scores'][j]).max(initial=0)),
    )
    if 'masks' in expected:
        differs = found['masks'][i] != expected['masks'][j]
        row['mask_pixels'] = int(expected['masks'][j].sum())
        row['mask_pixels_that_differ'] = int(differs.sum())
    return row


def summary(rows):
    """Of all images: counts are sums, differences of boxes and scores the largest."""
    return {
        key: (max if key in ('box', 'score') else sum)(row[key] for row in rows)
        for key in rows[0]
    }


def run(args):
    """The report: by model and file, its metrics and its differences."""
    if args.trust:
        os.environ['MMLINATTN_TRUST'] = '1'
    load_safely()
    for path in (args.checkpoint, *args.files):
        check_file('path', path)
    predictors = {path: Predictor(path) for path in args.files}
    cfg = load_config(args.config, args.cfg_options)
    cfg.load_from, cfg.launcher = args.checkpoint, 'none'
    cfg.test_dataloader.batch_size = 1
    with tempfile.TemporaryDirectory() as folder:
        cfg.work_dir = folder
        runner = make_runner(cfg)
        step, expected = runner.model.test_step, {}

        def test_model(batch):
            (sample,) = samples = step(batch)
            expected[sample.img_path] = read(sample)
            return samples

        runner.model.test_step = test_model
        report = {'model': dict(metrics=runner.test())}
        for path, predictor in predictors.items():
            rows = []

            def test_file(batch, predictor=predictor, rows=rows):
                (sample,) = batch['data_samples']
                found = predictor(sample.img_path)
                rows.append(compare(found, expected[sample.img_path]))
                return [write(sample, found)]

            runner.model.test_step = test_file
            metrics = runner.test()
            report[path] = dict(metrics=metrics, differences=summary(rows))
    return report


def main(argv=None):
    args = parse_args(argv)
    if args.out:
        protect(args, args.out)
    with errors_in_one_line(*LIBRARY_ERRORS):
        report = run(args)
    for name, row in report.items():
        print(name)
        for kind, values in row.items():
            text = ', '.join(f'{key} {value:.6g}' for key, value in values.items())
            print(f'  {kind}: {text}')
    if args.out:
        args.out.write_text(json.dumps(report, indent=1), encoding='utf-8')


if __name__ == '__main__':
    main()
