_base_ = './upernet_softpp-t.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
