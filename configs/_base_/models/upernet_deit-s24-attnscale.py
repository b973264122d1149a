_base_ = './upernet_deit-s12-attnscale.py'
model = dict(backbone=dict(num_layers=24, out_indices=(5, 11, 17, 23)))
