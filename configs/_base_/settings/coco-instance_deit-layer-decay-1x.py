_base_ = './coco-instance_swin-1x.py'
# as ViTDet trains plain ViTs of 12 layers (arXiv 2203.16527)
optim_wrapper = dict(
    constructor='mmlinattn.LayerDecayOptimWrapperConstructor',
    optimizer=dict(weight_decay=0.1),
    paramwise_cfg=dict(layer_decay_rate=0.7),
)
