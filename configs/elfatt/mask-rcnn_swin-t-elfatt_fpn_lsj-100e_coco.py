"""Mask R-CNN with Swin-T-ELFATT on COCO, 100 epochs of large-scale jittering.
python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_lsj-100e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_lsj-100e.py']
model = dict(
    backbone=dict(attention='elfatt'),
    data_preprocessor=dict(batch_augments=[dict(type='BatchFixedSizePad', size=(1024, 1024), pad_mask=True)]),
)
# as Swin and VMamba train detectors
optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1000)
