_base_ = './ade20k-512x512_swin-1x.py'
# as ViT-Adapter trains UperNet with DeiT-S
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(layer_decay_rate=0.95)
)
