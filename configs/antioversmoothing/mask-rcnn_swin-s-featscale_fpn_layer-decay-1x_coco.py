"""Mask R-CNN with Swin-S + FeatScale on COCO, 1x (12 epochs), with layer-wise learning rate decay.
python tools/train.py configs/antioversmoothing/mask-rcnn_swin-s-featscale_fpn_layer-decay-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-s-featscale.py', '../_base_/settings/coco-instance_swin-layer-decay-1x.py']
