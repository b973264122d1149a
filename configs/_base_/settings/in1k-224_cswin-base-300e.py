_base_ = ['../datasets/in1k_224_cswin.py', '../schedules/in1k_300e_cswin-base.py', '../cls_runtime.py']
