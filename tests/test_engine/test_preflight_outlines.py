"""Outlines that pycocotools can't draw are refused before the first step."""

from types import SimpleNamespace

import numpy as np
import pytest
from pycocotools import mask as coco_masks

from mmlinattn.engine.preflight.outlines import (
    BROKEN,
    FAR,
    OTHER_SIZE,
    REACH,
    check_outlines,
    find_fault,
    read_counts,
)

pytestmark = pytest.mark.openmmlab
SIZE = WIDTH, HEIGHT = 9, 7


def runs_of(mask):
    """Run lengths of a mask, by columns, as a list."""
    pixels = mask.ravel(order='F')
    ends = [0, *(np.flatnonzero(np.diff(pixels)) + 1).tolist(), pixels.size]
    counts = np.diff(ends).tolist()
    return [0, *counts] if pixels[0] else counts


@pytest.mark.parametrize('share', [0, 0.03, 0.5, 0.97, 1])
def test_texts_of_run_lengths(share):
    """They are those that pycocotools wrote."""
    random = np.random.default_rng(0)
    for shape in ((1, 1), (7, 9), (300, 211)):
        mask = (random.random(shape) < share).astype(np.uint8)
        runs = coco_masks.encode(np.asfortranarray(mask))
        assert read_counts(runs['counts']).tolist() == runs_of(mask)
        assert read_counts(runs['counts'].decode()).tolist() == runs_of(mask)
        assert find_fault(runs, shape[::-1]) is None


def runs(counts, size=(HEIGHT, WIDTH)):
    return dict(size=size, counts=counts)


@pytest.mark.parametrize(
    'outline, kind',
    [
        ([[0, 0, 9, 0, 9, 7.5]], None),
        ([[-REACH, 0, 9 + REACH, 0, 9, 7]], None),
        ([[-REACH - 1, 0, 9, 0, 9, 7]], FAR),
        ([[0, 0, 9, 0, 9, 7], [0, 0, 1e9, 0, 9, 7]], FAR),
        ([[0, 0, 9, float('nan'), 9, 7]], FAR),
        ([[0, 0, 9, float('inf'), 9, 7]], FAR),
        ([], None),
        (None, None),
        ('?', None),
        (runs([3, 60]), None),
        (runs([3.0, 60.0]), None),
        (runs([63]), None),
        (runs([3, 61]), BROKEN),
        (runs([3, 59]), BROKEN),
        (runs([-3, 66]), BROKEN),
        (runs([0, 2**40]), BROKEN),
        (runs([0.5, 62.5]), BROKEN),
        (runs([[3, 60]]), BROKEN),
        (runs([[3], 60]), BROKEN),
        (runs(None), BROKEN),
        (runs(''), BROKEN),
        (runs('~~~~~~PPPP1212~~~'), BROKEN),
        (runs('o' * 1000), BROKEN),
        (runs('é€'), BROKEN),
        (runs([3, 60], (WIDTH, HEIGHT)), OTHER_SIZE),
        (runs([3, 60], (-7, 9)), OTHER_SIZE),
        (runs([3, 60], '7x9'), OTHER_SIZE),
        (runs([0, 10**10], (10**5, 10**5)), OTHER_SIZE),
        (dict(counts=[3, 60]), OTHER_SIZE),
    ],
)
def test_faults(outline, kind):
    fault = find_fault(outline, SIZE)
    assert (fault and fault.kind) == kind


class Photos:
    """A data set as MMDetection has it."""

    def __init__(self, *outlines):
        self.outlines = outlines

    def __len__(self):
        return len(self.outlines)

    def get_data_info(self, i):
        objects = [{'mask': [[0, 0, 9, 0, 9, 7]]}, {'mask': self.outlines[i]}]
        return dict(width=9, height=7, img_path=f'{i}.jpg', instances=objects)


def test_data_sets():
    """Each photo of each part is looked at, if samples have masks."""
    right, wrong = Photos(runs([3, 60])), Photos([[0, 0, 9, 7]], runs([3, 61]))
    sample = dict(data_samples=SimpleNamespace(gt_instances=SimpleNamespace(masks=1)))
    check_outlines('train_dataloader', [right, object()], sample)
    text = 'train_dataloader: the outline of object 1 of 1.jpg .* 64 pixels, not 63'
    with pytest.raises(ValueError, match=text):
        check_outlines('train_dataloader', [right, wrong], sample)
    sample['data_samples'].gt_instances = SimpleNamespace()
    check_outlines('train_dataloader', [wrong], sample)
    check_outlines('train_dataloader', [wrong], None)
