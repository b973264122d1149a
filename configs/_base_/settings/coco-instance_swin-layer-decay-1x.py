_base_ = './coco-instance_swin-1x.py'
# the rate is InternImage's, for detectors whose backbone has about as many layers
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor', paramwise_cfg=dict(layer_decay_rate=0.9)
)
