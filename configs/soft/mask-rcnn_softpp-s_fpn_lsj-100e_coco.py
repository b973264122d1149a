"""Mask R-CNN with SOFT++-Small on COCO, 100 epochs of large-scale jittering.
python tools/train.py configs/soft/mask-rcnn_softpp-s_fpn_lsj-100e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-s.py', '../_base_/settings/coco-instance_lsj-100e.py']
model = dict(data_preprocessor=dict(batch_augments=[dict(type='BatchFixedSizePad', size=(1024, 1024), pad_mask=True)]))
