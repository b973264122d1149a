"""Mask R-CNN with DeiT-S12 + FeatScale on COCO, 1x (12 epochs), with layer-wise learning rate decay.
python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s12-featscale_sfp_layer-decay-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s12-featscale.py', '../_base_/settings/coco-instance_deit-layer-decay-1x.py']
