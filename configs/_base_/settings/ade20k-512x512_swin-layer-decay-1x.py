_base_ = './ade20k-512x512_swin-1x.py'
# the rate is InternImage's, for UperNet with a backbone of about as many layers
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(layer_decay_rate=0.94)
)
