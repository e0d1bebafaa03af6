// Convolutions of many runs at once on the tensor cores, bf16 with sums in float32.
//
// A tile is BM consecutive output pixels of a run's batch. In a map with a halo, which is one piece of memory, all their
// windows lie in one contiguous stretch: it is copied to shared memory once, and the places of the window are read
// from there (Triton's version reads it once per place). A block takes every gridDim.x-th tile of its run and copies the
// next stretch while it works on one. Pixels are padded to an odd number of 16-byte pieces, so that eight of them in a
// row hit different banks.
//
// A window of one place may lie in a map with any halo; its pixels are copied one by one, so with a stride those between
// them are not read.
//
// NORM: x is what batch norm was given. Batch norm and ReLU are applied in shared memory, while the next stretch is copied,
// so an activation that only convolutions read is never written. x's halo is then of NaNs: ReLU makes them zeros.
//
// Given by -D: PLACES (window), STRIDE, H, W (output), CI and CO (channels, multiples of 8), WN (row length of the weight
// matrix and of the sums), HALO (of x), NORM, WARPS, MT (tiles of 16 a warp has); `conv` wants SUMS, ADD, MASK, Y_HALO,
// BEFORE_HALO, `conv_weight` wants PIXEL_BLOCK, ACROSS, ROWS, BACK, BEFORE_HALO.

constexpr int TAPS = PLACES * PLACES;
constexpr bool SINGLE = PLACES == 1;
static_assert(SINGLE || HALO == PLACES / 2, "a wider window reads its halo");
constexpr int WIDTH = W * STRIDE + 2 * HALO, HEIGHT = H * STRIDE + 2 * HALO;
constexpr int GROUPS = TAPS * CI / 8;  // the rows of the weight matrix, in eights
constexpr int NT = CO / 8;
constexpr int THREADS = WARPS * 32;

__device__ constexpr int padded(int channels) { return channels / 8 % 2 ? channels : channels + 8; }
__device__ constexpr int pieces(int pixels, int whole) { return (pixels + whole - 1) / whole; }

// How many pixels of a map with a halo the windows of `pixels` outputs may span, without the window of the last.
__device__ constexpr int span(int pixels) {
    return SINGLE ? pixels : pixels * STRIDE + pieces(pixels, W) * (WIDTH - W) * STRIDE +
           pieces(pixels, H * W) * (HEIGHT - H * STRIDE) * WIDTH;
}

constexpr int XS = padded(CI);

// Where output pixel m lies in a map with a halo whose pixels are STEP apart; FIRST is the place of the first.
template <int AROUND, int STEP, int FIRST = AROUND>
__device__ __forceinline__ int lies(int m) {
    if (AROUND == 0 && STEP == 1) return m;
    int image = m / (H * W), inside = m % (H * W);
    return (image * (H * STEP + 2 * AROUND) + inside / W * STEP + FIRST) * (W * STEP + 2 * AROUND) + inside % W * STEP +
           FIRST;
}

// Where the window of output pixel m begins, in pixels of x.
__device__ __forceinline__ int place(int m) { return lies<HALO, STRIDE, HALO - PLACES / 2>(m); }

// The same in pixels as they are copied, up to where the first of a tile lies.
__device__ __forceinline__ int copied(int m) { return SINGLE ? m : place(m); }

// Where eight channels of a place of the window lie, in bytes from the window's beginning.
__device__ constexpr int group_offset(int group) {
    int tap = group * 8 / CI;
    return ((tap / PLACES * WIDTH + tap % PLACES) * XS + group * 8 % CI) * 2;
}

template <int CHANNELS>
__device__ __forceinline__ void copy_pixels(u32 to, const bf16* from, int pixels) {
    constexpr int PIECES = CHANNELS / 8;
    for (int i = threadIdx.x; i < pixels * PIECES; i += THREADS)
        copy16(to + (i / PIECES * padded(CHANNELS) + i % PIECES * 8) * 2, from + i * 8);
}

// How many pixels are copied for the windows of output pixels m to end - 1.
__device__ __forceinline__ int copied_pixels(int m, int end) {
    return SINGLE ? end - m : place(end - 1) - place(m) + 1 + (PLACES - 1) * (WIDTH + 1);
}

__device__ __forceinline__ void copy_windows(u32 to, const bf16* x, int m, int end) {
    if (SINGLE) {
        constexpr int PIECES = CI / 8;
        for (int i = threadIdx.x; i < (end - m) * PIECES; i += THREADS)
            copy16(to + (i / PIECES * XS + i % PIECES * 8) * 2, x + place(m + i / PIECES) * CI + i % PIECES * 8);
    } else
        copy_pixels<CI>(to, x + (long long)place(m) * CI, copied_pixels(m, end));
}

__device__ __forceinline__ float lower(u32 both) { return widen(both); }
__device__ __forceinline__ float upper(u32 both) { return widen(both >> 16); }

// Eight neighbouring numbers of shared memory.
__device__ __forceinline__ void read8(float (&to)[8], const float* from) {
    *(float4*)to = *(const float4*)from, *(float4*)(to + 4) = *(const float4*)(from + 4);
}

// Batch norm (scale, shift by channel) and ReLU of copied pixels, in place. The pieces of a thread are all of the same
// channels. AT_ONCE are read before the first is written: the compiler must not move loads over stores.
template <int AT_ONCE>
__device__ __forceinline__ void activate(unsigned char* pixels, int count, const float* norm) {
    constexpr int PIECES = CI / 8, STEP = THREADS / PIECES * XS * 2;
    static_assert(!NORM || THREADS % PIECES == 0, "a thread's pieces would be of different channels");
    float scale[8], shift[8];
    read8(scale, norm + threadIdx.x % PIECES * 8), read8(shift, norm + CI + threadIdx.x % PIECES * 8);
    unsigned char* at = pixels + (threadIdx.x / PIECES * XS + threadIdx.x % PIECES * 8) * 2;
    for (int left = pieces(count * PIECES - (int)threadIdx.x, THREADS); left > 0; left -= AT_ONCE, at += AT_ONCE * STEP) {
        u32 v[AT_ONCE][4];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (k < left) *(uint4*)v[k] = *(const uint4*)(at + k * STEP);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[k][j] = narrow(fmaxf(lower(v[k][j]) * scale[2 * j] + shift[2 * j], 0),
                                 fmaxf(upper(v[k][j]) * scale[2 * j + 1] + shift[2 * j + 1], 0));
            if (k < left) *(uint4*)(at + k * STEP) = *(uint4*)v[k];
        }
    }
}

#ifdef MASK
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
    if (SUMS == 2) read<COUNT>(beside.before, before + lies<BEFORE_HALO, 1>(m) * CO + n);
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
            if (SUMS == 2) expect_pixels(before, lies<BEFORE_HALO, 1>(m), lies<BEFORE_HALO, 1>(last) + 1);
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
                bf16* to = y + lies<Y_HALO, 1>(m) * CO;
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
#endif

#ifdef ACROSS
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
        if (BACK == 1) *(uint4*)(d + lies<PLACES / 2, SINGLE ? 1 : STRIDE>(m + i / PIECES) * CO + n) = *(uint4*)g;
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
                copy16(to_d + BM * DS * 2 + i * 16, before + lies<BEFORE_HALO, 1>(m + i / PIECES) * CO + i % PIECES * 8);
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
#endif
