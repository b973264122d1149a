"""What padding costs detectors: small objects on photos of many sizes, in batches.

Small RetinaNets learn circles, squares and triangles of 6 to 12 pixels, 2 to 5 in a
photo of 64 to 160 pixels a side, in batches of eight. Each is tested one by one and in
batches of eight, with and without ``mask_padding``. PHOTOS is a NumPy archive of photos
of 224 x 224 pixels as WebP, `data` (bytes of all) and `sizes`. Results are
docs/benchmarks/padding.json.

    python benchmarks/padding.py --photos PHOTOS --work FOLDER --out FILE --seeds 3
"""

import argparse
import io
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torchvision.ops import box_iou

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmengine.config import Config
from mmengine.runner import Runner

CLASSES = ('circle', 'square', 'triangle')
NUM_TRAIN, NUM_TEST, EPOCHS, BATCH = 480, 200, 10, 8


def draw(photos: list[Image.Image], folder: Path, seed: int) -> None:
    """Writes photos with shapes, and their COCO file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    images, annotations = [], []
    for number, photo in enumerate(photos):
        width, height = rng.integers(64, 161, 2).tolist()
        left, top = (int(rng.integers(0, 224 - side + 1)) for side in (width, height))
        photo = photo.crop((left, top, left + width, top + height))
        pen = ImageDraw.Draw(photo)
        for _ in range(rng.integers(2, 6)):
            side = int(rng.integers(6, 13))
            x, y = (int(rng.integers(0, extent - side)) for extent in (width, height))
            kind = int(rng.integers(3))
            color = tuple(rng.integers(0, 256, 3).tolist())
            corners = (x, y, x + side - 1, y + side - 1)
            if kind == 0:
                pen.ellipse(corners, color)
            elif kind == 1:
                pen.rectangle(corners, color)
            else:
                tip = (x + side // 2, y)
                pen.polygon((tip, (x, corners[3]), (corners[2], corners[3])), color)
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=number,
                    category_id=kind,
                    bbox=[x, y, side, side],
                    area=side * side,
                    iscrowd=0,
                )
            )
        photo.save(folder / f'{number}.png')
        images.append(
            dict(id=number, file_name=f'{number}.png', width=width, height=height)
        )
    categories = [dict(id=i, name=name) for i, name in enumerate(CLASSES)]
    coco = dict(images=images, annotations=annotations, categories=categories)
    (folder / 'coco.json').write_text(json.dumps(coco))


def unpack(path: str, num: int) -> list[Image.Image]:
    archive = np.load(path)
    ends = archive['sizes'].cumsum()
    data = archive['data'].tobytes()
    places = np.random.default_rng(0).permutation(len(ends))[:num]
    return [
        Image.open(io.BytesIO(data[ends[i] - archive['sizes'][i] : ends[i]])).convert(
            'RGB'
        )
        for i in places
    ]


LINEAR = dict(type='mmlinattn.LinearSOFTPlusPlus', arch='micro', img_size=160)
ELFATT = dict(
    type='mmlinattn.SwinTransformer',
    attention='elfatt',
    arch=dict(embed_dims=32, depths=[1, 2, 4, 2], num_heads=[1, 2, 4, 8]),
)
PVT = dict(type='PyramidVisionTransformerV2', embed_dims=32, num_layers=[2, 2, 2, 2])
SWIN = dict(
    type='SwinTransformer', embed_dims=32, depths=[1, 2, 4, 2], num_heads=[1, 2, 4, 8]
)
# name: backbone, channels; rows of `exact` are those of docs/claims/exact.json
MODELS = {
    'linear': (dict(LINEAR, mask_padding=False), [32, 64, 96, 160]),
    'linear, masked': (dict(LINEAR, mask_padding=True), [32, 64, 96, 160]),
    'elfatt': (dict(ELFATT, mask_padding=False), [32, 64, 128, 256]),
    'elfatt, masked': (dict(ELFATT, mask_padding=True), [32, 64, 128, 256]),
    'PVTv2-B0 of MMDetection': (PVT, [32, 64, 160, 256]),
    'Swin of MMDetection': (SWIN, [32, 64, 128, 256]),
    'linear, exact diagonal': (
        dict(LINEAR, mask_padding=False, exact_window=1),
        [32, 64, 96, 160],
    ),
    'linear, exact windows of 7': (
        dict(LINEAR, mask_padding=False, exact_window=7),
        [32, 64, 96, 160],
    ),
}


def config(backbone: dict, channels: list[int], work: Path, seed: int) -> Config:
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='LoadAnnotations', with_bbox=True),
    ]
    pack = dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    )
    data = dict(
        type='CocoDataset',
        metainfo=dict(classes=CLASSES),
        ann_file='coco.json',
        data_prefix=dict(img=''),
    )
    resize = dict(type='Resize', scale_factor=1.0)
    train = dict(
        data,
        data_root=str(work / 'train'),
        pipeline=[*pipeline, resize, dict(type='RandomFlip', prob=0.5), pack],
    )
    val = dict(
        data,
        data_root=str(work / 'val'),
        test_mode=True,
        pipeline=[*pipeline, resize, pack],
    )
    loader = dict(num_workers=0, persistent_workers=False)
    return Config(
        dict(
            default_scope='mmdet',
            custom_imports=dict(imports=['mmlinattn.models']),
            model=dict(
                type='RetinaNet',
                data_preprocessor=dict(
                    type='DetDataPreprocessor',
                    mean=[123.675, 116.28, 103.53],
                    std=[58.395, 57.12, 57.375],
                    bgr_to_rgb=True,
                    pad_size_divisor=32,
                ),
                backbone=backbone,
                neck=dict(
                    type='FPN', in_channels=channels, out_channels=48, num_outs=4
                ),
                bbox_head=dict(
                    type='RetinaHead',
                    num_classes=3,
                    in_channels=48,
                    stacked_convs=2,
                    feat_channels=48,
                    anchor_generator=dict(
                        type='AnchorGenerator',
                        octave_base_scale=2,
                        scales_per_octave=2,
                        ratios=[1.0],
                        strides=[4, 8, 16, 32],
                    ),
                    bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
                    loss_cls=dict(
                        type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25
                    ),
                    loss_bbox=dict(type='L1Loss'),
                ),
                train_cfg=dict(
                    assigner=dict(
                        type='MaxIoUAssigner',
                        pos_iou_thr=0.5,
                        neg_iou_thr=0.4,
                        min_pos_iou=0,
                        ignore_iof_thr=-1,
                    ),
                    sampler=dict(type='PseudoSampler'),
                    allowed_border=-1,
                    pos_weight=-1,
                ),
                test_cfg=dict(
                    nms_pre=500,
                    min_bbox_size=0,
                    score_thr=0.02,
                    nms=dict(type='nms', iou_threshold=0.5),
                    max_per_img=50,
                ),
            ),
            train_dataloader=dict(
                loader,
                batch_size=BATCH,
                sampler=dict(type='DefaultSampler', shuffle=True),
                dataset=train,
            ),
            val_dataloader=dict(
                loader,
                batch_size=1,
                sampler=dict(type='DefaultSampler', shuffle=False),
                dataset=val,
            ),
            val_evaluator=dict(
                type='CocoMetric', ann_file=str(work / 'val/coco.json'), metric='bbox'
            ),
            train_cfg=dict(
                type='EpochBasedTrainLoop', max_epochs=EPOCHS, val_interval=1000
            ),
            val_cfg=dict(type='ValLoop'),
            optim_wrapper=dict(
                type='OptimWrapper',
                optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
                clip_grad=dict(max_norm=5.0),
            ),
            param_scheduler=[
                dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=60),
                dict(
                    type='CosineAnnealingLR',
                    T_max=EPOCHS,
                    convert_to_iter_based=True,
                    eta_min=1e-5,
                ),
            ],
            default_hooks=dict(
                checkpoint=None, logger=dict(type='LoggerHook', interval=40)
            ),
            randomness=dict(seed=seed),
            work_dir=str(work / 'runs'),
            log_level='INFO',
        )
    )


def predict(model: torch.nn.Module, dataset, batch: int) -> tuple[list, float]:
    """Predictions for all images, and the share of padding in their batches."""
    model.eval()
    samples, valid, canvas = [], 0, 0
    with torch.no_grad():
        for start in range(0, len(dataset), batch):
            items = [dataset[i] for i in range(start, min(start + batch, len(dataset)))]
            data = dict(
                inputs=[item['inputs'] for item in items],
                data_samples=[item['data_samples'] for item in items],
            )
            outs = model.test_step(data)
            for out in outs:
                valid += math.prod(out.img_shape[:2])
                canvas += math.prod(out.batch_input_shape)
            samples += outs
    return samples, 1 - valid / canvas


def score(samples: list, evaluator) -> dict:
    evaluator.process([sample.to_dict() for sample in samples], None)
    metrics = evaluator.evaluate(len(samples))
    return {key: metrics[f'coco/bbox_{key}'] for key in ('mAP', 'mAP_50', 'mAP_s')}


def changed(alone: list, together: list) -> float:
    """Share of boxes of score 0.3 or more without a counterpart: one of the same class,
    with an overlap of at least 0.9 and a score that differs by at most 0.05."""
    lost = total = 0
    for first, second in ((alone, together), (together, alone)):
        for a, b in zip(first, second):
            a, b = a.pred_instances, b.pred_instances
            a = a[a.scores >= 0.3]
            total += len(a)
            if not len(b):
                lost += len(a)
                continue
            same = box_iou(a.bboxes, b.bboxes) >= 0.9
            same &= a.labels[:, None] == b.labels
            same &= (a.scores[:, None] - b.scores).abs() <= 0.05
            lost += int((~same.any(1)).sum())
    return round(lost / max(total, 1), 4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument('--photos', required=True)
    parser.add_argument('--work', required=True, type=Path)
    parser.add_argument('--out', required=True, type=Path)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--models', nargs='*', default=list(MODELS))
    parser.add_argument('--epochs', type=int, default=EPOCHS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if not (args.work / 'train').exists():
        photos = unpack(args.photos, NUM_TRAIN + NUM_TEST)
        draw(photos[:NUM_TRAIN], args.work / 'train', 0)
        draw(photos[NUM_TRAIN:], args.work / 'val', 1)
    rows = json.loads(args.out.read_text()) if args.out.exists() else []
    for seed in range(args.seeds):
        for name in args.models:
            if any(row['model'] == name and row['seed'] == seed for row in rows):
                continue
            began = time.time()
            cfg = config(*MODELS[name], args.work, seed)
            cfg.train_cfg.max_epochs = args.epochs
            cfg.param_scheduler[1].T_max = args.epochs
            cfg.experiment_name = f'{time.time()}'
            runner = Runner.from_cfg(cfg)
            runner.train()
            model, dataset = runner.model, runner.val_dataloader.dataset
            evaluator = runner.val_loop.evaluator
            row: dict = dict(model=name, seed=seed)
            masks = [False, True] if hasattr(model.backbone, 'mask_padding') else [None]
            for mask in masks:
                if mask is not None:
                    model.backbone.mask_padding = mask
                alone, share = predict(model, dataset, 1)
                together, share8 = predict(model, dataset, BATCH)
                part = dict(
                    alone=score(alone, evaluator),
                    together=score(together, evaluator),
                    changed=changed(alone, together),
                    padding=[round(share, 3), round(share8, 3)],
                )
                row['as it is' if not mask else 'masked'] = part
            row['minutes'] = round((time.time() - began) / 60, 1)
            rows.append(row)
            args.out.write_text(json.dumps(rows, indent=1))
            print('ROW', row, flush=True)


if __name__ == '__main__':
    main()
