"""UperNet with Swin-S + FeatScale on ADE20K, 1x (160k iterations), with layer-wise learning rate decay.
python tools/train.py configs/antioversmoothing/upernet_swin-s-featscale_layer-decay-1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-s.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
model = dict(backbone=dict(feat_scale=True))
# the rate is InternImage's, for UperNet with a backbone of about as many layers
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(layer_decay_rate=0.94)
)
