_base_ = './upernet_deit-s12.py'
# no weights of 24 layers are public
pretrained = None
model = dict(backbone=dict(num_layers=24, out_indices=(5, 11, 17, 23)))
