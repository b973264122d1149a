"""Mask R-CNN with Swin-S + FeatScale on COCO, 1x (12 epochs), with layer-wise learning rate decay.
python tools/train.py configs/antioversmoothing/mask-rcnn_swin-s-featscale_fpn_layer-decay-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-s.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(feat_scale=True))
# the rate is InternImage's, for detectors whose backbone has about as many layers
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(layer_decay_rate=0.9)
)
