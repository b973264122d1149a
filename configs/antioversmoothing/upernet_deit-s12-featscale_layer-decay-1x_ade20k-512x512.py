"""UperNet with DeiT-S12 + FeatScale on ADE20K, 1x (160k iterations), with layer-wise learning rate decay.
python tools/train.py configs/antioversmoothing/upernet_deit-s12-featscale_layer-decay-1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_deit-s12.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/featscale_small_12.pth'
model = dict(backbone=dict(feat_scale=True))
# as ViT-Adapter trains UperNet with DeiT-S
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(layer_decay_rate=0.95)
)
