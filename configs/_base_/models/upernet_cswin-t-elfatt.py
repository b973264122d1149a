_base_ = './upernet_cswin-t.py'
# blocks of 196 tokens in every level, as in all of the paper's tables but the first; weights with 49, 49, 196 fit
model = dict(backbone=dict(attention='elfatt'))
