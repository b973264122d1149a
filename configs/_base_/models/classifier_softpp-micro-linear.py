_base_ = './classifier_softpp-t-linear.py'
model = dict(backbone=dict(arch='micro', drop_path_rate=0.0), head=dict(in_channels=160))
