"""Kernels of the fleets: every kernel serves all runs at once, the run being one dimension of its grid.

Triton, but for the convolutions in bf16 and what is around them in the LeNet, which are CUDA (`conv.cu`, `lenet.cu`,
compiled where they run by `nvrtc`).

Layouts. Images and feature maps are channels last. Maps that a convolution reads carry a halo of zeros as wide as its
padding, so a window is a plain offset and no load needs a mask. Where batch norm and ReLU are applied as a map is read,
its halo is of NaNs: ReLU makes them zeros. Channels are padded to a multiple of 8 (16-byte loads); padded channels have
zero weights and stay zero. Convolution weights are (K, N) matrices: K counts window places times input channels, padded
with zero rows to whole blocks; N is the output channels padded to a power of two.

Importing a module of this package imports Triton, so it is done where a kernel is launched, not before.
"""
