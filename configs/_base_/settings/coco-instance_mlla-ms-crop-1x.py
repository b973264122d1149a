"""12 epochs as MLLA trains detectors: AdamW with weight decay 0.05, 500 iterations of warm-up, and the images that
others keep for 3x.

They are flipped; of half of them the shorter side is drawn from 480-800, half are made 400-600 large, cropped to
384-600 and resized to 480-800, as DETR trains: MMDetection's for Swin.
"""

_base_ = './coco-instance_1x.py'

__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmdet::swin/mask-rcnn_swin-t-p4-w7_fpn_ms-crop-3x_coco.py'
)
train_pipeline = __theirs.train_pipeline
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
