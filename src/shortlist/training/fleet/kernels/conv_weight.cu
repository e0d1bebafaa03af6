// A convolution by its weights; conv.cuh says how.

#include "conv.cuh"

// out[block, k, n] = sum over the block's tiles' m of x[window(m), k] d[m, n]: the gradient by the weights, (R, blocks, ROWS, WN).
// A warp has MT x 16 rows k; ACROSS warps have them all, the others other pixels.
// BACK 0: d lies in a map like x, STRIDE apart. BACK 1: `grad` (R, B, H, W, CO) is the gradient by what batch norm gave for
// `before`, which may have a halo; d is made of both, as wanted here, and written for the convolution by the input that
// comes next: with a halo, STRIDE apart, or for a window of one place as `grad` is. BACK 2: it is not written.
// norm (R, 4, CO), means (R, 2, CO) those of grad and of grad times the normalised `before`.
constexpr int BM = PIXEL_BLOCK;
static_assert(BACK || !SINGLE, "d would not lie in a map like x");
constexpr int ALONG = WARPS / ACROSS;
constexpr int DS = padded(CO);
constexpr int INNER = PLACES / 2 * (WIDTH + 1);
constexpr int D_PIXELS = BACK ? BM : span(BM) + 1, X_PIXELS = span(BM) + 1 + (PLACES - 1) * (WIDTH + 1);
constexpr int BUFFER = (X_PIXELS * XS + D_PIXELS * DS + (BACK ? BM * CO : 0)) * 2;

// What the maps pass on their way to the tensor cores must not cost the second block that registers have room for.
constexpr int BLOCKS = BACK && THREADS <= 256 ? 2 : 1;

// d of BM pixels from m on: in shared memory, `grads` (padded pixels) become it with the help of `befores` (not padded).
// With a scale s, normalised n and means p, q it is s (grad - p - n q), that is f0 grad + f1 before + f2, f by channel.
__device__ __forceinline__ void pass_back(unsigned char* grads, const unsigned char* befores, int m, int count,
                                          const float* factors, bf16* d) {
    constexpr int PIECES = CO / 8;
    static_assert(!BACK || THREADS % PIECES == 0, "a thread's pieces would be of different channels");
    const int n = threadIdx.x % PIECES * 8;
    float f0[8], f1[8], f2[8];
    read8(f0, factors + n), read8(f1, factors + CO + n), read8(f2, factors + 2 * CO + n);
    for (int i = threadIdx.x; i < count * PIECES; i += THREADS) {
        uint4* at = (uint4*)(grads + (i / PIECES * DS + n) * 2);
        u32 g[4], b[4];
        *(uint4*)g = *at, *(uint4*)b = *(const uint4*)(befores + i * 16);
#pragma unroll
        for (int j = 0; j < 4; j++)
            g[j] = narrow(f0[2 * j] * lower(g[j]) + (f1[2 * j] * lower(b[j]) + f2[2 * j]),
                          f0[2 * j + 1] * upper(g[j]) + (f1[2 * j + 1] * upper(b[j]) + f2[2 * j + 1]));
        *at = *(uint4*)g;
        if (BACK == 1) *(uint4*)(d + pixel_offset<PLACES / 2, SINGLE ? 1 : STRIDE>(m + i / PIECES) * CO + n) = *(uint4*)g;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) conv_weight(
    const bf16* __restrict__ x, bf16* d, float* out, const bf16* __restrict__ grad, const bf16* __restrict__ before,
    const float* __restrict__ norms, const float* __restrict__ means, const float* __restrict__ x_norms, int x_run,
    int d_run, int grad_run, int before_run, int M) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, across = warp % ACROSS, along = warp / ACROSS;
    const long long run = blockIdx.y;
    float* x_norm = (float*)(memory + DS * 2);
    float* factors = x_norm + (NORM ? 2 * CI : 0);
    unsigned char* stretches = (unsigned char*)(factors + (BACK ? 3 * CO : 0));
    const u32 zeros = shared_address(memory), buffers = shared_address(stretches);
    x += run * x_run, d += run * d_run, grad += run * grad_run, before += run * before_run;
    const int tiles = pieces(M, BM);

    auto fetch = [&](int tile, int buffer) {
        int m = tile * BM, end = min(M, m + BM), first = place(m);
        u32 to = buffers + buffer * BUFFER, to_d = to + X_PIXELS * XS * 2;
        copy_windows(to, x, m, end);
        if (BACK) {
            constexpr int PIECES = CO / 8;
            copy_pixels<CO>(to_d, grad + (long long)m * CO, end - m);
            for (int i = threadIdx.x; i < (end - m) * PIECES; i += THREADS)
                copy16(to_d + BM * DS * 2 + i * 16, before + pixel_offset<BEFORE_HALO, 1>(m + i / PIECES) * CO + i % PIECES * 8);
        } else
            copy_pixels<CO>(to_d, d + (INNER + (long long)first) * CO, place(end - 1) - first + 1);
    };
    fetch(blockIdx.x, 0);
    for (int i = threadIdx.x; i < DS; i += THREADS) ((bf16*)memory)[i] = 0;
    if (NORM)
        for (int i = threadIdx.x; i < 2 * CI; i += THREADS) x_norm[i] = x_norms[run * 4 * CI + i];
    if (BACK)
        for (int n = threadIdx.x; n < CO; n += THREADS) {
            const float *norm = norms + run * 4 * CO + n, *mean = means + run * 2 * CO + n;
            float slope = norm[3 * CO] * mean[CO];
            factors[n] = norm[0], factors[CO + n] = -norm[0] * slope;
            factors[2 * CO + n] = norm[0] * (norm[2 * CO] * slope - mean[0]);
        }
    const int half = lane / 8 % 2, row = lane % 8 + lane / 16 * 8;
    int offset[MT];
#pragma unroll
    for (int i = 0; i < MT; i++) offset[i] = group_offset(min((across * MT + i) * 2 + half, GROUPS - 1));
    float acc[MT][NT][4] = {};

    int buffer = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, buffer ^= 1) {
        wait_for_copies();
        __syncthreads();
        if (tile + (int)gridDim.x < tiles) fetch(tile + gridDim.x, buffer ^ 1);
        const int m0 = tile * BM, end = min(M, m0 + BM);
        unsigned char* here = stretches + buffer * BUFFER;
        if (NORM) activate<1>(here, copied_pixels(m0, end), x_norm);
        if (BACK) {
            unsigned char* grads = here + X_PIXELS * XS * 2;
            pass_back(grads, grads + BM * DS * 2, m0, end - m0, factors, d);
        }
        if (NORM || BACK) __syncthreads();
        const int first = copied(m0);
        const u32 x_at = buffers + buffer * BUFFER, d_at = x_at + X_PIXELS * XS * 2;
#pragma unroll 2
        for (int step = along; step < BM / 16; step += ALONG) {
            int m = m0 + step * 16 + row, pixel = copied(min(m, M - 1)) - first;
            u32 of_d = m < M ? d_at + (BACK ? m - m0 : pixel) * DS * 2 : zeros, of_x = x_at + pixel * XS * 2;
            u32 b[NT + 1][2], r[4], a[4];
#pragma unroll
            for (int t = 0; t < NT; t += 2) {
                load4_turned(r, of_d + (t * 8 + (t + 1 < NT ? half * 8 : 0)) * 2);
                b[t][0] = r[0], b[t][1] = r[2], b[t + 1][0] = r[1], b[t + 1][1] = r[3];
            }
#pragma unroll
            for (int i = 0; i < MT; i++) {
                load4_turned(a, of_x + offset[i]);
#pragma unroll
                for (int t = 0; t < NT; t++) multiply_add(acc[i][t], a, b[t][0], b[t][1]);
            }
        }
    }
    // the warps that had the same rows add up, in shared memory
    float* sums = (float*)memory + across * MT * NT * 128;
    for (int turn = 1; turn < ALONG; turn++) {
        __syncthreads();
        if (along == turn)
#pragma unroll
            for (int i = 0; i < MT * NT * 4; i++) sums[i * 32 + lane] = acc[i / (NT * 4)][i / 4 % NT][i % 4];
        __syncthreads();
        if (along == 0)
#pragma unroll
            for (int i = 0; i < MT * NT * 4; i++) acc[i / (NT * 4)][i / 4 % NT][i % 4] += sums[i * 32 + lane];
    }
    if (along > 0) return;
    out += (run * gridDim.x + blockIdx.x) * ROWS * WN;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int t = 0; t < NT; t++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int k = (across * MT + i) * 16 + h * 8 + lane / 4;
                if (k < TAPS * CI)
                    *(float2*)(out + k * WN + t * 8 + lane % 4 * 2) = make_float2(acc[i][t][2 * h], acc[i][t][2 * h + 1]);
            }
}
