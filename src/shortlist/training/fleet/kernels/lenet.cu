// The LeNet's first layer, forward and by its weights, the moments of images that were moved, and the way back through the
// second pool, in bf16.
//
// Triton's version of the first layer (lenet.py) gathers every window number by number. Here some images lie in shared
// memory twice, the second time moved by one pixel. So two neighbouring pixels are one aligned word wherever they begin,
// and a word is what the tensor cores want in a register.
//
// Given by -D: H, W (of the pooled map), WARPS, BLOCKS (how many a multiprocessor should have room for, which limits their
// registers); the first layer and the moments want IMAGES (how many at a time), `first` CODE as well (whether the winners of
// the pool are kept), `moments` WIDTH (of its rows), `pool_back` CHANNELS (padded), REAL (not padded), WN (row length of the
// norms).

constexpr int THREADS = WARPS * 32;
constexpr int PLACES = H * W;  // of the pooled map

struct __align__(16) Four {
    u32 x[4];
};

#ifdef IMAGES
constexpr int C = 24, N = 32, K = 32, TAPS = 25;        // N, K: of the matrix of weights, whose row 25 is the bias
constexpr int ROW = W + 2, WORDS = ROW * (2 * H + 4);   // of an image with a halo of 2, in words of two pixels
constexpr int MOVED = (IMAGES * WORDS + 31) / 32 * 32 + 8;  // where the moved images begin: in other banks
constexpr int BOTH = (MOVED + IMAGES * WORDS + 3) / 4 * 4;

// Images tile * IMAGES and following of the batch to shared memory, as they are and moved by one pixel.
__device__ __forceinline__ void load_images(u32* to, const bf16* images, const long long* index, int tile, int B) {
    constexpr int PIECES = WORDS / 4;
    for (int i = threadIdx.x; i < IMAGES * PIECES; i += THREADS) {
        int piece = i % PIECES;
        const u32* from = (const u32*)images + index[min(tile * IMAGES + i / PIECES, B - 1)] * WORDS + piece * 4;
        Four here = *(const Four*)from, moved;
        u32 next = from[piece + 1 < PIECES ? 4 : 3];  // behind the last pixel: anything finite, its weight is zero
#pragma unroll
        for (int j = 0; j < 4; j++) moved.x[j] = here.x[j] >> 16 | (j < 3 ? here.x[(j + 1) % 4] : next) << 16;
        *(Four*)(to + i * 4) = here;
        *(Four*)(to + MOVED + i * 4) = moved;
    }
}

// Where the upper left window of a pooled place of the tile begins.
__device__ __forceinline__ int window(int m) {
    int place = m % PLACES;
    return m / PLACES * WORDS + place / W * 2 * ROW + place % W;
}
#endif

#ifdef CODE
// 5 x 5 convolution with batch norm folded in, ReLU, 2 x 2 max pool. images (items, 2H + 4, 2W + 4), index (R, B), w (R, K, N),
// h (R, B, H + 4, W + 4, C) with a halo. code (R, B, H, W, C / 2 bytes): which corner won, 4 where none is above zero; four
// bits a channel. A row of the window is three words, the sixth number meeting a weight of zero: 15 words of 16.
constexpr int STAGE = 16 * C / 2, STAGE_CODE = 16 * C / 8;

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) first(
    const bf16* __restrict__ images, const long long* __restrict__ index, const bf16* __restrict__ w, bf16* h,
    u32* code, int h_run, int B) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, word = lane % 4;
    const long long run = blockIdx.y;
    u32* pixels = (u32*)memory;
    u32* stage = pixels + BOTH + warp * (STAGE + STAGE_CODE);  // the warp's results, put in order
    u32* stage_code = stage + STAGE;
    index += run * B, w += run * K * N, h += run * h_run, code += run * B * PLACES * (C / 8);

    int offset[2][2];
    u32 b[2][3][2];
    float bias[3][2];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int of = i * 4 + word, down = of / 3, across = of % 3 * 2;
        offset[i / 2][i % 2] = of < 15 ? down * ROW + of % 3 : 0;
#pragma unroll
        for (int t = 0; t < 3; t++) {
            const bf16* from = w + (down * 5 + across) * N + t * 8 + row;
            u32 low = of < 15 ? from[0] : 0, high = of < 15 && across < 4 ? from[N] : 0;
            b[i / 2][t][i % 2] = low | high << 16;
        }
    }
#pragma unroll
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 2; i++) bias[t][i] = widen(w[TAPS * N + t * 8 + word * 2 + i]);

    for (int tile = blockIdx.x; tile * IMAGES < B; tile += gridDim.x) {
        __syncthreads();  // nobody is left in the images before
        load_images(pixels, images, index, tile, B);
        __syncthreads();
        const int places = min(IMAGES, B - tile * IMAGES) * PLACES;
        for (int m0 = warp * 16; m0 < places; m0 += WARPS * 16) {
            int at[2];
#pragma unroll
            for (int half = 0; half < 2; half++) at[half] = window(min(m0 + half * 8 + row, places - 1));
            float best[3][4] = {};
            u32 won[3][4];
#pragma unroll
            for (int i = 0; i < 12; i++) won[i / 4][i % 4] = 4 << i % 2 * 4;
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const u32* corner = pixels + q / 2 * ROW + q % 2 * MOVED;
                float z[3][4];
#pragma unroll
                for (int i = 0; i < 12; i++) z[i / 4][i % 4] = bias[i / 4][i % 2];
#pragma unroll
                for (int step = 0; step < 2; step++) {
                    u32 a[4];
#pragma unroll
                    for (int i = 0; i < 4; i++) a[i] = corner[at[i % 2] + offset[step][i / 2]];
#pragma unroll
                    for (int t = 0; t < 3; t++) multiply_add(z[t], a, b[step][t][0], b[step][t][1]);
                }
#pragma unroll
                for (int i = 0; i < 12; i++) {
                    float &old = best[i / 4][i % 4], now = z[i / 4][i % 4];
                    if (CODE && now > old) won[i / 4][i % 4] = q << i % 2 * 4;
                    old = now > old ? now : old;
                }
            }
            __syncwarp();  // what lay here is written
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int t = 0; t < 3; t++) {
                    int to = (half * 8 + row) * (C / 2) + t * 4 + word;
                    stage[to] = narrow(best[t][half * 2], best[t][half * 2 + 1]);
                    if (CODE) ((unsigned char*)stage_code)[to] = won[t][half * 2] | won[t][half * 2 + 1];
                }
            __syncwarp();
            for (int i = lane; i < STAGE / 4; i += 32) {
                int m = m0 + i / 3, place = m % PLACES;
                if (m >= places) continue;
                int to = ((tile * IMAGES + m / PLACES) * (H + 4) + place / W + 2) * (W + 4) + place % W + 2;
                *(Four*)(h + (long long)to * C + i % 3 * 8) = ((Four*)stage)[i];
            }
            // places come in fours, so the last 16 bytes are whole, too
            if (CODE && lane < STAGE_CODE / 4 && lane * 16 < (places - m0) * (C / 2))
                ((Four*)(code + (long long)(tile * IMAGES * PLACES + m0) * (C / 8)))[lane] = ((Four*)stage_code)[lane];
        }
    }
}
#endif

#ifdef BY_WEIGHTS
// out (R, blocks, K, N): the gradient by the folded weights of `first`; d (R, B, H, W, C), code as `first` left it.
// The sum runs over pixels in pairs, the two neighbours at the top or at the bottom of a pooled place: of the place's four
// pixels one at most has a gradient. Channels 0 to 15 are dealt out in turn to the first two tiles of eight, so that a lane
// reads two at once.
constexpr int D_AT = BOTH, CODE_AT = D_AT + IMAGES * PLACES * C / 2;  // in words

// The gradients of a place's top and bottom pair.
__device__ __forceinline__ void corners(u32 (&to)[2], u32 d, u32 code) {
    u32 pair = code % 2 ? d << 16 : d;
    to[0] = code < 2 ? pair : 0, to[1] = code / 2 == 1 ? pair : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) first_weights(
    const bf16* __restrict__ images, const long long* __restrict__ index, const bf16* __restrict__ d,
    const u32* __restrict__ code, float* out, int B) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4;
    const long long run = blockIdx.y;
    u32* pixels = (u32*)memory;
    const u32 *slopes = pixels + D_AT, *codes = pixels + CODE_AT;
    const u32 slopes_at = shared_address(slopes), codes_at = shared_address(codes);
    index += run * B, d += run * B * PLACES * C, code += run * B * PLACES * (C / 8);

    int offset[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int tap = min(i * 8 + row, TAPS - 1);
        offset[i] = tap / 5 * ROW + tap % 5 / 2 + tap % 5 % 2 * MOVED;
    }
    float acc[2][3][4] = {};
    for (int tile = blockIdx.x; tile * IMAGES < B; tile += gridDim.x) {
        const int places = min(IMAGES, B - tile * IMAGES) * PLACES;
        const long long before = (long long)tile * IMAGES * PLACES;
        __syncthreads();
        for (int i = threadIdx.x; i < places * C / 8; i += THREADS) copy16(slopes_at + i * 16, d + before * C + i * 8);
        for (int i = threadIdx.x; i < places * C / 32; i += THREADS)
            copy16(codes_at + i * 16, code + before * (C / 8) + i * 4);
        load_images(pixels, images, index, tile, B);
        wait_for_copies();
        __syncthreads();
#pragma unroll 2
        for (int m0 = warp * 4; m0 < places; m0 += WARPS * 4) {
            int m = m0 + lane % 4, at = window(m);
            u32 two = slopes[m * (C / 2) + row], one = ((const bf16*)slopes)[m * C + 16 + row];
            u32 of_two = ((const unsigned char*)codes)[m * (C / 2) + row], of_one = codes[m * (C / 8) + 2] >> row * 4;
            u32 b[3][2];
            corners(b[0], two & 0xffff, of_two & 15);
            corners(b[1], two >> 16, of_two >> 4);
            corners(b[2], one, of_one & 15);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                u32 a[4];
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    a[j] = pixels[at + offset[i * 2 + j % 2] + j / 2 * ROW];
                    if (i == 1 && j % 2 == 1 && row == 1) a[j] = 0x3f803f80;  // row 25, the bias: ones
                }
#pragma unroll
                for (int t = 0; t < 3; t++) multiply_add(acc[i][t], a, b[t][0], b[t][1]);
            }
        }
    }
    float* sums = (float*)memory;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 24; i++) sums[(warp * 24 + i) * 32 + lane] = acc[i / 12][i / 4 % 3][i % 4];
    __syncthreads();
    out += (run * gridDim.x + blockIdx.x) * K * N;
    for (int i = threadIdx.x; i < 24 * 32; i += THREADS) {
        float sum = 0;
        for (int of = 0; of < WARPS; of++) sum += sums[of * 24 * 32 + i];
        int from = i % 32, t = i / 128 % 3, k = i / 384 * 16 + i / 64 % 2 * 8 + from / 4, n = from % 4 * 2 + i / 32 % 2;
        out[k * N + (t < 2 ? n * 2 + t : 16 + n)] = sum;
    }
}
#endif

#ifdef WIDTH
// out (R, blocks, WIDTH): over all windows of a block's images, the sums of the 25 places and of the products of any two, as
// `image_moments` orders them. The windows are a matrix of places and pixels, multiplied by itself turned round: a place's
// words of two neighbouring pixels are the registers of both factors, so each is read once. The sums are the products with
// row 25, of ones. Below the diagonal nothing is asked for: 6 of 8 tiles are left.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) moments(
    const bf16* __restrict__ images, const long long* __restrict__ index, float* out, int B) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4;
    const long long run = blockIdx.y;
    u32* pixels = (u32*)memory;
    index += run * B;

    int offset[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int tap = min(i * 8 + row, TAPS - 1);
        offset[i] = tap / 5 * ROW + tap % 5 / 2 + tap % 5 % 2 * MOVED;
    }
    float acc[6][4] = {};
    for (int tile = blockIdx.x; tile * IMAGES < B; tile += gridDim.x) {
        const int pairs = min(IMAGES, B - tile * IMAGES) * 2 * PLACES;  // a multiple of eight
        __syncthreads();
        load_images(pixels, images, index, tile, B);
        __syncthreads();
        for (int m0 = warp * 8; m0 < pairs; m0 += WARPS * 8) {
            u32 x[4][2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int m = m0 + half * 4 + lane % 4, pair = m % (2 * PLACES);
                const u32* at = pixels + m / (2 * PLACES) * WORDS + pair / W * ROW + pair % W;
#pragma unroll
                for (int i = 0; i < 4; i++) x[i][half] = at[offset[i]];
                if (row == 1) x[3][half] = 0x3f803f80;  // row 25: ones
            }
#pragma unroll
            for (int i = 0; i < 6; i++) {
                const int down = i / 4 * 2, across = i < 4 ? i : i - 2;
                const u32 a[4] = {x[down][0], x[down + 1][0], x[down][1], x[down + 1][1]};
                multiply_add(acc[i], a, x[across][0], x[across][1]);
            }
        }
    }
    float* sums = (float*)memory;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 24; i++) sums[(warp * 24 + i) * 32 + lane] = acc[i / 4][i % 4];
    __syncthreads();
    out += (run * gridDim.x + blockIdx.x) * WIDTH;
    for (int i = threadIdx.x; i < 24 * 32; i += THREADS) {
        float sum = 0;
        for (int of = 0; of < WARPS; of++) sum += sums[of * 24 * 32 + i];
        int from = i % 32, t = i / 128, k = t / 4 * 16 + i / 64 % 2 * 8 + from / 4;
        int n = (t < 4 ? t : t - 2) * 8 + from % 4 * 2 + i / 32 % 2;
        if (k < TAPS && n == TAPS) out[k] = sum;
        if (k <= n && n < TAPS) out[TAPS + k * TAPS - k * (k + 1) / 2 + n] = sum;
    }
}
#endif

#ifdef REAL
// The way back through 2 x 2 max pool, ReLU and batch norm, the sums over the map being known: dy = scale (dz - mean of dz
// - xhat mean of dz xhat). y (R, B, 2H, 2W, CHANNELS), norms (R, 4, WN) scale, shift, mean, 1 / deviation, means (R, 2, WN),
// d (R, B, d_row) with REAL channels a place, out (R, B, 2H + 4, 2W + 4, CHANNELS) with a halo. A thread has eight channels,
// the same of every place, and reads its next place before it writes the last.
constexpr int GROUPS = CHANNELS / 8, AT_ONCE = THREADS / GROUPS;

struct Place {
    Four y[4];
    u32 d[4];
};

__device__ __forceinline__ void read(Place& to, const bf16* y, const bf16* d, int m, int d_row, int group) {
    int image = m / PLACES, place = m % PLACES;
    y += (long long)((image * 2 * H + place / W * 2) * 2 * W + place % W * 2) * CHANNELS + group * 8;
#pragma unroll
    for (int q = 0; q < 4; q++) to.y[q] = *(const Four*)(y + (q / 2 * 2 * W + q % 2) * CHANNELS);
    d += (long long)image * d_row + place * REAL + group * 8;
#pragma unroll
    for (int i = 0; i < 4; i++) to.d[i] = group * 8 + i * 2 < REAL ? *(const u32*)(d + i * 2) : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) pool_back(
    const bf16* __restrict__ y, const float* __restrict__ norms, const float* __restrict__ means,
    const bf16* __restrict__ d, bf16* out, int y_run, int d_run, int d_row, int out_run, int M) {
    const int group = threadIdx.x % GROUPS;
    const long long run = blockIdx.y;
    y += run * y_run, d += run * d_run, out += run * out_run;
    norms += run * 4 * WN + group * 8, means += run * 2 * WN + group * 8;
    float scale[8], shift[8], by[8], plus[8];  // what every pixel gets is by * y + plus
#pragma unroll
    for (int i = 0; i < 8; i++) {
        scale[i] = norms[i], shift[i] = norms[WN + i];
        by[i] = -scale[i] * norms[3 * WN + i] * means[WN + i];
        plus[i] = -scale[i] * means[i] - norms[2 * WN + i] * by[i];
    }
    int m = threadIdx.x < GROUPS * AT_ONCE ? blockIdx.x * AT_ONCE + threadIdx.x / GROUPS : M;  // the last threads have none
    Place next;
    if (m < M) read(next, y, d, m, d_row, group);
    while (m < M) {
        Place now = next;
        int image = m / PLACES, place = m % PLACES;
        bf16* to = out + (long long)((image * (2 * H + 4) + place / W * 2 + 2) * (2 * W + 4) + place % W * 2 + 2) * CHANNELS;
        m += gridDim.x * AT_ONCE;
        if (m < M) read(next, y, d, m, d_row, group);
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            float g[2][4];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int i = pair * 2 + half;
                float z[4], s = scale[i] * widen(now.d[pair] >> half * 16);
#pragma unroll
                for (int q = 0; q < 4; q++) {
                    float at = widen(now.y[q].x[pair] >> half * 16);
                    z[q] = at * scale[i] + shift[i], g[half][q] = at * by[i] + plus[i];
                }
                float best = fmaxf(fmaxf(z[0], z[1]), fmaxf(z[2], z[3]));
                s = best > 0 ? s : 0;
#pragma unroll
                for (int q = 0; q < 4; q++)
                    if (z[q] == best) g[half][q] += s, s = 0;  // of equal ones the first takes it
            }
#pragma unroll
            for (int q = 0; q < 4; q++) now.y[q].x[pair] = narrow(g[0][q], g[1][q]);
        }
#pragma unroll
        for (int q = 0; q < 4; q++) *(Four*)(to + (q / 2 * (2 * W + 4) + q % 2) * CHANNELS + group * 8) = now.y[q];
    }
}
#endif
