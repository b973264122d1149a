_base_ = './upernet_soft-s.py'
model = dict(
    data_preprocessor=dict(size=(768, 768)),
    decode_head=dict(num_classes=19),
    auxiliary_head=dict(num_classes=19),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)
