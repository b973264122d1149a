_base_ = ['mmseg::_base_/datasets/cityscapes_768x768.py', '../schedules/cityscapes-seg_1x.py', '../seg_runtime.py']
