// A convolution, forward and by its input; conv.cuh says how.

#include "conv.cuh"

// y[m, n] = sum_k x[window(m), k] w[k, n]; x (R, B, HEIGHT, WIDTH, CI), w (R, rows, WN), y (R, B, H, W, CO). The gradient by x
// is the same on the gradient by y, with the window turned round and its channels swapped. ADD: `added` is added, a map
// like y or y itself (1), or one that has only every second pixel and row (2).
// SUMS 1: sums (R, blocks, 2, WN) of y and its squares. SUMS 2: y is the gradient by an activation. What did not pass the
// ReLU is set to zero, which MASK finds in `passed` (1; a bit for each, (R, B, H, W, CO / 8)) or makes again from what
// batch norm was given (2), `before`; and sums of y and of y times the normalised `before`. norm (R, 4, CO). y and `before`
// may have a halo.
constexpr int BM = WARPS * MT * 16;
constexpr int STEPS = (GROUPS + 1) / 2;
constexpr int WS = padded(CO);
constexpr int PIXELS = span(BM) + (PLACES - 1) * (WIDTH + 1) + 1;
constexpr bool HELD = STEPS * NT <= 20;  // few enough weights to stay in registers

// The column of the weights in shared memory: within 16, so that a lane's sums are those of four neighbouring channels.
__device__ __forceinline__ int column(int n) {
    return n / 16 < NT / 2 ? n / 16 * 16 + n % 4 / 2 * 8 + n % 16 / 4 * 2 + n % 2 : n;
}

// The first channel whose sums a lane has in tile t and its right neighbour, or in a last tile alone.
__device__ __forceinline__ int channel(int t, int lane) { return t * 8 + lane % 4 * (t + 1 < NT ? 4 : 2); }

// The row of `added`, where it has only every second, that output pixel m or the one above it meets.
__device__ __forceinline__ int half_row(int m) { return m / (H * W) * (H / 2) + m % (H * W) / W / 2; }

// Whether output pixel m meets one of `added`, and which.
__device__ __forceinline__ bool meets(int m) { return ADD == 1 || (m % (H * W) / W % 2 == 0 && m % W % 2 == 0); }
__device__ __forceinline__ int met(int m) { return ADD == 1 ? m : half_row(m) * (W / 2) + m % W / 2; }

__device__ __forceinline__ void load_weights(u32 (&b)[NT][2], u32 weights, int step, int lane) {
    u32 r[4];
#pragma unroll
    for (int pair = 0; pair < (NT + 1) / 2; pair++) {
        bool whole = 2 * pair + 1 < NT;
        load4_turned(r, weights + ((step * 16 + lane % 16) * WS + pair * 16 + (whole ? lane / 16 * 8 : 0)) * 2);
        b[2 * pair][0] = r[0], b[2 * pair][1] = r[1];
        if (whole) b[2 * pair + 1][0] = r[2], b[2 * pair + 1][1] = r[3];
    }
}

// COUNT neighbouring channels of a pixel.
template <int COUNT>
__device__ __forceinline__ void read(u32 (&to)[2], const bf16* from) {
    if (COUNT == 4)
        *(uint2*)to = *(const uint2*)from;
    else
        to[0] = *(const u32*)from;
}

__device__ __forceinline__ float one(const u32 (&of)[2], int i) { return widen(of[i / 2] >> (i % 2 * 16)); }

// What the kernel's end needs of them beside their sums.
struct Beside {
    u32 old[2], before[2], passed;
};

template <int COUNT>
__device__ __forceinline__ void read_beside(Beside& beside, int m, int n, const bf16* added, const bf16* before,
                                            const unsigned char* passed) {
    beside.old[0] = beside.old[1] = 0;
    if (ADD && meets(m)) read<COUNT>(beside.old, added + met(m) * CO + n);
    if (SUMS == 2) read<COUNT>(beside.before, before + pixel_offset<BEFORE_HALO, 1>(m) * CO + n);
    if (MASK == 1) beside.passed = passed[(m * CO + n) / 8] >> n % 8;
}

// The kernel's end for them: v into y, and their sums into s.
template <int COUNT>
__device__ __forceinline__ void finish(float (&v)[4], float* s, bf16* y, const Beside& beside, const float* norm) {
    float before[4];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        if (SUMS == 2) before[i] = one(beside.before, i);
        if (ADD) v[i] += one(beside.old, i);
        if (MASK == 1 && !(beside.passed >> i & 1)) v[i] = 0;
        if (MASK == 2 && !(before[i] * norm[i] + norm[CO + i] > 0)) v[i] = 0;
    }
    u32 both[2];
#pragma unroll
    for (int i = 0; i < COUNT; i += 2) both[i / 2] = narrow(v[i], v[i + 1]);
    if (COUNT == 4)
        *(uint2*)y = *(uint2*)both;
    else
        *(u32*)y = both[0];
    if (SUMS)
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            float kept = one(both, i);  // sums are those of what is stored
            s[i] += kept;
            s[2 * NT + i] += kept * (SUMS == 1 ? kept : (before[i] - norm[2 * CO + i]) * norm[3 * CO + i]);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) conv(
    const bf16* __restrict__ x, const bf16* __restrict__ w, bf16* y, float* sums, const bf16* __restrict__ before,
    const unsigned char* __restrict__ passed, const float* __restrict__ norms, const float* __restrict__ x_norms,
    const bf16* added, int x_run, int w_run, int y_run, int before_run, int passed_run, int added_run, int M) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long run = blockIdx.y;
    float* norm = (float*)memory;
    float* parts = norm + 4 * CO;
    float* x_norm = parts + WARPS * 2 * CO;
    bf16* kept = (bf16*)(x_norm + (NORM ? 2 * CI : 0));
    unsigned char* stretches = (unsigned char*)(kept + STEPS * 16 * WS);
    const u32 weights = shared_address(kept), buffers = shared_address(stretches);
    x += run * x_run, w += run * w_run, y += run * y_run;
    before += run * before_run, passed += run * passed_run, added += run * added_run;
    const int tiles = pieces(M, BM);

    auto fetch = [&](int tile, int buffer) {
        int m = tile * BM, end = min(M, m + BM), last = end - 1;
        copy_windows(buffers + buffer * PIXELS * XS * 2, x, m, end);
        if (threadIdx.x == 0) {  // what the end reads had better be near by then
            auto expect_pixels = [](const bf16* map, int from, int to) { expect(map + from * CO, (to - from) * CO * 2); };
            auto expect_bits = [](const unsigned char* bits, int from, int to) {  // in whole sixteens of bytes
                unsigned long long begin = (unsigned long long)(bits + from * CO / 8) / 16 * 16;
                expect((const void*)begin, (int)((unsigned long long)(bits + to * CO / 8) + 15 - begin) / 16 * 16);
            };
            if (ADD == 1) expect_pixels(added, m, end);
            if (ADD == 2) expect_pixels(added, half_row(m) * (W / 2), (half_row(last) + 1) * (W / 2));
            if (SUMS == 2) expect_pixels(before, pixel_offset<BEFORE_HALO, 1>(m), pixel_offset<BEFORE_HALO, 1>(last) + 1);
            if (MASK == 1) expect_bits(passed, m, end);
        }
    };
    fetch(blockIdx.x, 0);
    for (int i = threadIdx.x; i < STEPS * 16 * CO / 2; i += THREADS) {
        int k = i / (CO / 2), n = i % (CO / 2) * 2;
        *(u32*)(kept + k * WS + column(n)) = k < TAPS * CI ? *(const u32*)(w + (long long)k * WN + n) : 0;
    }
    if (SUMS == 2)
        for (int i = threadIdx.x; i < 4 * CO; i += THREADS) norm[i] = norms[run * 4 * CO + i];
    if (NORM)
        for (int i = threadIdx.x; i < 2 * CI; i += THREADS) x_norm[i] = x_norms[run * 4 * CI + i];
    u32 held[HELD ? STEPS : 1][NT][2];
    if (HELD) {
        __syncthreads();
#pragma unroll
        for (int step = 0; step < STEPS; step++) load_weights(held[HELD ? step : 0], weights, step, lane);
    }
    float s[4 * NT] = {};

    int buffer = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, buffer ^= 1) {
        wait_for_copies();
        __syncthreads();  // this stretch is here, and nobody is left in the other buffer
        if (tile + (int)gridDim.x < tiles) fetch(tile + gridDim.x, buffer ^ 1);
        if (NORM) {  // while the next is on its way
            int m = tile * BM, end = min(M, m + BM);
            activate<4>(stretches + buffer * PIXELS * XS * 2, copied_pixels(m, end), x_norm);
            __syncthreads();
        }
        const int m0 = tile * BM + warp * MT * 16, first = copied(tile * BM);
        u32 at[MT];
#pragma unroll
        for (int i = 0; i < MT; i++)
            at[i] = buffers + (buffer * PIXELS + copied(min(m0 + i * 16 + lane % 16, M - 1)) - first) * XS * 2;
        float acc[MT][NT][4] = {};
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            // a last odd group meets weights of zero
            int offset = lane < 16 ? group_offset(2 * step) : group_offset(min(2 * step + 1, GROUPS - 1));
            u32 a[MT][4], b[NT][2];
            if (!HELD) load_weights(b, weights, step, lane);
#pragma unroll
            for (int i = 0; i < MT; i++) load4(a[i], at[i] + offset);
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int t = 0; t < NT; t++) {
                    const u32(&of)[2] = HELD ? held[HELD ? step : 0][t] : b[t];
                    multiply_add(acc[i][t], a[i], of[0], of[1]);
                }
        }
#pragma unroll
        for (int i = 0; i < MT; i++) {
            Beside beside[2][(NT + 1) / 2];  // all that is read of 16 pixels, before the first is written
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int m = m0 + i * 16 + h * 8 + lane / 4;
                if (m >= M) continue;
#pragma unroll
                for (int t = 0; t < NT; t += 2) {
                    if (t + 1 < NT)
                        read_beside<4>(beside[h][t / 2], m, channel(t, lane), added, before, passed);
                    else
                        read_beside<2>(beside[h][t / 2], m, channel(t, lane), added, before, passed);
                }
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int m = m0 + i * 16 + h * 8 + lane / 4;
                if (m >= M) continue;
                bf16* to = y + pixel_offset<Y_HALO, 1>(m) * CO;
#pragma unroll
                for (int t = 0; t < NT; t += 2) {
                    int n = channel(t, lane);
                    float(&low)[4] = acc[i][t];
                    float(&high)[4] = acc[i][t + 1 < NT ? t + 1 : t];
                    float v[4] = {low[h * 2], low[h * 2 + 1], high[h * 2], high[h * 2 + 1]};
                    if (t + 1 < NT)
                        finish<4>(v, s + 2 * t, to + n, beside[h][t / 2], norm + n);
                    else
                        finish<2>(v, s + 2 * t, to + n, beside[h][t / 2], norm + n);
                }
            }
        }
    }
    if (SUMS) {
#pragma unroll
        for (int i = 0; i < 4 * NT; i++)
            for (int distance = 4; distance < 32; distance *= 2) s[i] += from_lane_across(s[i], distance);
        if (lane < 4)
#pragma unroll
            for (int i = 0; i < 2 * NT; i++) {
                int n = channel(i / 4 * 2, lane) + i % 4;
                parts[(warp * 2) * CO + n] = s[i], parts[(warp * 2 + 1) * CO + n] = s[2 * NT + i];
            }
        __syncthreads();
        for (int i = threadIdx.x; i < 2 * CO; i += THREADS) {
            float sum = 0;
            for (int of = 0; of < WARPS; of++) sum += parts[of * 2 * CO + i];
            sums[((run * gridDim.x + blockIdx.x) * 2 + i / CO) * WN + i % CO] = sum;
        }
    }
}
